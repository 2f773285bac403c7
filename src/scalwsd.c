/*
 * scalwsd: the daemon's command line. One binary, four roles: supervisor
 * (what a person starts), proxy, keeper and check (what the supervisor starts).
 * Does nothing itself.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proxy/proxy.h"
#include "src/base/strbuf.h"
#include "src/conf/conf.h"
#include "supervisor/supervisor.h"

#define CHANNEL_AT 3 /* where a role finds its channel */
#define STATE_AT 3   /* where a rehearsal finds the state */
#define EXIT_USAGE 2

enum {
	OPTION_ROLE = 256,
	OPTION_RESTORE,
	OPTION_REHEARSE,
	OPTION_MAN,
	OPTION_KEYS
};

static const char usage_text[] =
    "usage: scalwsd [-c FILE] [-t | -T]\n"
    "  -c FILE  configuration (default " SCALWS_SYSCONFDIR "/scalws.conf)\n"
    "  -t       check the configuration and exit\n"
    "  -T       check it, print it with all defaults, and exit\n"
    "  -V       print the version and exit\n"
    "  -h       print this and exit\n"
    "  --print-schema-man   print the options for scalws.conf(5)\n"
    "  --print-schema-keys  print all keys, for completion\n";

/* NULL: it has errors. Findings go to standard error. */
static struct conf *
look_at(const char *path, bool must_read)
{
	struct conf_errors errors;
	struct conf *conf;
	int result = 0;

	conf_errors_init(&errors);
	conf = conf_load(path, &errors);
	if (conf != NULL)
		result = supervisor_check_files(conf, must_read, &errors) |
			 proxy_check_tls(conf, must_read, &errors);
	if (result != 0) {
		conf_free(conf);
		conf = NULL;
	}
	if (errors.warnings_text.len > 0)
		fprintf(stderr, "%s", errors.warnings_text.ptr);
	if (conf == NULL)
		fprintf(stderr, "%s", errors.text.ptr);
	conf_errors_free(&errors);
	return conf;
}

/* -t and -T */
static int
check(const char *path, bool print)
{
	struct strbuf text = STRBUF_EMPTY;
	struct conf *conf = look_at(path, false);
	int result = 0;

	if (conf == NULL) {
		result = 1;
	} else if (print) {
		conf_print(conf, &text);
		fwrite(text.ptr, 1, text.len, stdout);
	} else {
		printf("%s: good\n", path);
	}
	strbuf_free(&text);
	conf_free(conf);
	return fflush(stdout) == 0 ? result : 1;
}

static int
print_schema(bool man)
{
	struct strbuf text = STRBUF_EMPTY;

	if (man)
		conf_print_man(&text);
	else
		conf_print_keys(&text);
	fwrite(text.ptr, 1, text.len, stdout);
	strbuf_free(&text);
	return fflush(stdout) == 0 ? 0 : 1;
}

/* For the daemon, which gives the findings to who asked. */
static int
run_check(const char *path)
{
	struct conf *conf;

	if (path == NULL || dup2(CHANNEL_AT, STDERR_FILENO) == -1)
		return EXIT_USAGE;
	conf = look_at(path, true);
	if (conf == NULL)
		return 1;
	conf_free(conf);
	return 0;
}

/* `label`: what follows; mostly a name for ps. */
static int
run_role(const char *role, const char *label)
{
	if (strcmp(role, "proxy") == 0)
		return proxy_run(CHANNEL_AT);
	if (strcmp(role, "keeper") == 0)
		return supervisor_run_keeper(CHANNEL_AT);
	if (strcmp(role, "check") == 0)
		return run_check(label);
	fprintf(stderr,
	    "scalwsd: there is no role \"%s\"; roles are started "
	    "by the daemon itself\n",
	    role);
	return EXIT_USAGE;
}

/* By an upgrade: "STATE:BACK", two descriptors that came through exec. */
static int
run_restored(const char *text)
{
	int state_fd, back_fd;
	char end;

	if (sscanf(text, "%d:%d%c", &state_fd, &back_fd, &end) == 2)
		return supervisor_run_restored(state_fd, back_fd);
	fprintf(stderr, "scalwsd: --restore is for upgrades\n");
	return EXIT_USAGE;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "role", required_argument, NULL, OPTION_ROLE },
		{ "restore", required_argument, NULL, OPTION_RESTORE },
		{ "rehearse", required_argument, NULL, OPTION_REHEARSE },
		{ "print-schema-man", no_argument, NULL, OPTION_MAN },
		{ "print-schema-keys", no_argument, NULL, OPTION_KEYS },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	const char *path = SCALWS_SYSCONFDIR "/scalws.conf";
	int option, mode = 0;

	while (
	    (option = getopt_long(argc, argv, "c:tTVh", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			path = optarg;
			break;
		case 't':
		case 'T':
			mode = option;
			break;
		case 'V':
			printf("scalwsd %s\n", SCALWS_VERSION);
			return 0;
		case 'h':
			fputs(usage_text, stdout);
			return 0;
		case OPTION_ROLE:
			return run_role(optarg, argv[optind]);
		case OPTION_RESTORE:
			return run_restored(optarg);
		case OPTION_REHEARSE:
			return supervisor_rehearse(STATE_AT);
		case OPTION_MAN:
		case OPTION_KEYS:
			return print_schema(option == OPTION_MAN);
		default:
			fputs(usage_text, stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "scalwsd: what is \"%s\"?\n%s", argv[optind],
		    usage_text);
		return EXIT_USAGE;
	}
	if (mode != 0)
		return check(path, mode == 'T');
	return supervisor_run(path);
}
