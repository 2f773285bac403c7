/*
 * Certificates, keys and roots on their way from the disk to the proxy.
 * Read when a configuration is loaded, sent by proxy_load.c.
 * Does not look at what is in them: that is the proxy's, without rights.
 */
#include "supervisor/secrets.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/mem.h"
#include "src/ipc/channel.h"
#include "supervisor/saved.h"

#define FILE_BYTES_MAX ((size_t)1 << 20)

struct secret {
	char *path;
	int fd;
};

struct secrets {
	struct secret *all;
	size_t count;
};

struct reading {
	struct secrets *to;
	struct conf_errors *errors;
};

static const struct secret *
find(const struct secrets *secrets, const char *path)
{
	for (size_t i = 0; i < secrets->count; i++)
		if (strcmp(secrets->all[i].path, path) == 0)
			return &secrets->all[i];
	return NULL;
}

static void
add(struct secrets *to, const char *path, int fd)
{
	to->all = mem_realloc(to->all, to->count + 1, sizeof(*to->all));
	to->all[to->count].path = mem_strdup(path);
	to->all[to->count++].fd = fd;
}

/* A sealed copy of the file, or -1 with errno. */
static int
copy_file(const char *path)
{
	char *text;
	size_t len;
	int fd, error;

	if (fd_read_file(path, FILE_BYTES_MAX, &text, &len) == -1)
		return -1;
	fd = fd_memfd_sealed("scalws-tls", text, len);
	error = errno;
	explicit_bzero(text, len);
	mem_free(text);
	errno = error;
	return fd;
}

static int
read_one(const char *path, const struct conf_where *where, const char *key,
    void *arg)
{
	struct reading *reading = arg;
	struct secrets *to = reading->to;
	int fd;

	if (find(to, path) != NULL)
		return 0;
	fd = copy_file(path);
	if (fd == -1) {
		conf_errors_add_errno(
		    reading->errors, where, key, "%s cannot be read", path);
		return 0; /* the others may have a finding too */
	}
	add(to, path, fd);
	return 0;
}

struct secrets *
secrets_read(const struct conf *conf, struct conf_errors *errors)
{
	struct secrets *secrets = mem_alloc(sizeof(*secrets));
	struct reading reading = { secrets, errors };
	int before = errors->count;

	if (conf_each_tls_file(conf, read_one, &reading) == -1 ||
	    errors->count > before)
		secrets_free(&secrets);
	return secrets;
}

/* ---- what a reload would change ---- */

struct describing {
	const struct secrets *secrets;
	struct secrets *told; /* without descriptors: one line for each */
	struct strbuf *to;
};

static bool
is_same(int fd, int other)
{
	char a[4096], b[sizeof(a)];
	off_t at = 0;

	for (;;) {
		ssize_t n = pread(fd, a, sizeof(a), at);

		if (n == -1 || pread(other, b, sizeof(b), at) != n)
			return false;
		if (n == 0)
			return true;
		if (memcmp(a, b, (size_t)n) != 0)
			return false;
		at += n;
	}
}

static int
describe_one(const char *path, const struct conf_where *where, const char *key,
    void *arg)
{
	struct describing *describing = arg;
	const struct secret *secret = find(describing->secrets, path);
	int fd;

	if (secret == NULL || find(describing->told, path) != NULL)
		return 0;
	fd = copy_file(path);
	if (fd == -1)
		return 0;
	if (!is_same(fd, secret->fd)) {
		add(describing->told, path, -1);
		strbuf_printf(describing->to,
		    "file %s: read again, it has changed\n", path);
	}
	close(fd);
	return 0;
}

void
secrets_describe(
    const struct secrets *secrets, const struct conf *conf, struct strbuf *to)
{
	struct secrets *told = mem_alloc(sizeof(*told));
	struct describing describing = { secrets, told, to };

	if (secrets != NULL &&
	    conf_each_tls_file(conf, describe_one, &describing) == -1)
		strbuf_add_text(to, "not all files were looked at\n");
	secrets_free(&told);
}

void
secrets_free(struct secrets **secrets_ptr)
{
	struct secrets *secrets = *secrets_ptr;

	if (secrets == NULL)
		return;
	*secrets_ptr = NULL;
	for (size_t i = 0; i < secrets->count; i++) {
		fd_close(&secrets->all[i].fd);
		mem_free(secrets->all[i].path);
	}
	mem_free(secrets->all);
	mem_free(secrets);
}

int
secrets_send(const struct secrets *secrets, uint32_t serial,
    proxy_load_cb *send, void *arg)
{
	static struct frame_out out;

	for (size_t i = 0; i < secrets->count; i++) {
		struct channel_secret message = { .serial = serial,
			.kind = CHANNEL_SECRET_FILE,
			.path = secrets->all[i].path,
			.fd = secrets->all[i].fd };

		channel_put_secret(&out, CHANNEL_SECRET, &message);
		if (send(&out, arg) == -1)
			return -1;
	}
	return 0;
}

void
secrets_save(
    const struct secrets *secrets, struct saved_secret **list, uint32_t *n)
{
	*n = (uint32_t)secrets->count;
	*list = mem_alloc_array(secrets->count + 1, sizeof(**list));
	for (size_t i = 0; i < secrets->count; i++) {
		(*list)[i].path = mem_strdup(secrets->all[i].path);
		(*list)[i].fd = secrets->all[i].fd;
	}
}

struct secrets *
secrets_adopt(const struct saved_secret *list, uint32_t n)
{
	struct secrets *secrets = mem_alloc(sizeof(*secrets));

	secrets->all = mem_alloc_array((size_t)n + 1, sizeof(*secrets->all));
	for (uint32_t i = 0; i < n; i++) {
		secrets->all[i].path = mem_strdup(list[i].path);
		secrets->all[i].fd = list[i].fd;
	}
	secrets->count = n;
	return secrets;
}
