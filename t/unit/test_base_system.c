/*
 * Unit tests of the half of src/base that meets the kernel: log lines,
 * descriptors and files, the clock, users.
 * Run by make check. Needs no rights; as root it also drops them in a child.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/log_thread.h"
#include "src/base/mem.h"
#include "src/base/priv.h"
#include "t/unit/run.h"

/* One line as it reached the descriptor, with the newline. */
static size_t
read_line(int fd, char *line, size_t room)
{
	ssize_t got = read(fd, line, room - 1);

	ck_assert_int_ge(got, 0);
	line[got] = '\0';
	return (size_t)got;
}

START_TEST(log_lines)
{
	int fds[2];
	char line[8192], expected[128];
	static char long_text[6000];

	ck_assert_int_eq(pipe2(fds, O_NONBLOCK), 0);
	log_init("proxy", LOG_LEVEL_INFO, fds[1]);
	errno = ENOENT;
	log_info("c=%d gone", 7);
	ck_assert_int_eq(errno, ENOENT);
	read_line(fds[0], line, sizeof(line));
	snprintf(expected, sizeof(expected), " info proxy[%ld]: c=7 gone\n",
	    (long)getpid());
	ck_assert_str_eq(line + CLOCK_ISO_LEN, expected);
	ck_assert_int_eq(line[10], 'T');
	ck_assert_int_eq(line[23], 'Z');

	log_debug("not at this level");
	ck_assert_int_eq(read(fds[0], line, sizeof(line)), -1);

	log_warn("a\nb\x1b[0m\x7f \xc3\xa9");
	read_line(fds[0], line, sizeof(line));
	ck_assert_ptr_nonnull(
	    strstr(line, "]: a\\x0ab\\x1b[0m\\x7f \xc3\xa9\n"));

	log_warn("x.conf:1: what a finding says\n");
	read_line(fds[0], line, sizeof(line));
	ck_assert_ptr_nonnull(
	    strstr(line, "]: x.conf:1: what a finding says\n"));

	errno = EACCES;
	log_errno("open %s", "/x");
	ck_assert_int_eq(errno, EACCES);
	read_line(fds[0], line, sizeof(line));
	ck_assert_ptr_nonnull(strstr(line, " error "));
	ck_assert_ptr_nonnull(strstr(line, ": open /x: Permission denied\n"));

	memset(long_text, '\n', sizeof(long_text) - 1);
	log_error("%s", long_text);
	ck_assert_uint_le(read_line(fds[0], line, sizeof(line)), 4096);
	ck_assert_int_eq(line[strlen(line) - 1], '\n');
	ck_assert_int_eq(read(fds[0], line, sizeof(line)), -1);

	memset(long_text, 'x', sizeof(long_text) - 1);
	log_error("%s", long_text);
	ck_assert_uint_eq(read_line(fds[0], line, sizeof(line)), 4096);
	ck_assert_int_eq(line[4095], '\n');
	close(fds[0]);
	close(fds[1]);
	log_error("nobody listens: must not fail");
}
END_TEST

#define LOGGED 10000

/* A pipe that nobody reads is a disk that hangs: who logs does not wait, what
 * is lost is counted, and the rest comes in order. */
START_TEST(log_thread_waits_alone)
{
	unsigned next = 0, lost = 0, number;
	char line[256];
	int fds[2];
	FILE *from;

	ck_assert_int_eq(pipe(fds), 0);
	log_init("proxy", LOG_LEVEL_INFO, fds[1]);
	log_thread_begin();
	log_thread_begin();
	for (unsigned i = 0; i < LOGGED; i++)
		log_info("line %u", i);
	from = fdopen(fds[0], "r");
	while (next + lost < LOGGED) {
		ck_assert_ptr_nonnull(fgets(line, sizeof(line), from));
		ck_assert_ptr_nonnull(strstr(line, ": "));
		if (sscanf(strstr(line, ": "), ": %u lines were lost",
			&number) == 1) {
			lost += number;
			continue;
		}
		ck_assert_int_eq(
		    sscanf(strstr(line, ": "), ": line %u", &number), 1);
		ck_assert_uint_eq(number, next + lost);
		next++;
	}
	ck_assert_uint_gt(lost, 0);
	ck_assert_uint_gt(next, LOG_THREAD_PENDING_MAX / 64);
	log_info("waited for");
	ck_assert(log_thread_end());
	ck_assert(!log_thread_end());
	log_info("written at once");
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), from));
	ck_assert_ptr_nonnull(strstr(line, "waited for"));
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), from));
	ck_assert_ptr_nonnull(strstr(line, "written at once"));
	/* It hangs at the end: nobody waits for ever. */
	log_thread_begin();
	for (unsigned i = 0; i < LOGGED; i++)
		log_info("line %u", i);
	ck_assert(log_thread_end());
	log_info("mute");
	/* The thread may still be in its write: its end of the pipe stays. */
	fclose(from);
}
END_TEST

