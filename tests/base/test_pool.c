/* The thread pool: every member runs once a round, results are visible, misuse is caught. */
#include "base/clock.h"
#include "base/machine/cpu.h"
#include "base/memory.h"
#include "base/pool.h"
#include "check.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

struct tally {
    struct pool *pool;
    long counts[POOL_MOST]; /* plain: the pool must order these writes */
    int members[POOL_MOST];
};

static void count_member(void *context, int member, int members)
{
    struct tally *tally = context;
    tally->counts[member]++;
    tally->members[member] = members;
}

TEST(every_member_runs_every_round)
{
    enum { ROUNDS = 2000 };
    for (int threads = 1; threads <= 8; threads++) {
        struct tally tally = {0};
        struct pool *pool;
        if (!CHECK_OK(pool_open(threads, POOL_NONE, &pool)))
            return;
        CHECK_EQUAL_INT(pool_threads(pool), threads);
        for (int round = 1; round <= ROUNDS; round++) {
            pool_run(pool, threads, count_member, &tally);
            for (int i = 0; i < threads; i++)
                if (tally.counts[i] != round || tally.members[i] != threads)
                    CHECK_EQUAL_INT(tally.counts[i], round);
        }
        CHECK_EQUAL_INT(tally.counts[threads], 0);
        pool_close(pool);
    }
}

TEST(fewer_members_than_threads)
{
    struct tally tally = {0};
    struct pool *pool;
    if (!CHECK_OK(pool_open(4, POOL_NONE, &pool)))
        return;
    for (int round = 0; round < 400; round++)
        pool_run(pool, round % 4 + 1, count_member, &tally);
    for (int i = 0; i < 4; i++)
        CHECK_EQUAL_INT(tally.counts[i], 400 - 100 * i);
    pool_close(pool);
}

TEST(as_many_at_once_as_there_are_cpus)
{
    struct cpu cpu;
    cpu_detect(&cpu);
    for (int threads = 1; threads <= POOL_MOST; threads *= 4) {
        struct pool *pool;
        if (!CHECK_OK(pool_open(threads, POOL_NONE, &pool)))
            return;
        CHECK_EQUAL_INT(pool_at_once(pool), threads < cpu.cores ? threads : cpu.cores);
        pool_close(pool);
    }
}

TEST(rounds_after_a_sleep)
{
    struct tally tally = {0};
    struct pool *pool;
    if (!CHECK_OK(pool_open(3, POOL_NONE, &pool)))
        return;
    for (int round = 0; round < 30; round++) {
        if (round % 3 == 0)
            clock_sleep_ns(3000000); /* longer than members spin */
        pool_run(pool, 3, count_member, &tally);
    }
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL_INT(tally.counts[i], 30);
    pool_close(pool);
}

static void sleep_member(void *context, int member, int members)
{
    (void)members;
    if (member > 0)
        clock_sleep_ns(2000000); /* the caller goes to sleep, too */
    count_member(context, member, members);
}

TEST(the_caller_waits_for_slow_members)
{
    struct tally tally = {0};
    struct pool *pool;
    if (!CHECK_OK(pool_open(3, POOL_NONE, &pool)))
        return;
    for (int round = 0; round < 10; round++)
        pool_run(pool, 3, sleep_member, &tally);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL_INT(tally.counts[i], 10);
    pool_close(pool);
}

TEST(an_idle_pool_sleeps)
{
    struct tally tally = {0};
    struct pool *pool;
    if (!CHECK_OK(pool_open(2, POOL_NONE, &pool)))
        return;
    pool_run(pool, 2, count_member, &tally);
    uint64_t before = clock_cpu_ns();
    clock_sleep_ns(200000000);
    CHECK(clock_cpu_ns() - before < 100000000); /* CPU time: nobody else's work counts */
    pool_close(pool);
}

static void find_cpu(void *context, int member, int members)
{
    (void)members;
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    ((int *)context)[member] = CPU_COUNT(&set) == 1 ? sched_getcpu() : -1;
}

