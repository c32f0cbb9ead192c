/* cmd_profile.c: prony profile: where the time of a step goes, op by op. */
#include "cli/commands.h"
#include "cli/layers_run.h"
#include "cli/program/keep_profile.h"
#include "cli/program/program_run.h"
#include "cli/program/trace_command.h"
#include "cli/show/profile_output.h"
#include "estimate/calibration_kept.h"
#include "nn/network.h"
#include "record/point.h"

#include <stdio.h>
#include <string.h>

struct profile_flags {
    const char *network; /* positional */
    const char *phase, *backend, *unit, *precision, *isa, *trace, *callgrind, *shape;
    const char *folded, *out, *store, *framework;
    int64_t batch, threads;
    double seconds, rate;
    bool json, no_fusion, once, keep;
};

static enum status write_files(const struct profile_flags *flags, const struct inside *inside)
{
    const struct trace_wish files = {
        .chrome = flags->trace, .callgrind = flags->callgrind, .folded = flags->folded};
    TRY(trace_write_files(&inside->trace, &files));
    return flags->out ? trace_write(&inside->trace, flags->out) : STATUS_OK;
}

/* The peak of what was profiled: of its threads, or of the unit that was asked last. */
static double find_peak(const struct calibration *calibration, const struct profile_flags *flags,
                        bool gpu)
{
    const char *precision = flags->precision ? flags->precision : ceiling_name(CEILING_FP32);
    double peak = 0;
    for (size_t i = 0; i < calibration->count; i++) {
        const struct ceiling_row *row = &calibration->rows[i];
        bool ours = gpu ? strcmp(row->unit, calibration->unit.name) == 0
                        : !row->unit[0] && row->threads <= flags->threads;
        if (ours && strcmp(ceiling_name(row->ceiling), precision) == 0 && row->per_s > peak)
            peak = row->per_s;
    }
    return peak;
}

static enum status print(const struct profile_flags *flags, const struct task *task,
                         const struct inside *inside, const struct calibration *calibration)
{
    const struct profiled profiled = {.task = task,
                                      .phase = flags->phase,
                                      .backend = flags->backend,
                                      .threads = inside->watch.gpu ? 0 : (int)flags->threads,
                                      .inside = inside,
                                      .flop_per_s =
                                          find_peak(calibration, flags, inside->watch.gpu)};
    struct text out = {0};
    enum status status =
        flags->json ? profiled_json(&profiled, &out) : profiled_text(&profiled, &out);
    if (status == STATUS_OK)
        status = text_done(&out);
    if (status == STATUS_OK)
        fputs(text_of(&out), stdout);
    text_free(&out);
    return status;
}

/* The command that tries what would make this configuration faster. */
static void add_advise(const struct profile_flags *flags, bool gpu, struct text *out)
{
    text_add(out, "prony advise ");
    text_add_word(out, flags->network);
    text_printf(out, " --phase %s --batch %lld --backend %s", flags->phase, (long long)flags->batch,
                flags->backend);
    if (!gpu)
        text_printf(out, " --threads %lld", (long long)flags->threads);
    if (flags->precision) {
        text_add(out, " --precision ");
        text_add_word(out, flags->precision);
    }
}

static enum status keep(const struct cli *cli, const struct profile_flags *flags,
                        const struct task *task, const struct inside *inside)
{
    struct text title = {0}, advise = {0};
    text_printf(&title, "%s, %s, batch %d, %s", task->network->name, flags->phase, task->batch,
                flags->backend);
    if (!inside->watch.gpu)
        text_printf(&title, ", %lld thread%s", (long long)flags->threads,
                    flags->threads == 1 ? "" : "s");
    add_advise(flags, inside->watch.gpu, &advise);
    enum status status = text_done(&title);
    if (status == STATUS_OK)
        status = text_done(&advise);
    if (status == STATUS_OK)
        status = profile_keep(&inside->trace, &(struct keep_wish){.store = flags->store,
                                                                  .title = text_of(&title),
                                                                  .command = cli->typed,
                                                                  .advise = text_of(&advise),
                                                                  .here = true});
    text_free(&title);
    text_free(&advise);
    return status;
}

static enum status profile(const struct cli *cli, struct profile_flags *flags)
{
    const enum choice phase = choice_find(AXIS_phase, flags->phase);
    struct inside_options options = {.network = {.device = {.threads = (int)flags->threads,
                                                            .isa = ISA_BEST,
                                                            .precision = flags->precision},
                                                 .fusion = !flags->no_fusion},
                                     .measure = {.target = 0.01,
                                                 .limit_ns = (uint64_t)(flags->seconds * 1e9),
                                                 .stopped = cli_interrupted}};
    options.measure.least_ns = measure_usual_least(options.measure.limit_ns);
    const struct task_options work = {.model = flags->network,
                                      .phase = phase == CHOICE_phase_training ? PHASE_TRAINING
                                                                              : PHASE_INFERENCE,
                                      .batch = (int32_t)flags->batch,
                                      .precision = flags->precision};
    struct calibration calibration = {0};
    struct inside inside = {0};
    struct task *task = NULL;
    enum status status;

