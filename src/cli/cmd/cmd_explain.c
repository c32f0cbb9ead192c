/* cmd_explain.c: `prony explain`: the program a network becomes. Its parameters are declared and
 * never given memory, so a network that would not fit here can be explained too. */
#include "bench/job/task.h"
#include "bench/scenario.h"
#include "cli/commands.h"
#include "cli/explain/explain_split.h"
#include "cli/explain/explained.h"
#include "core/pass/recompute.h"
#include "estimate/calibration_kept.h"
#include "train/engine.h"

#include <stdio.h>
#include <string.h>

struct explain_flags {
    const char *network; /* positional */
    const char *phase, *backend, *unit, *precision, *scenario, *loss, *optimiser, *recipe, *shape;
    int64_t batch, classes;
    struct split_flags split;
    bool json, no_fusion, recompute;
};

struct part_total explained_total(const struct explained *explained, enum part part)
{
    const struct program *program = explained->program;
    struct part_total total = {0};
    for (int32_t o = program->parts[part].from; o < program->parts[part].to; o++) {
        const struct kernel_use *use = explained_kernel(explained, o);
        total.ops++;
        total.launches += use ? use->launches : 0;
        total.flop += op_flop(program, &program->ops[o]);
        total.bytes += op_bytes(program, &program->ops[o]);
    }
    return total;
}

const struct kernel_use *explained_kernel(const struct explained *explained, int32_t op)
{
    for (int32_t i = 0; i < explained->explanation.kernel_count; i++)
        if (explained->explanation.kernels[i].op == op)
            return &explained->explanation.kernels[i];
    return NULL;
}

bool explained_together(const struct explained *explained)
{
    const struct kernel_use *first = explained_kernel(explained, 0);
    bool together = first && explained->program->whole;
    for (int32_t o = 1; together && o < explained->program->op_count; o++) {
        const struct kernel_use *use = explained_kernel(explained, o);
        together = use && strcmp(use->kernel, first->kernel) == 0;
    }
    return together;
}

uint64_t explained_bytes(const struct explained *explained, enum role role)
{
    bool asked = explained->plan && !role_is_kept(role);
    return asked ? explained->explanation.role_bytes[role] : explained->program->role_bytes[role];
}

struct need explained_need(const struct explained *explained)
{
    struct need need = {0};
    for (int role = 0; role < ROLE_COUNT; role++)
        if (!role_is_kept((enum role)role))
            need.bytes += explained_bytes(explained, (enum role)role);
    for (int part = 0; part < PART_COUNT; part++)
        need.flop += explained_total(explained, (enum part)part).flop;
    return need;
}

enum status explained_smaller(const struct explained *explained, struct program **program)
{
    struct program *smaller;
    if (!explained->recompute)
        return STATUS_OK;
    TRY(recompute(*program, 0, &smaller));
    program_free(*program);
    *program = smaller;
    return STATUS_OK;
}

/* What was prepared for one of the programs. */
static void explained_release(struct explained *explained)
{
    if (explained->plan)
        explained->backend->release(explained->plan);
    if (explained->instance)
        explained->backend->detach(explained->instance);
    program_free(explained->made);
    explained->plan = NULL;
    explained->instance = NULL;
    explained->made = NULL;
}

static void explained_close(struct explained *explained)
{
    explained_release(explained);
    if (explained->device)
        explained->backend->close(explained->device);
    recipe_free(&explained->step);
    params_free(&explained->params);
    network_free(explained->network);
    arena_free(&explained->arena);
}

static enum status read_scenario(const struct explain_flags *flags, enum answering *out)
{
    enum scenario scenario;
    *out = ANSWER_STEPS;
    if (!flags->scenario)
        return STATUS_OK;
    if (choice_find(AXIS_scenario, flags->scenario) != CHOICE_scenario_iterate &&
        !scenario_parse(flags->scenario, &scenario))
        FAIL(STATUS_INPUT,
             "--scenario: found \"%s\", expected one of prony bench's, such as queued",
             flags->scenario);
    if (!flags->backend)
        FAIL(STATUS_INPUT, "--scenario needs --backend or --unit");
    *out = scenario_answering(flags->scenario);
    if (*out != ANSWER_STEPS && choice_find(AXIS_phase, flags->phase) != CHOICE_phase_inference)
        FAIL(STATUS_INPUT, "--scenario needs --phase inference");
    return STATUS_OK;
}

