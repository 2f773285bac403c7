/*
 * All that a supervisor knows and its successor must: as plain values, and as
 * text (state.h). handover.c takes them from the parts and gives them back.
 * Pure.
 */
#ifndef SUPERVISOR_SAVED_H
#define SUPERVISOR_SAVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/addr.h"
#include "src/base/compiler.h"

struct state;

#define SAVED_TEXT_MAX 256

/* Texts are owned by the struct saved; descriptors are only numbers here. */
struct saved_listener {
	struct addr addr;
	bool v6only, is_given;
	uint32_t key;
	uint32_t n;
	int *fds;
};

/* A file for TLS, as it was when its configuration was loaded. */
struct saved_secret {
	char *path;
	int fd;
};

/* A connection to the control socket. */
struct saved_client {
	int fd;
	uint32_t uid;
	bool asked, ended;
	bool waits;    /* for the end of the upgrade */
	char *in;      /* a part of a request */
	char *out;     /* of an answer what is not sent yet */
	char *follows; /* the log of this app; "": none */
	size_t in_len, out_len;
};

/* What proxies counted of one thing; see counts.h. */
struct saved_count {
	uint32_t kind;
	uint64_t instance;
	char *name;
	uint64_t requests, errors, accepted;
};

struct saved_proxy {
	int pid;
	uint32_t generation;
	uint32_t channel; /* CHANNEL_VERSION that it speaks */
	int fd;
	uint32_t serial; /* of its configuration */
	int64_t since_ms, ready_at_ms;
	uint32_t restarts;
	char last_exit[SAVED_TEXT_MAX];
	int backoff_ms;
	uint32_t n_past, n_heard;
	struct saved_count *past;  /* of all that have ended */
	struct saved_count *heard; /* of this one */
};

/* One end of a pipe that an app prints to. */
struct saved_pipe {
	int fd;     /* -1: there is none */
	int pid;    /* what stands before its lines */
	char *part; /* of a line, as far as it came */
	size_t part_len;
};

struct saved_instance {
	int state; /* enum instance_state */
	int64_t since_ms, retry_at_ms;
	int64_t timer_left_ms; /* -1: it does not run */
	char reason[SAVED_TEXT_MAX], last_exit[SAVED_TEXT_MAX];
	char replace_why[SAVED_TEXT_MAX];
	int backoff_ms;
	uint32_t restarts, generation, chance;
	bool wanted, trial, is_old, given_up, retiring, quiet, exited;
	bool announced; /* the proxy may use it */
	bool drains;    /* the proxy was told not to, and has not done yet */
	uint64_t id;
	int keeper, pid;
	int64_t ready_at_ms;
	int link_fd, listen_fd, status_fd;
	int notify_fd; /* where it says READY=1 and WATCHDOG=1; -1: nowhere */
	uint32_t notify_uid;
	uint32_t port, n_addrs;
	struct addr addrs[2], addr;
	struct saved_pipe pipes[2];
};

struct saved_app {
	char *name;
	bool stopped, before_done, rolling, roll_wish, roll_all;
	uint64_t lost_lines; /* not told in its log yet */
	char env_problem[SAVED_TEXT_MAX];
	uint32_t generation, scale, restarts;
	int64_t since_ms, replace_after_ms;
	char last_exit[SAVED_TEXT_MAX];
	uint32_t n_words, n_lines, n_instances;
	char **words; /* its environment */
	char **lines; /* the last that it printed */
	struct saved_instance *instances;
};

struct saved {
	char *conf_path, *exe_path, *run_path;
	int lock_fd, control_fd;
	bool run_root;
	uint32_t proxy_gid;
	uint64_t last_id, nofile_was;
	int64_t started_ms;
	bool told_ready, told_port;
	char *why; /* "": go on with the upgrade; else it has failed, and this
		    * is what to say */
	/* conf_to_flat: the one in force, and the one of the first start. */
	char *conf, *first;
	size_t conf_len, first_len;
	char *tickets; /* our own ticket keys */
	size_t tickets_len;
	int64_t tickets_ms; /* when the first was made */
	uint32_t last_key, n_listeners, n_apps, n_secrets, n_clients;
	struct saved_client *clients;
	struct saved_secret *secrets;
	struct saved_listener *listeners;
	struct saved_proxy proxy;
	struct saved_app *apps;
};

/* Write *saved to `state`, or read it from there: 0, or -1 and state_error.
 * After reading the caller frees it either way. */
int saved_exchange(struct saved *saved, struct state *state) MUST_CHECK;
void saved_free(struct saved *saved);

#endif