    if (phase == CHOICE_COUNT)
        FAIL(STATUS_INPUT, "--phase: found \"%s\", expected training or inference", flags->phase);
    if (flags->isa)
        TRY(axis_check(&axes[AXIS_isa], flags->isa));
    if (flags->isa)
        isa_parse(flags->isa, &options.network.device.isa, &options.network.device.isa_only);
    if (flags->precision)
        TRY(axis_check(&axes[AXIS_precision], flags->precision));
    TRY(cli_unit(cli, flags->unit, &flags->backend));
    TRY(flags->backend ? registry_find(cli->registry, flags->backend, &options.network.backend)
                       : registry_first(cli->registry, NULL, &options.network.backend));
    flags->backend = options.network.backend->name;
    TRY_OR(done, task_open(&work, &task));
    TRY_OR(done, calibration_open(&calibration));
    TRY_OR(done, inside_look(task, &options, &calibration, &inside));
    TRY_OR(done, write_files(flags, &inside));
    TRY_OR(done, print(flags, task, &inside, &calibration));
    if (flags->keep)
        TRY_OR(done, keep(cli, flags, task, &inside));
done:
    calibration_close(&calibration);
    inside_close(&inside);
    task_close(task);
    return status;
}

/* The files that are asked for: each once, and none is the network. */
static enum status check_files(const struct profile_flags *flags)
{
    const struct {
        const char *flag, *path;
    } files[] = {{"--trace", flags->trace},
                 {"--callgrind", flags->callgrind},
                 {"--folded", flags->folded},
                 {"--out", flags->out}};
    const size_t count = sizeof files / sizeof *files;
    for (size_t i = 0; i < count; i++) {
        TRY(cli_keep_network(files[i].path, flags->network));
        for (size_t k = 0; k < i; k++)
            if (files[i].path && files[k].path && strcmp(files[i].path, files[k].path) == 0)
                FAIL(STATUS_INPUT, "%s and %s: found \"%s\" twice, expected two files",
                     files[k].flag, files[i].flag, files[i].path);
    }
    return STATUS_OK;
}

/* A flag of the profile as a value of the bench's axis. */
static enum status set_axis(struct cli *cli, struct bench_request *request, int axis,
                            const char *value, int64_t number)
{
    if (value || number)
        NEED(request->axis_text[axis] = value
                                            ? arena_text(&cli->arena, value)
                                            : arena_format(&cli->arena, "%lld", (long long)number));
    return STATUS_OK;
}

/* Several frameworks, layer by layer. */
static enum status profile_frameworks(struct cli *cli, const struct profile_flags *flags)
{
    struct bench_request request;
    if (flags->trace || flags->callgrind || flags->folded || flags->out || flags->store ||
        flags->keep)
        FAIL(STATUS_INPUT, "--framework: found --trace, --callgrind, --folded, --out, --store or "
                           "--keep, expected none: they write the profile of prony alone");
    bench_request_start(&request);
    request.seconds = flags->seconds;
    TRY(set_axis(cli, &request, AXIS_framework, flags->framework, 0));
    TRY(set_axis(cli, &request, AXIS_phase, flags->phase, 0));
    TRY(set_axis(cli, &request, AXIS_backend, flags->backend, 0));
    TRY(set_axis(cli, &request, AXIS_unit, flags->unit, 0));
    TRY(set_axis(cli, &request, AXIS_precision, flags->precision, 0));
    TRY(set_axis(cli, &request, AXIS_isa, flags->isa, 0));
    TRY(set_axis(cli, &request, AXIS_batch, NULL, flags->batch));
    TRY(set_axis(cli, &request, AXIS_threads, NULL, flags->threads));
    TRY(set_axis(cli, &request, AXIS_fusion, flags->no_fusion ? "off" : NULL, 0));
    return layers_run(cli, &request, flags->json);
}