static enum status compile(struct explained *explained, const struct explain_flags *flags)
{
    const enum choice phase = choice_find(AXIS_phase, flags->phase);
    struct compile_options options = {
        .batch = (int32_t)flags->batch,
        .use = phase == CHOICE_phase_training ? USE_TRAINING : USE_INFERENCE,
        .classes = (int32_t)flags->classes,
        .optimiser = flags->optimiser,
        .recipe = flags->recipe,
    };
    if (phase == CHOICE_COUNT)
        FAIL(STATUS_INPUT, "--phase is '%s', expected training or inference", flags->phase);
    TRY(read_scenario(flags, &explained->answering));
    if (flags->loss)
        TRY(loss_read(flags->loss, &options.loss));
    TRY(network_open(flags->network, &explained->network));
    if (flags->precision && !strcmp(flags->precision, "int8") &&
        !network_integers(explained->network))
        FAIL(STATUS_INPUT, "--precision int8: expected a file that prony quantise wrote, found %s",
             flags->network);
    if (options.use == USE_INFERENCE)
        network_settle(&explained->network);
    params_init(&explained->params, DTYPE_F32);
    explained->params.bare = true;
    explained->phase = flags->phase;
    explained->options = options;
    explained->recompute = flags->recompute;
    if (flags->recompute && options.use != USE_TRAINING)
        FAIL(STATUS_INPUT,
             "--recompute drops what a backward pass reads: found --phase %s, "
             "expected training",
             flags->phase);
    TRY(recipe_compile_stages(explained->network, &explained->params, &options, &explained->step));
    explained->program = explained->step.programs[0];
    return STATUS_OK;
}

/* As cli_unit, but also where the unit is not here: its first backend can be asked on paper. */
static enum status choose_backend(const struct cli *cli, const char *unit, const char **name)
{
    const enum status status = cli_unit(cli, unit, name);
    for (int i = 0; status == STATUS_UNSUPPORTED && !*name && i < cli->registry->count; i++) {
        const struct backend *backend = cli->registry->list[i].backend;
        if (backend && strcmp(backend->unit, unit) == 0)
            *name = backend->name;
    }
    return *name && status == STATUS_UNSUPPORTED ? STATUS_OK : status;
}

/* A GPU that is not here is explained on paper. */
static enum status open_backend(const struct cli *cli, const struct explain_flags *flags,
                                struct explained *explained)
{
    struct device_options device = {.isa = ISA_BEST, .precision = flags->precision};
    TRY(registry_find(cli->registry, flags->backend, &explained->backend));
    const enum status status = explained->backend->probe();
    if (strcmp(explained->backend->unit, "cpu") == 0)
        TRY(status);
    if (status != STATUS_OK)
        snprintf(explained->absent, sizeof explained->absent, "%s", status_message());
    device.paper = status != STATUS_OK;
    TRY(explained->backend->open(&device, &explained->device));
    unit_name(explained->backend, explained->device, explained->unit_name);
    return STATUS_OK;
}

/* The program as it is run: what passes make of the step's. */
static enum status make(struct explained *explained, const struct program *program, bool smaller,
                        bool fusion)
{
    const struct engine engine = {
        .backend = explained->backend, .device = explained->device, .recompute = smaller};
    if (explained->backend && fusion)
        return engine_fuse(&engine, program, &explained->made);
    return smaller ? recompute(program, 0, &explained->made) : STATUS_OK;
}

