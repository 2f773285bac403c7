/*
 * The supervisor's pure parts: when a process is started again, the table of
 * states, command lines and environments of the runtimes, FPM's configuration,
 * the description a keeper gets, /proc/PID/stat.
 */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/ipc/channel.h"
#include "supervisor/backoff.h"
#include "supervisor/cgroup.h"
#include "supervisor/counts.h"
#include "supervisor/env_file.h"
#include "supervisor/instance_state.h"
#include "supervisor/runtimes.h"
#include "supervisor/spawn.h"
#include "supervisor/tree.h"
#include "t/unit/run.h"

/* ---- counts ---- */

static void
note(struct counts *counts, enum channel_stats_kind kind, const char *name,
    uint64_t instance, uint64_t requests)
{
	struct channel_stats stats = { .kind = kind,
		.name = name,
		.instance = instance,
		.requests = requests,
		.errors = 1,
		.in_flight = 2,
		.oldest_wait_ms = requests };

	counts_note(counts, &stats);
}

static bool
is_no_instance(const struct count *count, const void *arg)
{
	return count->kind != CHANNEL_STATS_INSTANCE;
}

START_TEST(counts_add_up)
{
	struct counts one = { NULL, 0 }, other = { NULL, 0 };
	const struct count *found;

	for (uint64_t i = 40; i > 0; i--)
		note(&one, CHANNEL_STATS_INSTANCE, "app", i, i);
	note(&one, CHANNEL_STATS_APP, "b", 0, 5);
	note(&one, CHANNEL_STATS_PROXY, "", 0, 7);
	note(&one, CHANNEL_STATS_APP, "a", 0, 4);
	note(&other, CHANNEL_STATS_APP, "b", 0, 10);
	note(&other, CHANNEL_STATS_INSTANCE, "app", 3, 100);
	counts_add(&one, &other, true);
	ck_assert_uint_eq(one.n, 43);
	found = counts_find(&one, CHANNEL_STATS_APP, "b", 0);
	ck_assert_uint_eq(found->requests, 15);
	ck_assert_uint_eq(found->errors, 2);
	ck_assert_uint_eq(found->in_flight, 2); /* of one of them */
	counts_add(&one, &other, false);
	found = counts_find(&one, CHANNEL_STATS_INSTANCE, "", 3);
	ck_assert_uint_eq(found->requests, 203);
	ck_assert_uint_eq(found->in_flight, 4);
	ck_assert_uint_eq(found->oldest_wait_ms, 100);
	found = counts_find(&one, CHANNEL_STATS_INSTANCE, "", 41);
	ck_assert_uint_eq(found->requests, 0);
	counts_keep(&one, is_no_instance, NULL);
	ck_assert_uint_eq(one.n, 3);
	found = counts_find(&one, CHANNEL_STATS_APP, "a", 0);
	ck_assert_uint_eq(found->requests, 4);
	counts_clear(&one);
	counts_clear(&other);
	found = counts_find(&one, CHANNEL_STATS_APP, "a", 0);
	ck_assert_uint_eq(found->requests, 0);
}
END_TEST

/* ---- back-off ---- */

START_TEST(early_deaths_double)
{
	static const int expected_ms[] = { 1000, 2000, 4000, 8000, 16000, 32000,
		60000, 60000 };
	struct backoff backoff = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(expected_ms); i++)
		ck_assert_int_eq(backoff_after_death(&backoff, false, 0, 10000),
		    expected_ms[i]);
	/* One that lived long enough ends it. */
	ck_assert_int_eq(backoff_after_death(&backoff, true, 10000, 10000), 0);
	ck_assert_int_eq(backoff_after_death(&backoff, false, 0, 10000), 1000);
	backoff_reset(&backoff);
	ck_assert_int_eq(backoff_after_death(&backoff, false, 0, 10000), 1000);
}
END_TEST

START_TEST(first_death_of_a_ready_one_is_free)
{
	struct backoff backoff = { 0 };

	ck_assert_int_eq(backoff_after_death(&backoff, true, 100, 10000), 0);
	ck_assert_int_eq(backoff_after_death(&backoff, true, 100, 10000), 1000);
	ck_assert_int_eq(
	    backoff_after_death(&backoff, true, 9999, 10000), 2000);
	ck_assert_int_eq(backoff_after_death(&backoff, true, 20000, 10000), 0);
	ck_assert_int_eq(backoff_after_death(&backoff, true, 100, 10000), 0);
}
END_TEST

