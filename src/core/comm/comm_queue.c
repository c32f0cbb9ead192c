/* comm_queue.c: a thread that carries out all-reduces in the order in which they were started. A
 * failure ends the thread's work; every wait from then on says why. */
#include "core/comm/comm_inside.h"

#include "base/memory.h"

#include <stdatomic.h>
#include <stdio.h>

enum { QUEUE_MOST = 256 }; /* ranges that are started and not waited for */

struct range {
    void *data;
    size_t count;
    enum dtype dtype;
};

struct comm_queue {
    struct comm *comm;
    const struct comm_crew *crew;
    struct crew_thread *thread;
    struct crew_bell *bell;
    struct range ranges[QUEUE_MOST];
    uint64_t started, done;
    bool stop;
    enum status failed;
    char why[300];
    _Atomic uint64_t busy_ns;
};

/* The next range, or false when the queue is to be closed. Called with the lock held. */
static bool next_range(struct comm_queue *queue, struct range *out)
{
    while (queue->started == queue->done && !queue->stop)
        queue->crew->wait(queue->bell);
    *out = queue->ranges[queue->done % QUEUE_MOST];
    return queue->started != queue->done;
}

static void *queue_main(void *argument)
{
    struct comm_queue *queue = argument;
    struct range range;
    queue->crew->lock(queue->bell);
    while (next_range(queue, &range)) {
        queue->crew->unlock(queue->bell);
        const uint64_t begun = queue->crew->now_ns();
        const enum status status =
            comm_all_reduce(queue->comm, range.data, range.count, range.dtype);
        atomic_fetch_add(&queue->busy_ns, queue->crew->now_ns() - begun);
        queue->crew->lock(queue->bell);
        if (status != STATUS_OK && !queue->failed) {
            queue->failed = status;
            snprintf(queue->why, sizeof queue->why, "%s", status_message());
        }
        queue->done++;
        queue->crew->ring(queue->bell);
    }
    queue->crew->unlock(queue->bell);
    return NULL;
}

enum status comm_queue_open(struct comm *comm, struct comm_queue **out)
{
    struct comm_queue *queue;
    enum status status;
    NEED(queue = mem_alloc(sizeof *queue));
    TRY_OR(free_queue, comm_group(comm, NULL, 0, &queue->comm));
    queue->crew = comm_crew(comm);
    TRY_OR(close_comm, queue->crew->open_bell(queue->comm, &queue->bell));
    TRY_OR(close_bell, queue->crew->start(queue->comm, queue_main, queue, &queue->thread));
    *out = queue;
    return STATUS_OK;
close_bell:
    queue->crew->close_bell(queue->bell);
close_comm:
    comm_close(queue->comm);
free_queue:
    mem_free(queue);
    return status;
}

static enum status queue_status(struct comm_queue *queue)
{
    enum status failed = queue->failed;
    return failed ? status_fail(failed, __FILE__, __LINE__, "%s", queue->why) : STATUS_OK;
}

enum status comm_start(struct comm_queue *queue, void *data, size_t count, enum dtype dtype,
                       uint64_t *ticket)
{
    queue->crew->lock(queue->bell);
    while (queue->started - queue->done == QUEUE_MOST)
        queue->crew->wait(queue->bell);
    queue->ranges[queue->started % QUEUE_MOST] = (struct range){data, count, dtype};
    *ticket = ++queue->started;
    queue->crew->ring(queue->bell);
    enum status status = queue_status(queue);
    queue->crew->unlock(queue->bell);
    return status;
}

enum status comm_wait(struct comm_queue *queue, uint64_t ticket)
{
    queue->crew->lock(queue->bell);
    while (queue->done < ticket)
        queue->crew->wait(queue->bell);
    enum status status = queue_status(queue);
    queue->crew->unlock(queue->bell);
    return status;
}

uint64_t comm_queue_busy_ns(const struct comm_queue *queue)
{
    return atomic_load(&queue->busy_ns);
}

void comm_queue_close(struct comm_queue *queue)
{
    if (!queue)
        return;
    queue->crew->lock(queue->bell);
    queue->stop = true;
    queue->crew->ring(queue->bell);
    queue->crew->unlock(queue->bell);
    queue->crew->join(queue->thread);
    queue->crew->close_bell(queue->bell);
    comm_close(queue->comm);
    mem_free(queue);
}
