# The test framework and its runner, seen from outside: what fails must fail.

suite=check_runner
. tests/shell/command.sh

# A build with one test, a shell script; what tools/run-tests says about it, and its exit status.
judge() { # SCRIPT
    mkdir -p "$folder/tests"
    echo "run test_planted" >"$folder/tests.txt"
    printf '#!/bin/sh\n%s\n' "$1" >"$folder/tests/test_planted"
    chmod +x "$folder/tests/test_planted"
    tools/run-tests --unit "$folder"
    echo "status $?"
}

holds counts_what_passed "$(judge 'echo "ok   a.b"; echo "1 passed, 0 failed, 0 skipped"')" \
    "1 passed, 0 failed, 0 skipped
status 0"
holds counts_what_failed "$(judge 'echo "FAIL a.b"; echo "0 passed, 1 failed, 0 skipped"; exit 1')" \
    "0 passed, 1 failed, 0 skipped
status 1"
holds shows_why_it_skipped "$(judge 'echo "ok   a.a"; echo "skip a.b: no GPU"; echo "1 passed, 0 failed, 1 skipped"')" \
    "skip a.b: no GPU
1 passed, 0 failed, 1 skipped
status 0"
holds sees_a_crash "$(judge 'echo "ok   a.a"; kill -SEGV $$')" "FAIL test_planted: killed by signal 11
1 passed, 1 failed, 0 skipped
status 1"
holds sees_an_early_end "$(judge 'echo "ok   a.a"; exit 0')" "FAIL test_planted: ended before its count line"
holds sees_a_wrong_status "$(judge 'echo "FAIL a.a"; echo "0 passed, 1 failed, 0 skipped"; exit 0')" \
    "FAIL test_planted: failed, but with exit status 0"
holds nothing_run_is_no_success "$(judge 'echo "0 passed, 0 failed, 0 skipped"')" "status 1"

# check.h: every kind of check, failing, in a real executable.
cat >"$folder/test_red.c" <<'END'
#include "check.h"
static enum status refuse(void) { FAIL(STATUS_IO, "disk full"); }
TEST(red)
{
    int two = 2;
    CHECK(two == 3);
    CHECK_EQUAL_INT(two, 3);
    CHECK_EQUAL_TEXT("a", "b");
    CHECK_NEAR(1.0, 1.5, 0.1);
    CHECK_OK(refuse());
    CHECK_STATUS(STATUS_INPUT, refuse());
    CHECK_MESSAGE("disk empty");
}
TEST(skipped) { SKIP("%d reasons", 2); }
TEST(idle)
{
    if (!check_wants("a"))
        SKIP("nothing was asked for");
}
TEST(green) { CHECK(1 == 1); }
TEST(listed)
{
    for (const char *row = "a\0b\0"; *row; row += 2)
        if (check_wants(row))
            printf("row %s\n", row);
}
CHECK_MAIN
END
if ! cc -Isrc -Itests/shared "$folder/test_red.c" "$PRONY_BUILD/libprony_modules.a" \
    -lm -pthread -o "$folder/test_red"; then
    echo "FAIL check_runner.red_tests_compile"
    exit 1
fi
red=$("$folder/test_red")
holds red_tests_fail "status $?" "status 1"
holds a_condition_is_shown "$red" "test_red.c:6: CHECK(two == 3)"
holds integers_are_shown "$red" "CHECK_EQUAL_INT(two, 3): found 2, expected 3"
holds texts_are_shown "$red" '  expected "b"'
holds numbers_are_shown "$red" "found 1, expected 1.5 ± 0.1"
holds a_status_is_shown "$red" "refuse(): status io, expected ok
  $folder/test_red.c:2: disk full"
holds a_wrong_status_is_shown "$red" "status io, expected input"
holds a_message_is_shown "$red" 'expected "…disk empty…"'
holds the_rest_goes_on "$red" "FAIL test_red.red (7 checks)
skip test_red.skipped: 2 reasons
ok   test_red.idle
ok   test_red.green
row a
row b
ok   test_red.listed
3 passed, 1 failed, 1 skipped"
holds rows_are_run_by_name "$("$folder/test_red" listed/b)" "row b
ok   test_red.listed
1 passed, 0 failed, 0 skipped"
holds rows_are_run_by_share "$("$folder/test_red" listed/1:2)" "row b
ok   test_red.listed"
found=$("$folder/test_red" listed/a listed/c)
holds a_row_that_is_not_there_fails "$found status $?" "listed/c: no such row; there are 2
FAIL test_red.listed (1 check)
0 passed, 1 failed, 0 skipped status 1"
holds an_empty_share_fails "$("$folder/test_red" listed/2:3)" "listed/2:3: no such row"
holds a_test_without_rows_has_none "$("$folder/test_red" green/a)" "green/a: no such row; there are 0"
holds a_skipped_test_asks_for_no_row "$("$folder/test_red" skipped/a)" "0 passed, 0 failed, 1 skipped"
holds a_skip_hides_no_missing_row "$("$folder/test_red" idle/b)" "FAIL test_red.idle"
holds tests_are_run_by_name "$("$folder/test_red" green)" "1 passed, 0 failed, 0 skipped"
exit $status
