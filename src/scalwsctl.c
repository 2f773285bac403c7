/*
 * scalwsctl: asks a running daemon, by one line over its control socket, and
 * prints the answer. The daemon knows the verbs; here are their arguments.
 * Ends with the exit code that the daemon says (src/ipc/control.h).
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/addr.h"
#include "src/base/fdutil.h"
#include "src/base/mem.h"
#include "src/conf/conf.h"
#include "src/ipc/control.h"

/* An answer line: the longest that an app may print, and what we add. */
#define ANSWER_LINE_MAX (1024 * 1024)
#define CONF_BYTES_MAX (16 * 1024 * 1024)
#define DEFAULT_LINES "20"
/* For what scalwsd answers at once: then it is said that we still wait, and
 * then the waiting ends where nothing was asked for but a look. */
#define NOTE_MS 5000
#define GIVE_UP_MS 15000

static const char usage_text[] =
    "usage: scalwsctl [-s SOCKET] [-c FILE] COMMAND\n"
    "  status [APP] [--json]    states, processes and counters\n"
    "  start APP                start it and wait until it is ready\n"
    "  stop APP                 drain and stop it, wait until it is gone\n"
    "  restart [--all] APP      replace its processes, new ones first, one\n"
    "                           after the other or all at once\n"
    "  scale APP N              run N processes of it, until the\n"
    "                           configuration says another number\n"
    "  logs [-f] [-n N] APP     what it printed; -f: and prints\n"
    "  reopen                   open all log files by name again\n"
    "  reload [--dry-run]       take on the changed configuration, or\n"
    "                           print what would change\n"
    "  upgrade                  run the scalwsd that is installed now\n"
    "  check                    check the configuration file\n"
    "  version                  of the running daemon\n"
    "  -s SOCKET  control socket (default: as the configuration says)\n"
    "  -c FILE    configuration (default " SCALWS_SYSCONFDIR "/scalws.conf)\n"
    "  -h, -V     print this; print scalwsctl's own version\n"
    "exit code: 0 done, 1 it failed, 2 wrong usage, 3 no daemon, 4 not "
    "allowed,\n"
    "5 (status APP) it does not run\n";

struct invocation {
	const char *socket, *conf_path;
	const char *verb;
	const char *app;    /* or NULL */
	const char *number; /* of processes, or NULL */
	const char *lines;
	bool json, follow, all, dry;
};

static int
usage(const char *what, const char *which)
{
	fprintf(stderr, "scalwsctl: %s%s%s\n%s", what, which == NULL ? "" : " ",
	    which == NULL ? "" : which, usage_text);
	return CONTROL_USAGE;
}

/* ---- finding the daemon ---- */

/* The text in quotes after `key` and its sign, the first in `text` that does
 * not stand in a comment line. The caller frees it; NULL: there is none. */
static char *
find_value(const char *text, const char *key)
{
	const char *at = text, *line, *end;
	size_t len = strlen(key);

	for (; (at = strstr(at, key)) != NULL; at += len) {
		line = at;
		while (line > text && line[-1] != '\n')
			line--;
		line += strspn(line, " \t");
		if (*line == '#' || strncmp(line, "//", 2) == 0)
			continue;
		end = at + len + strspn(at + len, " \t=:");
		if (*end == '"' && strchr(end + 1, '"') != NULL)
			return mem_memdup0(end + 1, strcspn(end + 1, "\""));
	}
	return NULL;
}

/* A file with errors is what people want to reload or to look at the status
 * with: guess the socket, the daemon will say what is wrong. The caller frees
 * it. */
static char *
guess_socket(const char *conf_path)
{
	const char *user_dir = getenv("XDG_RUNTIME_DIR");
	char *text = NULL, *path = NULL, *run, *group;
	size_t len;

	if (fd_read_file(conf_path, CONF_BYTES_MAX, &text, &len) == -1)
		return NULL;
	run = find_value(text, "run_directory");
	group = strstr(text, "control");
	if (group != NULL)
		path = find_value(group, "socket");
	if (path == NULL && run != NULL)
		path = mem_printf("%s/control.sock", run);
	if (path == NULL && geteuid() != 0 && user_dir != NULL)
		path = mem_printf("%s/scalws/control.sock", user_dir);
	if (path == NULL)
		path = mem_strdup(SCALWS_RUNSTATEDIR "/scalws/control.sock");
	if (access(path, F_OK) == -1) {
		mem_free(path);
		path = NULL;
	}
	mem_free(run);
	mem_free(text);
	return path;
}