START_TEST(log_levels)
{
	enum log_level level = LOG_LEVEL_ERROR;

	ck_assert_int_eq(log_level_parse("debug", &level), 0);
	ck_assert_int_eq(level, LOG_LEVEL_DEBUG);
	ck_assert_int_eq(log_level_parse("warn", &level), 0);
	ck_assert_int_eq(level, LOG_LEVEL_WARN);
	ck_assert_int_eq(log_level_parse("warning", &level), -1);
	ck_assert_int_eq(log_level_parse("", &level), -1);
	ck_assert_int_eq(level, LOG_LEVEL_WARN);
}
END_TEST

/* A crowd of lines is cut to so many a second, and the next one says how many
 * are missing. */
START_TEST(log_budgets)
{
	struct log_budget budget = { 0 };
	char text[1024];
	int fds[2];
	ssize_t n;

	ck_assert_int_eq(pipe2(fds, O_NONBLOCK), 0);
	log_init("proxy", LOG_LEVEL_WARN, fds[1]);
	/* What is not written anyway costs nothing. */
	for (unsigned i = 0; i < 100; i++)
		ck_assert(!log_may(&budget, LOG_LEVEL_INFO, 5000));
	for (unsigned i = 0; i < 100; i++)
		ck_assert(log_may(&budget, LOG_LEVEL_WARN, 5000 + i) ==
			  (i < LOG_BUDGET_LINES));
	ck_assert(!log_may(&budget, LOG_LEVEL_ERROR, 5999));
	ck_assert_int_eq(read(fds[0], text, sizeof(text)), -1);
	ck_assert(log_may(&budget, LOG_LEVEL_WARN, 6000));
	n = read(fds[0], text, sizeof(text) - 1);
	ck_assert_int_gt(n, 0);
	text[n] = '\0';
	ck_assert_ptr_nonnull(strstr(text, "81 lines"));
	ck_assert(log_may(&budget, LOG_LEVEL_WARN, 9000));
	ck_assert_int_eq(read(fds[0], text, sizeof(text)), -1);
	log_init("test", LOG_LEVEL_INFO, 2);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

START_TEST(clock_runs)
{
	int64_t us = clock_now_us(), ms = clock_now_ms();
	int64_t wall = clock_wall_ms();

	ck_assert_int_ge(ms, us / 1000);
	ck_assert_int_ge(clock_now_us(), us);
	ck_assert_int_gt(wall, INT64_C(1600000000000));
}
END_TEST

START_TEST(fd_flags)
{
	int fds[2], closed;

	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(fd_set_nonblock(fds[0]), 0);
	ck_assert(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
	ck_assert_int_eq(fd_set_cloexec(fds[0], true), 0);
	ck_assert_int_eq(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fd_set_cloexec(fds[0], false), 0);
	ck_assert_int_eq(fcntl(fds[0], F_GETFD), 0);
	errno = EDOM;
	closed = fds[0];
	fd_close(&fds[0]);
	ck_assert_int_eq(fds[0], -1);
	fd_close(&fds[0]);
	ck_assert_int_eq(errno, EDOM);
	ck_assert_int_eq(fd_set_nonblock(closed), -1);
	ck_assert_int_eq(errno, EBADF);
	fd_close(&fds[1]);
}
END_TEST

START_TEST(fd_files)
{
	char dir[] = "/tmp/scalws-base-XXXXXX", path[64], *text = NULL;
	size_t len = 0;
	int fd;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	ck_assert_int_eq(fd_read_file(path, 10, &text, &len), -1);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(fd_read_file(dir, 10, &text, &len), -1);
	ck_assert_int_eq(errno, EISDIR);

	fd = open(path, O_CREAT | O_WRONLY, 0600);
	ck_assert_int_eq(fd_write_all(fd, "0123456789", 10), 0);
	close(fd);
	ck_assert_int_eq(fd_read_file(path, 10, &text, &len), 0);
	ck_assert_uint_eq(len, 10);
	ck_assert_str_eq(text, "0123456789");
	mem_free(text);
	ck_assert_int_eq(fd_read_file(path, 9, &text, &len), -1);
	ck_assert_int_eq(errno, EFBIG);
	unlink(path);

	/* A fifo without a writer must not block. */
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(fd_read_file(path, 10, &text, &len), -1);
	ck_assert_int_eq(errno, EINVAL);
	unlink(path);
	rmdir(dir);

	/* Files of /proc say that they are empty. */
	ck_assert_int_eq(
	    fd_read_file("/proc/self/status", 1 << 20, &text, &len), 0);
	ck_assert_uint_gt(len, 100);
	ck_assert_uint_eq(len, strlen(text));
	mem_free(text);
	ck_assert_int_eq(
	    fd_read_file("/proc/self/status", 50, &text, &len), -1);
	ck_assert_int_eq(errno, EFBIG);
}
END_TEST

START_TEST(fd_sealed)
{
	size_t len = 200000, back_len = 0;
	char *from = mem_alloc(len), *back = NULL;
	int fd;

	for (size_t i = 0; i < len; i++)
		from[i] = (char)(i * 7);
	fd = fd_memfd_sealed("conf", from, len);
	ck_assert_int_ne(fd, -1);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fd_read_whole(fd, len, &back, &back_len), 0);
	ck_assert_uint_eq(back_len, len);
	ck_assert(memcmp(from, back, len) == 0);
	mem_free(back);
	ck_assert_int_eq(fd_read_whole(fd, len - 1, &back, &back_len), -1);
	ck_assert_int_eq(write(fd, "x", 1), -1);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(ftruncate(fd, 0), -1);
	fd_close(&fd);
	mem_free(from);
}
END_TEST

START_TEST(fd_limit_raised)
{
	struct rlimit limit;
	size_t was = 0, now = 0;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 64;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(fd_raise_limit(&was, &now), 0);
	ck_assert_uint_eq(was, 64);
	ck_assert_uint_eq(now, limit.rlim_max);
	ck_assert_int_eq(fd_raise_limit(NULL, &now), 0);
}
END_TEST

START_TEST(priv_users)
{
	struct priv priv;
	const char *what = NULL;

	ck_assert_int_eq(priv_lookup("root", NULL, &priv, &what), 0);
	ck_assert_uint_eq(priv.uid, 0);
	ck_assert_str_eq(priv.user, "root");
	ck_assert_int_eq(priv_lookup("0", "daemon", &priv, &what), 0);
	ck_assert_str_eq(priv.user, "root");
	ck_assert_uint_ne(priv.gid, 0);
	ck_assert_int_eq(priv_lookup("54321", "123", &priv, &what), 0);
	ck_assert_uint_eq(priv.uid, 54321);
	ck_assert_uint_eq(priv.gid, 123);

	errno = EDOM;
	ck_assert_int_eq(priv_lookup("no-such-user", NULL, &priv, &what), -1);
	ck_assert_int_eq(errno, 0);
	ck_assert_str_eq(what, "user");
	ck_assert_int_eq(priv_lookup("54321", NULL, &priv, &what), -1);
	ck_assert_int_eq(errno, 0);
	ck_assert_int_eq(
	    priv_lookup("root", "no-such-group", &priv, &what), -1);
	ck_assert_int_eq(errno, 0);
	ck_assert_str_eq(what, "group");
	/* 4294967295 is the kernel's "leave it as it is". */
	ck_assert_int_eq(priv_lookup("4294967295", "1", &priv, &what), -1);
}
END_TEST

/* In a child, so that this process keeps its rights. 0 when all is as it
 * should be. */
static int
become_nobody(void)
{
	struct priv priv;
	const char *stage, *what;
	gid_t groups[64];

	if (priv_lookup("nobody", NULL, &priv, &what) == -1)
		return 1;
	if (priv_become(&priv, &stage) == -1) {
		fprintf(stderr, "%s: %s\n", stage, strerror(errno));
		return 2;
	}
	if (getuid() != priv.uid || getegid() != priv.gid)
		return 3;
	if (setuid(0) == 0 || setgid(0) == 0)
		return 4;
	for (int i = getgroups(64, groups) - 1; i >= 0; i--) {
		if (groups[i] == 0)
			return 5;
	}
	/* A second time: it is that user already. */
	return priv_become(&priv, &stage) == 0 ? 0 : 6;
}

START_TEST(priv_drops)
{
	struct priv priv;
	const char *stage = NULL, *what;
	int status;
	pid_t pid;

	if (geteuid() != 0) {
		ck_assert_int_eq(priv_lookup("root", NULL, &priv, &what), 0);
		ck_assert_int_eq(priv_become(&priv, &stage), -1);
		ck_assert_int_eq(errno, EPERM);
		ck_assert_ptr_nonnull(stage);
		return;
	}
	pid = fork();
	ck_assert_int_ne(pid, -1);
	if (pid == 0)
		_exit(become_nobody());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { log_lines, log_thread_waits_alone,
		log_levels, log_budgets, clock_runs, fd_flags, fd_files,
		fd_sealed, fd_limit_raised, priv_users, priv_drops };
	Suite *suite = suite_create("base_system");
	TCase *all = tcase_create("kernel");

	tcase_set_timeout(all, 30); /* sanitizers, and a busy machine */
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(all, tests[i]);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
