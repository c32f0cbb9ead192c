/* test_profile_line.c: profiles survive the way to a file and back; those that cannot be are
 * refused by a line that says where. */
#include "base/arena.h"
#include "check.h"
#include "record/profile_line.h"
#include "record/record.h"

#include <string.h>

#define BEGIN "{\"prony\":1,\"kind\":\"profile\",\"profile\":{\"title\":\"train\","
#define BUDGET "\"budget\":{\"window_ns\":10,\"compute\":7,\"host code\":3}"
#define FLAME(names, nodes) ",\"flame\":{\"of\":\"ops\",\"names\":" names ",\"nodes\":" nodes "}"

static enum status read_line(struct arena *arena, const char *line, struct record *record)
{
    return record_read(arena, "test", 1, line, strlen(line), record);
}

TEST(is_read_back)
{
    static const char line[] =
        BEGIN "\"command\":\"train --all\",\"steps\":5,\"step_ns\":2.5," BUDGET
              ",\"findings\":[{\"rule\":\"R1\",\"title\":\"copies\",\"gain\":4.6}]" FLAME(
                  "[\"\",\"main\"]", "[[0,0,0,0],[0,1,0,10]]") ",\"trace\":\"prony trace 1\\n\"},"
                                                               "\"at\":\"2026-11-15T10:03:58Z\"}";
    struct arena arena = {0};
    struct text again = {0};
    struct record record;
    struct profile_line profile;
    if (CHECK_OK(read_line(&arena, line, &record))) {
        CHECK_EQUAL_INT(record.kind, RECORD_PROFILE);
        CHECK_OK(profile_line_read(record.profile, &profile));
        CHECK_EQUAL_TEXT(profile.title, "train");
        CHECK_EQUAL_TEXT(profile.command, "train --all");
        CHECK_EQUAL_INT(profile.steps, 5);
        CHECK_EQUAL_INT(profile.trace_length, 14);
        record_write(&record, &again);
        CHECK_EQUAL_TEXT(text_of(&again), line);
    }
    text_free(&again);
    arena_free(&arena);
}

TEST(what_cannot_be_is_refused)
{
    static const struct {
        const char *line, *said;
    } rows[] = {
        {"{\"prony\":1,\"kind\":\"profile\"}", "profile: found nothing, expected an object"},
        {"{\"prony\":1,\"kind\":\"profile\",\"profile\":{}}", "profile.title: found nothing"},
        {BEGIN "\"steps\":1}}", "profile.budget: found nothing"},
        {BEGIN "\"budget\":{\"window_ns\":10,\"compute\":9}}}",
         "found parts of 9 ns, expected them to sum to the window, 10 ns"},
        {BEGIN "\"budget\":{\"window_ns\":10,\"compute\":11,\"fill\":-1}}}", "profile.budget.fill"},
        {BEGIN "\"budget\":{\"window_ns\":5,\"compute\":9223372036854775807,"
               "\"fill\":9223372036854775807}}}",
         "fewer nanoseconds"},
        {BEGIN BUDGET ",\"findings\":[{\"rule\":\"R1\"}]}}", "profile.findings.gain"},
        {BEGIN BUDGET ",\"findings\":[7]}}", "profile.findings: found 7"},
        {BEGIN BUDGET FLAME("[\"\"]", "[[0,0,0,0],[1,0,0,1]]") "}}", "found another node 1"},
        {BEGIN BUDGET FLAME("[\"\"]", "[[0,0,1,0]]") "}}", "found another node 0"},
        {BEGIN BUDGET FLAME("[\"\"]", "[[0,0,0,-1]]") "}}", "found another node 0"},
        {BEGIN BUDGET FLAME("[\"\"]", "[[0,0,0]]") "}}", "found another node 0"},
        {BEGIN BUDGET FLAME("[1]", "[]") "}}", "profile.flame.names"},
        {BEGIN BUDGET ",\"trace\":7}}", "profile.trace: found 7"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct arena arena = {0};
        struct record record;
        CHECK_STATUS(STATUS_INPUT, read_line(&arena, rows[i].line, &record));
        if (!CHECK(strstr(status_message(), rows[i].said) != NULL))
            printf("row %zu: %s\n", i, status_message());
        arena_free(&arena);
    }
}

CHECK_MAIN
