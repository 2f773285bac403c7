/*
 * The records of a supervisor's state: each described once, for writing and
 * for reading. Between handover.c and state.c. Opens and starts nothing.
 */
#include "supervisor/saved.h"

#include <limits.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/ipc/control.h"
#include "supervisor/instance_state.h"
#include "supervisor/state.h"

/* Far above what a machine can run, and below what its memory cannot hold. */
#define COUNT_MAX 10000
#define SOCKETS_MAX 4096
#define LAST_MS (INT64_MAX / 2)

/* Begin a record that must be there. */
static void
need(struct state *state, const char *type)
{
	if (!state_record(state, type))
		state_fail(state, "a record is missing");
}

/* Reading: room for `n`, as many as follow. None after an error: what was read
 * until then may ask for anything. */
static void *
make_room(struct state *state, void *have, uint32_t *n, size_t size)
{
	if (!state_is_reading(state))
		return have;
	if (*n > state_left(state))
		state_fail(state, "a number of things that do not follow");
	if (state_error(state) != NULL)
		*n = 0;
	return mem_alloc_array((size_t)*n + 1, size);
}

static void
put_secrets(struct saved *saved, struct state *state)
{
	need(state, "secrets");
	state_u32(state, "files", &saved->n_secrets, COUNT_MAX);
	saved->secrets = make_room(
	    state, saved->secrets, &saved->n_secrets, sizeof(*saved->secrets));
	for (uint32_t i = 0; i < saved->n_secrets; i++) {
		state_string(state, "path", &saved->secrets[i].path);
		state_fd(state, "fd", &saved->secrets[i].fd);
	}
}

static void
put_clients(struct saved *saved, struct state *state)
{
	need(state, "clients");
	state_u32(state, "clients", &saved->n_clients, COUNT_MAX);
	saved->clients = make_room(
	    state, saved->clients, &saved->n_clients, sizeof(*saved->clients));
	for (uint32_t i = 0; i < saved->n_clients; i++) {
		struct saved_client *client = &saved->clients[i];

		need(state, "client");
		state_fd(state, "fd", &client->fd);
		state_u32(state, "uid", &client->uid, UINT32_MAX);
		state_bool(state, "asked", &client->asked);
		state_bool(state, "ended", &client->ended);
		state_bool(state, "waits", &client->waits);
		state_bytes(state, "in", &client->in, &client->in_len);
		state_bytes(state, "out", &client->out, &client->out_len);
		state_string(state, "follows", &client->follows);
		if (client->in_len > CONTROL_LINE_MAX)
			state_fail(state, "a request is too long");
	}
}

static void
put_supervisor(struct saved *saved, struct state *state)
{
	need(state, "supervisor");
	state_string(state, "conf_path", &saved->conf_path);
	state_string(state, "exe_path", &saved->exe_path);
	state_string(state, "run_path", &saved->run_path);
	state_fd(state, "lock_fd", &saved->lock_fd);
	state_fd(state, "control_fd", &saved->control_fd);
	state_bool(state, "run_root", &saved->run_root);
	state_u32(state, "proxy_gid", &saved->proxy_gid, UINT32_MAX);
	state_u64(state, "last_id", &saved->last_id);
	state_u64(state, "nofile_was", &saved->nofile_was);
	state_i64(state, "started_ms", &saved->started_ms, 0, LAST_MS);
	state_bool(state, "told_ready", &saved->told_ready);
	state_bool(state, "told_port", &saved->told_port);
	state_string(state, "why", &saved->why);
	state_u32(state, "last_key", &saved->last_key, UINT32_MAX);
	state_u32(state, "listeners", &saved->n_listeners, COUNT_MAX);
	state_u32(state, "apps", &saved->n_apps, COUNT_MAX);
	need(state, "conf");
	state_bytes(state, "text", &saved->conf, &saved->conf_len);
	need(state, "first");
	state_bytes(state, "text", &saved->first, &saved->first_len);
	need(state, "tickets");
	state_bytes(state, "keys", &saved->tickets, &saved->tickets_len);
	state_i64(state, "since_ms", &saved->tickets_ms, 0, LAST_MS);
	put_secrets(saved, state);
	put_clients(saved, state);
}

static void
put_listener(struct saved_listener *listener, struct state *state)
{
	need(state, "listener");
	state_addr(state, "addr", &listener->addr);
	state_bool(state, "v6only", &listener->v6only);
	state_bool(state, "is_given", &listener->is_given);
	state_u32(state, "key", &listener->key, UINT32_MAX);
	state_u32(state, "sockets", &listener->n, SOCKETS_MAX);
	listener->fds = make_room(
	    state, listener->fds, &listener->n, sizeof(*listener->fds));
	for (uint32_t i = 0; i < listener->n; i++)
		state_fd(state, "fd", &listener->fds[i]);
}

