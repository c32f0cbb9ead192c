/* cuda_run.cu: running. Steps of the asked parts are captured into CUDA graphs of one, two, four
 * and more of them, and replayed: many steps are few launches, and none waits for the host. An
 * observed plan's steps run one at a time, and their times are handed out after each: CUPTI's, of
 * ops that are launched one by one, or those between events that the graph then holds. */
#include "backend/cuda/host/stages.h"
#include "backend/cuda/host/tracer.h"
#include "backend/cuda/plan/kernel_row.h"
#include "backend/cuda/plan/steps.h"
#include "backend/cuda/stack/answer_calls.h"

extern "C" {
#include "base/clock.h"
}

static enum status check_run(const struct plan *plan, unsigned parts, int slot)
{
    const struct program *program = plan->program;
    if (plan->dry || slot < 0 || slot >= plan->slots)
        FAIL(STATUS_INPUT, "the plan of '%s' has %d slots and cannot run slot %d", program->name,
             plan->dry ? 0 : plan->slots, slot);
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        if (op->kind != OP_load || !(parts & PART_BIT(op->part)))
            continue;
        const int32_t input = op_output(program, op, 0);
        if (!plan->mirrors[input].host)
            FAIL(STATUS_INPUT, "no data is bound to the input '%s' of the program '%s'",
                 program->tensors[input].name, program->name);
    }
    return STATUS_OK;
}

/* Without the parts that have no ops, so that one capture serves all ways to say the same. */
static unsigned parts_that_run(const struct program *program, unsigned parts)
{
    unsigned some = 0;
    for (int part = 0; part < PART_COUNT; part++)
        if ((parts & PART_BIT(part)) && program->parts[part].from < program->parts[part].to)
            some |= PART_BIT(part);
    return some;
}

/* The next mark: the end of what was timed, and the beginning of what follows. */
static void put_mark(const struct plan *plan, struct queue *queue, int32_t *mark)
{
    if (queue->error == cudaSuccess && plan->marks)
        queue->error = cudaEventRecordWithFlags(plan->marks[(*mark)++], queue->stream,
                                                cudaEventRecordExternal);
    queue->chained = 0;
}

/* Does the step write nothing that a kernel reads before the one in front of it is done? */
static bool keeps_weights(const struct program *program)
{
    return program->parts[PART_BACKWARD].from == program->parts[PART_BACKWARD].to &&
           program->parts[PART_UPDATE].from == program->parts[PART_UPDATE].to;
}

/* … but for what is enqueued apart, where steps overlap. */
static void enqueue_step(const struct plan *plan, unsigned parts, int copy, bool overlaps,
                         struct queue *queue)
{
    const struct program *program = plan->program;
    const struct call *calls = plan->calls + (int64_t)copy * plan->step_count;
    const enum observe level = plan->observer.level;
    struct loss_scale *loss_scale = plan->mixed ? plan->mixed->loss_scale : NULL;
    int32_t mark = 0, s = 0;
    if (!keeps_weights(program))
        queue->chained = 0; /* no kernel reads weights before the last step has written them */
    if (level != OBSERVE_NOTHING)
        put_mark(plan, queue, &mark);
    for (int part = 0; part < PART_COUNT; part++) {
        const bool scaled = loss_scale && part == PART_UPDATE;
        if (!(parts & PART_BIT(part)))
            continue;
        if (scaled)
            loss_scale_look(queue, (int64_t)(program->role_bytes[ROLE_GRAD] / sizeof(float)),
                            (const float *)plan->grads, loss_scale);
        for (; s < plan->step_count && program->parts[part].to > plan->steps[s].op; s++) {
            const int32_t o = plan->steps[s].op;
            if (o < program->parts[part].from || (overlaps && double_buffer_has(&program->ops[o])))
                continue;
            if (plan->spans)
                tracer_op(o);
            side_stream_enqueue(plan, &calls[s], s, queue);
            if (plan->spans)
                tracer_pause();
            if (level == OBSERVE_OPS)
                put_mark(plan, queue, &mark);
        }
        if (scaled)
            loss_scale_move(queue, loss_scale);
        if (level == OBSERVE_PARTS)
            put_mark(plan, queue, &mark);
    }
    side_stream_join(plan, queue);
}

static struct queue make_queue(const struct plan *plan, cudaStream_t stream)
{
    struct queue queue = {};
    queue.stream = stream;
    queue.side = plan->side.stream;
    queue.fork = plan->side.fork;
    queue.twin = plan->side.twin;
    queue.join = plan->side.join;
    queue.blas = plan->instance->device->blas;
    queue.cudnn = plan->instance->device->cudnn;
    queue.early = plan->instance->device->properties.major >= 9;
    return queue;
}

