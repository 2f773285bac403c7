/*
 * Matches the proxy's answers with who asked, and gives up in time.
 * Under proxy_proc.c, which sends the questions. Sends nothing.
 */
#include "supervisor/proxy_questions.h"

#include <event2/event.h>
#include <stdbool.h>

#include "src/base/list.h"
#include "src/base/mem.h"
#include "supervisor/supervisor.h"

struct question {
	struct list node;
	uint64_t id;
	struct event *timer;
	proxy_probed_cb *on_probed; /* one of the two */
	proxy_answered_cb *on_answered;
	void *arg;
};

struct proxy_questions {
	struct supervisor *supervisor;
	struct list all;
};

struct proxy_questions *
proxy_questions_new(struct supervisor *supervisor)
{
	struct proxy_questions *questions = mem_alloc(sizeof(*questions));

	questions->supervisor = supervisor;
	list_init(&questions->all);
	return questions;
}

void
proxy_questions_free(struct proxy_questions **questions)
{
	mem_free(*questions);
	*questions = NULL;
}

static void
forget(struct question *question)
{
	event_free(question->timer);
	list_remove(&question->node);
	mem_free(question);
}

/* End it without an answer from the proxy. */
static void
give_up(struct question *question, const char *why)
{
	struct channel_probed probed = { question->id, 0, 0, why };
	proxy_probed_cb *on_probed = question->on_probed;
	proxy_answered_cb *on_answered = question->on_answered;
	void *arg = question->arg;

	forget(question);
	if (on_probed != NULL)
		on_probed(&probed, arg);
	else
		on_answered(false, arg);
}

static void
on_timeout(evutil_socket_t fd, short what, void *arg)
{
	give_up(arg, "the proxy does not answer");
}

static struct question *
ask(struct proxy_questions *questions, int timeout_ms, void *arg)
{
	struct question *question = mem_alloc(sizeof(*question));
	struct timeval tv = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };

	question->id = ++questions->supervisor->last_id;
	question->arg = arg;
	question->timer =
	    evtimer_new(questions->supervisor->base, on_timeout, question);
	event_add(question->timer, &tv);
	list_push_back(&questions->all, &question->node);
	return question;
}

uint64_t
proxy_questions_probe(struct proxy_questions *questions, int timeout_ms,
    proxy_probed_cb *on_probed, void *arg)
{
	struct question *question = ask(questions, timeout_ms, arg);

	question->on_probed = on_probed;
	return question->id;
}

uint32_t
proxy_questions_query(struct proxy_questions *questions, int timeout_ms,
    proxy_answered_cb *on_answered, void *arg)
{
	struct question *question = ask(questions, timeout_ms, arg);

	question->on_answered = on_answered;
	question->id &= UINT32_MAX; /* as it comes back */
	return (uint32_t)question->id;
}

static struct question *
find(struct proxy_questions *questions, uint64_t id, bool probe)
{
	struct list *node;

	LIST_FOREACH(node, &questions->all)
	{
		struct question *question =
		    LIST_ENTRY(node, struct question, node);

		if (question->id == id &&
		    (question->on_probed != NULL) == probe)
			return question;
	}
	return NULL;
}

void
proxy_questions_cancel(struct proxy_questions *questions, uint64_t probe)
{
	struct question *question = find(questions, probe, true);

	if (question != NULL)
		forget(question);
}

void
proxy_questions_end(struct proxy_questions *questions, const char *why)
{
	struct list *node;

	while ((node = list_first(&questions->all)) != NULL)
		give_up(LIST_ENTRY(node, struct question, node), why);
}

int
proxy_questions_probed(struct proxy_questions *questions, struct frame_in *in)
{
	struct channel_probed probed;
	struct question *question;
	proxy_probed_cb *on_probed;
	void *arg;

	if (channel_get_probed(in, &probed) == -1)
		return -1;
	question = find(questions, probed.probe, true);
	if (question == NULL)
		return 0; /* cancelled, or too late */
	on_probed = question->on_probed;
	arg = question->arg;
	forget(question);
	on_probed(&probed, arg);
	return 0;
}

void
proxy_questions_answered(struct proxy_questions *questions, uint32_t query)
{
	struct question *question = find(questions, query, false);
	proxy_answered_cb *on_answered;
	void *arg;

	if (question == NULL)
		return; /* too late */
	on_answered = question->on_answered;
	arg = question->arg;
	forget(question);
	on_answered(true, arg);
}
