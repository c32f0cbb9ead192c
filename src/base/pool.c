/* pool.c: threads that wait for a round, run it, and report.
 *
 * * A round: the caller writes the task, then raises the count of rounds in each member's own cache
 * line. A member that sees a new count claims its part, runs it and counts `left` down. A member
 * waits for a round, the caller for `left` to reach 0. Both spin first, because kernels follow each
 * other within microseconds, then sleep in a futex. Before sleeping a thread raises its `asleep`
 * flag and looks once more; the other side writes first and reads the flag after. In sequentially
 * consistent order at least one of the two sees the other, so no wake-up is lost. Spinning must not
 * keep a CPU from the thread that is waited for. So members beyond the number of CPUs sleep at
 * once, and so does the caller of a round with such members.
 *
 * * * A member may be late: asleep, kept from its CPU by others, or on the caller's own, where the
 * system likes to wake it. So the caller, when it is done with its part, claims and runs parts that
 * no member has begun: it never takes longer than alone. And a member that finds itself on the
 * caller's CPU goes elsewhere: two that yield to each other can stay there for seconds. */
#include "base/pool.h"

#include "base/clock.h"
#include "base/machine/cpu_inside.h"
#include "base/memory.h"

#include <assert.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LINE = 128,       /* two cache lines: CPUs fetch them in pairs */
    SPIN_NS = 100000, /* longer than the serial gaps inside a step, short beside a step */
    SPIN_TURNS = 64,  /* looks between two readings of the clock */
};

struct member {
    alignas(LINE) atomic_uint round; /* how many rounds it was given; only the caller writes */
    atomic_uint claimed;             /* the last of them that somebody runs */
    atomic_bool asleep;
    int index;
    struct pool *pool;
    pthread_t thread;
};

struct pool {
    int threads, started; /* members, and those that have a thread (member 0 does not count) */
    int at_once;          /* members that have a CPU */
    bool pinned;
    cpu_set_t caller_cpus; /* where member 0 runs when pinned */

    pool_task *task; /* this round's; written by the caller before it gives the round */
    void *context;
    int members;
    int caller_cpu; /* on which it gave the round */

    atomic_bool running, stop;
    alignas(LINE) atomic_uint left; /* members that have not finished the round */
    atomic_bool caller_asleep;

    struct member member[];
};

/* A thread is pinned by the pool that it ran last. */
static _Thread_local struct {
    const struct pool *pool; /* NULL: not pinned */
    cpu_set_t own;           /* what it had before */
} pinned;

static void unpin_caller(void)
{
    if (pinned.pool)
        sched_setaffinity(0, sizeof pinned.own, &pinned.own);
    pinned.pool = NULL;
}

/* The CPU comes from the thread's own mask; should that have shrunk since, it runs unpinned. */
static void pin_caller(const struct pool *pool)
{
    if (pinned.pool == pool)
        return;
    unpin_caller();
    if (pool->pinned && sched_getaffinity(0, sizeof pinned.own, &pinned.own) == 0 &&
        sched_setaffinity(0, sizeof pool->caller_cpus, &pool->caller_cpus) == 0)
        pinned.pool = pool;
}

static void futex_wait(atomic_uint *word, unsigned while_equal)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_equal, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Called between looks, with the turn and a zeroed *until; false when it is time to sleep. Pauses
 * last from 10 to 140 cycles, so the clock decides; a short wait ends before it is ever read. The
 * yield is for the one that is waited for: the system likes to wake it on the waker's own CPU. */
static bool keep_spinning(unsigned turn, uint64_t *until)
{
    cpu_relax();
    if (turn % SPIN_TURNS != SPIN_TURNS - 1)
        return true;
    sched_yield();
    uint64_t now = clock_ns();
    if (*until == 0)
        *until = now + SPIN_NS;
    return now < *until;
}

/* Waits until the member has a round other than `seen`; returns it. */
static unsigned wait_for_round(struct member *member, unsigned seen)
{
    struct pool *pool = member->pool;
    uint64_t until = 0;
    unsigned round, turn = 0;
    do {
        round = atomic_load_explicit(&member->round, memory_order_acquire);
        if (round != seen)
            return round;
    } while (member->index < pool->at_once && keep_spinning(turn++, &until));
    atomic_store(&member->asleep, true);
    while ((round = atomic_load(&member->round)) == seen)
        futex_wait(&member->round, seen);
    atomic_store(&member->asleep, false);
    return round;
}

/* True for one of all who ask: it runs this member's part of the round. */
static bool claim(struct member *member, unsigned round)
{
    unsigned before = round - 1;
    return atomic_compare_exchange_strong(&member->claimed, &before, round);
}