TEST(pinning_and_back)
{
    cpu_set_t before, after;
    sched_getaffinity(0, sizeof before, &before);
    if (CPU_COUNT(&before) < 2)
        SKIP("one CPU");
    for (enum pool_affinity affinity = POOL_COMPACT; affinity <= POOL_SPREAD; affinity++) {
        struct pool *pinned, *loose;
        int cpus[4] = {-1, -1, -1, -1};
        if (!CHECK_OK(pool_open(4, affinity, &pinned)) ||
            !CHECK_OK(pool_open(2, POOL_NONE, &loose)))
            return;
        pool_run(pinned, 4, find_cpu, cpus);
        for (int i = 0; i < 4; i++)
            CHECK(cpus[i] >= 0);
        CHECK(cpus[0] != cpus[1]);
        pool_run(loose, 2, find_cpu, cpus);
        CHECK(cpus[0] == -1 && cpus[1] == -1);
        pool_run(pinned, 4, find_cpu, cpus);
        CHECK(cpus[0] >= 0);
        struct pool *later; /* sees all CPUs although its opener is pinned */
        CHECK_OK(pool_open(2, affinity, &later));
        pool_run(later, 2, find_cpu, cpus);
        CHECK(cpus[0] >= 0 && cpus[1] >= 0 && cpus[0] != cpus[1]);
        pool_run(pinned, 1, find_cpu, cpus);
        pool_close(later);
        pool_close(loose);
        pool_close(pinned);
        sched_getaffinity(0, sizeof after, &after);
        CHECK(CPU_EQUAL(&before, &after));
    }
}

TEST(refuses_wrong_thread_counts)
{
    struct pool *pool;
    CHECK_STATUS(STATUS_INPUT, pool_open(0, POOL_NONE, &pool));
    CHECK_STATUS(STATUS_INPUT, pool_open(POOL_MOST + 1, POOL_NONE, &pool));
    CHECK_MESSAGE("found 65 threads, expected 1 to 64");
    memory_fail_at(1);
    CHECK_STATUS(STATUS_MEMORY, pool_open(2, POOL_NONE, &pool));
    memory_fail_at(0);
    pool_close(NULL);
}

TEST(allocates_nothing_after_open)
{
    struct tally tally = {0};
    struct pool *pool;
    if (!CHECK_OK(pool_open(4, POOL_COMPACT, &pool)))
        return;
    memory_fail_at(1);
    for (int i = 0; i < 10; i++)
        pool_run(pool, 4, count_member, &tally);
    CHECK(!memory_failed());
    memory_fail_at(0);
    pool_close(pool);
}

#ifndef NDEBUG
static void run_again(void *context, int member, int members)
{
    struct tally *tally = context;
    if (member == 0)
        pool_run(tally->pool, members, count_member, tally);
}
#endif

TEST(a_nested_run_is_an_assert)
{
#ifdef NDEBUG
    SKIP("asserts are off in this build");
#else
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(1);
        signal(SIGABRT, SIG_DFL);
        struct tally tally = {0};
        if (pool_open(2, POOL_NONE, &tally.pool) == STATUS_OK)
            pool_run(tally.pool, 2, run_again, &tally);
        _exit(0);
    }
    int how;
    CHECK(waitpid(child, &how, 0) == child);
    CHECK(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT);
#endif
}

TEST(shares_cover_everything_once)
{
    const long counts[] = {0, 1, 7, 64, 1000, 1003}, grains[] = {1, 8, 16};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t g = 0; g < sizeof grains / sizeof *grains; g++)
            for (int members = 1; members <= 9; members++) {
                long reached = 0, least = counts[c], most = 0;
                for (int i = 0; i < members; i++) {
                    long from, to;
                    pool_share(counts[c], grains[g], i, members, &from, &to);
                    CHECK_EQUAL_INT(from, reached);
                    CHECK(to >= from && (from % grains[g] == 0 || from == counts[c]));
                    least = to - from < least ? to - from : least;
                    most = to - from > most ? to - from : most;
                    reached = to;
                }
                CHECK_EQUAL_INT(reached, counts[c]);
                CHECK(most - least < 2 * grains[g]);
            }
}

CHECK_MAIN
