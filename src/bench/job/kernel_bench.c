/* kernel_bench.c: see kernel_bench.h. The backends, thread counts and ISAs of one case take turns
 * in one measurement. */
#include "bench/job/kernel_bench.h"

#include "base/log.h"
#include "bench/job/describe.h"
#include "bench/job/job_kernel.h"
#include "bench/job/kernel_rows.h"
#include "bench/measure.h"
#include "bench/sweep/sweep.h"
#include "estimate/calibration_kept.h"
#include "estimate/floor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES_MOST = 44 }; /* wider ones push their row */
static const double SECONDS = 0.2;

/* One that computes the case: set up once, with a job for each case. */
struct contender {
    const struct backend *backend;
    struct device_options device;
    struct job *job; /* or NULL */
    bool runs;
    int timing; /* which, when it runs */
    struct kernel_row row;
};

struct kernels {
    struct arena arena, scratch; /* scratch: of one case */
    struct contender *contenders;
    struct timing *timings;
    int count;
    const struct backend *reference;
    struct calibration calibration;
    struct measure_options measure;
    struct kernel_rows rows;
    const struct kernel_request *request;
    bool wanted[OP_COUNT];
    int timed, failed;
};

/* Which ops have a case. */
static void find_cases(bool has[OP_COUNT])
{
    struct op_case op_case;
    for (int32_t i = 0; case_at(i, &op_case); i++)
        has[op_case.kind] = true;
}

static enum status choose_ops(struct kernels *kernels, const char *const *ops, int count)
{
    bool has[OP_COUNT] = {false};
    const char *names[OP_COUNT];
    size_t known = 0;

    find_cases(has);
    for (int kind = 0; kind < OP_COUNT; kind++) {
        if (has[kind])
            names[known++] = op_name((enum op_kind)kind);
        kernels->wanted[kind] = has[kind] && count == 0;
    }
    for (int i = 0; i < count; i++) {
        int kind = 0;
        while (kind < OP_COUNT && !(has[kind] && text_equal(op_name((enum op_kind)kind), ops[i])))
            kind++;
        const char *near = kind < OP_COUNT ? NULL : text_nearest(ops[i], names, known);
        if (near)
            FAIL(STATUS_INPUT, "--kernels: there is no op '%s' with a case; did you mean '%s'?",
                 ops[i], near);
        if (kind == OP_COUNT)
            FAIL(STATUS_INPUT,
                 "--kernels: there is no op '%s' with a case; prony bench --kernels times all, and "
                 "prony explain names those of a network",
                 ops[i]);
        kernels->wanted[kind] = true;
    }
    return STATUS_OK;
}

/* The backends named, or every one that runs on this CPU. */
static enum status choose_backends(const struct registry *registry, const struct sweep_list *names,
                                   const struct backend *out[REGISTRY_MOST], int *count)
{
    *count = 0;
    if (names->count > REGISTRY_MOST)
        FAIL(STATUS_INPUT, "--backend: found %d names, expected at most %d", names->count,
             REGISTRY_MOST);
    for (int i = 0; i < names->count; i++)
        TRY(registry_find(registry, names->values[i], &out[(*count)++]));
    for (int i = 0; i < registry->count && !names->count; i++) {
        const struct backend *backend = registry->list[i].backend;
        if (backend && strcmp(backend->unit, "cpu") == 0 && backend->probe() == STATUS_OK)
            out[(*count)++] = backend;
    }
    return STATUS_OK;
}

/* The list of an axis; `usual` when it was not given. */
static enum status choose_values(struct kernels *kernels, const char *given, const char *usual,
                                 enum axis_index axis, struct sweep_list *out)
{
    const char *text = given ? given : usual;
    *out = (struct sweep_list){0};
    return text ? sweep_split(&axes[axis], text, &kernels->arena, out) : STATUS_OK;
}

/* The product of backends, threads and ISAs. */
static enum status choose_contenders(struct kernels *kernels, const struct kernel_request *request)
{
    const struct registry *registry = request->registry;
    const struct backend *backends[REGISTRY_MOST];
    struct sweep_list names, threads, isas;
    int backend_count;

