/*
 * Ticket keys: rotation of our own, and watching the file of several machines.
 * Tells the proxy through proxy_proc.c. Encrypts nothing.
 */
#include "supervisor/ticket_keys.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "src/base/clock.h"
#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "supervisor/proxy_proc.h"
#include "supervisor/supervisor.h"

#define KEY_BYTES 80
#define KEYS_MAX 16
/* Of our own: one makes tickets, the others still open those of before. So a
 * ticket is good for at least 16 hours, and its key is gone after 24. */
#define OWN_KEYS 3
#define ROTATE_MS (8 * 3600 * 1000)
/* How often the file is looked at. */
#define LOOK_S 2

struct ticket_keys {
	struct supervisor *supervisor;
	struct event *timer;
	char *path; /* NULL: our own */
	struct stat seen;
	int64_t rotated_ms;
	size_t len;
	unsigned char bytes[KEYS_MAX * KEY_BYTES];
};

static void
make_key(struct ticket_keys *keys)
{
	unsigned char fresh[KEY_BYTES];

	if (getrandom(fresh, sizeof(fresh), 0) != sizeof(fresh)) {
		log_errno("no random bytes for a ticket key");
		return;
	}
	if (keys->len > (OWN_KEYS - 1) * KEY_BYTES)
		keys->len = (OWN_KEYS - 1) * KEY_BYTES;
	memmove(keys->bytes + KEY_BYTES, keys->bytes, keys->len);
	memcpy(keys->bytes, fresh, sizeof(fresh));
	explicit_bzero(fresh, sizeof(fresh));
	keys->len += KEY_BYTES;
	keys->rotated_ms = clock_now_ms();
}

void
ticket_keys_tell(struct ticket_keys *keys)
{
	int fd = fd_memfd_sealed("scalws-tickets", keys->bytes, keys->len);

	if (fd == -1) {
		log_errno("ticket keys do not reach the proxy");
		return;
	}
	proxy_proc_tickets(keys->supervisor->proxy, fd);
	fd_close(&fd);
}

/* NULL: good, and copied. Else what is wrong with it; errno may be 0. */
static const char *
read_keys(const char *path, unsigned char *to, size_t *to_len)
{
	static const char no_keys[] =
	    "does not hold 1 to 16 keys of 80 bytes each";
	const char *why = NULL;
	char *text;
	size_t len;

	errno = 0;
	if (fd_read_file(path, KEYS_MAX * KEY_BYTES, &text, &len) == -1) {
		if (errno != EFBIG)
			return "cannot be read";
		errno = 0;
		return no_keys;
	}
	if (len == 0 || len % KEY_BYTES != 0) {
		errno = 0;
		why = no_keys;
	} else {
		memcpy(to, text, len);
		*to_len = len;
	}
	explicit_bzero(text, len);
	mem_free(text);
	return why;
}

static bool
is_changed(const struct stat *a, const struct stat *b)
{
	return a->st_ino != b->st_ino || a->st_size != b->st_size ||
	       a->st_mtim.tv_sec != b->st_mtim.tv_sec ||
	       a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

static void
look_at_file(struct ticket_keys *keys)
{
	const char *why;
	struct stat now;

	if (stat(keys->path, &now) == -1 || !is_changed(&now, &keys->seen))
		return; /* between its old and its new name, perhaps */
	keys->seen = now;
	why = read_keys(keys->path, keys->bytes, &keys->len);
	if (why != NULL) {
		log_error("ticket keys: %s %s%s%s; those of before stay",
		    keys->path, why, errno == 0 ? "" : ": ",
		    errno == 0 ? "" : strerror(errno));
		return;
	}
	log_info("ticket keys read from %s", keys->path);
	ticket_keys_tell(keys);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct ticket_keys *keys = arg;

	if (keys->path != NULL) {
		look_at_file(keys);
	} else if (clock_now_ms() - keys->rotated_ms >= ROTATE_MS) {
		make_key(keys);
		ticket_keys_tell(keys);
	}
}

struct ticket_keys *
ticket_keys_new(struct supervisor *supervisor)
{
	struct ticket_keys *keys = mem_alloc(sizeof(*keys));
	struct timeval often = { LOOK_S, 0 };

	keys->supervisor = supervisor;
	make_key(keys);
	keys->timer =
	    event_new(supervisor->base, -1, EV_PERSIST, on_timer, keys);
	if (keys->timer == NULL || event_add(keys->timer, &often) == -1)
		log_error("ticket keys will not change: no timer");
	return keys;
}

void
ticket_keys_free(struct ticket_keys **keys_ptr)
{
	struct ticket_keys *keys = *keys_ptr;

	if (keys == NULL)
		return;
	*keys_ptr = NULL;
	if (keys->timer != NULL)
		event_free(keys->timer);
	mem_free(keys->path);
	explicit_bzero(keys, sizeof(*keys));
	mem_free(keys);
}

static int
check_file(const char *path, const struct conf_where *where, const char *key,
    void *arg)
{
	struct conf_errors *errors = arg;
	unsigned char bytes[KEYS_MAX * KEY_BYTES];
	const char *why;
	size_t len;

	why = read_keys(path, bytes, &len);
	explicit_bzero(bytes, sizeof(bytes));
	if (why == NULL)
		return 0;
	if (errno != 0)
		return conf_errors_add_errno(
		    errors, where, key, "%.200s %s", path, why);
	return conf_errors_add(errors, where, key, "%.200s %s", path, why);
}

int
ticket_keys_check(const struct conf *conf, struct conf_errors *errors)
{
	return conf_ticket_file(conf, check_file, errors);
}

void
ticket_keys_configure(struct ticket_keys *keys, const struct conf *conf)
{
	const char *path = conf->tls.ticket_keys;
	bool had = keys->path != NULL;

	if (path != NULL && had && strcmp(path, keys->path) == 0)
		return;
	mem_free(keys->path);
	keys->path = mem_strdup(path);
	memset(&keys->seen, 0, sizeof(keys->seen));
	if (path != NULL) {
		look_at_file(keys);
	} else if (had) {
		keys->len = 0;
		make_key(keys);
		ticket_keys_tell(keys);
	}
}

void
ticket_keys_save(const struct ticket_keys *keys, char **bytes, size_t *len,
    int64_t *rotated_ms)
{
	*len = keys->path == NULL ? keys->len : 0;
	*bytes = mem_memdup0((const char *)keys->bytes, *len);
	*rotated_ms = keys->rotated_ms;
}

void
ticket_keys_adopt(
    struct ticket_keys *keys, const char *bytes, size_t len, int64_t rotated_ms)
{
	if (keys->path != NULL || len == 0 || len % KEY_BYTES != 0 ||
	    len > OWN_KEYS * KEY_BYTES)
		return;
	memcpy(keys->bytes, bytes, len);
	keys->len = len;
	keys->rotated_ms = rotated_ms;
}
