/* check.h: the whole test framework.
 *
 * A test file is `#include "check.h"`, any number of `TEST(name) { … }` and a last line
 * `CHECK_MAIN`. It becomes one executable that runs all of its tests, or those named as arguments;
 * --list names them. A test that goes through a list asks `check_wants(row)` before each row:
 * NAME/ROW as an argument runs that row alone, NAME/K:N every Nth row from the Kth on, for where
 * all would take too long (a sanitizer that is a thousand times slower); what names no row of the
 * list fails. Tests run from the root of the source tree. Output is one line a test:
 *
 *     ok   test_text.joins_lines
 *     skip test_cuda.trains_iris: no driver
 *     tests/base/test_json.c:31: CHECK_EQUAL_INT(json_int(tree, "a", 0), 3): found 2, expected 3
 *     FAIL test_json.reads_integers (1 check)
 *
 * and at the end a count, whose absence tells tools/run-tests that the executable died on the way.
 *
 * A failed check is printed and the test goes on. Every check is an expression that says whether it
 * held, for where going on makes no sense: `if (!CHECK_OK(file_read(…))) return;`. Checks are made
 * on the test's own thread. */
#ifndef PRONY_TESTS_CHECK_H
#define PRONY_TESTS_CHECK_H

#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct check_test {
    const char *name;
    void (*run)(void);
    const char
        *subject; /* what this run of the test is about, where one test has several; or NULL */
    struct check_test *next;
};

static struct check_test *check_first, **check_end = &check_first;
static const char *check_subject; /* of the test that is running */
static int check_failures;        /* failed checks of the test that is running */
static bool check_skipped;
static char check_reason[500];
static const struct check_test *check_running;
static char **check_named;  /* the arguments, up to NULL */
static bool *check_met;     /* which of them a row of the test that is running was named by */
static int check_row_count; /* that the test has asked about so far */

/* Appends a test; it must live as long as the process. */
__attribute__((unused)) static void check_add(struct check_test *test)
{
    *check_end = test;
    check_end = &test->next;
}

