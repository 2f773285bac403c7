/*
 * Writes the table of `scalwsctl status` from the same document that --json
 * prints, so that both say the same.
 * Called by status.c.
 */
#include "supervisor/status_text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "src/base/clock.h"

static const char *
text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text == NULL ? "-" : text;
}

/* A number, or "-". */
static const char *
count_of(const json_t *object, const char *key, char to[24])
{
	const json_t *value = json_object_get(object, key);

	if (json_is_integer(value))
		snprintf(to, 24, "%lld", (long long)json_integer_value(value));
	else
		snprintf(to, 24, "-");
	return to;
}

static const char *
bytes_of(const json_t *object, const char *key, char to[24])
{
	const json_t *value = json_object_get(object, key);

	if (json_is_integer(value))
		snprintf(to, 24, "%.1fM",
		    (double)json_integer_value(value) / (1024 * 1024));
	else
		snprintf(to, 24, "-");
	return to;
}

static const char *
seconds_of(const json_t *object, const char *key, char to[24])
{
	const json_t *value = json_object_get(object, key);

	if (json_is_real(value))
		snprintf(to, 24, "%.1fs", json_real_value(value));
	else
		snprintf(to, 24, "-");
	return to;
}

/* Of milliseconds; "-": none. */
static const char *
wait_of(const json_t *object, char to[24])
{
	const json_t *value = json_object_get(object, "oldest_wait_ms");

	if (json_integer_value(value) > 0)
		snprintf(
		    to, 24, "%.1fs", (double)json_integer_value(value) / 1000);
	else
		snprintf(to, 24, "-");
	return to;
}

/* How long ago: "42s", "3m12s", "5h07m", "12d03h". */
static const char *
age_of(const json_t *object, char to[24])
{
	const char *since = text_of(object, "since");
	struct tm tm;
	long long s;

	memset(&tm, 0, sizeof(tm));
	if (strptime(since, "%Y-%m-%dT%H:%M:%S", &tm) == NULL) {
		snprintf(to, 24, "-");
		return to;
	}
	s = (long long)(clock_wall_ms() / 1000) - (long long)timegm(&tm);
	if (s < 0)
		s = 0;
	if (s < 60)
		snprintf(to, 24, "%llds", s);
	else if (s < 3600)
		snprintf(to, 24, "%lldm%02llds", s / 60, s % 60);
	else if (s < 86400)
		snprintf(to, 24, "%lldh%02lldm", s / 3600, s % 3600 / 60);
	else
		snprintf(to, 24, "%lldd%02lldh", s / 86400, s % 86400 / 3600);
	return to;
}

static void
put_row(const json_t *object, const char *first, struct strbuf *to)
{
	char age[24], pid[24], flight[24], queued[24], wait[24], requests[24],
	    errors[24], restarts[24], rss[24], cpu[24];

	strbuf_printf(to,
	    "%-18s %-9s %7s %8s %6s %6s %6s %10s %7s %8s %9s %8s  %s\n", first,
	    text_of(object, "state"), age_of(object, age),
	    count_of(object, "pid", pid), count_of(object, "in_flight", flight),
	    count_of(object, "queued", queued), wait_of(object, wait),
	    count_of(object, "requests", requests),
	    count_of(object, "errors", errors),
	    count_of(object, "restarts", restarts),
	    bytes_of(object, "rss_bytes", rss),
	    seconds_of(object, "cpu_seconds", cpu),
	    text_of(object, "last_exit"));
}

static void
put_app(const json_t *app, struct strbuf *to)
{
	const json_t *instances = json_object_get(app, "instances");
	char name[40], id[24];

	put_row(app, text_of(app, "name"), to);
	for (size_t i = 0; i < json_array_size(instances); i++) {
		const json_t *instance = json_array_get(instances, i);

		snprintf(
		    name, sizeof(name), "  #%s", count_of(instance, "id", id));
		put_row(instance, name, to);
	}
}

/* Of an app that does not run, though it is wanted. */
static void
put_last_lines(const json_t *app, struct strbuf *to)
{
	const json_t *lines = json_object_get(app, "last_lines");
	const char *state = text_of(app, "state");

	if (json_array_size(lines) == 0 || strcmp(state, "running") == 0 ||
	    strcmp(state, "stopped") == 0)
		return;
	strbuf_printf(to, "\n%s printed last:\n", text_of(app, "name"));
	for (size_t i = 0; i < json_array_size(lines); i++)
		strbuf_printf(
		    to, "  %s\n", json_string_value(json_array_get(lines, i)));
}

static void
put_scale(const json_t *app, struct strbuf *to)
{
	const json_t *now = json_object_get(app, "processes");
	const json_t *file = json_object_get(app, "processes_configured");

	if (!json_equal(now, file))
		strbuf_printf(to,
		    "\n%s: scaled to processes = %lld, the configuration says "
		    "%lld\n",
		    text_of(app, "name"), (long long)json_integer_value(now),
		    (long long)json_integer_value(file));
}

void
status_text_put(const json_t *root, struct strbuf *to)
{
	const json_t *apps = json_object_get(root, "apps");
	const json_t *proxy = json_object_get(root, "proxy");
	char pid[24], age[24], connections[24];

	strbuf_printf(to, "scalwsd %s, pid %s, up %s, %s client connections\n",
	    text_of(root, "version"), count_of(root, "pid", pid),
	    age_of(root, age), count_of(proxy, "connections", connections));
	strbuf_printf(to,
	    "%-18s %-9s %7s %8s %6s %6s %6s %10s %7s %8s %9s %8s  %s\n", "APP",
	    "STATE", "SINCE", "PID", "FLIGHT", "QUEUE", "WAIT", "REQUESTS",
	    "ERRORS", "RESTARTS", "RSS", "CPU", "LAST EXIT");
	put_row(proxy, "(proxy)", to);
	for (size_t i = 0; i < json_array_size(apps); i++)
		put_app(json_array_get(apps, i), to);
	for (size_t i = 0; i < json_array_size(apps); i++)
		put_scale(json_array_get(apps, i), to);
	for (size_t i = 0; i < json_array_size(apps); i++)
		put_last_lines(json_array_get(apps, i), to);
}
