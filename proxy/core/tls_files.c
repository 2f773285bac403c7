/*
 * Files for TLS by their path, and their end: nothing of a key stays in memory
 * that was ours. Filled by proxy_config.c, read by tls_site.c.
 * Opens nothing: the proxy may not read keys.
 */
#include "proxy/core/tls_files.h"

#include <string.h>

#include "src/base/fdutil.h"
#include "src/base/mem.h"

struct tls_file {
	struct tls_file *next;
	char *path;
	char *text;
	size_t len;
};

static struct tls_file *
find(const struct tls_files *files, const char *path)
{
	struct tls_file *file = files->first;

	while (file != NULL && strcmp(file->path, path) != 0)
		file = file->next;
	return file;
}

int
tls_files_add(struct tls_files *files, const char *path, int fd)
{
	struct tls_file *file;
	char *text;
	size_t len;
	int result = 0;

	if (find(files, path) == NULL) {
		result = fd_read_whole(fd, TLS_FILE_BYTES_MAX, &text, &len);
		if (result == 0) {
			file = mem_alloc(sizeof(*file));
			file->path = mem_strdup(path);
			file->text = text;
			file->len = len;
			file->next = files->first;
			files->first = file;
		}
	}
	fd_close(&fd);
	return result;
}

bool
tls_files_get(const struct tls_files *files, const char *path, struct str *text)
{
	const struct tls_file *file = find(files, path);

	if (file == NULL)
		return false;
	*text = (struct str){ file->text, file->len };
	return true;
}

void
tls_files_wipe(struct tls_files *files)
{
	struct tls_file *file;

	while ((file = files->first) != NULL) {
		files->first = file->next;
		explicit_bzero(file->text, file->len);
		mem_free(file->text);
		mem_free(file->path);
		mem_free(file);
	}
}
