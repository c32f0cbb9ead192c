/* intake.cu: inputs that stay in the host's memory, or in files that are mapped there: the rows of
 * a step are copied to the GPU before it runs. So a data set may be larger than the GPU's memory.
 *
 *   direct      each run of neighbouring rows is a copy from where they lie
 *   pinned      a few threads gather the rows in page-locked memory, which is one copy for each
 *               input, in the stream in which the step is computed
 *   overlapped  the same with two parts and a stream of its own: while the GPU computes on one part
 *               the threads fill the other
 *
 * A part of the page-locked memory is filled again once its copy is done, a part on the GPU once
 * its step is: events say so, and nobody waits for more. */
#include "backend/cuda/host/stages.h"

#include <cstring>

extern "C" {
#include "base/clock.h"
#include "base/machine/cpu.h"
#include "base/memory.h"
#include "core/binding.h"
}

enum { GATHERERS = 8 };                         /* threads, where there are twice as many cores */
static const uint64_t GATHER_LEAST = 256 << 10; /* bytes that are worth waking one more of them */

void intake_end(struct plan *plan)
{
    struct intake *intake = &plan->intake;
    pool_close(intake->pool);
    if (intake->stream)
        cudaStreamDestroy(intake->stream);
    for (int part = 0; part < INTAKE_PARTS; part++) {
        if (intake->copied[part])
            cudaEventDestroy(intake->copied[part]);
        if (intake->used[part])
            cudaEventDestroy(intake->used[part]);
    }
    *intake = {};
}

/* What the inputs take here beyond what they have already. */
static uint64_t resident_bytes(const struct plan *plan, const struct binding *binding)
{
    uint64_t needed = 0;
    for (int32_t i = 0; i < binding->view_count; i++) {
        const struct view *view = &binding->views[i];
        if (binding_port(plan->program, view->tensor)->kind != OP_load)
            continue;
        const uint64_t bytes =
            (uint64_t)view->rows * binding_row_bytes(plan->program, view->tensor);
        if (bytes > plan->mirrors[view->tensor].room &&
            !cuda_find_shared(plan->instance->device, view->data, bytes, binding->version))
            needed += bytes;
    }
    return needed;
}

static bool has_inputs(const struct plan *plan, const struct binding *binding)
{
    for (int32_t i = 0; i < binding->view_count; i++)
        if (binding_port(plan->program, binding->views[i].tensor)->kind == OP_load)
            return true;
    return false;
}

/* Where nobody asked: is there room for all of the inputs, and some for others? Of little it is not
 * asked, which takes a moment. */
static enum status choose_best(const struct plan *plan, const struct binding *binding,
                               enum ingestion *out)
{
    const uint64_t little = 8 << 20, most_spare = 512 << 20, needed = resident_bytes(plan, binding);
    const uint64_t spare = needed < most_spare ? needed : most_spare;
    size_t free = 0, total = 0;
    *out = INGEST_RESIDENT;
    if (needed <= little || plan->slots > 1) /* several slots take no other */
        return STATUS_OK;
    CUDA(cudaMemGetInfo(&free, &total));
    if (needed + spare > free)
        *out = INGEST_OVERLAPPED;
    return STATUS_OK;
}

enum status intake_choose(struct plan *plan, const struct binding *binding)
{
    enum ingestion how = has_inputs(plan, binding) ? binding->ingestion : INGEST_RESIDENT;
    if (how == INGEST_BEST)
        TRY(choose_best(plan, binding, &how));
    if (plan->slots > 1 && how != INGEST_RESIDENT)
        FAIL(STATUS_UNSUPPORTED, "data are not staged for several slots: bind them resident");
    if (plan->intake.how != how) {
        intake_end(plan);
        for (int32_t i = 0; i < plan->program->tensor_count; i++)
            cuda_forget_mirror(plan->instance->device, &plan->mirrors[i]);
    }
    plan->intake.how = how;
    plan->intake.parts = how == INGEST_OVERLAPPED ? INTAKE_PARTS : 1;
    return STATUS_OK;
}

static enum status make_tools(struct intake *intake)
{
    struct cpu cpu;
    if (intake->copied[0])
        return STATUS_OK;
    for (uint32_t part = 0; part < intake->parts; part++) {
        CUDA(cudaEventCreateWithFlags(&intake->copied[part], cudaEventDisableTiming));
        CUDA(cudaEventCreateWithFlags(&intake->used[part], cudaEventDisableTiming));
    }
    if (intake->how == INGEST_OVERLAPPED)
        CUDA(cudaStreamCreateWithFlags(&intake->stream, cudaStreamNonBlocking));
    if (intake->how == INGEST_DIRECT)
        return STATUS_OK;
    cpu_detect(&cpu);
    const int threads = cpu.cores / 2 < GATHERERS ? cpu.cores / 2 : GATHERERS;
    return pool_open(threads < 1 ? 1 : threads, POOL_NONE, &intake->pool);
}

enum status intake_begin(struct plan *plan, const struct binding *binding, uint64_t samples)
{
    struct intake *intake = &plan->intake;
    if (intake->how == INGEST_RESIDENT)
        return STATUS_OK;
    intake->order = binding->order ? plan->order_told : NULL;
    intake->samples = samples;
    intake->place = binding->start;
    intake->steps = 0;
    CUDA(cudaStreamSynchronize(plan->instance->device->stream)); /* copies may go beside it */
    const enum status status = make_tools(intake);
    if (status != STATUS_OK)
        intake_end(plan); /* half of the tools are none */
    return status;
}

