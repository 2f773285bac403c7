/*
 * What can be done with a request: the contract between core and the actions
 * of routes (respond, redirect, gateway ...). Handlers see requests, never
 * connections; the front never sees handlers.
 *
 * A handler that returned HANDLED owns the answer: it must, sooner or later,
 * call response_end or response_abort exactly once, unless on_abort came
 * first. After either of the three it must not touch the request again.
 * All calls come from the worker's thread. No call is made from inside a
 * response_* call of the handler's own (no surprise recursion).
 */
#ifndef CORE_HANDLER_H
#define CORE_HANDLER_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/compiler.h"

struct conf_action;
struct conf_errors;
struct conf_route;
struct request;
struct tls_upstream;
struct upstream_registry;

enum handler_result {
	HANDLER_HANDLED,  /* it is mine (perhaps ended already) */
	HANDLER_DECLINED, /* untouched: the next action, at the end 404 */
};

/* What handlers may need when a snapshot is made; set by proxy.c. */
struct handler_env {
	struct upstream_registry *registry; /* opaque to core */
	/* By conf_upstream.index; NULL: it is spoken to without TLS. Set by
	 * snapshot.c, which keeps a reference while the snapshot is made. */
	struct tls_upstream *const *tls;
};

struct handler_ops {
	const char *name;

	/* Compile the route's configuration while a snapshot is made (main
	 * thread). The result is handed to every on_request and given back to
	 * release when the snapshot ends. NULL with a finding in `errors` on
	 * failure. Without `prepare` the handler gets the struct conf_action
	 * itself. */
	void *(*prepare)(const struct conf_route *route,
	    const struct conf_action *action, const struct handler_env *env,
	    struct conf_errors *errors);
	/* The snapshot is about to be used (main thread, cannot fail).
	 * `prepare` may find or make shared things by name and count a
	 * reference, but changes nothing that a running request can see; that
	 * is done here, so that a rejected configuration leaves no trace. NULL:
	 * nothing to do. */
	void (*commit)(void *prepared);
	/* Main thread only: the last worker to leave a snapshot posts it there.
	 */
	void (*release)(void *prepared);

	/* Take it or leave it. The body, if any, has not been read; HANDLED
	 * with response_end before the body is whole is allowed. To get the
	 * body call request->front->body_wanted once; without that call the
	 * front reads none of it. With request->body_is_whole there is no body:
	 * no on_body comes. */
	enum handler_result (*on_request)(
	    struct request *request, const void *prepared);
	/* Body bytes, only after body_wanted, never after response_end. Return
	 * how many were taken. Fewer than `len`: the rest is offered again
	 * after front_ops.body_resume, no more is read meanwhile. `last` comes
	 * exactly once, with the final bytes (again together with what was not
	 * taken of them), unless on_abort comes; a call with `len` 0 counts as
	 * taken. NULL: the handler never wants bodies. */
	size_t (*on_body)(
	    struct request *request, const char *from, size_t len, bool last);
	/* After RESPONSE_FULL: the client can take more. NULL if never FULL. */
	void (*on_writable)(struct request *request);
	/* The client is gone: forget the request. NULL: nothing to forget. */
	void (*on_abort)(struct request *request);
};

#endif
