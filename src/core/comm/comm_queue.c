/* comm_queue.c: a thread that carries out all-reduces in the order in which they were started. A
 * failure ends the thread's work; every wait from then on says why. */
#include "core/comm.h"

#include "base/clock.h"
#include "base/memory.h"

#include <pthread.h>
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
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
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
        pthread_cond_wait(&queue->changed, &queue->lock);
    *out = queue->ranges[queue->done % QUEUE_MOST];
    return queue->started != queue->done;
}

static void *queue_main(void *argument)
{
    struct comm_queue *queue = argument;
    struct range range;
    pthread_mutex_lock(&queue->lock);
    while (next_range(queue, &range)) {
        pthread_mutex_unlock(&queue->lock);
        const uint64_t begun = clock_ns();
        const enum status status =
            comm_all_reduce(queue->comm, range.data, range.count, range.dtype);
        atomic_fetch_add(&queue->busy_ns, clock_ns() - begun);
        pthread_mutex_lock(&queue->lock);
        if (status != STATUS_OK && !queue->failed) {
            queue->failed = status;
            snprintf(queue->why, sizeof queue->why, "%s", status_message());
        }
        queue->done++;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

enum status comm_queue_open(struct comm *comm, struct comm_queue **out)
{
    struct comm_queue *queue;
    enum status status;
    NEED(queue = mem_alloc(sizeof *queue));
    TRY_OR(free_queue, comm_group(comm, NULL, 0, &queue->comm));
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    if (pthread_create(&queue->thread, NULL, queue_main, queue) != 0) {
        status = status_fail(STATUS_IO, __FILE__, __LINE__,
                             "no thread for communication: the system allows no more");
        goto close_comm;
    }
    *out = queue;
    return STATUS_OK;
close_comm:
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
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
    pthread_mutex_lock(&queue->lock);
    while (queue->started - queue->done == QUEUE_MOST)
        pthread_cond_wait(&queue->changed, &queue->lock);
    queue->ranges[queue->started % QUEUE_MOST] = (struct range){data, count, dtype};
    *ticket = ++queue->started;
    pthread_cond_broadcast(&queue->changed);
    enum status status = queue_status(queue);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

enum status comm_wait(struct comm_queue *queue, uint64_t ticket)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->done < ticket)
        pthread_cond_wait(&queue->changed, &queue->lock);
    enum status status = queue_status(queue);
    pthread_mutex_unlock(&queue->lock);
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
    pthread_mutex_lock(&queue->lock);
    queue->stop = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    comm_close(queue->comm);
    mem_free(queue);
}
