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
struct entrant {
    const struct backend *backend;
    struct device_options device;
    struct job *job; /* or NULL */
    bool runs;
    int contender; /* which, when it runs */
    struct kernel_row row;
};

struct kernels {
    struct arena arena, scratch; /* scratch: of one case */
    struct entrant *entrants;
    struct contender *contenders;
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
static enum status choose_entrants(struct kernels *kernels, const struct kernel_request *request)
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
    NEED(kernels->entrants = arena_array(&kernels->arena, room, sizeof *kernels->entrants));
    NEED(kernels->contenders = arena_array(&kernels->arena, room, sizeof *kernels->contenders));
    for (int b = 0; b < backend_count; b++)
        for (int t = 0; t < threads.count; t++)
            for (int i = 0; i < isas.count; i++) {
                struct entrant *entrant = &kernels->entrants[kernels->count++];
                entrant->backend = backends[b];
                entrant->device.threads = (int)strtol(threads.values[t], NULL, 10);
                isa_parse(isas.values[i], &entrant->device.isa);
            }
    return registry_find(registry, "ref", &kernels->reference);
}

/* The kernel's name, and whether the backend has as many threads as it was asked for. */
static enum status describe(struct kernels *kernels, struct entrant *entrant)
{
    struct json *tree;

    TRY(describe_job(entrant->job, &kernels->scratch, &tree));
    const struct json *used = json_get(tree, "kernels");
    int64_t threads = json_int(json_get(tree, "device"), "threads", entrant->device.threads);
    entrant->row.kernel = used && used->first ? used->first->string : NULL;
    if (threads != entrant->device.threads)
        FAIL(STATUS_UNSUPPORTED, "the backend %s makes %lld thread%s, not %d",
             entrant->backend->name, (long long)threads, threads == 1 ? "" : "s",
             entrant->device.threads);
    return STATUS_OK;
}

static enum status start(struct kernels *kernels, struct entrant *entrant,
                         const struct op_case *op_case)
{
    const struct kernel_options options = {.backend = entrant->backend,
                                           .device = entrant->device,
                                           .reference = kernels->reference,
                                           .op_case = *op_case};
    entrant->row = (struct kernel_row){.op_case = op_case,
                                       .backend = entrant->backend->name,
                                       .threads = entrant->device.threads,
                                       .time_ns = stats_nothing(),
                                       .floor_ns = (double)NAN,
                                       .check = "none",
                                       .error = (double)NAN};
    TRY(job_kernel_open(&options, &entrant->job));
    TRY(entrant->job->kind->prepare(entrant->job));
    const struct program *program = job_kernel_program(entrant->job);
    entrant->row.flop = (double)op_flop(program, &program->ops[0]);
    entrant->row.bytes = (double)op_bytes(program, &program->ops[0]);
    return describe(kernels, entrant);
}

/* The failure of one entrant: what a backend cannot do is skipped, the rest counts. */
static void note_failure(struct kernels *kernels, struct entrant *entrant, enum status status,
                         const char *message)
{
    kernels->failed += status != STATUS_UNSUPPORTED;
    text_printf(&entrant->row.note, "%s: %s", status == STATUS_UNSUPPORTED ? "skipped" : "failed",
                message);
}

/* What is faster than possible shows that the ceilings were seen in a bad moment: they are looked
 * for again. */
static enum status find_floor(struct kernels *kernels, struct entrant *entrant)
{
    enum { TRIES = 3 };
    const struct program *program = job_kernel_program(entrant->job);
    struct kernel_row *row = &entrant->row;

    const struct yardstick yardstick = {
        .calibration = &kernels->calibration,
        .threads = entrant->device.threads,
        .backend = strcmp(entrant->backend->unit, "cpu") == 0 ? NULL : entrant->backend,
        .precision = entrant->device.precision};
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
static void conclude(struct kernels *kernels, struct entrant *entrant)
{
    const struct contender *contender = &kernels->contenders[entrant->contender];
    struct kernel_row *row = &entrant->row;
    enum status status = contender->status;

    if (contender->stop == MEASURE_FAILED) {
        note_failure(kernels, entrant, status, contender->message);
        return;
    }
    status = stats_compute(contender->samples_ns, contender->count, contender->per, &row->time_ns);
    if (status == STATUS_OK)
        status = entrant->job->kind->check(entrant->job, &row->error);
    if (status == STATUS_OK || status == STATUS_WRONG)
        row->check = status == STATUS_OK ? "right" : "wrong";
    if (status != STATUS_OK)
        note_failure(kernels, entrant, status, status_message());
    else if (find_floor(kernels, entrant) != STATUS_OK)
        text_printf(&row->note, "no floor: %s", status_message());
    kernels->timed++;
}

static enum status print_row(struct kernels *kernels, const struct entrant *entrant)
{
    struct text out = {0};
    kernel_rows_add(&kernels->rows, &entrant->row, &out);
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
        struct entrant *entrant = &kernels->entrants[i];
        enum status started = start(kernels, entrant, op_case);
        entrant->runs = started == STATUS_OK;
        entrant->contender = ready;
        if (entrant->runs)
            kernels->contenders[ready++] =
                (struct contender){.job = entrant->job, .threads = entrant->device.threads};
        else
            note_failure(kernels, entrant, started, status_message());
    }
    enum status status = measure(&kernels->measure, kernels->contenders, ready);
    for (int i = 0; i < kernels->count && status == STATUS_OK; i++) {
        if (kernels->entrants[i].runs)
            conclude(kernels, &kernels->entrants[i]);
        status = print_row(kernels, &kernels->entrants[i]);
    }
    for (int i = 0; i < kernels->count; i++) {
        struct entrant *entrant = &kernels->entrants[i];
        if (entrant->job)
            entrant->job->kind->close(entrant->job);
        entrant->job = NULL;
        text_free(&entrant->row.note);
    }
    for (int i = 0; i < ready; i++)
        measure_free(&kernels->contenders[i]);
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
    struct kernels kernels = {.request = request};
    double seconds = request->seconds > 0 ? request->seconds : SECONDS;

    kernels.measure = (struct measure_options){
        .target = 0.01, .limit_ns = (uint64_t)(seconds * 1e9), .stopped = request->stopped};
    enum status status = kernel_rows_format(&kernels.rows, request->format);
    if (status == STATUS_OK)
        status = choose_ops(&kernels, request->ops, request->op_count);
    if (status == STATUS_OK)
        status = choose_entrants(&kernels, request);
    if (status == STATUS_OK) {
        find_widths(&kernels);
        status = run(&kernels);
    }
    arena_free(&kernels.arena);
    return status;
}