static void enqueue_steps(const struct plan *plan, unsigned parts, int slot, int32_t steps,
                          struct queue *queue)
{
    const bool overlaps = steps > 1 && plan->copies > plan->slots &&
                          parts == parts_that_run(plan->program, PARTS_ALL);
    for (int32_t left = steps - 1; left >= 0; left--) {
        if (overlaps)
            double_buffer_before(plan, steps, left, queue);
        enqueue_step(plan, parts, overlaps ? left & 1 : slot, overlaps, queue);
        if (overlaps)
            double_buffer_after(plan, left, queue);
    }
}

static enum status capture_steps(const struct plan *plan, unsigned parts, int slot, int32_t repeats,
                                 cudaGraphExec_t *out)
{
    struct queue queue = make_queue(plan, plan->capture_stream);
    cudaGraph_t graph = NULL;
    /* Relaxed: nothing but launches happens here, and other threads need not be restricted. */
    CUDA(cudaStreamBeginCapture(queue.stream, cudaStreamCaptureModeRelaxed));
    enqueue_steps(plan, parts, slot, repeats, &queue);
    cudaError_t error = cudaStreamEndCapture(queue.stream, &graph);
    if (queue.error != cudaSuccess)
        error = queue.error;
    if (error == cudaSuccess)
        error = cudaGraphInstantiate(out, graph, 0);
    if (graph)
        cudaGraphDestroy(graph);
    if (error != cudaSuccess)
        return cuda_fail(__FILE__, __LINE__, error, "capturing a step");
    return STATUS_OK;
}

/* The largest size of graphs of these parts. */
static int size_most(const struct plan *plan, unsigned parts)
{
    const int64_t NODES_MOST = 4096;
    int64_t nodes = 1;
    int size = 0;
    if (plan->observer.level != OBSERVE_NOTHING)
        return 0;
    for (int32_t s = 0; s < plan->step_count; s++)
        if (parts & PART_BIT(plan->program->ops[plan->steps[s].op].part))
            nodes += plan->steps[s].launches;
    while (size + 1 < CAPTURE_SIZES && nodes << (size + 1) <= NODES_MOST)
        size++;
    return size;
}

static struct capture *find_capture(const struct plan *plan, unsigned parts, int slot)
{
    return &plan->captures[(unsigned)slot * (PARTS_ALL + 1) + parts];
}

/* The graph of 2^size steps. */
static enum status need_steps(const struct plan *plan, unsigned parts, int slot, int size,
                              cudaGraphExec_t *out)
{
    cudaGraphExec_t *steps = &find_capture(plan, parts, slot)->steps[size];
    if (!*steps)
        TRY(capture_steps(plan, parts, slot, 1 << size, steps));
    *out = *steps;
    return STATUS_OK;
}

enum status cuda_capture(struct plan *plan, unsigned parts, int slot)
{
    cudaGraphExec_t steps;
    parts = parts_that_run(plan->program, parts);
    if (!parts || plan->spans)
        return STATUS_OK;
    TRY(need_steps(plan, parts, slot, size_most(plan, parts), &steps));
    return need_steps(plan, parts, slot, 0, &steps);
}

/* What gathering and copying a step's rows took, before it was launched: of the first op that
 * loads. */
static void hand_out_intake(const struct plan *plan, uint64_t zero_ns, uint64_t took_ns)
{
    struct event event = {};
    event.part = PART_PREPARE;
    event.kernel = "rows_to_gpu";
    event.start_ns = zero_ns - took_ns;
    event.end_ns = zero_ns;
    while (plan->program->ops[event.op].kind != OP_load)
        event.op++;
    plan->observer.event(plan->observer.context, &event);
}

/* Hands out the times of the step that has just ended. They are counted from `zero_ns`, when it was
 * launched; its rows took `took_ns` before that, which is no part's. */
static enum status hand_out_events(const struct plan *plan, unsigned parts, uint64_t zero_ns,
                                   uint64_t took_ns)
{
    const struct program *program = plan->program;
    const bool ops = plan->observer.level == OBSERVE_OPS;
    int32_t mark = 0;
    struct event event = {};
    event.end_ns = zero_ns;
    if (ops && took_ns)
        hand_out_intake(plan, zero_ns, took_ns);
    for (int part = 0; part < PART_COUNT; part++) {
        if (!(parts & PART_BIT(part)))
            continue;
        const int32_t from = program->parts[part].from;
        const int32_t count = ops ? program->parts[part].to - from : 1;
        for (int32_t i = 0; i < count; i++) {
            float ms;
            CUDA(cudaEventElapsedTime(&ms, plan->marks[0], plan->marks[++mark]));
            event.op = ops ? from + i : -1;
            event.part = part;
            event.kernel = ops ? plan_step(plan, from + i)->kernel->name : "";
            event.start_ns = event.end_ns;
            event.end_ns = zero_ns + (uint64_t)((double)ms * 1e6);
            plan->observer.event(plan->observer.context, &event);
        }
    }
    return STATUS_OK;
}

