/*
 * What workers and the registry have to tell the supervisor, from any thread:
 * goes by mail to the main thread, and from there over the channel.
 * Reads nothing and waits for no answer.
 */
#include <stdio.h>

#include "proxy/proxy_state.h"
#include "src/base/log.h"
#include "src/base/mem.h"

/* Lines of apps' error streams on their way to it. */
#define OUTPUT_MAX 256

/* A message on its way to the main thread, which sends it. */
struct told {
	struct mail mail;
	struct proxy *proxy;
	enum channel_type type;
	struct channel_instance instance;
	struct channel_probed probed;
	struct channel_stuck stuck;
	struct channel_output output;
	char *text; /* WANT: the app, PROBED: why not, OUTPUT: the line */
	char request[64];
};

static void
send_told(struct worker *worker, struct mail *mail)
{
	struct told *told = CONTAINER_OF(mail, struct told, mail);
	struct frame_out *out = &told->proxy->out;

	if (told->type == CHANNEL_PROBED) {
		told->probed.text = told->text;
		channel_put_probed(out, CHANNEL_PROBED, &told->probed);
	} else if (told->type == CHANNEL_STUCK) {
		channel_put_stuck(out, CHANNEL_STUCK, &told->stuck);
	} else if (told->type == CHANNEL_OUTPUT) {
		told->output.line = told->text;
		told->output.request = told->request;
		channel_put_output(out, CHANNEL_OUTPUT, &told->output);
		atomic_fetch_sub_explicit(
		    &told->proxy->n_output, 1, memory_order_relaxed);
	} else if (told->type == CHANNEL_WANT) {
		struct channel_app app = { told->text, CHANNEL_APP_STARTING, 0,
			"" };

		channel_put_app(out, CHANNEL_WANT, &app);
	} else {
		channel_put_instance(
		    out, (uint16_t)told->type, &told->instance);
	}
	proxy_channel_send(told->proxy);
	mem_free(told->text);
	mem_free(told);
}

static struct told *
new_told(struct proxy *proxy, enum channel_type type, const char *text)
{
	struct told *told = mem_alloc(sizeof(*told));

	told->mail.deliver = send_told;
	told->proxy = proxy;
	told->type = type;
	told->text = mem_strdup(text == NULL ? "" : text);
	return told;
}

static void
instance_drained(void *arg, uint64_t instance)
{
	struct proxy *proxy = arg;
	struct told *told = new_told(proxy, CHANNEL_DRAINED, NULL);

	told->instance.instance = instance;
	worker_post(proxy->main, &told->mail);
}

static void
instance_quiet(void *arg, uint64_t instance)
{
	struct proxy *proxy = arg;
	struct told *told = new_told(proxy, CHANNEL_QUIET, NULL);

	told->instance.instance = instance;
	worker_post(proxy->main, &told->mail);
}

static void
slots_released(void *arg, uint64_t instance, uint32_t slots)
{
	struct proxy *proxy = arg;
	struct told *told = new_told(proxy, CHANNEL_RELEASED, NULL);

	told->instance.instance = instance;
	told->instance.count = slots;
	worker_post(proxy->main, &told->mail);
}

static void
app_wanted(void *arg, const char *app)
{
	struct proxy *proxy = arg;
	struct told *told = new_told(proxy, CHANNEL_WANT, app);

	worker_post(proxy->main, &told->mail);
}

static void
process_stuck(void *arg, uint64_t instance, bool timed_out, uint64_t inode)
{
	struct proxy *proxy = arg;
	struct told *told = new_told(proxy, CHANNEL_STUCK, NULL);

	told->stuck.instance = instance;
	told->stuck.reason =
	    timed_out ? CHANNEL_STUCK_TIMEOUT : CHANNEL_STUCK_ABANDONED;
	told->stuck.inode = inode;
	worker_post(proxy->main, &told->mail);
}

/* Lines beyond what may wait are dropped, so that no app fills our memory. */
static void
line_written(void *arg, uint64_t instance, struct str request, struct str line)
{
	struct proxy *proxy = arg;
	struct told *told;

	if (atomic_fetch_add_explicit(
		&proxy->n_output, 1, memory_order_relaxed) >= OUTPUT_MAX) {
		atomic_fetch_sub_explicit(
		    &proxy->n_output, 1, memory_order_relaxed);
		log_warn("r=%.*s stderr of an app: more lines than its log "
			 "takes, one is left out",
		    (int)request.len, request.ptr);
		return;
	}
	told = new_told(proxy, CHANNEL_OUTPUT, NULL);
	mem_free(told->text);
	told->text = mem_printf("%.*s", (int)line.len, line.ptr);
	told->output.instance = instance;
	snprintf(told->request, sizeof(told->request), "%.*s", (int)request.len,
	    request.ptr);
	worker_post(proxy->main, &told->mail);
}

void
proxy_tell_probed(struct proxy *proxy, const struct channel_probed *probed)
{
	struct told *told = new_told(proxy, CHANNEL_PROBED, probed->text);

	told->probed = *probed;
	worker_post(proxy->main, &told->mail);
}

const struct registry_events proxy_tell_registry_events = {
	.on_drained = instance_drained,
	.on_quiet = instance_quiet,
	.on_released = slots_released,
	.on_wanted = app_wanted,
	.on_stuck = process_stuck,
	.on_output = line_written,
};