static enum status run_profile(struct cli *cli, void *options)
{
    struct profile_flags *flags = options;
    flags->keep |= flags->store != NULL;
    if (cli->found.program) {
        const struct program_flags program = {
            .trace = flags->trace,
            .callgrind = flags->callgrind,
            .folded = flags->folded,
            .out = flags->out,
            .rate = flags->rate,
            .seconds = args_given(cli->args, &cli->found, "seconds") ? flags->seconds : 0,
            .once = flags->once,
            .json = flags->json,
            .keep = flags->keep,
            .store = flags->store};
        return profile_program(cli, &program);
    }
    TRY(cli_shape(cli, flags->shape));
    flags->network = cli->found.positional[0];
    if (!network_built_in(flags->network) && trace_is_one(flags->network))
        return trace_show_file(&(struct trace_wish){.path = flags->network,
                                                    .json = flags->json,
                                                    .chrome = flags->trace,
                                                    .callgrind = flags->callgrind,
                                                    .folded = flags->folded,
                                                    .keep = flags->keep,
                                                    .store = flags->store});
    if (!flags->phase)
        flags->phase = cli_has_weights(flags->network) ? "inference" : "training";
    TRY(check_files(flags));
    return flags->framework ? profile_frameworks(cli, flags) : profile(cli, flags);
}

#define AT(field) ARG(struct profile_flags, field)
static const struct arg rows[] = {
    {AT(phase), "PHASE", "training or inference (training; for an ONNX file inference)"},
    {AT(framework), "A,B,…", "these frameworks, layer by layer, beside the first"},
    {AT(batch), "N", "samples per step (1)", ARG_FROM(1, TASK_BATCH_MOST), "1"},
    {AT(backend), "NAME", "the backend that runs it (the bench's default)"},
    {CLI_UNIT(struct profile_flags)},
    {AT(precision), "P", "type of products: fp32, tf32, bf16 … (fp32)"},
    {AT(threads), "N", "(1)", ARG_FROM(1, POOL_MOST), "1"},
    {AT(isa), "ISA", "scalar, neon, avx2, avx512, avx2-only or avx512-only (the best there is)"},
    {ARG_NAMED("no-fusion", struct profile_flags, no_fusion), NULL,
     "the ops before they are merged"},
    {AT(seconds), "S", "for timing the step (2); a COMMAND is stopped then", ARG_FROM(0.01, 86400),
     "2"},
    {AT(rate), "HZ", "samples per second of a COMMAND (100)", ARG_FROM(1, 1000), "100"},
    {AT(once), NULL, "run a COMMAND once, watched"},
    {AT(out), "FILE", "keep the profile, for prony profile FILE and prony compare"},
    {AT(keep), NULL, "keep it in the store, for prony guide and prony compare"},
    {AT(store), "FILE", "the same, in this store"},
    {AT(trace), "FILE.json", "also a timeline, for chrome://tracing or ui.perfetto.dev"},
    {AT(callgrind), "FILE", "also a call graph, for KCachegrind or callgrind_annotate"},
    {AT(folded), "FILE", "also stacks with their time, for flame graphs"},
    {AT(json), NULL, "one JSON object"},
    {CLI_SHAPE(struct profile_flags)},
    ARG_END,
};

const struct command cmd_profile = {
    .summary = "show where the time of a step goes, op by op, or of any program",
    .run = run_profile,
    .alone = true,
    .bytes = sizeof(struct profile_flags),
    .args =
        {.command = "prony profile",
         .usage = "[options] NETWORK | TRACE | -- COMMAND…",
         .summary =
             "Shows where the time of a step goes. Each part and op has its kernel, time, "
             "share, FLOP/s,\nbytes/s and distance from its floor. A recipe has a table for "
             "each of its programs. The step is\ntimed first, then watched in a second plan.\n\n"
             "A TRACE is a file of prony, Kineto, JAX, ONNX Runtime or Nsight Systems. The report "
             "counts every\nnanosecond once: compute, copies, idle time, and what the host did "
             "meanwhile. It names kernels and lines.\n\n"
             "After -- stands any other program. It runs twice: unwatched for its time, then "
             "watched. The report says\nwhich threads run and which wait, and in which call. It "
             "names the lines, functions and ops that take\nthe time, in Python and C. Input, "
             "output and exit status stay the program's own: the report goes to\nstandard error. "
             "A program that uses an NVIDIA GPU also gets the budget of a step.",
         .examples = "  prony profile large --batch 3\n"
                     "  prony profile lenet --batch 64 --phase inference --trace lenet.json\n"
                     "  prony profile lenet --framework prony,pytorch   # layer by layer\n"
                     "  prony profile gan --batch 256\n"
                     "  prony profile large --batch 10 --keep\n"
                     "  prony profile lstm --callgrind callgrind.out.lstm\n"
                     "  prony profile trace.json.gz --folded stacks.txt\n"
                     "  prony profile -- python3 train.py --epochs 1\n",
         .often = "phase batch framework backend unit threads seconds rate once keep trace json",
         .lists = {{rows, 0}},
         .least = 1,
         .most = 1,
         .program = true},
};
