/*
 * Counts the bytes of WebSocket frames, so that a close frame can be put
 * between two of them.
 * For the gateway's tunnels. Judges nothing: what is no WebSocket has frames
 * too, and whoever speaks it sees to that.
 */
#include "proxy/http/ws_frames.h"

#define OPCODE 0x0f
#define CLOSE 0x08
#define MASKED 0x80
#define MASK_BYTES 4

static void
end_frame(struct ws_frames *frames)
{
	frames->has_closed |= frames->is_closing;
	frames->head_bytes = 0;
}

static void
end_head(struct ws_frames *frames)
{
	/* A length that nothing can have stays one that nothing has. */
	if (frames->is_masked && frames->left <= UINT64_MAX - MASK_BYTES)
		frames->left += MASK_BYTES;
	if (frames->left == 0)
		end_frame(frames);
}

static void
take_length(struct ws_frames *frames, uint8_t byte)
{
	uint8_t length = byte & 0x7f;

	frames->is_masked = (byte & MASKED) != 0;
	frames->left = 0;
	frames->length_left = length == 127 ? 8 : length == 126 ? 2 : 0;
	if (frames->length_left == 0)
		frames->left = length;
}

static void
take_head_byte(struct ws_frames *frames, uint8_t byte)
{
	if (frames->head_bytes == 0) {
		frames->is_closing = (byte & OPCODE) == CLOSE;
		frames->length_left = 1;
		frames->head_bytes = 1;
		return;
	}
	if (frames->head_bytes == 1) {
		take_length(frames, byte);
		frames->head_bytes = 2;
	} else {
		frames->left = frames->left << 8 | byte;
		frames->length_left--;
	}
	if (frames->length_left == 0)
		end_head(frames);
}

static bool
is_in_head(const struct ws_frames *frames)
{
	return frames->head_bytes == 0 || frames->length_left > 0;
}

void
ws_frames_pass(struct ws_frames *frames, const char *from, size_t len)
{
	while (len > 0) {
		size_t n;

		if (is_in_head(frames)) {
			take_head_byte(frames, (uint8_t)*from++);
			len--;
			continue;
		}
		n = frames->left < len ? (size_t)frames->left : len;
		frames->left -= n;
		from += n;
		len -= n;
		if (frames->left == 0)
			end_frame(frames);
	}
}

bool
ws_frames_may_close(const struct ws_frames *frames)
{
	return frames->head_bytes == 0 && !frames->has_closed;
}