START_TEST(failures_wait_longest)
{
	struct backoff backoff = { 0 };

	ck_assert_int_eq(backoff_after_failure(&backoff), 60000);
	ck_assert_int_eq(backoff_after_failure(&backoff), 60000);
}
END_TEST

/* ---- states ---- */

static const struct {
	enum instance_state state;
	enum instance_event event;
	enum instance_action action;
} meetings[] = {
	{ INSTANCE_DOWN, INSTANCE_START, INSTANCE_SPAWN },
	{ INSTANCE_DOWN, INSTANCE_GONE, INSTANCE_IGNORE },
	{ INSTANCE_STARTING, INSTANCE_READY, INSTANCE_SERVE },
	{ INSTANCE_STARTING, INSTANCE_EXPIRED, INSTANCE_GIVE_UP },
	{ INSTANCE_STARTING, INSTANCE_STOP, INSTANCE_SIGNAL },
	{ INSTANCE_STARTING, INSTANCE_CANNOT, INSTANCE_FAIL },
	{ INSTANCE_STARTING, INSTANCE_GONE, INSTANCE_RECOVER },
	{ INSTANCE_RUNNING, INSTANCE_STOP, INSTANCE_WITHDRAW },
	{ INSTANCE_RUNNING, INSTANCE_KILL, INSTANCE_SIGNAL },
	{ INSTANCE_RUNNING, INSTANCE_GONE, INSTANCE_RECOVER },
	{ INSTANCE_RUNNING, INSTANCE_READY, INSTANCE_IGNORE },
	{ INSTANCE_DRAINING, INSTANCE_DRAINED, INSTANCE_SIGNAL },
	{ INSTANCE_DRAINING, INSTANCE_QUIET, INSTANCE_LINGER },
	{ INSTANCE_DRAINING, INSTANCE_EXPIRED, INSTANCE_EXPIRE },
	{ INSTANCE_DRAINING, INSTANCE_GONE, INSTANCE_FINISH },
	{ INSTANCE_STOPPING, INSTANCE_GONE, INSTANCE_FINISH },
	{ INSTANCE_STOPPING, INSTANCE_READY, INSTANCE_IGNORE },
	{ INSTANCE_STOPPING, INSTANCE_KILL, INSTANCE_SIGNAL },
	{ INSTANCE_BACKOFF, INSTANCE_EXPIRED, INSTANCE_SPAWN },
	{ INSTANCE_BACKOFF, INSTANCE_START, INSTANCE_SPAWN },
	{ INSTANCE_BACKOFF, INSTANCE_STOP, INSTANCE_REST },
	{ INSTANCE_FAILED, INSTANCE_EXPIRED, INSTANCE_SPAWN },
	{ INSTANCE_FAILED, INSTANCE_STOP, INSTANCE_REST },
	{ INSTANCE_FAILED, INSTANCE_GONE, INSTANCE_IGNORE },
};

START_TEST(states_meet_events)
{
	ck_assert_int_eq(
	    instance_state_action(meetings[_i].state, meetings[_i].event),
	    meetings[_i].action);
}
END_TEST

/* From every state a stopped instance comes to rest: START is the only event
 * that begins a process from DOWN, and GONE ends every state that has one. */
START_TEST(every_process_is_waited_for)
{
	for (int state = 0; state < INSTANCE_N_STATES; state++) {
		enum instance_action gone = instance_state_action(
		    (enum instance_state)state, INSTANCE_GONE);
		bool has_process =
		    state == INSTANCE_STARTING || state == INSTANCE_RUNNING ||
		    state == INSTANCE_DRAINING || state == INSTANCE_STOPPING;

		ck_assert_int_eq(gone != INSTANCE_IGNORE, has_process);
		ck_assert_str_ne(
		    instance_state_name((enum instance_state)state), "?");
	}
	for (int event = 0; event < INSTANCE_N_EVENTS; event++)
		ck_assert_str_ne(
		    instance_event_name((enum instance_event)event), "?");
}
END_TEST