/* The same of CUPTI's times; an op that has nothing to run has no length. */
static enum status hand_out_spans(const struct plan *plan, unsigned parts, uint64_t zero_ns,
                                  uint64_t took_ns)
{
    const struct program *program = plan->program;
    struct event event = {};
    event.end_ns = zero_ns;
    if (!tracer_collect(plan->spans, program->op_count))
        FAIL(STATUS_UNSUPPORTED,
             "a step of '%s' launches more than can be traced: a smaller batch "
             "or a shorter sequence launches less",
             program->name);
    if (took_ns)
        hand_out_intake(plan, zero_ns, took_ns);
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct span *span = &plan->spans[o];
        event.op = o;
        event.part = program->ops[o].part;
        if (!(parts & PART_BIT(event.part)))
            continue;
        event.kernel = plan_step(plan, o)->kernel->name;
        event.start_ns = span->start_ns > event.end_ns ? span->start_ns : event.end_ns;
        event.end_ns = event.start_ns + span->busy_ns;
        plan->observer.event(plan->observer.context, &event);
    }
    return STATUS_OK;
}

/* Op by op, so that what CUPTI sees can be told apart. */
static enum status launch_traced(const struct plan *plan, unsigned parts, int slot)
{
    struct queue queue = make_queue(plan, plan->instance->device->stream);
    enqueue_step(plan, parts, slot, false, &queue);
    if (queue.error != cudaSuccess)
        return cuda_fail(__FILE__, __LINE__, queue.error, "launching a step");
    return STATUS_OK;
}

/* Do these parts need rows from the host? */
static bool takes_rows(const struct plan *plan, unsigned parts)
{
    return plan->intake.how > INGEST_RESIDENT && (parts & PART_BIT(PART_PREPARE));
}

/* A step at a time, each with its rows; with two parts the host is a step ahead. */
static enum status run_staged(struct plan *plan, cudaGraphExec_t step, int64_t steps)
{
    cudaStream_t stream = plan->instance->device->stream;
    for (; steps > 0; steps--) {
        struct stage *stage;
        TRY(stages_next(plan, &stage));
        TRY(intake_take(plan, stage));
        STAGE_MARK(stage, compute[0], stream);
        CUDA(cudaGraphLaunch(step, stream));
        STAGE_MARK(stage, compute[1], stream);
        TRY(intake_launched(plan));
    }
    return STATUS_OK;
}

static enum status run_observed(struct plan *plan, unsigned parts, int slot, int64_t steps)
{
    cudaGraphExec_t step = find_capture(plan, parts, slot)->steps[0];
    cudaStream_t stream = plan->instance->device->stream;
    for (int64_t i = 0; i < steps; i++) {
        const uint64_t start_ns = clock_ns();
        if (takes_rows(plan, parts)) {
            TRY(intake_take(plan, NULL));
            CUDA(cudaStreamSynchronize(stream));
        }
        if (plan->spans)
            tracer_begin();
        const uint64_t zero_ns = clock_ns();
        const uint64_t took_ns = takes_rows(plan, parts) ? zero_ns - start_ns : 0;
        if (plan->spans)
            TRY(launch_traced(plan, parts, slot));
        else
            CUDA(cudaGraphLaunch(step, stream));
        CUDA(cudaStreamSynchronize(stream));
        TRY((plan->spans ? hand_out_spans : hand_out_events)(plan, parts, zero_ns, took_ns));
    }
    return STATUS_OK;
}

enum status cuda_run(struct plan *plan, unsigned parts, int slot, int64_t steps)
{
    TRY(check_run(plan, parts, slot));
    parts = parts_that_run(plan->program, parts);
    if (!parts || steps < 1)
        return STATUS_OK;
    if (!keeps_weights(plan->program))
        plan->instance->version++;
    if (plan->answer && parts == parts_that_run(plan->program, PARTS_ALL))
        return answer_run(plan, steps);
    cudaStream_t stream = plan->instance->device->stream;
    TRY(cuda_use(plan->instance->device));
    if (plan->stack && !takes_rows(plan, parts) &&
        parts == parts_that_run(plan->program, PARTS_ALL)) {
        plan->pending = true;
        return stack_run(plan, steps);
    }
    TRY(cuda_capture(plan, parts, slot)); /* prepare has captured what is usually asked for */
    plan->pending = true;
    if (plan->observer.level != OBSERVE_NOTHING)
        return run_observed(plan, parts, slot, steps);
    if (takes_rows(plan, parts))
        return run_staged(plan, find_capture(plan, parts, slot)->steps[0], steps);
    for (int size = size_most(plan, parts); steps > 0; size--)
        for (; steps >> size; steps -= (int64_t)1 << size) {
            cudaGraphExec_t graph;
            TRY(need_steps(plan, parts, slot, size, &graph));
            CUDA(cudaGraphLaunch(graph, stream));
        }
    return STATUS_OK;
}