    TRY(choose_values(kernels, request->backends, NULL, AXIS_backend, &names));
    TRY(choose_values(kernels, request->threads, "1", AXIS_threads, &threads));
    TRY(choose_values(kernels, request->isas, isa_name(ISA_BEST), AXIS_isa, &isas));
    TRY(choose_backends(registry, &names, backends, &backend_count));
    size_t room = (size_t)backend_count * (size_t)threads.count * (size_t)isas.count;
    NEED(kernels->contenders = arena_array(&kernels->arena, room, sizeof *kernels->contenders));
    NEED(kernels->timings = arena_array(&kernels->arena, room, sizeof *kernels->timings));
    for (int b = 0; b < backend_count; b++)
        for (int t = 0; t < threads.count; t++)
            for (int i = 0; i < isas.count; i++) {
                struct contender *contender = &kernels->contenders[kernels->count++];
                contender->backend = backends[b];
                contender->device.threads = (int)strtol(threads.values[t], NULL, 10);
                isa_parse(isas.values[i], &contender->device.isa, &contender->device.isa_only);
            }
    return registry_find(registry, "ref", &kernels->reference);
}

/* The kernel's name, and whether the backend has as many threads as it was asked for. */
static enum status describe(struct kernels *kernels, struct contender *contender)
{
    struct job_info info;

    TRY(contender->job->kind->describe(contender->job, &kernels->scratch, &info));
    contender->row.kernel = info.kernel_count ? info.kernels[0] : NULL;
    return describe_check_threads(contender->backend->name, &info.device,
                                  contender->device.threads);
}

static enum status start(struct kernels *kernels, struct contender *contender,
                         const struct op_case *op_case)
{
    const struct kernel_options options = {.backend = contender->backend,
                                           .device = contender->device,
                                           .reference = kernels->reference,
                                           .op_case = *op_case};
    contender->row = (struct kernel_row){.op_case = op_case,
                                         .backend = contender->backend->name,
                                         .threads = contender->device.threads,
                                         .time_ns = stats_nothing(),
                                         .floor_ns = (double)NAN,
                                         .check = "none",
                                         .error = (double)NAN};
    TRY(job_kernel_open(&options, &contender->job));
    TRY(contender->job->kind->prepare(contender->job));
    const struct program *program = job_kernel_program(contender->job);
    contender->row.flop = (double)op_flop(program, &program->ops[0]);
    contender->row.bytes = (double)op_bytes(program, &program->ops[0]);
    return describe(kernels, contender);
}

/* The failure of one contender: what a backend cannot do is skipped, the rest counts. */
static void note_failure(struct kernels *kernels, struct contender *contender, enum status status,
                         const char *message)
{
    kernels->failed += status != STATUS_UNSUPPORTED;
    text_printf(&contender->row.note, "%s: %s", status == STATUS_UNSUPPORTED ? "skipped" : "failed",
                message);
}

/* What is faster than possible shows that the ceilings were seen in a bad moment: they are looked
 * for again. */
static enum status find_floor(struct kernels *kernels, struct contender *contender)
{
    enum { TRIES = 3 };
    const struct program *program = job_kernel_program(contender->job);
    struct kernel_row *row = &contender->row;

    const struct yardstick yardstick = {
        .calibration = &kernels->calibration,
        .threads = contender->device.threads,
        .backend = strcmp(contender->backend->unit, "cpu") == 0 ? NULL : contender->backend,
        .precision = contender->device.precision};
    for (int i = 0; i < TRIES; i++) {
        struct ceilings ceilings;
        TRY(yardstick_read(&yardstick, (uint64_t)row->bytes, i > 0, &ceilings));
        TRY(floor_of_op(program, &program->ops[0], &yardstick, &ceilings, &row->floor_ns));
        if (!(row->floor_ns >= FLOOR_LEAST_NS) || row->time_ns.min >= row->floor_ns)
            break;
    }
    return STATUS_OK;
}

/* From samples to the figures of the row. */
static void conclude(struct kernels *kernels, struct contender *contender)
{
    const struct timing *timing = &kernels->timings[contender->timing];
    struct kernel_row *row = &contender->row;
    enum status status = timing->status;

    if (timing->stop == MEASURE_FAILED) {
        note_failure(kernels, contender, status, timing->message);
        return;
    }
    status = stats_compute(timing->samples_ns, timing->count, timing->per, &row->time_ns);
    if (status == STATUS_OK)
        status = contender->job->kind->check(contender->job, &row->error);
    if (status == STATUS_OK || status == STATUS_WRONG)
        row->check = status == STATUS_OK ? "right" : "wrong";
    if (status != STATUS_OK)
        note_failure(kernels, contender, status, status_message());
    else if (find_floor(kernels, contender) != STATUS_OK)
        text_printf(&row->note, "no floor: %s", status_message());
    kernels->timed++;
}