/* Prepares one program, dry, so that the backend says what it would run. */
static enum status ask_backend(struct explained *explained, int32_t turn, bool smaller, bool fusion)
{
    const struct backend *backend = explained->backend;
    explained_release(explained);
    TRY(make(explained, explained->step.programs[turn], smaller, fusion));
    explained->program = explained->made ? explained->made : explained->step.programs[turn];
    if (!backend)
        return STATUS_OK;
    TRY(backend->attach(explained->device, &explained->params, &explained->instance));
    TRY(backend->prepare(explained->instance, explained->program,
                         &(struct plan_options){.dry = true, .answering = explained->answering},
                         &explained->plan));
    return backend->explain(explained->plan, &explained->arena, &explained->explanation);
}

/* All programs of the step, as text or as a line of JSON. */
static enum status show(struct explained *explained, bool as_json, bool fusion, struct text *out)
{
    struct json_writer json;
    if (as_json)
        explained_begin_json(explained, &json, out);
    for (int32_t turn = 0; turn < explained->step.count; turn++) {
        if (explained->recompute) {
            TRY(ask_backend(explained, turn, false, fusion));
            explained->without = explained_need(explained);
        }
        TRY(ask_backend(explained, turn, explained->recompute, fusion));
        if (as_json)
            explained_program_json(explained, &json);
        else
            explained_text(explained, out);
    }
    if (as_json)
        explained_end_json(&json, out);
    else if (explained->absent[0])
        text_printf(out, "\non paper, as on an %s: %s\n", explained->unit_name, explained->absent);
    return text_done(out);
}

enum status explained_line(const struct point *point, struct text *out)
{
    struct explained explained = {0};
    struct network *network;
    struct explain_flags flags = {
        .network = point->model, .phase = point->phase, .batch = point->batch};
    TRY(network_open(point->model, &network));
    flags.optimiser = task_optimiser(network, point->optimiser);
    enum status status = compile(&explained, &flags);
    if (status == STATUS_OK)
        status = show(&explained, true, false, out);
    explained_close(&explained);
    network_free(network);
    return status;
}

/* What one core can do, where it was measured: it says what bounds an op. A GPU is not looked at.
 */
static enum status find_ceilings(struct explained *explained)
{
    struct calibration calibration = {0};
    struct cpu cpu;
    uint64_t bytes = 0;
    if (explained->backend && strcmp(explained->backend->unit, "cpu") != 0)
        return STATUS_OK;
    TRY(calibration_open(&calibration));
    cpu_detect(&cpu);
    for (int role = 0; role < ROLE_COUNT; role++)
        bytes += explained->program->role_bytes[role];
    const struct ceiling_row flop = {.ceiling = CEILING_FP32, .isa = cpu.isa, .threads = 1},
                             read = {.ceiling = CEILING_READ,
                                     .isa = cpu.isa,
                                     .threads = 1,
                                     .pages = PAGES_2M,
                                     .set_bytes = calibration_set(bytes)};
    explained->flop_per_s = calibration_best(&calibration, &flop);
    explained->read_per_s = calibration_best(&calibration, &read);
    calibration_free(&calibration);
    return STATUS_OK;
}

/* Workers share out a training, of a step's batch. */
static enum status settle_split(const struct cli *cli, struct explain_flags *flags)
{
    const struct args *args = &cmd_explain.args;
    struct split_flags *split = &flags->split;
    const struct sharing_flags *said = &split->said;
    if (!split->workers &&
        (said->parallelism || said->schedule || said->micros || said->copies || said->servers))
        FAIL(STATUS_INPUT, "--parallelism, --pipeline, --micro-batches, --copies and --servers are "
                           "for several workers: --workers 4");
    if (!split->workers)
        return STATUS_OK;
    if (!args_given(args, &cli->found, "phase"))
        flags->phase = "training";
    if (strcmp(flags->phase, "training") != 0)
        FAIL(STATUS_INPUT, "--workers share out a training: found --phase %s, expected training",
             flags->phase);
    if (flags->backend || flags->unit)
        FAIL(STATUS_INPUT, "--workers: found a backend, expected none: what workers do is shown as "
                           "ops, not as kernels");
    if (!args_given(args, &cli->found, "batch"))
        flags->batch = 0;
    return explain_split_settle(split, &flags->batch);
}

