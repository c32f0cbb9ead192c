/* cmd_simulate.c: prony simulate: how a training would scale, on machines that are not here. */
#include "bench/sweep/sweep.h"
#include "cli/commands.h"
#include "cli/show/bench_output.h"
#include "cli/simulate/simulated.h"
#include "cli/simulate/step_source.h"
#include "cli/store_file.h"
#include "comm/launcher.h"

#include <stdio.h>
#include <string.h>

struct simulate_flags {
    const char *network; /* positional */
    const char *workers, *parallelism, *platform, *scaling, *unit, *backend, *precision, *optimiser,
        *pipeline, *server;
    int64_t batch, micro_batches;
    double bucket;
    struct output_flags output;
};

/* What is gone through: every way on every platform, with every number of workers. */
struct lists {
    struct sweep_list parallelism, scaling, workers;
    const char *platforms[16];
    int platform_count;
};

static enum status split_platforms(const char *text, struct arena *arena, struct lists *lists)
{
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        if (length == 0 || lists->platform_count == 16)
            FAIL(STATUS_INPUT, "--platform: found \"%s\", expected 1 to 16 with commas between",
                 text);
        NEED(lists->platforms[lists->platform_count++] = arena_bytes(arena, at, length));
        at += length;
        if (!*at)
            return STATUS_OK;
    }
}

static enum status read_lists(const struct simulate_flags *flags, struct arena *arena,
                              struct lists *lists)
{
    TRY(sweep_split(&axes[AXIS_parallelism], flags->parallelism, arena, &lists->parallelism));
    TRY(sweep_split(&axes[AXIS_scaling], flags->scaling, arena, &lists->scaling));
    TRY(sweep_split(&axes[AXIS_workers], flags->workers, arena, &lists->workers));
    for (int i = 0; i < lists->workers.count; i++) {
        int64_t workers;
        text_to_int(lists->workers.values[i], &workers);
        if (workers > SIMULATE_WORKERS_MOST)
            FAIL(STATUS_INPUT, "--workers: found %s, expected 1 to %d", lists->workers.values[i],
                 SIMULATE_WORKERS_MOST);
    }
    return split_platforms(flags->platform, arena, lists);
}

/* One curve: a way on a platform. */
static enum status run_curve(struct simulated *simulated, const struct lists *lists, int way,
                             int scaling)
{
    const struct sharing_flags flags = {.parallelism = lists->parallelism.values[way],
                                        .schedule = simulated->pipeline,
                                        .micros = simulated->micros};
    TRY(sharing_read(&flags, PARALLEL_DATA, &simulated->sharing));
    if (simulated->sharing.copied || simulated->sharing.servers)
        FAIL(STATUS_INPUT, "--parallelism: found %s, expected data, model or pipeline",
             flags.parallelism);
    simulated->weak = strcmp(lists->scaling.values[scaling], choice_name(CHOICE_scaling_weak)) == 0;
    simulated_begin(simulated);
    for (int i = 0; i < lists->workers.count; i++) {
        int64_t workers;
        if (cli_interrupted())
            FAIL(STATUS_INTERRUPTED, "stopped");
        text_to_int(lists->workers.values[i], &workers);
        TRY(simulated_point(simulated, (int32_t)workers));
    }
    return simulated_end(simulated);
}

static enum status run_curves(struct simulated *simulated, const struct lists *lists)
{
    for (int p = 0; p < lists->platform_count; p++) {
        TRY(simulated_platform(simulated, lists->platforms[p]));
        for (int scaling = 0; scaling < lists->scaling.count; scaling++) {
            for (int way = 0; way < lists->parallelism.count; way++)
                TRY(run_curve(simulated, lists, way, scaling));
            TRY(simulated_tell(simulated));
        }
    }
    return STATUS_OK;
}

/* The results that tell how long a step takes: of the store that is given, else the user's own with
 * what ships. None can be read: that is no error. */
static enum status find_source(const struct simulate_flags *flags, struct arena *arena,
                               struct step_source *out)
{
    const struct step_wish wish = {.model = flags->network,
                                   .unit = flags->unit,
                                   .backend = flags->backend,
                                   .precision = flags->precision,
                                   .optimiser = flags->optimiser,
                                   .server = flags->server};
    struct store *store = NULL;
    if (store_file_open(flags->output.store, STORE_SHIPPED, &store) != STATUS_OK &&
        flags->output.store)
        return status_last()->code;
    enum status status = step_source_find(store, &wish, arena, out);
    store_close(store);
    return status;
}

