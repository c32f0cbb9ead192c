/* cmd_bench.c: prony bench: one sweep, measured, or kernels by themselves. */
#include "cli/bench_kernels.h"
#include "cli/bench_request.h"
#include "cli/crossover.h"

#include "base/log.h"

#include <string.h>

/* What was asked for must be right, and then there must be a GPU to cross over to. */
static enum status check_crossing(const struct cli *cli, const struct bench_request *request)
{
    const struct backend *gpu;
    TRY(bench_request_check(cli, request));
    return registry_first(cli->registry, "gpu", &gpu);
}

/* Does some backend here compute in it? A CPU's says so when it is opened; a GPU's have them all.
 */
static bool has_precision(const struct registry *registry, const char *precision)
{
    const struct device_options options = {.threads = 1, .precision = precision};
    for (int i = 0; i < registry->count; i++) {
        const struct backend *backend = registry->list[i].backend;
        struct device *device;
        if (!backend || backend->probe() != STATUS_OK)
            continue;
        if (strcmp(backend->unit, "cpu") != 0)
            return true;
        if (backend->open(&options, &device) == STATUS_OK) {
            backend->close(device);
            return true;
        }
    }
    return false;
}

/* Is prony alone asked? Other frameworks have precisions of their own. */
static bool is_alone(const struct sweep *sweep)
{
    const struct sweep_list *frameworks = &sweep->lists[AXIS_framework];
    return !sweep->against &&
           (!frameworks->count || (frameworks->count == 1 && sweep_has(frameworks, "prony")));
}

/* Leaves out what nothing here computes in, in a line each; when nothing is left, that is why. */
static enum status keep_precisions(const struct cli *cli, struct sweep *sweep, struct arena *arena)
{
    struct sweep_list *list = &sweep->lists[AXIS_precision];
    const struct backend *gpu;
    const char **kept;
    int count = 0;
    NEED(kept = arena_array(arena, (size_t)list->count + 1, sizeof *kept));
    for (int i = 0; i < list->count; i++) {
        if (has_precision(cli->registry, list->values[i])) {
            kept[count++] = list->values[i];
            continue;
        }
        enum status status = registry_first(cli->registry, "gpu", &gpu); /* why there is none */
        status = status_prefix(status, "--precision %s: only backends of a GPU compute in it",
                               list->values[i]);
        if (!count && i == list->count - 1)
            return status;
        log_warning("%s", status_message());
    }
    *list = (struct sweep_list){kept, count};
    return STATUS_OK;
}

struct bench_flags {
    struct bench_request request;
    bool kernels, crosses;
    const char *shape;
    struct output_flags output;
};

static enum status measure_networks(const struct cli *cli, struct bench_flags *flags)
{
    struct bench_request *request = &flags->request;
    struct bench_output output = {0};
    struct arena arena = {0};
    const char *const *models = cli->found.positional;
    int count = cli->found.count;
    enum status status = STATUS_OK;

    if (flags->crosses)
        status = crossover_ask(cli->registry, request, &arena, &models, &count);
    if (status == STATUS_OK)
        status = bench_request_sweep(request, models, count, &arena);
    if (status == STATUS_OK && flags->crosses)
        status = check_crossing(cli, request);
    else if (status == STATUS_OK && is_alone(&request->sweep))
        status = keep_precisions(cli, &request->sweep, &arena);
    if (status == STATUS_OK)
        status = bench_output_open(&output, &flags->output);
    if (status == STATUS_OK && flags->crosses && !flags->output.format)
        output.style = cli->found.count ? OUTPUT_CROSSOVER : OUTPUT_CROSSOVER_WIDTHS;
    if (status == STATUS_OK)
        status = bench_request_run(cli, &request, 1, &output, false);
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
        return bench_kernels(cli, &flags->request, &flags->output);
    if (cli->found.count == 0 && !flags->crosses)
        FAIL(STATUS_INPUT, "found no network, expected at least one: %s %s", cli->args->command,
             cli->args->usage);
    TRY(cli_shape(cli, flags->shape));
    for (int i = 0; i < cli->found.count; i++)
        TRY(cli_keep_network(flags->output.file, cli->found.positional[i]));
    TRY(cli_keep_data(flags->output.file, flags->request.dataset));
    return measure_networks(cli, flags);
}

static const struct arg rows[] = {
    {ARG(struct bench_flags, kernels), NULL,
     "time each kernel by itself instead; the arguments name ops (dense, conv …), none: all"},
    {ARG_NAMED("find-crossover", struct bench_flags, crosses), NULL,
     "from which batch on is the GPU faster than the CPU; without networks: from which width on"},
    {CLI_SHAPE(struct bench_flags)},
    ARG_END,
};

const struct command cmd_bench = {
    .summary = "measure how fast a network trains and predicts",
    .run = run_bench,
    .bytes = sizeof(struct bench_flags),
    .args = {.command = "prony bench",
             .usage = "NETWORK… [options], or --kernels [OP…], or --find-crossover [NETWORK…]",
             .summary =
                 "Measures how fast networks train and predict. Every axis takes a list (1,2,4), "
                 "numbers also ranges\n(1-8, 16-256*2); the product is run, and who computes "
                 "(framework, backend, threads) takes turns.",
             .examples =
                 "  prony bench small\n"
                 "  prony bench small large --phase training,inference --batch 1,3,10\n"
                 "  prony bench small --framework prony,python-list,numpy --out results.jsonl\n"
                 "  prony bench fcn,lenet --batch 1-256*2 --skip 'backend=ref batch=64-256*2'\n"
                 "  prony bench --kernels dense conv --backend simd --threads 1,2\n"
                 "  prony bench large fcn --find-crossover\n",
             .lists = {{request_flags, offsetof(struct bench_flags, request)},
                       {rows, 0},
                       {output_flags, offsetof(struct bench_flags, output)}},
             .most = -1},
};
