/* cmd_suites.c: prony suites: the suites that ship: what each is for, how many configurations it
 * has, and about how long it takes here. */
#include "cli/commands.h"
#include "cli/peer_folder.h"
#include "cli/progress.h"
#include "cli/remark.h"
#include "cli/screen.h"
#include "cli/suite_file.h"
#include "cli/table/prose.h"

#include <stdio.h>

enum { NAME_WIDTH = 13, COUNT_WIDTH = 10, TIME_WIDTH = 12 };

/* A suite that cannot run here is listed all the same. */
static enum status plan_suite(const struct cli *cli, struct arena *arena, const char *name,
                              int *points, int *absent, double *seconds)
{
    struct suite *suite;
    struct bench bench = {.registry = cli->registry};
    NEED(suite = arena_alloc(arena, sizeof *suite));
    suite->name = name;
    TRY(cli_peers(cli, arena, &bench.peers));
    enum status status = suite_read(suite);
    if (status == STATUS_OK)
        status = bench_request_plan(&bench, suite->requests, suite->count, points, seconds);
    *absent = bench.absent;
    peer_bank_close(&bench.waiting);
    arena_free(&suite->arena);
    return status;
}

/* Of a suite of which only a part can be measured here, this part: "8 of 129". */
static void print_suite(const char *name, int points, int absent, double seconds)
{
    const int indent = NAME_WIDTH + COUNT_WIDTH + TIME_WIDTH + 2;
    struct text count = {0}, time = {0}, remark = {0}, line = {0};
    if (absent)
        text_printf(&count, "%d of ", points - absent);
    text_printf(&count, points > 0 ? "%d" : "-", points);
    if (points > absent)
        progress_add_time(&time, seconds, true);
    else
        text_add(&time, "-");
    remark_first(suite_text(name), &remark);
    text_printf(&line, "%-*s%*s%*s  ", NAME_WIDTH, name, COUNT_WIDTH, text_of(&count), TIME_WIDTH,
                text_of(&time));
    text_add_wrapped(&line, text_of(&remark), indent, indent, screen_width(stdout));
    puts(text_of(&line));
    text_free(&count);
    text_free(&time);
    text_free(&remark);
    text_free(&line);
}

static enum status run_suites(struct cli *cli, void *options)
{
    const char *names[SUITE_NAMES];
    size_t count;
    int some = 0, of = 0; /* the first that can be measured in part */
    (void)options;
    TRY(suite_names(&cli->arena, names, &count));
    printf("%-*s%*s%*s  for\n", NAME_WIDTH, "suite", COUNT_WIDTH, "results", TIME_WIDTH, "about");
    for (size_t i = 0; i < count; i++) {
        int points = 0, absent = 0;
        double seconds = 0;
        if (cli_interrupted())
            FAIL(STATUS_INTERRUPTED, "stopped");
        if (plan_suite(cli, &cli->arena, names[i], &points, &absent, &seconds) == STATUS_MEMORY)
            return STATUS_MEMORY;
        print_suite(names[i], points, absent, seconds);
        if (absent && !of) {
            some = points - absent;
            of = points;
        }
        TRY(cli_flush());
    }
    puts("\nprony suite NAME runs one, prony suite FILE a text file with such lines.");
    if (of)
        prose_printf(0, "Where the results read %d of %d, the others need what this machine lacks.",
                     some, of);
    return STATUS_OK;
}

const struct command cmd_suites = {
    .summary = "list the suites: what each measures, and about how long it takes",
    .run = run_suites,
    .args = {.command = "prony suites",
             .usage = "",
             .summary = "Lists the suites that ship, with the number of their configurations and "
                        "about how long they take on this machine. prony suite NAME runs one.",
             .examples = "  prony suites\n"},
};
