/*
 * FastCGI records that come from the application.
 * Between the bytes of a uconn and the CGI answer in them.
 * Copies nothing: pieces are views into the input.
 */
#include "fcgi/fcgi.h"

#include <string.h>

enum state {
	HEAD,
	CONTENT,
	PADDING,
	ENDED,
	BAD,
};

#define FCGI_VERSION 1
#define END_BODY_LEN 8

void
fcgi_reply_init(struct fcgi_reply *reply, uint16_t id)
{
	*reply = (struct fcgi_reply){ .id = id, .state = HEAD };
}

/* Collect `want` bytes into `to`; true when they are all there. */
static bool
collect(struct fcgi_reply *reply, unsigned char *to, size_t want,
    const unsigned char *from, size_t len, size_t *used)
{
	size_t piece = want - reply->have;

	if (piece > len - *used)
		piece = len - *used;
	if (piece > 0)
		memcpy(to + reply->have, from + *used, piece);
	reply->have = (uint8_t)(reply->have + piece);
	*used += piece;
	if (reply->have < want)
		return false;
	reply->have = 0;
	return true;
}

/* A stream ends with an empty record; nothing may follow it (FastCGI 1.0
 * section 3.3). */
static bool
is_stream_ok(const struct fcgi_reply *reply, bool is_closed)
{
	return !is_closed || reply->left == 0;
}

/* The state behind a whole record header. */
static enum state
check_head(struct fcgi_reply *reply)
{
	const unsigned char *head = reply->head;
	unsigned id = (unsigned)head[2] << 8 | head[3];
	bool is_ok = false;

	reply->type = head[1];
	reply->left = (uint16_t)(head[4] << 8 | head[5]);
	reply->padding = head[6];
	if (head[0] != FCGI_VERSION || id != reply->id)
		return BAD;
	switch (reply->type) {
	case FCGI_STDOUT:
		is_ok = is_stream_ok(reply, reply->stdout_closed);
		reply->stdout_closed |= reply->left == 0;
		break;
	case FCGI_STDERR:
		is_ok = is_stream_ok(reply, reply->stderr_closed);
		reply->stderr_closed |= reply->left == 0;
		break;
	case FCGI_END_REQUEST:
		is_ok = reply->left == END_BODY_LEN;
		break;
	}
	return is_ok ? CONTENT : BAD;
}

static void
read_end(struct fcgi_reply *reply)
{
	const unsigned char *body = reply->end_body;

	reply->app_status = (uint32_t)body[0] << 24 | (uint32_t)body[1] << 16 |
			    (uint32_t)body[2] << 8 | body[3];
	reply->protocol_status = body[4];
	reply->left = 0;
	reply->ended = true;
}

/* Content of a record: the whole of END_REQUEST's, or a piece of a stream.
 * Returns MORE when nothing is to be handed out. */
static enum fcgi_reply_result
take_content(struct fcgi_reply *reply, const unsigned char *from, size_t len,
    size_t *used, const unsigned char **data, size_t *data_len)
{
	size_t piece = len - *used;

	if (reply->type == FCGI_END_REQUEST) {
		if (collect(
			reply, reply->end_body, END_BODY_LEN, from, len, used))
			read_end(reply);
		return FCGI_REPLY_MORE;
	}
	if (piece > reply->left)
		piece = reply->left;
	if (piece == 0)
		return FCGI_REPLY_MORE;
	*data = from + *used;
	*data_len = piece;
	*used += piece;
	reply->left = (uint16_t)(reply->left - piece);
	return reply->type == FCGI_STDOUT ? FCGI_REPLY_STDOUT
					  : FCGI_REPLY_STDERR;
}

static void
skip_padding(struct fcgi_reply *reply, size_t len, size_t *used)
{
	size_t piece = len - *used;

	if (piece > reply->padding)
		piece = reply->padding;
	*used += piece;
	reply->padding = (uint8_t)(reply->padding - piece);
	if (reply->padding == 0)
		reply->state = reply->ended ? ENDED : HEAD;
}

enum fcgi_reply_result
fcgi_reply_read(struct fcgi_reply *reply, const unsigned char *from, size_t len,
    size_t *used, const unsigned char **data, size_t *data_len)
{
	enum fcgi_reply_result result;

	*used = 0;
	for (;;) {
		switch ((enum state)reply->state) {
		case HEAD:
			if (!collect(reply, reply->head, FCGI_HEADER_LEN, from,
				len, used))
				return FCGI_REPLY_MORE;
			reply->state = (uint8_t)check_head(reply);
			break;
		case CONTENT:
			result = take_content(
			    reply, from, len, used, data, data_len);
			if (reply->left == 0)
				reply->state = PADDING;
			if (result != FCGI_REPLY_MORE)
				return result;
			if (reply->state == CONTENT)
				return FCGI_REPLY_MORE;
			break;
		case PADDING:
			skip_padding(reply, len, used);
			if (reply->state == PADDING)
				return FCGI_REPLY_MORE;
			break;
		case ENDED:
			return FCGI_REPLY_END;
		case BAD:
			return FCGI_REPLY_BAD;
		}
	}
}