/* The body may contain `return`. Tests run in the order in which they are written. */
#define TEST(name_)                                                                                \
    static void test_##name_(void);                                                                \
    __attribute__((constructor)) static void check_register_##name_(void)                          \
    {                                                                                              \
        static struct check_test test = {#name_, test_##name_, NULL, NULL};                        \
        check_add(&test);                                                                          \
    }                                                                                              \
    static void test_##name_(void)

#define CHECK(expression) check_true(__FILE__, __LINE__, #expression, (expression) ? true : false)

/* Any integer type; found first, expected second. */
#define CHECK_EQUAL_INT(found, expected)                                                           \
    check_int(__FILE__, __LINE__, #found ", " #expected, (long long)(found), (long long)(expected))

/* NULL equals NULL only. */
#define CHECK_EQUAL_TEXT(found, expected)                                                          \
    check_text(__FILE__, __LINE__, #found ", " #expected, (found), (expected))

/* |found - expected| ≤ tolerance; never holds for a NaN. */
#define CHECK_NEAR(found, expected, tolerance)                                                     \
    check_near(__FILE__, __LINE__, #found ", " #expected ", " #tolerance, (double)(found),         \
               (double)(expected), (double)(tolerance))

#define CHECK_OK(call) check_status(__FILE__, __LINE__, #call, STATUS_OK, (call))
#define CHECK_STATUS(code, call) check_status(__FILE__, __LINE__, #call, (code), (call))

/* The last error's message contains this. */
#define CHECK_MESSAGE(substring) check_message(__FILE__, __LINE__, (substring))

/* Ends the test, which then counts as skipped; the arguments are a printf format and its values.
 * Where a helper finds out, check_skip marks the test, and checks that fail after it do not count:
 * what they look at did not happen. */
#define SKIP(...)                                                                                  \
    do {                                                                                           \
        check_skip(__VA_ARGS__);                                                                   \
        return;                                                                                    \
    } while (0)

#define CHECK_MAIN                                                                                 \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return check_main(__FILE__, argc, argv);                                                   \
    }

/* Always false, so that a check can end with it. */
__attribute__((format(printf, 3, 4), unused)) static bool check_fail(const char *file, int line,
                                                                     const char *format, ...)
{
    if (check_skipped)
        return false;
    va_list values;
    va_start(values, format);
    printf("%s:%d: ", file, line);
    vprintf(format, values);
    printf("\n");
    va_end(values);
    check_failures++;
    return false;
}

__attribute__((unused)) static bool check_true(const char *file, int line, const char *expression,
                                               bool holds)
{
    return holds || check_fail(file, line, "CHECK(%s)", expression);
}

__attribute__((unused)) static bool check_int(const char *file, int line, const char *expression,
                                              long long found, long long expected)
{
    if (found == expected)
        return true;
    return check_fail(file, line, "CHECK_EQUAL_INT(%s): found %lld, expected %lld", expression,
                      found, expected);
}

__attribute__((unused)) static bool check_text(const char *file, int line, const char *expression,
                                               const char *found, const char *expected)
{
    if (found && expected ? strcmp(found, expected) == 0 : found == expected)
        return true;
    return check_fail(file, line, "CHECK_EQUAL_TEXT(%s):\n  found    \"%s\"\n  expected \"%s\"",
                      expression, found ? found : "(NULL)", expected ? expected : "(NULL)");
}

__attribute__((unused)) static bool check_near(const char *file, int line, const char *expression,
                                               double found, double expected, double tolerance)
{
    double difference = found - expected;
    if (found == expected || (difference <= tolerance && -difference <= tolerance))
        return true;
    return check_fail(file, line, "CHECK_NEAR(%s): found %.9g, expected %.9g ± %.3g", expression,
                      found, expected, tolerance);
}

__attribute__((unused)) static bool check_status(const char *file, int line, const char *expression,
                                                 enum status expected, enum status found)
{
    if (found == expected)
        return true;
    if (found == STATUS_OK)
        return check_fail(file, line, "%s: succeeded, expected status %s", expression,
                          status_name(expected));
    const struct error *error = status_last();
    return check_fail(file, line, "%s: status %s, expected %s\n  %s:%d: %s", expression,
                      status_name(found), status_name(expected), error->file ? error->file : "?",
                      error->line, error->message);
}

__attribute__((unused)) static bool check_message(const char *file, int line, const char *substring)
{
    if (strstr(status_message(), substring))
        return true;
    return check_fail(file, line, "CHECK_MESSAGE:\n  found    \"%s\"\n  expected \"…%s…\"",
                      status_message(), substring);
}

__attribute__((format(printf, 1, 2), unused)) static void check_skip(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(check_reason, sizeof check_reason, format, values);
    va_end(values);
    check_skipped = true;
}

/* Is this argument about the test? */
static bool check_names_test(const char *argument, const char *name)
{
    size_t length = strlen(name);
    return strncmp(argument, name, length) == 0 &&
           (argument[length] == 0 || argument[length] == '/');
}

static bool check_is_named(const char *name)
{
    for (char **argument = check_named; *argument; argument++)
        if (check_names_test(*argument, name))
            return true;
    return !check_named[0];
}

/* Is row `number` in the share "K:N"? */
static bool check_shares(const char *share, int number)
{
    int first, step, end = 0;
    return sscanf(share, "%d:%d%n", &first, &step, &end) == 2 && !share[end] && step > 0 &&
           number % step == first;
}

/* Shall the test that is running run this row of its list? To be asked once for each. */
__attribute__((unused)) static bool check_wants(const char *row)
{
    const int number = check_row_count++;
    bool wanted = !check_named[0];
    for (int i = 0; check_named[i]; i++) {
        const char *slash = strchr(check_named[i], '/');
        if (!check_names_test(check_named[i], check_running->name) ||
            (slash && strcmp(slash + 1, row) != 0 && !check_shares(slash + 1, number)))
            continue;
        wanted = check_met[i] = true;
    }
    return wanted;
}

/* Fails for every row that was named and that the test does not have; one that was skipped before
 * it asked about any is not to blame. */
static void check_named_rows(void)
{
    for (int i = 0; check_named[i] && !(check_skipped && !check_row_count); i++) {
        if (!check_met[i] && strchr(check_named[i], '/') &&
            check_names_test(check_named[i], check_running->name)) {
            printf("%s: no such row; there are %d\n", check_named[i], check_row_count);
            check_failures++;
        }
    }
}

/* … all of them? */
__attribute__((unused)) static bool check_wants_all(void)
{
    for (char **argument = check_named; *argument; argument++)
        if (strcmp(*argument, check_running->name) == 0)
            return true;
    return !check_named[0];
}

/* Every name on the command line is a test's; says which is not. */
static bool check_names(void)
{
    for (char **argument = check_named; *argument; argument++) {
        const struct check_test *test = check_first;
        while (test && !check_names_test(*argument, test->name))
            test = test->next;
        if (!test) {
            fprintf(stderr, "no test is called \"%s\"; --list names them\n", *argument);
            return false;
        }
    }
    return true;
}

static int check_main(const char *file, int argc, char **argv)
{
    const char *slash = strrchr(file, '/');
    const char *stem = slash ? slash + 1 : file;
    int length = (int)strcspn(stem, ".");
    int passed = 0, failed = 0, skipped = 0;

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (const struct check_test *test = check_first; test; test = test->next)
            puts(test->name);
        return 0;
    }
    check_named = argv + (argc > 0);
    check_met = calloc((size_t)argc + 1, sizeof *check_met);
    if (!check_met || !check_names())
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0); /* a crash must not swallow what was said before it */
    for (const struct check_test *test = check_first; test; test = test->next) {
        if (!check_is_named(test->name))
            continue;
        check_running = test;
        check_row_count = 0;
        check_failures = 0;
        check_skipped = false;
        check_subject = test->subject;
        memset(check_met, 0, (size_t)argc * sizeof *check_met);
        test->run();
        check_named_rows();
        if (check_failures) {
            failed++;
            printf("FAIL %.*s.%s (%d check%s)\n", length, stem, test->name, check_failures,
                   check_failures == 1 ? "" : "s");
        } else if (check_skipped) {
            skipped++;
            printf("skip %.*s.%s: %s\n", length, stem, test->name, check_reason);
        } else {
            passed++;
            printf("ok   %.*s.%s\n", length, stem, test->name);
        }
    }
    free(check_met);
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed ? 1 : 0;
}

#endif
