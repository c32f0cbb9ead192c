/* cmd_bench.c: prony bench: one sweep, measured, or kernels by themselves. */
#include "bench/job/kernel_bench.h"
#include "bench/sweep/crossover.h"
#include "cli/bench_run.h"
#include "cli/gate.h"
#include "cli/peer_folder.h"
#include "cli/screen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct bench_flags {
    struct bench_request request;
    bool kernels, crosses;
    const char *shape;
    double share; /* of --fail-if-slower */
    struct output_flags output;
};

/* What is not told of a kernel must not be asked for. */
static enum status check_flags(const struct cli *cli)
{
    static const char *const taken[] = {"kernels", "backend", "threads",
                                        "isa",     "seconds", "format"};
    const struct arg *arg;
    for (size_t i = 0; (arg = args_at(cli->args, i)); i++) {
        bool known = false;
        for (size_t t = 0; t < sizeof taken / sizeof *taken; t++)
            known |= strcmp(arg->name, taken[t]) == 0;
        if ((cli->found.given & (uint64_t)1 << i) && !known)
            FAIL(STATUS_INPUT,
                 "--kernels: found --%s, expected only --backend, --threads, --isa, --seconds and "
                 "--format: a kernel is timed by itself",
                 arg->name);
    }
    return STATUS_OK;
}

static enum status print_rows(const char *rows)
{
    fputs(rows, stdout);
    return cli_flush();
}

static enum status time_kernels(const struct cli *cli, const struct bench_flags *flags)
{
    const char *const *axis = flags->request.axis_text;
    const struct kernel_request request = {.registry = cli->registry,
                                           .ops = cli->found.positional,
                                           .op_count = cli->found.count,
                                           .backends = axis[AXIS_backend],
                                           .threads = axis[AXIS_threads],
                                           .isas = axis[AXIS_isa],
                                           .format = flags->output.format,
                                           .width = screen_width(stdout),
                                           .seconds = flags->request.seconds,
                                           .stopped = cli_interrupted,
                                           .print = print_rows};
    TRY(check_flags(cli));
    return kernel_bench(&request);
}

/* What was asked for must be right, and then there must be a GPU to cross over to. */
static enum status check_crossing(const struct cli *cli, const struct bench_request *request,
                                  struct arena *arena)
{
    const struct backend *gpu;
    const char *peers;
    TRY(cli_peers(cli, arena, &peers));
    TRY(bench_request_check(request, cli->registry, peers));
    return registry_first(cli->registry, "gpu", &gpu);
}

/* A gate needs something to be compared. */
static enum status gate_check(const struct cli *cli, const struct bench_flags *flags)
{
    if (args_given(cli->args, &cli->found, "fail-if-slower") && !flags->request.against)
        FAIL(STATUS_INPUT, "--fail-if-slower compares: add --against NAME, or compare two files "
                           "with prony compare");
    return STATUS_OK;
}

static enum status gate_end(const struct gate *gate)
{
    if (isfinite(gate->share) && !gate->pairs)
        FAIL(STATUS_INPUT, "nothing was compared: one side could not run, or is handicapped");
    return gate_judge(gate);
}

static enum status measure_networks(const struct cli *cli, struct bench_flags *flags)
{
    struct bench_request *request = &flags->request;
    const bool judged = args_given(cli->args, &cli->found, "fail-if-slower");
    struct gate gate = {.share = judged ? flags->share : (double)INFINITY};
    struct bench_output output = {.gate = &gate};
    struct arena arena = {0};
    const char *const *models = cli->found.positional;
    int count = cli->found.count;
    enum status status = STATUS_OK;

    if (flags->crosses)
        status = crossover_ask(cli->registry, request, &arena, &models, &count);
    if (status == STATUS_OK)
        status = bench_request_sweep(request, models, count, &arena);
    if (status == STATUS_OK && flags->crosses)
        status = check_crossing(cli, request, &arena);
    else if (status == STATUS_OK)
        status = bench_request_precisions(request, cli->registry, &arena);
    if (status == STATUS_OK)
        status = bench_output_open(&output, &flags->output);
    output.sheet = request->sheet;
    if (status == STATUS_OK && flags->crosses && !flags->output.format)
        output.style = cli->found.count ? OUTPUT_CROSSOVER : OUTPUT_CROSSOVER_WIDTHS;
    if (status == STATUS_OK)
        status = cli_bench(cli, &request, 1, &output, false);
    if (status == STATUS_OK)
        status = gate_end(&gate);
    bench_output_close(&output);
    arena_free(&arena);
    return status;
}

static enum status run_bench(struct cli *cli, void *options)
{
    struct bench_flags *flags = options;
    flags->request.args = cli->args;
    flags->request.said = &cli->found;
    if (flags->kernels)
        return time_kernels(cli, flags);
    if (cli->found.count == 0 && !flags->crosses)
        FAIL(STATUS_INPUT, "found no network, expected at least one: %s %s", cli->args->command,
             cli->args->usage);
    TRY(cli_shape(cli, flags->shape));
    for (int i = 0; i < cli->found.count; i++)
        TRY(cli_keep_network(flags->output.file, cli->found.positional[i]));
    TRY(cli_keep_data(flags->output.file, flags->request.dataset));
    TRY(gate_check(cli, flags));
    return measure_networks(cli, flags);
}

static const struct arg rows[] = {
    {ARG(struct bench_flags, kernels), NULL,
     "time single kernels; the arguments name ops (dense, conv …), none means all"},
    {ARG_NAMED("find-crossover", struct bench_flags, crosses), NULL,
     "find the batch from which the GPU is faster than the CPU; without networks: the width"},
    {CLI_SHAPE(struct bench_flags)},
    {GATE_ARG(struct bench_flags)},
    ARG_END,
};

const struct command cmd_bench = {
    .summary = "measure how fast a network trains and predicts",
    .run = run_bench,
    .alone = true,
    .bytes = sizeof(struct bench_flags),
    .args = {.command = "prony bench",
             .usage = "NETWORK… [options], or --kernels [OP…], or --find-crossover [NETWORK…]",
             .summary = "Measures how fast networks train and predict. Every axis takes a list "
                        "(1,2,4), numbers also ranges\n(1-8, 16-256*2). All combinations are run; "
                        "frameworks, backends and threads take turns.",
             .examples =
                 "  prony bench large --batch 1,10,64                # three batches\n"
                 "  prony bench small large --phase training,inference\n"
                 "  prony bench model.onnx --framework prony,pytorch # your model, beside another\n"
                 "  prony bench large --against ../old/build/prony   # two builds, with a verdict\n"
                 "  prony bench large --against ../old/build/prony --fail-if-slower 5%\n"
                 "  prony bench small --framework prony,numpy --out results.jsonl\n"
                 "  prony bench fcn --batch 1-256*2 --skip 'backend=ref batch=64-256*2'\n"
                 "  prony bench lenet.safetensors --precision all    # what types cost\n"
                 "  prony bench --kernels dense conv --threads 1,2   # kernels by themselves\n"
                 "  prony bench large fcn --find-crossover           # when is the GPU faster?\n",
             .often = "batch phase framework backend threads unit precision seconds against out "
                      "store",
             .lists = {{request_flags, offsetof(struct bench_flags, request)},
                       {rows, 0},
                       {output_flags, offsetof(struct bench_flags, output)}},
             .most = -1},
};
