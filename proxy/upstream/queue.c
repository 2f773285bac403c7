/*
 * Round robin over clients, first come first served within one.
 * Used by upstream.c under its lock.
 * Knows neither peers nor time.
 */
#include "proxy/upstream/queue.h"

#include <assert.h>

#include "src/base/mem.h"

#define SPARE_MAX 64

struct queue_client {
	struct list ring;           /* of the queue */
	struct list nodes;          /* struct queue_node */
	struct queue_client *chain; /* of its bucket; also of the spare ones */
	uint64_t key;
};

void
queue_init(struct queue *queue)
{
	*queue = (struct queue){ .count = 0 };
	list_init(&queue->ring);
}

void
queue_free(struct queue *queue)
{
	struct queue_client *client;

	assert(queue->count == 0);
	while ((client = queue->spare) != NULL) {
		queue->spare = client->chain;
		mem_free(client);
	}
}

static struct queue_client **
bucket_of(struct queue *queue, uint64_t key)
{
	return &queue->buckets[key % QUEUE_BUCKETS];
}

static struct queue_client *
client_of(struct queue *queue, uint64_t key)
{
	struct queue_client **bucket = bucket_of(queue, key);
	struct queue_client *client;

	for (client = *bucket; client != NULL; client = client->chain)
		if (client->key == key)
			return client;
	if ((client = queue->spare) != NULL) {
		queue->spare = client->chain;
		queue->n_spare--;
	} else
		client = mem_alloc(sizeof(*client));
	client->key = key;
	client->chain = *bucket;
	*bucket = client;
	list_init(&client->nodes);
	list_push_back(&queue->ring, &client->ring);
	return client;
}

static void
drop_client(struct queue *queue, struct queue_client *client)
{
	struct queue_client **at = bucket_of(queue, client->key);

	while (*at != client)
		at = &(*at)->chain;
	*at = client->chain;
	list_remove(&client->ring);
	if (queue->n_spare == SPARE_MAX) {
		mem_free(client);
		return;
	}
	client->chain = queue->spare;
	queue->spare = client;
	queue->n_spare++;
}

void
queue_push(struct queue *queue, struct queue_node *node, uint64_t client)
{
	node->key = client;
	node->client = client_of(queue, client);
	list_push_back(&node->client->nodes, &node->node);
	queue->count++;
}

struct queue_node *
queue_peek(const struct queue *queue)
{
	struct list *first = list_first(&queue->ring);
	struct queue_client *client;

	if (first == NULL)
		return NULL;
	client = LIST_ENTRY(first, struct queue_client, ring);
	return LIST_ENTRY(list_first(&client->nodes), struct queue_node, node);
}

struct queue_node *
queue_next_client(const struct queue *queue, const struct queue_node *node)
{
	struct list *next =
	    node == NULL ? queue->ring.next : node->client->ring.next;
	struct queue_client *client;

	if (next == &queue->ring)
		return NULL;
	client = LIST_ENTRY(next, struct queue_client, ring);
	return LIST_ENTRY(list_first(&client->nodes), struct queue_node, node);
}

struct queue_node *
queue_pop(struct queue *queue)
{
	struct queue_node *node = queue_peek(queue);
	struct queue_client *client;

	if (node == NULL)
		return NULL;
	client = node->client;
	list_remove(&client->ring);
	list_push_back(&queue->ring, &client->ring);
	queue_remove(queue, node);
	return node;
}

void
queue_remove(struct queue *queue, struct queue_node *node)
{
	struct queue_client *client = node->client;

	list_remove(&node->node);
	node->client = NULL;
	queue->count--;
	if (list_is_empty(&client->nodes))
		drop_client(queue, client);
}
