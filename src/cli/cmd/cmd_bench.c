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

static enum status run(const struct cli *cli, struct bench_request *request,
                       const struct args *args, const struct output_flags *flags, bool crosses)
{
    struct bench_output output = {0};
    struct arena arena = {0};
    const char *const *models = args->positional;
    int count = args->positional_count;
    enum status status = STATUS_OK;

    if (crosses)
        status = crossover_ask(cli->registry, request, &arena, &models, &count);
    if (status == STATUS_OK)
        status = bench_request_sweep(request, models, count, &arena);
    if (status == STATUS_OK && crosses)
        status = check_crossing(cli, request);
    else if (status == STATUS_OK && is_alone(&request->sweep))
        status = keep_precisions(cli, &request->sweep, &arena);
    if (status == STATUS_OK)
        status = bench_output_open(&output, flags);
    if (status == STATUS_OK && crosses && !flags->format)
        output.style = args->positional_count ? OUTPUT_CROSSOVER : OUTPUT_CROSSOVER_WIDTHS;
    if (status == STATUS_OK)
        status = bench_request_run(cli, &request, 1, &output, false);
    bench_output_close(&output);
    arena_free(&arena);
    return status;
}

enum status cmd_bench(struct cli *cli, int argc, const char *const *argv)
{
    struct bench_request request = REQUEST_DEFAULTS;
    struct output_flags flags = {0};
    bool kernels = false, crosses = false;

    bench_request_flags(&request);
    request.list[request.count++] =
        (struct arg){.name = "kernels",
                     .kind = ARG_FLAG,
                     .value = &kernels,
                     .help = "time each kernel by itself instead; the arguments name ops (dense, "
                             "conv …), none: all"};
    request.list[request.count++] = (struct arg){
        .name = "find-crossover",
        .kind = ARG_FLAG,
        .value = &crosses,
        .help = "from which batch on is the GPU faster than the CPU; without networks: "
                "from which width on"};
    request.list[request.count++] = (struct arg)CLI_SHAPE(cli);
    bench_output_flags(&flags, request.list + request.count);
    struct args args = {
        .command = "prony bench",
        .usage = "NETWORK… [options], or --kernels [OP…], or --find-crossover [NETWORK…]",
        .summary = "Measures how fast networks train and predict. Every axis takes a list (1,2,4), "
                   "numbers also ranges\n(1-8, 16-256*2); the product is run, and who computes "
                   "(framework, backend, threads) takes turns.",
        .examples = "  prony bench small\n"
                    "  prony bench small large --phase training,inference --batch 1,3,10\n"
                    "  prony bench small --framework prony,python-list,numpy --out results.jsonl\n"
                    "  prony bench fcn,lenet --batch 1-256*2 --skip 'backend=ref batch=64-256*2'\n"
                    "  prony bench --kernels dense conv --backend simd --threads 1,2\n"
                    "  prony bench large fcn --find-crossover\n",
        .list = request.list,
        .count = request.count + OUTPUT_FLAGS,
        .most = -1,
        .positional = cli->positional};
    TRY(cli_args(&args, argc, argv));
    if (args.help)
        return STATUS_OK;
    if (kernels)
        return bench_kernels(cli, &request, &flags, &args);
    if (args.positional_count == 0 && !crosses)
        FAIL(STATUS_INPUT, "found no network, expected at least one: %s %s", args.command,
             args.usage);
    TRY(cli_shape(cli, &args));
    for (int i = 0; i < args.positional_count; i++)
        TRY(cli_keep_network(flags.file, args.positional[i]));
    TRY(cli_keep_data(flags.file, request.dataset));
    return run(cli, &request, &args, &flags, crosses);
}