static struct saved_count *
put_counts(struct saved_count *counts, uint32_t *n, struct state *state)
{
	state_u32(state, "counts", n, COUNT_MAX);
	counts = make_room(state, counts, n, sizeof(*counts));
	for (uint32_t i = 0; i < *n; i++) {
		state_u32(state, "kind", &counts[i].kind, UINT32_MAX);
		state_u64(state, "instance", &counts[i].instance);
		state_string(state, "name", &counts[i].name);
		state_u64(state, "requests", &counts[i].requests);
		state_u64(state, "errors", &counts[i].errors);
		state_u64(state, "accepted", &counts[i].accepted);
	}
	return counts;
}

static void
put_proxy(struct saved_proxy *proxy, struct state *state)
{
	need(state, "proxy");
	state_int(state, "pid", &proxy->pid, 1, INT_MAX);
	state_u32(state, "generation", &proxy->generation, INT_MAX);
	state_u32(state, "channel", &proxy->channel, UINT32_MAX);
	state_fd(state, "fd", &proxy->fd);
	state_u32(state, "serial", &proxy->serial, UINT32_MAX);
	state_i64(state, "since_ms", &proxy->since_ms, 0, LAST_MS);
	state_i64(state, "ready_at_ms", &proxy->ready_at_ms, 0, LAST_MS);
	state_u32(state, "restarts", &proxy->restarts, INT_MAX);
	state_chars(
	    state, "last_exit", proxy->last_exit, sizeof(proxy->last_exit));
	state_int(state, "backoff_ms", &proxy->backoff_ms, 0, INT_MAX);
	proxy->past = put_counts(proxy->past, &proxy->n_past, state);
	proxy->heard = put_counts(proxy->heard, &proxy->n_heard, state);
}

static void
put_process(struct saved_instance *instance, struct state *state)
{
	state_u64(state, "id", &instance->id);
	state_int(state, "keeper", &instance->keeper, 0, INT_MAX);
	state_int(state, "pid", &instance->pid, 0, INT_MAX);
	state_i64(state, "ready_at_ms", &instance->ready_at_ms, 0, LAST_MS);
	state_fd(state, "link_fd", &instance->link_fd);
	state_fd(state, "listen_fd", &instance->listen_fd);
	state_fd(state, "status_fd", &instance->status_fd);
	state_fd(state, "notify_fd", &instance->notify_fd);
	state_u32(state, "notify_uid", &instance->notify_uid, UINT32_MAX);
	state_u32(state, "port", &instance->port, 65535);
	state_u32(state, "addrs", &instance->n_addrs, 2);
	state_addr(state, "addr0", &instance->addrs[0]);
	state_addr(state, "addr1", &instance->addrs[1]);
	state_addr(state, "addr", &instance->addr);
	for (int i = 0; i < 2; i++) {
		struct saved_pipe *pipe = &instance->pipes[i];

		state_fd(state, "pipe", &pipe->fd);
		state_int(state, "pipe_pid", &pipe->pid, 0, INT_MAX);
		state_bytes(state, "part", &pipe->part, &pipe->part_len);
	}
}

static void
put_instance(struct saved_instance *instance, struct state *state)
{
	need(state, "instance");
	state_int(
	    state, "state", &instance->state, INSTANCE_DOWN, INSTANCE_FAILED);
	state_i64(state, "since_ms", &instance->since_ms, 0, LAST_MS);
	state_i64(state, "retry_at_ms", &instance->retry_at_ms, 0, LAST_MS);
	state_i64(
	    state, "timer_left_ms", &instance->timer_left_ms, -1, INT_MAX);
	state_chars(
	    state, "reason", instance->reason, sizeof(instance->reason));
	state_chars(state, "last_exit", instance->last_exit,
	    sizeof(instance->last_exit));
	state_chars(state, "replace_why", instance->replace_why,
	    sizeof(instance->replace_why));
	state_int(state, "backoff_ms", &instance->backoff_ms, 0, INT_MAX);
	state_u32(state, "restarts", &instance->restarts, INT_MAX);
	state_u32(state, "generation", &instance->generation, INT_MAX);
	state_u32(state, "chance", &instance->chance, 255);
	state_bool(state, "wanted", &instance->wanted);
	state_bool(state, "trial", &instance->trial);
	state_bool(state, "is_old", &instance->is_old);
	state_bool(state, "given_up", &instance->given_up);
	state_bool(state, "retiring", &instance->retiring);
	state_bool(state, "quiet", &instance->quiet);
	state_bool(state, "exited", &instance->exited);
	state_bool(state, "announced", &instance->announced);
	state_bool(state, "drains", &instance->drains);
	put_process(instance, state);
}