/* ---- runtimes ---- */

static const char *const no_environment[] = { NULL };

static struct conf_app
some_app(enum conf_runtime runtime)
{
	struct conf_app conf;

	memset(&conf, 0, sizeof(conf));
	conf.name = "api";
	conf.runtime = runtime;
	conf.directory = "/srv/api";
	conf.http = true;
	conf.processes = 1;
	conf.umask = -1;
	conf.stop_timeout_ms = 20000;
	return conf;
}

static void
build(const struct conf_app *conf, const char *const *environment,
    struct spawn_spec *spec, struct strbuf *file)
{
	struct runtime_place place = { .socket = "/run/scalws/api.7.sock",
		.port = 4711,
		.notify = "@n",
		.datadir = "/data",
		.environment = environment };
	char why[200];

	memset(spec, 0, sizeof(*spec));
	*file = STRBUF_EMPTY;
	ck_assert_int_eq(runtime_build(conf, &place, "/home/joe", "joe", spec,
			     file, why, sizeof(why)),
	    0);
}

/* argv joined with spaces; what holds a newline is shown as "<code>". */
static void
expect_argv(const struct spawn_spec *spec, const char *expected)
{
	struct strbuf line = STRBUF_EMPTY;

	for (size_t i = 0; i < spec->argv.n; i++)
		strbuf_printf(&line, "%s%s", i == 0 ? "" : " ",
		    strchr(spec->argv.items[i], '\n') != NULL
			? "<code>"
			: spec->argv.items[i]);
	ck_assert_str_eq(line.ptr, expected);
	strbuf_free(&line);
}

static void
expect_env(const struct spawn_spec *spec, const char *name, const char *value)
{
	const char *found = spawn_env_get(spec, name);

	if (value == NULL) {
		ck_assert_msg(found == NULL, "%s is set", name);
		return;
	}
	ck_assert_msg(found != NULL, "%s is not set", name);
	ck_assert_str_eq(found, value);
}

START_TEST(uvicorn_command)
{
	static const char *const user[] = { "PYTHONUNBUFFERED=", "A=b c",
		NULL };
	struct conf_app conf = some_app(CONF_PYTHON);
	struct runtime_traits traits;
	struct spawn_spec spec;
	struct strbuf file;

	conf.venv = "/srv/api/.venv";
	conf.module = "main:app";
	conf.factory = true;
	build(&conf, user, &spec, &file);
	expect_argv(&spec,
	    "/srv/api/.venv/bin/python -c <code> -m uvicorn "
	    "--fd 3 --backlog 4096 --timeout-keep-alive 75 --no-access-log "
	    "--forwarded-allow-ips * --no-server-header --no-date-header "
	    "--factory main:app");
	expect_env(&spec, "MALLOC_MMAP_THRESHOLD_", "524288");
	expect_env(&spec, "MALLOC_TRIM_THRESHOLD_", "1048576");
	expect_env(&spec, "PYTHONUNBUFFERED", "");
	expect_env(&spec, "A", "b c");
	expect_env(&spec, "HOME", "/home/joe");
	expect_env(&spec, "NOTIFY_SOCKET", "@n");
	expect_env(&spec, "VIRTUAL_ENV", "/srv/api/.venv");
	expect_env(&spec, "LISTEN_FDS", NULL);
	ck_assert_ptr_nonnull(
	    strstr(spawn_env_get(&spec, "PATH"), "/srv/api/.venv/bin:"));
	ck_assert_int_eq(spec.stop_signal, SIGTERM);
	ck_assert_int_eq(spec.second_signal, SIGINT);
	ck_assert_int_eq(spec.umask, 022);
	ck_assert_str_eq(spec.directory, "/srv/api");
	runtime_traits(&conf, &traits);
	ck_assert_uint_eq(traits.cap, CHANNEL_NO_CAP);
	ck_assert(traits.listener && !traits.port);
	spawn_spec_free(&spec);
}
END_TEST

/* Half of the pair is worse than none: any MALLOC_ of the user keeps both away;
 * so does a loop of the user the question for uvloop. */