/* The row of the step's sample number i. */
static uint64_t row_of(const struct intake *intake, uint64_t i)
{
    const uint64_t sample = (intake->place + i) % intake->samples;
    return intake->order ? intake->order[sample] : sample;
}

/* Rows of one input on their way into page-locked memory. */
struct gathering {
    const struct intake *intake;
    const struct mirror *mirror;
    char *to;
    long rows;
};

static void gather(void *context, int member, int members)
{
    const struct gathering *gathering = (const struct gathering *)context;
    const struct mirror *mirror = gathering->mirror;
    const uint64_t bytes = mirror->row_bytes;
    long from, to;
    pool_share(gathering->rows, 1, member, members, &from, &to);
    for (long i = from; i < to; i++)
        memcpy(gathering->to + (uint64_t)i * bytes,
               (const char *)mirror->host + row_of(gathering->intake, (uint64_t)i) * bytes, bytes);
}

static void gather_rows(const struct intake *intake, const struct mirror *mirror, int64_t rows,
                        uint32_t part)
{
    const uint64_t bytes = (uint64_t)rows * mirror->row_bytes;
    struct gathering gathering = {intake, mirror, mirror->pinned + part * bytes, (long)rows};
    const uint64_t worth = 1 + bytes / GATHER_LEAST, most = (uint64_t)pool_at_once(intake->pool);
    pool_run(intake->pool, (int)(worth < most ? worth : most), gather, &gathering);
}

static enum status copy_gathered(const struct mirror *mirror, int64_t rows, uint32_t part,
                                 cudaStream_t stream)
{
    const uint64_t bytes = (uint64_t)rows * mirror->row_bytes, place = part * bytes;
    CUDA(cudaMemcpyAsync((char *)mirror->data + place, mirror->pinned + place, bytes,
                         cudaMemcpyHostToDevice, stream));
    return STATUS_OK;
}

static enum status copy_direct(const struct plan *plan, const struct mirror *mirror, int64_t rows,
                               cudaStream_t stream)
{
    const struct intake *intake = &plan->intake;
    const uint64_t bytes = mirror->row_bytes, count = (uint64_t)rows;
    for (uint64_t from = 0, to; from < count; from = to) {
        const uint64_t row = row_of(intake, from);
        for (to = from + 1; to < count && row_of(intake, to) == row + (to - from);)
            to++;
        CUDA(cudaMemcpyAsync((char *)mirror->data + from * bytes,
                             (const char *)mirror->host + row * bytes, (to - from) * bytes,
                             cudaMemcpyHostToDevice, stream));
    }
    return STATUS_OK;
}

/* The next input from op `*op` on, and its rows in a step; NULL: there is none. */
static const struct mirror *next_input(const struct plan *plan, int32_t *op, int64_t *rows)
{
    const struct program *program = plan->program;
    while (*op < program->op_count && program->ops[*op].kind != OP_load)
        ++*op;
    if (*op == program->op_count)
        return NULL;
    const int32_t tensor = op_output(program, &program->ops[(*op)++], 0);
    *rows = program->tensors[tensor].shape.dim[0];
    return &plan->mirrors[tensor];
}

static void gather_inputs(const struct plan *plan, uint32_t part, struct stage *stage)
{
    const struct mirror *mirror;
    int64_t rows;
    const uint64_t start_ns = clock_ns();
    for (int32_t op = 0; (mirror = next_input(plan, &op, &rows)) != NULL;)
        gather_rows(&plan->intake, mirror, rows, part);
    if (stage) {
        stage->gather_ns[0] = start_ns;
        stage->gather_ns[1] = clock_ns();
    }
}

static enum status copy_inputs(const struct plan *plan, uint32_t part, cudaStream_t stream,
                               uint64_t *samples)
{
    const struct mirror *mirror;
    int64_t rows;
    for (int32_t op = 0; (mirror = next_input(plan, &op, &rows)) != NULL;) {
        TRY(plan->intake.how == INGEST_DIRECT ? copy_direct(plan, mirror, rows, stream)
                                              : copy_gathered(mirror, rows, part, stream));
        *samples = (uint64_t)rows;
    }
    return STATUS_OK;
}

enum status intake_take(struct plan *plan, struct stage *stage)
{
    struct intake *intake = &plan->intake;
    const uint32_t part = (uint32_t)(intake->steps % intake->parts);
    cudaStream_t computing = plan->instance->device->stream;
    cudaStream_t copying = intake->stream ? intake->stream : computing;
    uint64_t samples = 0;
    if (intake->steps >= intake->parts)
        CUDA(cudaEventSynchronize(intake->copied[part]));
    if (intake->how != INGEST_DIRECT)
        gather_inputs(plan, part, stage);
    if (intake->stream && intake->steps >= intake->parts)
        CUDA(cudaStreamWaitEvent(copying, intake->used[part], 0));
    STAGE_MARK(stage, copy[0], copying);
    TRY(copy_inputs(plan, part, copying, &samples));
    STAGE_MARK(stage, copy[1], copying);
    CUDA(cudaEventRecord(intake->copied[part], copying));
    if (intake->stream)
        CUDA(cudaStreamWaitEvent(computing, intake->copied[part], 0));
    intake->place = (intake->place + samples) % intake->samples;
    intake->steps++;
    return STATUS_OK;
}

enum status intake_launched(struct plan *plan)
{
    struct intake *intake = &plan->intake;
    const uint32_t part = (uint32_t)((intake->steps - 1) % intake->parts);
    CUDA(cudaEventRecord(intake->used[part], plan->instance->device->stream));
    return STATUS_OK;
}
