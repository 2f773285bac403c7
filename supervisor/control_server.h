/*
 * The control socket: scalwsctl connects, sends one line, gets an answer.
 * Here are connections, rights and limits; commands.c does what is asked.
 * Supervisor thread only.
 */
#ifndef SUPERVISOR_CONTROL_SERVER_H
#define SUPERVISOR_CONTROL_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/compiler.h"
#include "src/base/str.h"
#include "src/conf/conf.h"
#include "src/ipc/control.h"

struct control_client; /* opaque: one command and its answer */
struct control_server; /* opaque */
struct supervisor;

/* Bind conf->control.socket, 0660 (0600 without a group). NULL with `errors`
 * filled. */
struct control_server *control_server_new(struct supervisor *supervisor,
    const struct conf *conf, struct conf_errors *errors) MUST_CHECK;
/* Removes the socket; what was answered is still sent, as far as the sockets
 * take it. */
void control_server_free(struct control_server **server);

/* ---- for commands.c ---- */

struct supervisor *control_supervisor(const struct control_client *client);
/* Root and the daemon's own user may change things, others only look. */
bool control_may_change(const struct control_client *client);
/* 'o' or 'e' lines. A client that does not read is dropped. */
void control_say(struct control_client *client, char kind, struct str text);
void control_printf(struct control_client *client, char kind, const char *fmt,
    ...) PRINTF_LIKE(3, 4);
/* The command is done; `client` must not be used afterwards. */
void control_end(struct control_client *client, enum control_exit code);
/* The client went away before the end: stop working for it. Called at most
 * once, and not after control_end. */
typedef void control_gone_cb(struct control_client *client, void *arg);
void control_on_gone(
    struct control_client *client, control_gone_cb *on_gone, void *arg);

/* It follows the log of this app: nothing but lines comes any more, and who
 * takes over can go on with that. */
void control_follows(struct control_client *client, const char *app);

/* ---- for who hands the socket on to another process ---- */

struct saved_client;

/* Does anybody wait for an answer, besides `client` and who follows a log? */
bool control_server_is_busy(
    const struct control_server *server, const struct control_client *client);
/* Those who cannot be handed on (who wait for an answer, or do not read it) are
 * told to ask again. */
void control_server_cut(
    struct control_server *server, const struct control_client *client);
/* All others; `client` waits for the end of the upgrade. */
void control_server_save(const struct control_server *server,
    const struct control_client *client, struct saved_client **clients,
    uint32_t *n);
int control_server_fd(const struct control_server *server);
/* The socket that was bound before; no error. */
struct control_server *control_server_adopt(
    struct supervisor *supervisor, const struct conf *conf, int fd) MUST_CHECK;
/* One of its connections. Who followed a log must be given one again. */
struct control_client *control_client_adopt(
    struct control_server *server, const struct saved_client *from) MUST_CHECK;

#endif