static enum status simulate_all(const struct cli *cli, const struct simulate_flags *flags,
                                const struct lists *lists, struct bench_output *output,
                                struct arena *arena)
{
    struct simulated simulated = {.model = flags->network,
                                  .folder = cli->folder,
                                  .batch = (int32_t)flags->batch,
                                  .pipeline = flags->pipeline,
                                  .micros = flags->micro_batches,
                                  .bucket_bytes = (int32_t)(flags->bucket * 1e6),
                                  .optimiser = flags->optimiser,
                                  .output = output,
                                  .tables = output->style == OUTPUT_ROWS};
    struct network *network = NULL;
    char version[LAUNCHER_VERSION];
    TRY(launcher_version(cli->folder, "simgrid", version));
    TRY(network_open(flags->network, &network));
    simulated.network = network;
    if (simulated.tables)
        output->style = OUTPUT_NOTHING;
    enum status status = find_source(flags, arena, &simulated.source);
    if (status == STATUS_OK)
        status = run_curves(&simulated, lists);
    if (status == STATUS_OK)
        status = bench_output_finish(output);
    network_free(network);
    return status;
}

static enum status run_simulate(struct cli *cli, void *options)
{
    struct simulate_flags *flags = options;
    struct bench_output output = {0};
    struct lists lists = {0};
    flags->network = cli->found.positional[0];
    TRY(read_lists(flags, &cli->arena, &lists));
    enum status status = bench_output_open(&output, &flags->output);
    if (status == STATUS_OK)
        status = simulate_all(cli, flags, &lists, &output, &cli->arena);
    bench_output_close(&output);
    return status;
}

#define FLAG(field) ARG(struct simulate_flags, field)
static const struct arg rows[] = {
    {FLAG(workers), "N,…", "processing units: 1,2,4, 1-8 or 1-10000*10 (default 1-64*2)",
     .otherwise = "1-64*2"},
    {FLAG(platform), "NAME,…", "where: here, one that ships, or a file (default ethernet-1g)",
     .otherwise = "ethernet-1g"},
    {FLAG(parallelism), "NAME,…", "data, model, pipeline (default data)", .otherwise = "data"},
    {FLAG(scaling), "NAME,…", "the batch that stays: one worker's (weak), all workers' (strong)",
     .otherwise = "weak"},
    {FLAG(batch), "N", "samples of one worker; with strong scaling of all (default 64)",
     ARG_FROM(1, 1 << 20), .otherwise = "64"},
    {FLAG(unit), "UNIT", "the unit whose measured times count: cpu, gpu (default cpu)",
     .otherwise = "cpu"},
    {FLAG(backend), "NAME", "only times measured with this backend"},
    {FLAG(precision), "NAME", "only times measured in this type"},
    {FLAG(server), "NAME", "only times measured on this machine"},
    {FLAG(optimiser), "NAME", "the rule of the update (the network's)"},
    {FLAG(micro_batches), "M", "micro-batches of a pipeline (four a stage)", ARG_FROM(1, 1 << 20)},
    {FLAG(pipeline), "NAME",
     "order of a pipeline's turns: 1f1b, or gpipe: all forwards first (1f1b)"},
    {FLAG(bucket), "MB", "gradients that are summed at once (4.2)", ARG_FROM(0.001, 2000)},
    ARG_END,
};

const struct command cmd_simulate = {
    .summary = "how a training would scale on machines that are not here",
    .run = run_simulate,
    .alone = true,
    .bytes = sizeof(struct simulate_flags),
    .args = {.command = "prony simulate",
             .usage = "NETWORK [--workers N,…] [--platform NAME|FILE] [options]",
             .summary = "Simulates the training of a network by many workers with SimGrid: the "
                        "same communication, measured times of computing, a described network.",
             .examples = "prony simulate large --workers 1-64*2 --platform ethernet-25g\n"
                         "prony simulate resnet50 --unit gpu --platform nvlink-infiniband\n"
                         "prony simulate vgg16 --unit gpu --parallelism data,pipeline --scaling "
                         "strong\n",
             .often = "workers platform parallelism scaling batch unit",
             .lists = {{rows, 0}, {output_flags, offsetof(struct simulate_flags, output)}},
             .least = 1,
             .most = 1},
};
