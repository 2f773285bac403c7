/*
 * Opens all logs by their names again and says which could not be.
 * Called by commands.c and for SIGUSR1. error_log and access logs are opened
 * here, the apps' by their threads (log_writer.c), which are waited for.
 */
#include "supervisor/reopen.h"

#include <event2/event.h>

#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "supervisor/access_logs.h"
#include "supervisor/app_log.h"
#include "supervisor/control_server.h"
#include "supervisor/proxy_proc.h"
#include "supervisor/supervisor.h"

#define LOOK_MS 10
#define LOOKS 200 /* for threads that wait for their disk */

struct reopen {
	struct supervisor *supervisor;
	struct control_client *client; /* NULL: a signal asked for it */
	struct event *timer;
	int looks;
	struct strbuf findings; /* lines */
};

static void
free_reopen(struct reopen *reopen)
{
	if (reopen->supervisor->reopen == reopen)
		reopen->supervisor->reopen = NULL;
	event_free(reopen->timer);
	strbuf_free(&reopen->findings);
	mem_free(reopen);
}

static void
on_client_gone(struct control_client *client, void *arg)
{
	free_reopen(arg);
}

static void
finish(struct reopen *reopen)
{
	struct control_client *client = reopen->client;
	bool ok = reopen->findings.len == 0;
	struct str text = { reopen->findings.ptr, reopen->findings.len };

	if (ok)
		log_info("logs reopened");
	else
		log_error("not all logs were reopened");
	if (client != NULL) {
		if (ok)
			control_printf(client, 'o', "logs reopened");
		else
			control_say(client, 'e', text);
		control_on_gone(client, NULL, NULL);
		control_end(client, ok ? CONTROL_OK : CONTROL_FAILED);
	}
	free_reopen(reopen);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval soon = { 0, LOOK_MS * 1000 };
	struct reopen *reopen = arg;
	struct log_writer *writer = reopen->supervisor->log_writer;

	if (log_writer_reopened(writer) || ++reopen->looks >= LOOKS) {
		log_writer_findings(writer, &reopen->findings);
		finish(reopen);
	} else {
		event_add(reopen->timer, &soon);
	}
}

/* error_log and the access logs. */
static int
open_own(struct supervisor *supervisor, struct conf_errors *errors)
{
	const struct conf *conf = supervisor->hold->conf;
	int result = access_logs_open_error(conf, errors);
	struct channel_reopen logs;

	if (access_logs_open(conf, logs.log_fds, &logs.n_logs, errors) == -1)
		return -1;
	proxy_proc_reopen_logs(supervisor->proxy, &logs);
	while (logs.n_logs > 0)
		fd_close(&logs.log_fds[--logs.n_logs]);
	return result;
}

/* The directory is looked at only when something is missing: it may be on a
 * disk that hangs and has none of our own logs. */
static void
reopen_own(struct supervisor *supervisor, struct strbuf *findings)
{
	const struct conf *conf = supervisor->hold->conf;
	struct conf_errors errors;
	struct str rest, line;
	int result;

	conf_errors_init(&errors);
	result = open_own(supervisor, &errors);
	if (result == -1) {
		conf_errors_free(&errors);
		conf_errors_init(&errors);
		if (access_logs_make_directory(conf, &errors) == 0)
			result = open_own(supervisor, &errors);
	}
	rest = (struct str){ errors.text.ptr, errors.text.len };
	while (result == -1 && str_split(&rest, '\n', &line)) {
		if (line.len == 0)
			continue;
		log_error("%.*s", (int)line.len, line.ptr);
		strbuf_add(findings, line.ptr, line.len);
		strbuf_add(findings, "\n", 1);
	}
	conf_errors_free(&errors);
}

void
reopen_logs(struct supervisor *supervisor, struct control_client *client)
{
	struct reopen *reopen = client == NULL ? supervisor->reopen : NULL;

	if (reopen == NULL) {
		reopen = mem_alloc(sizeof(*reopen));
		reopen->supervisor = supervisor;
		reopen->client = client;
		reopen->timer = evtimer_new(supervisor->base, on_timer, reopen);
	}
	if (client != NULL)
		control_on_gone(client, on_client_gone, reopen);
	else
		supervisor->reopen = reopen;
	reopen->looks = 0;
	reopen->findings.len = 0;
	reopen_own(supervisor, &reopen->findings);
	log_writer_reopen(
	    supervisor->log_writer, supervisor->hold->conf->log_directory);
	event_active(reopen->timer, EV_TIMEOUT, 0);
}

void
reopen_free(struct supervisor *supervisor)
{
	if (supervisor->reopen != NULL)
		free_reopen(supervisor->reopen);
}