START_TEST(users_own_values_win)
{
	static const char *const user[] = { "MALLOC_TRIM_THRESHOLD_=131072",
		"PATH=/opt/bin", NULL };
	static const char *arguments[] = { "--loop", "asyncio", NULL };
	struct conf_app conf = some_app(CONF_PYTHON);
	struct spawn_spec spec;
	struct strbuf file;

	conf.python = "/usr/bin/python3";
	conf.module = "m:a";
	conf.arguments = arguments;
	build(&conf, user, &spec, &file);
	expect_env(&spec, "MALLOC_MMAP_THRESHOLD_", NULL);
	expect_env(&spec, "MALLOC_TRIM_THRESHOLD_", "131072");
	expect_env(&spec, "PATH", "/opt/bin");
	ck_assert_str_eq(spec.argv.items[1], "-m");
	spawn_spec_free(&spec);
}
END_TEST

START_TEST(gunicorn_command)
{
	struct conf_app conf = some_app(CONF_PYTHON);
	struct runtime_traits traits;
	struct spawn_spec spec;
	struct strbuf file;

	conf.server = CONF_GUNICORN;
	conf.python = "/usr/bin/python3";
	conf.module = "site.wsgi";
	conf.threads = 8;
	conf.concurrency = 8;
	build(&conf, no_environment, &spec, &file);
	expect_argv(&spec,
	    "/usr/bin/python3 -m gunicorn -w 1 -k gthread "
	    "--threads 8 --keep-alive 75 --forwarded-allow-ips * "
	    "--backlog 4096 --graceful-timeout 15 site.wsgi");
	expect_env(&spec, "LISTEN_FDS", "1");
	ck_assert(spec.listen_pid);
	runtime_traits(&conf, &traits);
	ck_assert_uint_eq(traits.cap, 8);
	ck_assert(traits.cap_counts_idle);
	ck_assert(!traits.notify);
	spawn_spec_free(&spec);

	conf.threads = conf.concurrency = 1;
	build(&conf, no_environment, &spec, &file);
	expect_argv(&spec,
	    "/usr/bin/python3 -m gunicorn -w 1 -k sync "
	    "--keep-alive 75 --forwarded-allow-ips * --backlog 4096 "
	    "--graceful-timeout 15 site.wsgi");
	spawn_spec_free(&spec);
}
END_TEST

START_TEST(node_command)
{
	static const char *const user[] = { "NODE_ENV=development", NULL };
	struct conf_app conf = some_app(CONF_NODE);
	struct spawn_spec spec;
	struct strbuf file;

	conf.script = "server.js";
	build(&conf, no_environment, &spec, &file);
	expect_argv(&spec, "node --require /data/node-preload.js server.js");
	expect_env(&spec, "NODE_ENV", "production");
	expect_env(&spec, "PORT", "4711");
	expect_env(&spec, "SCALWS_LISTEN", "fd:3:/run/scalws/api.7.sock");
	expect_env(&spec, "SCALWS_KEEPALIVE_MS", "75000");
	expect_env(&spec, "MALLOC_MMAP_THRESHOLD_", NULL);
	spawn_spec_free(&spec);
	build(&conf, user, &spec, &file);
	expect_env(&spec, "NODE_ENV", "development");
	spawn_spec_free(&spec);
}
END_TEST

