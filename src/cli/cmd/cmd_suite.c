/* cmd_suite.c: prony suite: runs the lines of a suite (suite_file.h), all of which are read and
 * checked before the first is run. What the output holds already is not measured again. */
#include "base/file.h"
#include "cli/bench_run.h"
#include "cli/suite_ranks.h"

/* Ranks wait for each other as long as they measure. */
static const double patience_s = 1e6;

struct suite_run {
    const struct cli *cli;
    struct suite *suite;
};

static enum status run_suite(const struct worker *worker, void *context)
{
    const struct suite_run *run = context;
    const struct cli *cli = run->cli;
    struct suite *suite = run->suite;
    struct bench_output output = {0};

    TRY(suite_read(suite));
    if (!suite->output.format)
        suite->output.format = suite->written.format;
    if (!suite->output.file)
        suite->output.file = suite->written.file;
    if (!suite->output.store)
        suite->output.store = suite->written.store;
    if (!suite_ships(suite->name))
        TRY(file_check_apart(suite->output.file, suite->name));
    TRY(suite_ranks_begin(worker, suite));
    enum status status = bench_output_open(&output, &suite->output);
    if (status == STATUS_OK)
        status = cli_bench(cli, suite->requests, suite->count, &output, true);
    status = suite_ranks_end(worker, suite, &output, status);
    bench_output_close(&output);
    return status;
}

/* Which suites there are, for `--help`. */
static void add_names(struct text *out)
{
    struct arena arena = {0};
    const char *names[SUITE_NAMES];
    size_t count = 0;
    if (suite_names(&arena, names, &count) == STATUS_OK)
        for (size_t i = 0; i < count; i++)
            text_printf(out, "%s%s", names[i], i + 1 < count ? ", " : ".");
    arena_free(&arena);
}

static enum status run(struct cli *cli, void *options)
{
    struct suite *suite = options;
    suite->name = cli->found.positional[0];
    struct suite_run run = {cli, suite};
    enum status status = workers_run(cli->folder, 0, patience_s, run_suite, &run);
    arena_free(&suite->arena);
    return status;
}

static const struct arg rows[] = {
    {ARG(struct suite, seconds), "S", "for each configuration, instead of the suite's own",
     ARG_FROM(0.01, 86400)},
    {ARG(struct suite, unit), "UNIT", "cpu or gpu, for lines without --unit"},
    ARG_END,
};

const struct command cmd_suite = {
    .summary = "run a list of benchmarks, and go on where it was stopped",
    .run = run,
    .bytes = sizeof(struct suite),
    .args =
        {.command = "prony suite",
         .usage = "NAME|FILE [options]",
         .summary =
             "Runs a list of benchmarks: each line of a suite is the arguments of one prony "
             "bench.\nIt leaves out what this commit measured here before and the file or store "
             "has already:\nstart a stopped suite again, and it goes on.\nSuites that ship: ",
         .add_summary = add_names,
         .examples = "  prony suite demo\n"
                     "  prony suite batch --out batch.jsonl\n"
                     "  prony suite toyneuralnet --store results.db\n"
                     "  prony suite kinds --unit gpu\n",
         .lists = {{output_flags, offsetof(struct suite, output)}, {rows, 0}},
         .least = 1,
         .most = 1},
};
