/* comm_crew.c: threads, as most transports have them: those of the system. */
#include "core/comm/comm_inside.h"

#include "base/clock.h"
#include "base/memory.h"

#include <pthread.h>

struct crew_bell {
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

struct crew_thread {
    pthread_t thread;
};

static enum status open_bell(struct comm *comm, struct crew_bell **out)
{
    struct crew_bell *bell;
    (void)comm;
    NEED(bell = mem_alloc(sizeof *bell));
    pthread_mutex_init(&bell->lock, NULL);
    pthread_cond_init(&bell->changed, NULL);
    *out = bell;
    return STATUS_OK;
}

static void close_bell(struct crew_bell *bell)
{
    pthread_cond_destroy(&bell->changed);
    pthread_mutex_destroy(&bell->lock);
    mem_free(bell);
}

static void lock_bell(struct crew_bell *bell)
{
    pthread_mutex_lock(&bell->lock);
}

static void unlock_bell(struct crew_bell *bell)
{
    pthread_mutex_unlock(&bell->lock);
}

static void wait_for_bell(struct crew_bell *bell)
{
    pthread_cond_wait(&bell->changed, &bell->lock);
}

static void ring_bell(struct crew_bell *bell)
{
    pthread_cond_broadcast(&bell->changed);
}

static enum status start_thread(struct comm *comm, void *(*main)(void *), void *argument,
                                struct crew_thread **out)
{
    struct crew_thread *thread;
    (void)comm;
    NEED(thread = mem_alloc(sizeof *thread));
    if (pthread_create(&thread->thread, NULL, main, argument) != 0) {
        mem_free(thread);
        FAIL(STATUS_IO, "no thread for communication: the system allows no more");
    }
    *out = thread;
    return STATUS_OK;
}

static void join_thread(struct crew_thread *thread)
{
    pthread_join(thread->thread, NULL);
    mem_free(thread);
}

const struct comm_crew comm_threads_crew = {
    .open_bell = open_bell,
    .close_bell = close_bell,
    .lock = lock_bell,
    .unlock = unlock_bell,
    .wait = wait_for_bell,
    .ring = ring_bell,
    .start = start_thread,
    .join = join_thread,
    .now_ns = clock_ns,
};
