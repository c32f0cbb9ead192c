/* fake_job.h: jobs whose times are made up, and a clock that is made up too: known answers, no
 * waiting. The linker puts the two functions below in the place of base/clock.h's (CMakeLists.txt).
 */
#ifndef PRONY_TESTS_FAKE_JOB_H
#define PRONY_TESTS_FAKE_JOB_H

#include "check.h"

#include "base/clock.h"
#include "bench/measure.h"

#include <math.h>

uint64_t __wrap_clock_ns(void);
void __wrap_clock_sleep_ns(uint64_t nanoseconds);

static uint64_t now_ns;

/* Reading it takes time, or a loop that waits would wait for ever. */
uint64_t __wrap_clock_ns(void)
{
    enum { READING_NS = 20 };
    return now_ns += READING_NS;
}

void __wrap_clock_sleep_ns(uint64_t nanoseconds)
{
    now_ns += nanoseconds;
}

enum { TRACE_MOST = 100000, PROBED_LEAST = 5 /* samples of 2 ms that a probe of 1 ms waits for */ };
static char trace[TRACE_MOST]; /* the names of the jobs, in the order in which they ran */
static size_t traced;

/* A job that says it took call_ns + iterations × each_ns, times 1 ± spread. */
struct fake {
    struct job job;
    char name;
    double call_ns, each_ns, spread;
    long calls, fails_at, stalls_at; /* 0: never */
    uint64_t sleeps_ns;              /* at every call, or at the one that stalls */
    long renewals, dies_at;
};

static enum status fake_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    struct fake *fake = (struct fake *)job;
    fake->calls++;
    if (traced < TRACE_MOST)
        trace[traced++] = fake->name;
    if (fake->calls == fake->fails_at)
        FAIL(STATUS_DEVICE, "it broke at call %ld", fake->calls);
    bool stalls = fake->calls == fake->stalls_at;
    if (fake->sleeps_ns && (!fake->stalls_at || stalls))
        clock_sleep_ns(fake->sleeps_ns);
    double swing = 1 + fake->spread * sin((double)fake->calls * 2.4);
    *elapsed_ns = (uint64_t)((fake->call_ns + (double)iterations * fake->each_ns) * swing) +
                  (stalls ? fake->sleeps_ns : 0);
    return STATUS_OK;
}

static const struct job_kind fake_kind = {.name = "fake", .run = fake_run};

static struct fake fake(char name, double each_ns)
{
    return (struct fake){.job = {&fake_kind}, .name = name, .each_ns = each_ns};
}

/* How often this one came next after the probe. */
static long probed_before(char name)
{
    long count = 0;
    for (size_t i = 0; i + 3 < traced; i++)
        if (trace[i] == 'p') {
            CHECK_EQUAL_INT(trace[i + 1], trace[i + 2]);
            count += trace[i + 1] == name;
        }
    return count;
}

static const struct measure_options quick = {.target = 0.01, .limit_ns = 500000000};

#endif
