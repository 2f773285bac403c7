/*
 * A directory for the files of one test of the configuration.
 * Fixtures and a writer; what is in the files is the tests' own.
 */
#ifndef UNIT_CONF_FILES_H
#define UNIT_CONF_FILES_H

/* Makes an empty directory below /tmp the current one. */
void conf_files_enter(void);

/* Removes it with all that is in it; "/" is the current one then. */
void conf_files_leave(void);

/* Writes the string as the whole file; fails the test if it cannot. */
void conf_files_write(const char *name, const char *text);

#endif