START_TEST(php_command)
{
	static const char *ini[] = { "memory_limit=64M",
		"error_prepend_string=a\"b\\c", NULL };
	struct conf_app conf = some_app(CONF_PHP);
	struct runtime_traits traits;
	struct spawn_spec spec;
	struct strbuf file;

	conf.php_fpm = "/usr/sbin/php-fpm8.2";
	conf.root = "/srv/blog/public";
	conf.directory = NULL;
	conf.children = 3;
	conf.concurrency = 3;
	conf.ini = ini;
	build(&conf, no_environment, &spec, &file);
	expect_argv(&spec, "/usr/sbin/php-fpm8.2 -F -O -y /proc/self/fd/5");
	expect_env(&spec, "FPM_SOCKETS",
	    "/nonexistent/api.sock=3,"
	    "/nonexistent/api.status.sock=4");
	ck_assert_str_eq(file.ptr,
	    "[global]\n"
	    "daemonize = no\n"
	    "error_log = /dev/null\n"
	    "log_limit = 8192\n"
	    "systemd_interval = 0\n"
	    "process_control_timeout = 20s\n"
	    "[api]\n"
	    "listen = /nonexistent/api.sock\n"
	    "pm = static\n"
	    "pm.max_children = 3\n"
	    "pm.status_path = /scalws-status\n"
	    "pm.status_listen = /nonexistent/api.status.sock\n"
	    "ping.path = /scalws-ping\n"
	    "request_terminate_timeout = 0\n"
	    "catch_workers_output = yes\n"
	    "decorate_workers_output = no\n"
	    "clear_env = no\n"
	    "security.limit_extensions = .php\n"
	    "php_admin_value[memory_limit] = \"64M\"\n"
	    "php_admin_value[error_prepend_string] = \"a\\\"b\\\\c\"\n");
	ck_assert_int_eq(spec.stop_signal, SIGQUIT);
	ck_assert_str_eq(spec.directory, "/srv/blog/public");
	runtime_traits(&conf, &traits);
	ck_assert_uint_eq(traits.cap, 3);
	ck_assert(traits.cap_counts_idle && traits.status_listener);
	ck_assert_uint_eq(traits.protocol, CHANNEL_FASTCGI);
	conf.concurrency = 9; /* FPM has no ninth */
	runtime_traits(&conf, &traits);
	ck_assert_uint_eq(traits.cap, 3);
	spawn_spec_free(&spec);
	strbuf_free(&file);
}
END_TEST

START_TEST(command_places)
{
	static const char *own[] = { "app", "--uds={socket}", "{x}", NULL };
	static const char *port[] = { "app", "-p", "{port}", NULL };
	static const char *either[] = { "app", NULL };
	struct conf_app conf = some_app(CONF_COMMAND);
	struct runtime_traits traits;
	struct spawn_spec spec;
	struct strbuf file;

	conf.command = own;
	runtime_traits(&conf, &traits);
	ck_assert(traits.own_socket && !traits.listener && !traits.port);
	build(&conf, no_environment, &spec, &file);
	expect_argv(&spec, "app --uds=/run/scalws/api.7.sock {x}");
	expect_env(&spec, "PORT", NULL);
	ck_assert_int_eq(spec.umask, 007);
	spawn_spec_free(&spec);

	conf.command = port;
	runtime_traits(&conf, &traits);
	ck_assert(!traits.own_socket && !traits.listener && traits.port);
	build(&conf, no_environment, &spec, &file);
	expect_argv(&spec, "app -p 4711");
	expect_env(&spec, "PORT", "4711");
	expect_env(&spec, "LISTEN_FDS", NULL);
	spawn_spec_free(&spec);

	conf.command = either;
	runtime_traits(&conf, &traits);
	ck_assert(traits.listener && traits.port && traits.port_first);
	build(&conf, no_environment, &spec, &file);
	expect_env(&spec, "LISTEN_FDS", "1");
	ck_assert(spec.listen_pid);
	spawn_spec_free(&spec);

	conf.http = false;
	runtime_traits(&conf, &traits);
	ck_assert(!traits.listener && !traits.port && !traits.own_socket);
	build(&conf, no_environment, &spec, &file);
	expect_env(&spec, "PORT", NULL);
	expect_env(&spec, "LISTEN_FDS", NULL);
	spawn_spec_free(&spec);
}
END_TEST

/* ---- the description for the keeper ---- */

