/*
 * What a route to an app or upstream is compiled to, and what a request on it
 * asks for. For the gateway's own files.
 */
#ifndef HANDLER_GATEWAY_ROUTE_H
#define HANDLER_GATEWAY_ROUTE_H

#include <stdbool.h>

#include "proxy/core/handler.h"
#include "proxy/handler/gateway_script.h"
#include "proxy/upstream/exchange.h"
#include "proxy/upstream/pool.h"
#include "src/base/compiler.h"

struct conf_action;
struct conf_errors;
struct conf_route;
struct request;
struct upstream;
struct upstream_registry;
struct worker;

struct gateway_route {
	struct upstream_registry *registry;
	struct upstream *upstream; /* counted */
	char *name;
	bool is_app;
	const struct exchange_ops *ops;
	struct pool_limits limits;
	int request_timeout_ms;
	int response_timeout_ms, pause_timeout_ms, stream_timeout_ms;
	bool spools; /* large bodies too are whole before a peer is asked */
	/* Bodies of unknown length are gathered first: the application reads
	 * none without a length. */
	bool needs_length;
	struct script_rules scripts; /* FastCGI; texts owned */
};

void *gateway_route_new(const struct conf_route *conf,
    const struct conf_action *action, const struct handler_env *env,
    struct conf_errors *errors) MUST_CHECK;
void gateway_route_free(void *route);

/* What to ask the peer for; texts live as long as the request. Returns 0, or
 * the status to answer (*why static). 301: *target->target is where to go. */
struct script_cache;
unsigned gateway_target(struct request *request,
    const struct gateway_route *route, struct script_cache *scripts,
    struct exchange_target *target, const char **why) MUST_CHECK;

#endif