/* To any CPU but the caller's, and free again. */
static void leave_caller(const struct pool *pool)
{
    cpu_set_t all, others;
    if (pool->pinned || pool->at_once < 2 || sched_getcpu() != pool->caller_cpu ||
        sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    others = all;
    CPU_CLR((size_t)pool->caller_cpu, &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0)
        return;
    sched_setaffinity(0, sizeof all, &all);
}

static void *member_main(void *argument)
{
    struct member *member = argument;
    struct pool *pool = member->pool;
    unsigned round = 0;
    for (;;) {
        round = wait_for_round(member, round);
        if (atomic_load_explicit(&pool->stop, memory_order_relaxed))
            return NULL;
        if (!claim(member, round))
            continue;
        leave_caller(pool);
        pool->task(pool->context, member->index, pool->members);
        if (atomic_fetch_sub(&pool->left, 1) == 1 && atomic_load(&pool->caller_asleep))
            futex_wake(&pool->left);
    }
}

static void give_round(struct member *member)
{
    unsigned last = atomic_load_explicit(&member->round, memory_order_relaxed);
    atomic_store(&member->round, last + 1);
    if (atomic_load(&member->asleep))
        futex_wake(&member->round);
}

static void wait_for_members(struct pool *pool)
{
    uint64_t until = 0;
    unsigned left, turn = 0;
    do {
        if (atomic_load_explicit(&pool->left, memory_order_acquire) == 0)
            return;
    } while (pool->members <= pool->at_once && keep_spinning(turn++, &until));
    atomic_store(&pool->caller_asleep, true);
    while ((left = atomic_load(&pool->left)) != 0)
        futex_wait(&pool->left, left);
    atomic_store(&pool->caller_asleep, false);
}

void pool_run(struct pool *pool, int members, pool_task *task, void *context)
{
    assert(members >= 1 && members <= pool->threads);
    if (members == 1) { /* most small ops: nothing to agree on */
        pin_caller(pool);
        task(context, 0, 1);
        return;
    }
    bool was_running = atomic_exchange_explicit(&pool->running, true, memory_order_acquire);
    assert(!was_running && "a pool runs one task at a time");
    (void)was_running;
    pin_caller(pool);
    pool->task = task;
    pool->context = context;
    pool->members = members;
    pool->caller_cpu = sched_getcpu();
    atomic_store_explicit(&pool->left, (unsigned)members - 1, memory_order_relaxed);
    for (int i = 1; i < members; i++)
        give_round(&pool->member[i]);
    task(context, 0, members);
    for (int i = 1; i < members && !pool->pinned; i++) /* pinned, each part has its own CPU */
        if (claim(&pool->member[i], atomic_load(&pool->member[i].round))) {
            task(context, i, members);
            atomic_fetch_sub(&pool->left, 1);
        }
    wait_for_members(pool);
    atomic_store_explicit(&pool->running, false, memory_order_release);
}

int pool_threads(const struct pool *pool)
{
    return pool->threads;
}

int pool_at_once(const struct pool *pool)
{
    return pool->at_once;
}

/* Member i's CPUs: its own when pinned, else all that the caller has. */
static cpu_set_t choose_cpus(enum pool_affinity affinity, int member, const int *cpus, int count)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < count; i++)
        if (affinity == POOL_NONE || i == member % count)
            CPU_SET((size_t)cpus[i], &set);
    return set;
}

static enum status start_member(struct pool *pool, int index, const cpu_set_t *cpus)
{
    struct member *member = &pool->member[index];
    member->index = index;
    member->pool = pool;
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error == 0) {
        if (CPU_COUNT(cpus) > 0)
            error = pthread_attr_setaffinity_np(&attributes, sizeof *cpus, cpus);
        if (error == 0)
            error = pthread_create(&member->thread, &attributes, member_main, member);
        pthread_attr_destroy(&attributes);
    }
    if (error != 0)
        FAIL(STATUS_IO, "cannot start thread %d of %d: %s", index + 1, pool->threads,
             strerror(error));
    pool->started++;
    return STATUS_OK;
}

/* Signals are the caller's: a member that took one would interrupt no wait. */
static enum status start_members(struct pool *pool, enum pool_affinity affinity, const int *cpus,
                                 int count)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    enum status status = STATUS_OK;
    for (int i = 1; i < pool->threads && status == STATUS_OK; i++) {
        cpu_set_t set = choose_cpus(affinity, i, cpus, count);
        status = start_member(pool, i, &set);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

enum status pool_open(int threads, enum pool_affinity affinity, struct pool **out)
{
    if (threads < 1 || threads > POOL_MOST)
        FAIL(STATUS_INPUT, "found %d threads, expected 1 to %d", threads, POOL_MOST);
    unpin_caller(); /* another pool's pinning must not narrow what this one sees */
    int cpus[CPU_SETSIZE];
    int count = cpu_list(affinity == POOL_SPREAD, cpus, CPU_SETSIZE);
    if (count == 0 && affinity != POOL_NONE)
        FAIL(STATUS_UNSUPPORTED, "threads cannot be pinned: the system does not list its CPUs");
    size_t bytes = sizeof(struct pool) + (size_t)threads * sizeof(struct member);
    struct pool *pool;
    NEED(pool = mem_aligned(LINE, bytes));
    pool->threads = threads;
    pool->at_once = count > 0 && count < threads ? count : threads;
    pool->pinned = affinity != POOL_NONE;
    pool->caller_cpus = choose_cpus(affinity, 0, cpus, count);
    enum status status = start_members(pool, affinity, cpus, count);
    if (status != STATUS_OK) {
        pool_close(pool);
        return status;
    }
    *out = pool;
    return STATUS_OK;
}

void pool_close(struct pool *pool)
{
    if (!pool)
        return;
    assert(!atomic_load(&pool->running));
    if (pinned.pool == pool)
        unpin_caller();
    atomic_store(&pool->stop, true);
    for (int i = 1; i <= pool->started; i++)
        give_round(&pool->member[i]);
    for (int i = 1; i <= pool->started; i++)
        pthread_join(pool->member[i].thread, NULL);
    mem_free(pool);
}

void pool_share(long count, long grain, int member, int members, long *from, long *to)
{
    assert(count >= 0 && grain >= 1 && member >= 0 && member < members);
    long pieces = count / grain + (count % grain != 0);
    long each = pieces / members, extra = pieces % members;
    long first = member * each + (member < extra ? member : extra);
    long last = first + each + (member < extra);
    *from = first * grain < count ? first * grain : count;
    *to = last * grain < count ? last * grain : count;
}