START_TEST(spec_arrives)
{
	struct spawn_spec sent, got;
	struct strbuf text = STRBUF_EMPTY;

	memset(&sent, 0, sizeof(sent));
	words_add(&sent.argv, "prog");
	words_add(&sent.argv, "");
	words_add(&sent.env, "A=1");
	sent.directory = mem_strdup("/x y");
	sent.cgroup = mem_strdup("/sys/fs/cgroup/a");
	sent.name = mem_strdup("shop");
	sent.become = true;
	strcpy(sent.identity.user, "joe");
	sent.identity.uid = 1000;
	sent.identity.gid = 4294967290U;
	sent.nice = -5;
	sent.umask = 027;
	sent.limits[0] = (struct conf_limit){ 7, 1024, UINT64_MAX };
	sent.n_limits = 1;
	sent.stop_signal = SIGQUIT;
	sent.second_signal = SIGINT;
	sent.stop_timeout_ms = 9;
	words_add(&sent.before, "migrate");
	spawn_encode(&sent, &text);
	ck_assert_int_eq(spawn_decode(text.ptr, text.len, &got), 0);
	ck_assert_uint_eq(got.argv.n, 2);
	ck_assert_str_eq(got.argv.items[1], "");
	ck_assert_str_eq(got.env.items[0], "A=1");
	ck_assert_uint_eq(got.before.n, 1);
	ck_assert_str_eq(got.before.items[0], "migrate");
	ck_assert_str_eq(got.directory, "/x y");
	ck_assert_str_eq(got.cgroup, "/sys/fs/cgroup/a");
	ck_assert_str_eq(got.name, "shop");
	ck_assert(got.become);
	ck_assert_str_eq(got.identity.user, "joe");
	ck_assert_uint_eq(got.identity.uid, 1000);
	ck_assert_uint_eq(got.identity.gid, 4294967290U);
	ck_assert_int_eq(got.nice, -5);
	ck_assert_int_eq(got.umask, 027);
	ck_assert_uint_eq(got.n_limits, 1);
	ck_assert_uint_eq(got.limits[0].hard, UINT64_MAX);
	ck_assert_int_eq(got.stop_timeout_ms, 9);
	spawn_spec_free(&got);
	/* A record that is cut off. */
	ck_assert_int_eq(spawn_decode(text.ptr, text.len - 1, &got), -1);
	spawn_spec_free(&got);
	ck_assert_int_eq(spawn_decode("x\0", 2, &got), -1);
	spawn_spec_free(&got);
	ck_assert_int_eq(spawn_decode("", 0, &got), -1);
	spawn_spec_free(&got);
	spawn_spec_free(&sent);
	strbuf_free(&text);
}
END_TEST

/* ---- cgroups ---- */

START_TEST(own_cgroup)
{
	static const char v1[] =
	    "33 31 0:28 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw\n";
	static const struct {
		const char *cgroups, *mounts, *is;
	} cases[] = {
		/* systemd */
		{ "0::/system.slice/scalws.service\n",
		    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 "
		    "cgroup2 rw,nsdelegate\n",
		    "/sys/fs/cgroup/system.slice/scalws.service" },
		/* a namespace of its own, no optional field */
		{ "0::/\n",
		    "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 none rw\n",
		    "/sys/fs/cgroup/" },
		/* version 1 beside it */
		{ "4:cpu:/x\n1:name=systemd:/y\n0::/z\n",
		    "40 31 0:29 / /sys/fs/cgroup/unified rw - cgroup2 x rw\n",
		    "/sys/fs/cgroup/unified/z" },
		/* a part of the tree is mounted */
		{ "0::/docker/ab/c\n",
		    "30 23 0:26 /docker/abc /other rw - cgroup2 x rw\n"
		    "30 23 0:26 /docker/ab /mnt rw - cgroup2 x rw\n",
		    "/mnt/c" },
		{ "0::/docker/ab\n",
		    "30 23 0:26 /docker/ab /mnt rw - cgroup2 x rw\n", "/mnt" },
		{ "0::/docker/abc\n",
		    "30 23 0:26 /docker/ab /mnt rw - cgroup2 x rw\n", NULL },
		/* above what is mounted here */
		{ "0::/../a\n", "30 23 0:26 / /mnt rw - cgroup2 x rw\n", NULL },
		{ "0::/a\n", "30 23 0:26 / /m\\040t rw - cgroup2 x rw\n",
		    NULL },
		{ "4:cpu:/x\n", "30 23 0:26 / /mnt rw - cgroup2 x rw\n", NULL },
		{ "0::/a\n", "30 23 0:26 / /mnt rw\n30 23 -\n\n", NULL },
		{ "", "", NULL },
	};
	char mounts[1024], path[CGROUP_PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int result;

		snprintf(mounts, sizeof(mounts), "%s%s", v1, cases[i].mounts);
		result = cgroup_parse(cases[i].cgroups, mounts, path);
		ck_assert_int_eq(result, cases[i].is == NULL ? -1 : 0);
		if (result == 0)
			ck_assert_str_eq(path, cases[i].is);
	}
}
END_TEST

