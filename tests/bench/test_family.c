/* A process that lets another one work: what is metered is the work. */
#include "check.h"

#include "base/clock.h"
#include "bench/meter/meters.h"
#include "bench/meter/syscalls.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 100, SLEEPS = 20, BYTES = 32 << 20 };
static const uint64_t WORK_NS = 20000000;

/* A parent that waits for its child, which does the same work for each byte that it reads. */
struct team {
    struct job job;
    pid_t parent;
    int to, from;
};

static void work(int from, int to)
{
    static volatile char touched[BYTES]; /* or the compiler leaves it out */
    for (char byte; read(from, &byte, 1) == 1;) {
        for (int i = 0; i < BYTES; i += 4096)
            touched[i] = (char)(touched[i] + byte);
        for (int i = 0; i < CALLS; i++)
            syscall(SYS_getppid);
        for (int i = 0; i < SLEEPS; i++)
            clock_sleep_ns(100000);
        for (uint64_t start_ns = clock_cpu_ns(); clock_cpu_ns() - start_ns < WORK_NS;)
            continue;
        if (write(to, &byte, 1) != 1)
            break;
    }
}

static enum status team_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    struct team *team = (struct team *)job;
    char byte = 1;
    *elapsed_ns = 1;
    for (int64_t i = 0; i < iterations; i++)
        if (write(team->to, &byte, 1) != 1 || read(team->from, &byte, 1) != 1)
            FAIL(STATUS_DEVICE, "it does not work");
    return STATUS_OK;
}

static const struct job_kind team_kind = {.name = "team", .run = team_run};

static bool team_open(struct team *team)
{
    int to[2], from[2];
    uint64_t elapsed_ns;
    if (!CHECK(pipe(to) == 0) || !CHECK(pipe(from) == 0))
        return false;
    team->job.kind = &team_kind;
    team->parent = fork();
    if (team->parent == 0) {
        pid_t child = fork();
        close(to[1]);
        if (child == 0)
            work(to[0], from[1]);
        else
            waitpid(child, NULL, 0);
        _exit(0);
    }
    close(to[0]);
    close(from[1]);
    team->to = to[1];
    team->from = from[0];
    return CHECK(team->parent > 0) && CHECK_OK(team_run(&team->job, 1, &elapsed_ns));
}

static void team_close(struct team *team)
{
    close(team->to);
    close(team->from);
    waitpid(team->parent, NULL, 0);
}

TEST(a_family_is_found)
{
    struct team team;
    struct family family;
    pid_t children[FAMILY_MOST], threads[FAMILY_THREADS];
    if (!team_open(&team))
        return;
    family_find(team.parent, &family);
    CHECK_EQUAL_INT(family.count, 2);
    CHECK_EQUAL_INT(family.processes[0], team.parent);
    int count = family_threads(&family, threads);
    CHECK(count >= 2 && count % 2 == 0); /* a sanitizer has a thread of its own in each */
    CHECK_EQUAL_INT(family_children(getpid(), children), 1);
    CHECK_EQUAL_INT(children[0], team.parent);
    CHECK_EQUAL_INT(family_children(team.parent, children), 1);
    CHECK_EQUAL_INT(children[0], family.processes[1]);
    team_close(&team);
    CHECK_EQUAL_INT(family_threads(&family, threads), -1);
    family_find(0, &family);
    CHECK_EQUAL_INT(family.count, 0);
    CHECK(family_threads(&family, threads) >= 1);
}

TEST(meters_follow_who_computes)
{
    struct team team;
    struct family family;
    struct meters all = {0}, alone = {0};
    struct record_meter rows[METERS_COUNT];
    uint64_t elapsed_ns;
    if (!team_open(&team))
        return;
    family_find(team.parent, &family);
    struct family parent = {{team.parent}, 1};
    meters_begin(&all, &family);
    meters_begin(&alone, &parent);
    CHECK_OK(team_run(&team.job, 2, &elapsed_ns));
    meters_end(&alone, &parent);
    meters_end(&all, &family);
    CHECK(all.cpu_ns >= 2 * WORK_NS);
    CHECK(alone.cpu_ns < WORK_NS);
    CHECK(all.context_switches >= 2 * SLEEPS);
    CHECK(all.wall_ns >= 2 * WORK_NS);
    meters_report(&all, &family, rows);
    CHECK(rows[1].value >= BYTES);
    for (int i = 0; i < METERS_COUNT; i++)
        CHECK(!rows[i].unavailable);
    team_close(&team);
    meters_begin(&all, &family);
    CHECK(all.lost);
}

TEST(calls_are_those_of_who_computes)
{
    struct team team;
    struct family family;
    struct syscalls calls;
    if (!team_open(&team))
        return;
    family_find(team.parent, &family);
    enum status status = syscalls_count(&team.job, &family, 3, &calls);
    if (status == STATUS_UNSUPPORTED)
        check_skip("%s", status_message());
    else if (CHECK_OK(status))
        CHECK_EQUAL_INT(calls.counts[SYS_getppid], 3 * CALLS);
    team_close(&team);
}

CHECK_MAIN
