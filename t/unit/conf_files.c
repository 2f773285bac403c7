/*
 * A directory for the files of one test of the configuration.
 * Used as fixtures by test_conf*.c; reads nothing.
 */
#include "t/unit/conf_files.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/mem.h"

static char directory[] = "/tmp/scalws-conf-XXXXXX";

void
conf_files_write(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	ck_assert_int_ne(fd, -1);
	ck_assert_int_eq(fd_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

void
conf_files_enter(void)
{
	strcpy(directory + strlen(directory) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	ck_assert_int_eq(chdir(directory), 0);
}

void
conf_files_leave(void)
{
	char *command = mem_printf("rm -rf %s", directory);

	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(system(command), 0);
	mem_free(command);
}