static enum status print_row(struct kernels *kernels, const struct contender *contender)
{
    struct text out = {0};
    kernel_rows_add(&kernels->rows, &contender->row, &out);
    enum status status = text_done(&out);
    if (status == STATUS_OK)
        status = kernels->request->print(text_of(&out));
    text_free(&out);
    return status;
}

/* One case: everyone gets ready, is timed in turns, and has a row. */
static enum status time_case(struct kernels *kernels, const struct op_case *op_case)
{
    int ready = 0;

    for (int i = 0; i < kernels->count; i++) {
        struct contender *contender = &kernels->contenders[i];
        enum status started = start(kernels, contender, op_case);
        contender->runs = started == STATUS_OK;
        contender->timing = ready;
        if (contender->runs)
            kernels->timings[ready++] =
                (struct timing){.job = contender->job, .threads = contender->device.threads};
        else
            note_failure(kernels, contender, started, status_message());
    }
    enum status status = measure(&kernels->measure, kernels->timings, ready);
    for (int i = 0; i < kernels->count && status == STATUS_OK; i++) {
        if (kernels->contenders[i].runs)
            conclude(kernels, &kernels->contenders[i]);
        status = print_row(kernels, &kernels->contenders[i]);
    }
    for (int i = 0; i < kernels->count; i++) {
        struct contender *contender = &kernels->contenders[i];
        if (contender->job)
            contender->job->kind->close(contender->job);
        contender->job = NULL;
        text_free(&contender->row.note);
    }
    for (int i = 0; i < ready; i++)
        timing_free(&kernels->timings[i]);
    arena_free(&kernels->scratch);
    return status;
}

/* Op after op; those of one op stand together. */
static enum status time_all(struct kernels *kernels)
{
    struct op_case op_case;
    for (int kind = 0; kind < OP_COUNT; kind++)
        for (int32_t i = 0; kernels->wanted[kind] && case_at(i, &op_case); i++) {
            if ((int)op_case.kind != kind)
                continue;
            if (kernels->request->stopped())
                FAIL(STATUS_INTERRUPTED, "stopped");
            TRY(time_case(kernels, &op_case));
        }
    return STATUS_OK;
}

/* How wide the columns must be for the cases that are wanted. */
static void find_widths(struct kernels *kernels)
{
    struct kernel_rows *rows = &kernels->rows;
    struct op_case op_case;
    struct text sizes = {0};
    rows->contested = kernels->count > 1;
    for (int32_t i = 0; case_at(i, &op_case); i++) {
        if (!kernels->wanted[op_case.kind])
            continue;
        text_clear(&sizes);
        kernel_rows_sizes(&op_case, &sizes);
        int op_width = (int)strlen(op_name(op_case.kind)), sizes_width = (int)sizes.length;
        rows->op_width = op_width > rows->op_width ? op_width : rows->op_width;
        rows->sizes_width = sizes_width > rows->sizes_width ? sizes_width : rows->sizes_width;
    }
    if (rows->sizes_width > SIZES_MOST)
        rows->sizes_width = SIZES_MOST;
    text_free(&sizes);
}

static enum status run(struct kernels *kernels)
{
    enum status status = calibration_open(&kernels->calibration);
    if (status == STATUS_OK)
        status = time_all(kernels);
    calibration_close(&kernels->calibration);
    if (status == STATUS_INTERRUPTED)
        log_warning("stopped: the cases above are complete");
    TRY(status);
    if (kernels->failed)
        FAIL(STATUS_WRONG, "%d of %d timed kernel cases failed", kernels->failed, kernels->timed);
    return STATUS_OK;
}

enum status kernel_bench(const struct kernel_request *request)
{
    struct kernels kernels = {.request = request, .rows.width = request->width};
    double seconds = request->seconds > 0 ? request->seconds : SECONDS;

    kernels.measure = (struct measure_options){
        .target = 0.01, .limit_ns = (uint64_t)(seconds * 1e9), .stopped = request->stopped};
    enum status status = kernel_rows_format(&kernels.rows, request->format);
    if (status == STATUS_OK)
        status = choose_ops(&kernels, request->ops, request->op_count);
    if (status == STATUS_OK)
        status = choose_contenders(&kernels, request);
    if (status == STATUS_OK) {
        find_widths(&kernels);
        status = run(&kernels);
    }
    arena_free(&kernels.arena);
    return status;
}