/* The control socket that the configuration names; the caller frees it. NULL
 * after a message. */
static char *
find_socket(const char *conf_path)
{
	struct conf_errors errors;
	struct conf *conf;
	char *path = NULL;

	conf_errors_init(&errors);
	conf = conf_load(conf_path, &errors);
	if (conf != NULL)
		path = mem_strdup(conf->control.socket);
	else
		path = guess_socket(conf_path);
	if (path == NULL)
		fprintf(stderr,
		    "%sscalwsctl: the control socket is named there; give it "
		    "with -s SOCKET\n",
		    errors.text.ptr);
	conf_free(conf);
	conf_errors_free(&errors);
	return path;
}

static int
connect_to(const char *path)
{
	static const struct timeval patience = { GIVE_UP_MS / 1000, 0 };
	struct addr addr;
	char *full = path[0] == '/' ? NULL : realpath(path, NULL);
	int error, fd, good = addr_unix(full != NULL ? full : path, &addr);

	free(full);
	if (good == -1) {
		fprintf(stderr, "scalwsctl: %s: no such socket\n", path);
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* A daemon that hangs does not take connections for ever. */
	if (fd != -1 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience,
			    sizeof(patience)) == -1)
		fd_close(&fd);
	if (fd != -1 && connect(fd, &addr.u.sa, addr.len) == 0)
		return fd;
	error = errno;
	fprintf(stderr, "scalwsctl: %s: %s\n", path,
	    error == EAGAIN ? "scalwsd does not answer" : strerror(error));
	if (error == ENOENT || error == ECONNREFUSED)
		fprintf(stderr, "scalwsctl: no scalwsd runs there; start it, "
				"or name its socket with -s or its "
				"configuration with -c\n");
	else if (error == EACCES)
		fprintf(stderr, "scalwsctl: try sudo, or be in the group "
				"control.group of the configuration\n");
	fd_close(&fd);
	errno = error;
	return -1;
}

/* ---- the answer ---- */

/* One line; sets *code and returns true at the end of the answer. */
static bool
show_line(struct str line, int *code)
{
	struct str text;
	int said;

	switch (control_parse_answer(line, &text, &said)) {
	case CONTROL_OUT:
		fwrite(text.ptr, 1, text.len, stdout);
		fputc('\n', stdout);
		return false;
	case CONTROL_ERR:
		fflush(stdout);
		fwrite(text.ptr, 1, text.len, stderr);
		fputc('\n', stderr);
		return false;
	case CONTROL_EXIT:
		*code = said;
		return true;
	case CONTROL_BAD:
		break;
	}
	fprintf(stderr, "scalwsctl: the answer is not understood; is that "
			"socket scalwsd's?\n");
	*code = CONTROL_UNREACHABLE;
	return true;
}

/* Show all lines in `text` that are whole; what remains is moved to its
 * front. */
static bool
show_lines(char *text, size_t *len, int *code)
{
	size_t at = 0;
	bool done = false;
	char *end;

	while (!done && (end = memchr(text + at, '\n', *len - at)) != NULL) {
		size_t line_len = (size_t)(end - text) - at;

		done = show_line((struct str){ text + at, line_len }, code);
		at += line_len + 1;
	}
	memmove(text, text + at, *len - at);
	*len -= at;
	return done;
}

/* SIGINT and SIGTERM come out of a descriptor from now on; -1: they do not. */
static int
catch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	return sigprocmask(SIG_BLOCK, &set, NULL) == -1
		   ? -1
		   : signalfd(-1, &set, SFD_CLOEXEC);
}

/* Wait for more of the answer. Who is interrupted hears that his command is
 * not, and we end by that signal. */
