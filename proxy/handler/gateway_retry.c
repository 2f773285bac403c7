/*
 * The rule for repeating a request.
 * Asked by the gateway when an exchange has failed.
 */
#include "proxy/handler/gateway_retry.h"

bool
gateway_may_retry(const struct attempt_end *end)
{
	unsigned tries_max = end->failure == EXCHANGE_UNTAKEN
				 ? GATEWAY_APP_TRIES_MAX
				 : GATEWAY_TRIES_MAX;

	if (end->is_answered || end->got_bytes || !end->is_whole ||
	    end->tries >= tries_max)
		return false;
	switch (end->failure) {
	case EXCHANGE_CONNECT:
	case EXCHANGE_UNTAKEN:
		return true;
	case EXCHANGE_CLOSED:
		if (!end->sent_bytes)
			return true;
		return end->is_idempotent && end->was_kept;
	case EXCHANGE_TRUNCATED:
	case EXCHANGE_MALFORMED:
	case EXCHANGE_TOO_LARGE:
	case EXCHANGE_REFUSED:
		break;
	}
	return false;
}

unsigned
gateway_status(enum exchange_failure failure)
{
	return 502;
}