/* ---- /proc ---- */

START_TEST(stat_of_a_strange_name)
{
	struct tree_process process;

	ck_assert_int_eq(
	    tree_parse_stat(
		"42 (a) R (b) S 7 42 42 0 -1 4194304 1 "
		"2 3 4 150 50 0 0 20 0 1 0 9 1000 25 18446744073709551615",
		&process),
	    0);
	ck_assert_int_eq(process.pid, 42);
	ck_assert_int_eq(process.ppid, 7);
	ck_assert_int_eq(process.state, 'S');
	ck_assert_uint_gt(process.rss_bytes, 0);
	ck_assert_uint_eq(process.cpu_ms, 2000);
	ck_assert_int_eq(tree_parse_stat("42 nonsense", &process), -1);
	ck_assert_int_eq(tree_parse_stat("42 (a) S 7", &process), -1);
}
END_TEST

START_TEST(descendants)
{
	struct tree_process processes[] = { { .pid = 5, .ppid = 4 },
		{ .pid = 4, .ppid = 3 }, { .pid = 3, .ppid = 1 },
		{ .pid = 9, .ppid = 1 } };
	struct tree tree = { processes, ARRAY_LEN(processes) };

	ck_assert_uint_eq(tree_mark_below(&tree, 3), 2);
	ck_assert(processes[0].below && processes[1].below);
	ck_assert(!processes[2].below && !processes[3].below);
	ck_assert_uint_eq(tree_mark_below(&tree, 9), 0);
}
END_TEST

static const struct {
	const char *text, *first; /* NULL: refused */
} env_files[] = {
	{ "A=1\nB=2", "A=1" },
	{ "# c\n\n  A = 1 \r\n", "A=1" },
	{ "export A='x \"y\" # z'\n", "A=x \"y\" # z" },
	{ "A=\"\"\n", "A=" },
	{ "_a9==\n", "_a9==" },
	{ "A\n", NULL },
	{ "=1\n", NULL },
	{ "9A=1\n", NULL },
	{ "A B=1\n", NULL },
	{ "A='1\n", NULL },
	{ "A=\"\n", NULL },
};

START_TEST(environment_file_lines)
{
	struct words words = { NULL, 0 };
	char why[80];
	int result = env_file_parse(env_files[_i].text,
	    strlen(env_files[_i].text), &words, why, sizeof(why));

	if (env_files[_i].first == NULL) {
		ck_assert_int_eq(result, -1);
	} else {
		ck_assert_int_eq(result, 0);
		ck_assert_str_eq(words.items[0], env_files[_i].first);
	}
	words_free(&words);
}
END_TEST

START_TEST(environment_file_with_a_nul)
{
	struct words words = { NULL, 0 };
	char why[80];

	ck_assert_int_eq(
	    env_file_parse("A=1\0B=2", 7, &words, why, sizeof(why)), -1);
	words_free(&words);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("supervisor");
	TCase *pure = tcase_create("pure");

	tcase_add_test(pure, counts_add_up);
	tcase_add_test(pure, early_deaths_double);
	tcase_add_test(pure, first_death_of_a_ready_one_is_free);
	tcase_add_test(pure, failures_wait_longest);
	tcase_add_loop_test(
	    pure, states_meet_events, 0, (int)ARRAY_LEN(meetings));
	tcase_add_test(pure, every_process_is_waited_for);
	tcase_add_test(pure, uvicorn_command);
	tcase_add_test(pure, users_own_values_win);
	tcase_add_test(pure, gunicorn_command);
	tcase_add_test(pure, node_command);
	tcase_add_test(pure, php_command);
	tcase_add_test(pure, command_places);
	tcase_add_test(pure, spec_arrives);
	tcase_add_test(pure, own_cgroup);
	tcase_add_loop_test(
	    pure, environment_file_lines, 0, (int)ARRAY_LEN(env_files));
	tcase_add_test(pure, environment_file_with_a_nul);
	tcase_add_test(pure, stat_of_a_strange_name);
	tcase_add_test(pure, descendants);
	suite_add_tcase(suite, pure);
	return run_suite(suite);
}