static void
wait_for_more(int fd, int signals, const char *verb)
{
	struct pollfd polls[] = { { fd, POLLIN, 0 }, { signals, POLLIN, 0 } };
	struct signalfd_siginfo caught;
	sigset_t set;

	if (poll(polls, 2, -1) <= 0 || (polls[1].revents & POLLIN) == 0 ||
	    read(signals, &caught, sizeof(caught)) != sizeof(caught))
		return;
	fflush(stdout);
	fprintf(stderr,
	    "scalwsctl: interrupted; scalwsd goes on with the %s, see: "
	    "scalwsctl status\n",
	    verb);
	sigemptyset(&set);
	sigaddset(&set, (int)caught.ssi_signo);
	signal((int)caught.ssi_signo, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise((int)caught.ssi_signo);
}

/* Who is at the other end; 0: not known. */
static int
daemon_pid(int fd)
{
	struct ucred peer = { .pid = 0 };
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0
		   ? (int)peer.pid
		   : 0;
}

/* Wait for the first of the answer. False: it does not come, and nobody waits
 * for it any more. */
static bool
wait_for_first(int fd, bool gives_up)
{
	struct pollfd polls = { fd, POLLIN, 0 };

	if (poll(&polls, 1, NOTE_MS) != 0)
		return true;
	fprintf(stderr,
	    "scalwsctl: scalwsd (pid %d) has not answered for %d s, waiting\n",
	    daemon_pid(fd), NOTE_MS / 1000);
	if (!gives_up || poll(&polls, 1, GIVE_UP_MS - NOTE_MS) != 0)
		return true;
	fprintf(stderr,
	    "scalwsctl: scalwsd does not answer; is process %d stopped, or "
	    "does it hang?\n",
	    daemon_pid(fd));
	return false;
}

/* `goes_on`: what was asked for does not end with us. */
static int
show_answer(int fd, const char *verb, bool goes_on)
{
	int signals = goes_on ? catch_signals() : -1;
	char *text = mem_alloc(ANSWER_LINE_MAX);
	int code = CONTROL_UNREACHABLE;
	size_t len = 0;
	bool done = false;

	while (!done && len < ANSWER_LINE_MAX) {
		ssize_t n;

		if (signals != -1)
			wait_for_more(fd, signals, verb);
		n = read(fd, text + len, ANSWER_LINE_MAX - len);
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
		done = show_lines(text, &len, &code);
		/* Whoever follows a log wants it now. */
		if (fflush(stdout) != 0)
			break;
	}
	if (!done)
		fprintf(stderr, "scalwsctl: scalwsd went away before it was "
				"done\n");
	fd_close(&signals);
	mem_free(text);
	return code;
}

/* Something that scalwsd does, and that takes its time? */
static bool
is_long(const char *verb)
{
	static const char *const verbs[] = { "start", "stop", "restart",
		"scale", "reload", "upgrade" };

	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (strcmp(verb, verbs[i]) == 0)
			return true;
	return false;
}

/* Something that it answers at once? */
static bool
is_quick(const struct invocation *invocation)
{
	const char *verb = invocation->verb;

	return strcmp(verb, "status") == 0 || strcmp(verb, "version") == 0 ||
	       strcmp(verb, "reopen") == 0 ||
	       (strcmp(verb, "logs") == 0 && !invocation->follow);
}

/* What it answers, in time or at all. */
static int
hear(int fd, const struct invocation *invocation, const char *verb)
{
	bool looks = strcmp(verb, "reopen") != 0;

	if (is_quick(invocation) && !wait_for_first(fd, looks))
		return CONTROL_UNREACHABLE;
	return show_answer(fd, verb, is_long(verb) && !invocation->dry);
}

static int
ask(const struct invocation *invocation)
{
	const char *args[4] = { NULL, NULL, NULL, NULL };
	struct strbuf request = STRBUF_EMPTY;
	const char *verb = invocation->verb;
	char *found = NULL;
	int fd, code = CONTROL_UNREACHABLE;

	if (invocation->socket == NULL) {
		found = find_socket(invocation->conf_path);
		if (found == NULL)
			return CONTROL_UNREACHABLE;
	}
	args[0] = invocation->app;
	if (strcmp(verb, "logs") == 0) {
		args[1] = invocation->lines;
		args[2] = invocation->follow ? "1" : "0";
	}
	if (invocation->number != NULL)
		args[1] = invocation->number;
	if (invocation->all)
		args[1] = "all";
	if (invocation->dry)
		args[0] = "dry";
	if (invocation->json)
		verb = "status-json";
	control_encode(&request, verb, args);
	fd = connect_to(found != NULL ? found : invocation->socket);
	if (fd != -1) {
		if (send(fd, request.ptr, request.len, MSG_NOSIGNAL) ==
		    (ssize_t)request.len)
			code = hear(fd, invocation, verb);
		else
			fprintf(stderr,
			    "scalwsctl: scalwsd does not listen: "
			    "%s\n",
			    strerror(errno));
		close(fd);
	} else if (errno == EACCES) {
		code = CONTROL_DENIED;
	}
	strbuf_free(&request);
	mem_free(found);
	return code;
}

/* ---- the command line ---- */

enum app_argument { NO_APP, MAY_NAME_APP, NEEDS_APP };

static const struct {
	const char *verb;
	enum app_argument app;
} verbs[] = {
	{ "status", MAY_NAME_APP },
	{ "start", NEEDS_APP },
	{ "stop", NEEDS_APP },
	{ "restart", NEEDS_APP },
	{ "scale", NEEDS_APP },
	{ "logs", NEEDS_APP },
	{ "reopen", NO_APP },
	{ "reload", NO_APP },
	{ "upgrade", NO_APP },
	{ "check", NO_APP },
	{ "version", NO_APP },
};

static int
check_verb(const struct invocation *invocation)
{
	bool logs, status, scale;

	if (invocation->verb == NULL)
		return usage("what shall it do?", NULL);
	logs = strcmp(invocation->verb, "logs") == 0;
	status = strcmp(invocation->verb, "status") == 0;
	scale = strcmp(invocation->verb, "scale") == 0;
	if (invocation->all && strcmp(invocation->verb, "restart") != 0)
		return usage("--all belongs to restart", NULL);
	if (invocation->dry && strcmp(invocation->verb, "reload") != 0)
		return usage("--dry-run belongs to reload", NULL);
	if (scale && invocation->number == NULL)
		return usage("say how many processes after", "scale APP");
	if (!scale && invocation->number != NULL)
		return usage("too many words:", invocation->number);
	if (invocation->json && !status)
		return usage("--json belongs to status", NULL);
	if (!logs && (invocation->follow || invocation->lines != NULL))
		return usage("-f and -n belong to logs", NULL);
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		if (strcmp(verbs[i].verb, invocation->verb) != 0)
			continue;
		if (verbs[i].app == NEEDS_APP && invocation->app == NULL)
			return usage("name the app after", invocation->verb);
		if (verbs[i].app == NO_APP && invocation->app != NULL)
			return usage("nothing comes after", invocation->verb);
		return 0;
	}
	return usage("unknown command", invocation->verb);
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "all", no_argument, NULL, 'a' },
		{ "dry-run", no_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	struct invocation invocation = { .conf_path =
					     SCALWS_SYSCONFDIR "/scalws.conf" };
	int option, result;

	while ((option = getopt_long(argc, argv, "s:c:fn:hV", options, NULL)) !=
	       -1) {
		switch (option) {
		case 's':
			invocation.socket = optarg;
			break;
		case 'c':
			invocation.conf_path = optarg;
			break;
		case 'f':
			invocation.follow = true;
			break;
		case 'n':
			invocation.lines = optarg;
			break;
		case 'j':
			invocation.json = true;
			break;
		case 'a':
			invocation.all = true;
			break;
		case 'd':
			invocation.dry = true;
			break;
		case 'h':
			fputs(usage_text, stdout);
			return 0;
		case 'V':
			printf("scalwsctl %s\n", SCALWS_VERSION);
			return 0;
		default:
			fputs(usage_text, stderr);
			return CONTROL_USAGE;
		}
	}
	if (optind < argc)
		invocation.verb = argv[optind++];
	if (optind < argc)
		invocation.app = argv[optind++];
	if (optind < argc)
		invocation.number = argv[optind++];
	if (optind < argc)
		return usage("too many words:", argv[optind]);
	result = check_verb(&invocation);
	if (result != 0)
		return result;
	if (invocation.lines == NULL)
		invocation.lines = DEFAULT_LINES;
	return ask(&invocation);
}
