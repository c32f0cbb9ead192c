/* The test framework itself, as far as a passing test can see it; check_runner.sh sees it fail. */
#include "check.h"

static int order;

TEST(first_is_run_first)
{
    CHECK_EQUAL_INT(++order, 1);
}

TEST(second_is_run_second)
{
    CHECK_EQUAL_INT(++order, 2);
}

static enum status refuse(void)
{
    FAIL(STATUS_INPUT, "line 3: found %s", "nothing");
}

TEST(checks_that_hold_are_true)
{
    const char *absent = NULL;
    CHECK(CHECK(order > 0));
    CHECK(CHECK_EQUAL_TEXT("a", "a"));
    CHECK(CHECK_EQUAL_TEXT(absent, NULL));
    CHECK(CHECK_NEAR(1.0F, 1.05, 0.1));
    CHECK(CHECK_OK(STATUS_OK));
    CHECK(CHECK_STATUS(STATUS_INPUT, refuse()));
    CHECK(CHECK_MESSAGE("found nothing"));
}

CHECK_MAIN
