/*
 * Who waits for a peer: round robin over clients, first come first served
 * within one client, so that nobody's hundred requests stand before another's
 * one. The order only: no locks, no limits, no time (upstream.c).
 */
#ifndef UPSTREAM_QUEUE_H
#define UPSTREAM_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/list.h"

struct queue_client;

struct queue_node {
	struct list node;
	struct queue_client *client; /* NULL: in no queue */
	uint64_t key;                /* of the client */
};

#define QUEUE_BUCKETS 64

struct queue {
	unsigned count;
	struct list
	    ring; /* clients with at least one node; the next is first */
	struct queue_client *buckets[QUEUE_BUCKETS];
	struct queue_client *spare; /* kept for reuse */
	unsigned n_spare;
};

void queue_init(struct queue *queue);
/* It must be empty. */
void queue_free(struct queue *queue);
void queue_push(struct queue *queue, struct queue_node *node, uint64_t client);
/* Take out the next one, or NULL. */
struct queue_node *queue_pop(struct queue *queue);
/* The next one, still in, or NULL. */
struct queue_node *queue_peek(const struct queue *queue);
/* Of each client the one that came first: after `node` (NULL: of the first
 * client) that of the next one. NULL at the end. */
struct queue_node *queue_next_client(
    const struct queue *queue, const struct queue_node *node);
/* Take it out wherever it stands. */
void queue_remove(struct queue *queue, struct queue_node *node);

#endif
