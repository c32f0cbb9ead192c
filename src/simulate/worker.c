/* worker.c: see worker.h. The order of what a worker does is that of train/workers/pipeline.c and
 * of plans: sums are started where the program starts them, waited for where it waits, by a queue
 * beside the computation. On CPUs of one server there is none, as in training (train/lap.c). */
#include "simulate/worker.h"

#include "base/memory.h"

#include <string.h>

/* One worker at work. */
struct worker {
    struct work_plan *plan;
    struct comm *comm;
    struct comm_queue *queue; /* NULL: a sum is complete when it was started */
    const struct actions *actions;
    uint64_t *tickets;             /* per reduction */
    struct comm_transfer *sending; /* per slot and action */
    bool *under_way;               /* … */
    int32_t slots;
    double compute_s, exposed_s, input_s, sent_bytes;
};

static double now(const struct worker *worker)
{
    return worker->plan->simulator->now_s();
}

static enum status finish_send(struct worker *worker, int32_t place)
{
    if (!worker->under_way[place])
        return STATUS_OK;
    worker->under_way[place] = false;
    return comm_finish(worker->comm, &worker->sending[place]);
}

static enum status begin_send(struct worker *worker, int32_t place, const struct action *action)
{
    TRY(finish_send(worker, place));
    comm_begin_send(worker->comm, action->peer, worker->plan->data, action->bytes,
                    &worker->sending[place]);
    worker->under_way[place] = true;
    worker->sent_bytes += (double)action->bytes;
    return STATUS_OK;
}

static enum status do_action(struct worker *worker, int32_t index, int32_t slot)
{
    const struct action *action = &worker->actions->list[index];
    const double begun = now(worker);
    const int size = worker->comm->size;
    enum status status = STATUS_OK;
    switch (action->kind) {
    case ACTION_COMPUTE:
        worker->plan->simulator->compute(action->seconds);
        worker->compute_s += action->seconds;
        return STATUS_OK;
    case ACTION_REDUCE:
        worker->sent_bytes += 2.0 * (size - 1) / size * (double)action->bytes;
        if (worker->queue)
            return comm_start(worker->queue, worker->plan->data, action->bytes / sizeof(float),
                              DTYPE_F32, &worker->tickets[action->reduction]);
        status = comm_all_reduce(worker->comm, worker->plan->data, action->bytes / sizeof(float),
                                 DTYPE_F32);
        break;
    case ACTION_WAIT:
        if (worker->queue)
            status = comm_wait(worker->queue, worker->tickets[action->reduction]);
        break;
    case ACTION_SEND:
        status = begin_send(worker, slot * worker->actions->count + index, action);
        break;
    case ACTION_RECEIVE:
        status = comm_receive(worker->comm, action->peer, worker->plan->data, action->bytes);
        break;
    }
    worker->exposed_s += now(worker) - begun;
    return status;
}

static enum status do_range(struct worker *worker, int32_t from, int32_t to, int32_t slot)
{
    for (int32_t i = from; i < to; i++)
        TRY(do_action(worker, i, slot));
    return STATUS_OK;
}

static enum status do_part(struct worker *worker, enum part part, int32_t slot)
{
    return do_range(worker, worker->actions->parts[part].from, worker->actions->parts[part].to,
                    slot);
}

static enum status do_turns(struct worker *worker)
{
    const struct work_plan *plan = worker->plan;
    const int32_t count = 2 * plan->micros;
    struct pipeline_turn *turns = mem_array((size_t)count, sizeof *turns);
    enum status status = STATUS_OK;
    NEED(turns);
    pipeline_table(plan->request->schedule, worker->comm->size, worker->comm->rank, plan->micros,
                   turns);
    for (int32_t i = 0; i < count && status == STATUS_OK; i++) {
        if (!turns[i].backward)
            status = do_part(worker, PART_PREPARE, turns[i].slot);
        if (status == STATUS_OK)
            status =
                do_part(worker, turns[i].backward ? PART_BACKWARD : PART_FORWARD, turns[i].slot);
    }
    const double begun = now(worker);
    for (int32_t i = 0; i < worker->slots * worker->actions->count && status == STATUS_OK; i++)
        status = finish_send(worker, i);
    worker->exposed_s += now(worker) - begun;
    if (status == STATUS_OK)
        status = do_part(worker, PART_UPDATE, turns[count - 1].slot);
    mem_free(turns);
    return status;
}

/* The samples of the next step come while this one computes. */
static enum status do_step(struct worker *worker)
{
    const struct work_plan *plan = worker->plan;
    const bool pipeline = plan->parallelism == PARALLEL_PIPELINE;
    struct simulated_work *feed = NULL;
    char host[PLATFORM_HOST];
    if (plan->feed_bytes > 0)
        TRY(plan->simulator->begin_work(
            platform_feeder(plan->request->platform, worker->comm->rank, host), plan->feed_bytes,
            &feed));
    TRY(pipeline ? do_turns(worker) : do_range(worker, 0, worker->actions->count, 0));
    const double begun = now(worker);
    if (feed)
        plan->simulator->end_work(feed);
    worker->input_s = now(worker) - begun;
    return STATUS_OK;
}

static void add_up(const struct worker *worker, double busy_s)
{
    struct simulate_result *sum = &worker->plan->sum;
    const double end = now(worker);
    sum->step_s = end > sum->step_s ? end : sum->step_s;
    sum->compute_s += worker->compute_s;
    sum->exposed_s += worker->exposed_s;
    sum->hidden_s += busy_s > worker->exposed_s ? busy_s - worker->exposed_s : 0;
    sum->input_s += worker->input_s;
    sum->sent_bytes += worker->sent_bytes;
}

static enum status make_room(struct worker *worker)
{
    const struct work_plan *plan = worker->plan;
    if (plan->parallelism == PARALLEL_PIPELINE)
        worker->slots = pipeline_alive(plan->request->schedule, worker->comm->size,
                                       worker->comm->rank, plan->micros);
    const size_t places = (size_t)worker->slots * (size_t)worker->actions->count;
    NEED(worker->tickets =
             mem_array((size_t)worker->actions->reductions + 1, sizeof *worker->tickets));
    NEED(worker->sending = mem_array(places + 1, sizeof *worker->sending));
    NEED(worker->under_way = mem_array(places + 1, sizeof *worker->under_way));
    return STATUS_OK;
}

enum status worker_main(struct comm *comm, void *context)
{
    struct work_plan *plan = context;
    const bool shared = plan->parallelism == PARALLEL_DATA;
    struct worker worker = {.plan = plan, .comm = comm};
    worker.actions = &plan->lists[shared ? comm->rank >= plan->most : comm->rank];
    const struct simulate_request *request = plan->request;
    if (shared && (request->on_gpus || !platform_near(request->platform, comm->size)))
        TRY(comm_queue_open(comm, &worker.queue));
    enum status status = make_room(&worker);
    if (status == STATUS_OK)
        status = do_step(&worker);
    if (status == STATUS_OK)
        add_up(&worker, worker.queue ? (double)comm_queue_busy_ns(worker.queue) / 1e9 : 0);
    comm_queue_close(worker.queue);
    mem_free(worker.tickets);
    mem_free(worker.sending);
    mem_free(worker.under_way);
    return status;
}
