/*
 * Runs the suite of a unit test.
 * Called by the `main` of each; knows no test.
 */
#include "t/unit/run.h"

#include <check.h>

int
run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
