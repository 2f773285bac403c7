/*
 * Where the frames of a WebSocket begin and end (RFC 6455 section 5.2), in one
 * direction of a tunnel. Pure.
 */
#ifndef HTTP_WS_FRAMES_H
#define HTTP_WS_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins as zeros. */
struct ws_frames {
	uint64_t left;       /* of the frame's head: its length so far; behind
			      * it: bytes of mask and payload still to come */
	uint8_t head_bytes;  /* of this head that have come; 0: none */
	uint8_t length_left; /* bytes of the length still to come */
	bool is_masked;
	bool is_closing; /* this frame is a close frame */
	bool has_closed; /* such a frame has come to its end */
};

/* So many bytes pass. */
void ws_frames_pass(struct ws_frames *frames, const char *from, size_t len);
/* May a frame of ours stand here? Not within another, nor behind the last. */
bool ws_frames_may_close(const struct ws_frames *frames);

/* A close frame with 1001, "going away" (section 7.4.1): what a server sends.
 */
#define WS_GOING_AWAY "\x88\x02\x03\xe9"
/* ... and a client: with a mask, of zeros. */
#define WS_GOING_AWAY_MASKED "\x88\x82\0\0\0\0\x03\xe9"
#define WS_LEN(frame) (sizeof(frame) - 1)

#endif
