/*
 * How every unit test ends: its suite is run.
 * The tests themselves are in the files that include this.
 */
#ifndef UNIT_RUN_H
#define UNIT_RUN_H

#include <check.h>

/* Runs the suite, as the environment says (CK_FORK and so on), and frees it.
 * Returns what `main` is to return: 0, or 1 when a test failed. */
int run_suite(Suite *suite);

#endif