static enum status run_explain(struct cli *cli, void *options)
{
    struct explain_flags *flags = options;
    struct explained explained = {0};
    struct text out = {0};
    enum status status;
    TRY(cli_shape(cli, flags->shape));
    TRY(settle_split(cli, flags));
    flags->network = cli->found.positional[0];
    TRY_OR(done, choose_backend(cli, flags->unit, &flags->backend));
    TRY_OR(done, compile(&explained, flags));
    if (flags->backend)
        TRY_OR(done, open_backend(cli, flags, &explained));
    TRY_OR(done, find_ceilings(&explained));
    if (flags->split.workers)
        TRY_OR(done, explain_split(&explained, &flags->split, flags->json, &out));
    else
        TRY_OR(done, show(&explained, flags->json, !flags->no_fusion, &out));
    fputs(text_of(&out), stdout);
done:
    text_free(&out);
    explained_close(&explained);
    return status;
}

#define AT(field) ARG(struct explain_flags, field)
static const struct arg rows[] = {
    {AT(batch), "N", "samples per step (1)", ARG_FROM(1, 1e9), "1"},
    {AT(phase), "PHASE", "training or inference (inference)", .otherwise = "inference"},
    {AT(classes), "N", "the targets are labels of N classes", ARG_FROM(2, 1e6)},
    {AT(loss), "NAME", "(the network's)"},
    {AT(optimiser), "NAME", "(the network's)"},
    {AT(recipe), "NAME", "(the network's)"},
    {AT(backend), "NAME", "also the kernels this backend runs"},
    {CLI_UNIT(struct explain_flags)},
    {AT(precision), "NAME", "type of the backend's products: fp32, bf16; on a GPU tf32, fp16"},
    {AT(scenario), "NAME",
     "with a backend: how work arrives, as in prony bench: single-stream, queued, resident … "
     "(iterate)"},
    {ARG_NAMED("no-fusion", struct explain_flags, no_fusion), NULL,
     "the program before ops are merged"},
    {AT(recompute), NULL, "a training that keeps fewer activations and computes the others again"},
    {ARG_NAMED("workers", struct explain_flags, split.workers), "N",
     "show how N workers share out a training", ARG_FROM(1, 1024)},
    {ARG_NAMED("parallelism", struct explain_flags, split.said.parallelism), "NAME",
     "how they share it: data, model, pipeline, data-model, data-pipeline, server, async-server "
     "(pipeline)"},
    {ARG_NAMED("copies", struct explain_flags, split.said.copies), "N",
     "with data-model, data-pipeline: copies of the network (as many as may be)", ARG_FROM(2, 512)},
    {ARG_NAMED("servers", struct explain_flags, split.said.servers), "N",
     "how many of them keep and update the parameters (1)", ARG_FROM(1, 1023)},
    {ARG_NAMED("pipeline", struct explain_flags, split.said.schedule), "NAME",
     "order of a pipeline's turns: 1f1b, or gpipe: all forwards first (1f1b)"},
    {ARG_NAMED("micro-batches", struct explain_flags, split.said.micros), "N",
     "parts of a batch in a pipeline (up to 4 a worker)", ARG_FROM(1, 1e6)},
    {AT(json), NULL, "one line of JSON"},
    {CLI_SHAPE(struct explain_flags)},
    ARG_END,
};

const struct command cmd_explain = {
    .summary = "show the program a network becomes: ops, shapes, FLOP, bytes",
    .run = run_explain,
    .bytes = sizeof(struct explain_flags),
    .args = {.command = "prony explain",
             .usage = "NETWORK [options]",
             .summary =
                 "Shows the program a network becomes: its ops, shapes, FLOP, bytes and memory.",
             .examples = "  prony explain small\n"
                         "  prony explain large --batch 3 --phase training --backend ref\n"
                         "  prony explain mlp:784-100-10 --json\n"
                         "  prony explain resnet18 --workers 4 --parallelism pipeline\n",
             .often =
                 "batch phase classes optimiser backend unit precision no-fusion recompute workers "
                 "parallelism micro-batches json",
             .lists = {{rows, 0}},
             .least = 1,
             .most = 1},
};