static void
put_app(struct saved_app *app, struct state *state)
{
	need(state, "app");
	state_string(state, "name", &app->name);
	state_bool(state, "stopped", &app->stopped);
	state_bool(state, "before_done", &app->before_done);
	state_bool(state, "rolling", &app->rolling);
	state_bool(state, "roll_wish", &app->roll_wish);
	state_bool(state, "roll_all", &app->roll_all);
	state_u64(state, "lost_lines", &app->lost_lines);
	state_chars(
	    state, "env_problem", app->env_problem, sizeof(app->env_problem));
	state_u32(state, "generation", &app->generation, INT_MAX);
	state_u32(state, "scale", &app->scale, COUNT_MAX);
	state_u32(state, "restarts", &app->restarts, INT_MAX);
	state_i64(state, "since_ms", &app->since_ms, 0, LAST_MS);
	state_i64(
	    state, "replace_after_ms", &app->replace_after_ms, 0, LAST_MS);
	state_chars(state, "last_exit", app->last_exit, sizeof(app->last_exit));
	state_u32(state, "words", &app->n_words, COUNT_MAX);
	state_u32(state, "lines", &app->n_lines, COUNT_MAX);
	state_u32(state, "instances", &app->n_instances, COUNT_MAX);
	app->words =
	    make_room(state, app->words, &app->n_words, sizeof(*app->words));
	app->lines =
	    make_room(state, app->lines, &app->n_lines, sizeof(*app->lines));
	app->instances = make_room(
	    state, app->instances, &app->n_instances, sizeof(*app->instances));
	for (uint32_t i = 0; i < app->n_words; i++)
		state_string(state, "word", &app->words[i]);
	for (uint32_t i = 0; i < app->n_lines; i++)
		state_string(state, "line", &app->lines[i]);
	for (uint32_t i = 0; i < app->n_instances; i++)
		put_instance(&app->instances[i], state);
}

int
saved_exchange(struct saved *saved, struct state *state)
{
	put_supervisor(saved, state);
	saved->listeners = make_room(state, saved->listeners,
	    &saved->n_listeners, sizeof(*saved->listeners));
	saved->apps =
	    make_room(state, saved->apps, &saved->n_apps, sizeof(*saved->apps));
	for (uint32_t i = 0; i < saved->n_listeners; i++)
		put_listener(&saved->listeners[i], state);
	put_proxy(&saved->proxy, state);
	for (uint32_t i = 0; i < saved->n_apps; i++)
		put_app(&saved->apps[i], state);
	if (state_is_reading(state) && !state_is_whole(state))
		return -1;
	return state_error(state) == NULL ? 0 : -1;
}

static void
free_app(struct saved_app *app)
{
	for (uint32_t i = 0; i < app->n_words; i++)
		mem_free(app->words[i]);
	for (uint32_t i = 0; i < app->n_lines; i++)
		mem_free(app->lines[i]);
	for (uint32_t i = 0; i < app->n_instances; i++)
		for (int pipe = 0; pipe < 2; pipe++)
			mem_free(app->instances[i].pipes[pipe].part);
	mem_free(app->words);
	mem_free(app->lines);
	mem_free(app->instances);
	mem_free(app->name);
}

static void
free_counts(struct saved_count *counts, uint32_t n)
{
	for (uint32_t i = 0; counts != NULL && i < n; i++)
		mem_free(counts[i].name);
	mem_free(counts);
}

static void
free_clients(struct saved *saved)
{
	for (uint32_t i = 0; saved->clients != NULL && i < saved->n_clients;
	     i++) {
		mem_free(saved->clients[i].in);
		mem_free(saved->clients[i].out);
		mem_free(saved->clients[i].follows);
	}
	mem_free(saved->clients);
}

void
saved_free(struct saved *saved)
{
	for (uint32_t i = 0; saved->listeners != NULL && i < saved->n_listeners;
	     i++)
		mem_free(saved->listeners[i].fds);
	for (uint32_t i = 0; saved->apps != NULL && i < saved->n_apps; i++)
		free_app(&saved->apps[i]);
	for (uint32_t i = 0; saved->secrets != NULL && i < saved->n_secrets;
	     i++)
		mem_free(saved->secrets[i].path);
	free_clients(saved);
	free_counts(saved->proxy.past, saved->proxy.n_past);
	free_counts(saved->proxy.heard, saved->proxy.n_heard);
	if (saved->tickets != NULL)
		explicit_bzero(saved->tickets, saved->tickets_len);
	mem_free(saved->tickets);
	mem_free(saved->secrets);
	mem_free(saved->listeners);
	mem_free(saved->apps);
	mem_free(saved->conf_path);
	mem_free(saved->exe_path);
	mem_free(saved->run_path);
	mem_free(saved->why);
	mem_free(saved->conf);
	mem_free(saved->first);
	memset(saved, 0, sizeof(*saved));
}
