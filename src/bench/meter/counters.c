/* counters.c: see counters.h. */
#include "bench/meter/counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const counter_names[COUNTERS] = {"cycles", "instructions", "cache_misses",
                                             "branch_misses"};
static const uint64_t kinds[COUNTERS] = {PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS,
                                         PERF_COUNT_HW_CACHE_MISSES, PERF_COUNT_HW_BRANCH_MISSES};

/* One counter on every thread. */
struct counter {
    int fds[FAMILY_THREADS];
    int count;
};

static int open_counter(uint64_t kind, pid_t thread)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof attr,
                                   .config = kind,
                                   .disabled = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    return (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void counter_close(struct counter *counter)
{
    for (int i = 0; i < counter->count; i++)
        close(counter->fds[i]);
    counter->count = 0;
}

/* All threads or none; errno says why. */
static bool counter_open(struct counter *counter, uint64_t kind, const struct family *family)
{
    pid_t threads[FAMILY_THREADS];
    int count = family_threads(family, threads), trouble = count < 0 ? errno : 0;
    for (int i = 0; i < count && !trouble; i++) {
        int fd = open_counter(kind, threads[i]);
        if (fd < 0)
            trouble = errno;
        else
            counter->fds[counter->count++] = fd;
    }
    if (trouble)
        counter_close(counter);
    errno = trouble;
    return !trouble;
}

static void counter_switch(const struct counter *counter, bool on)
{
    for (int i = 0; i < counter->count; i++)
        ioctl(counter->fds[i], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

static double counter_read(const struct counter *counter)
{
    double sum = 0;
    for (int i = 0; i < counter->count; i++) {
        uint64_t value;
        if (read(counter->fds[i], &value, sizeof value) == sizeof value)
            sum += (double)value;
    }
    return counter->count ? sum : (double)NAN;
}

enum status counters_count(struct job *job, const struct family *family, int64_t iterations,
                           struct counters *out)
{
    struct counter counters[COUNTERS] = {{.count = 0}};
    uint64_t elapsed_ns;
    int trouble = 0, opened = 0;

    for (int i = 0; i < COUNTERS; i++) {
        if (counter_open(&counters[i], kinds[i], family))
            opened++;
        else
            trouble = errno;
    }
    if (!opened && (trouble == EACCES || trouble == EPERM))
        FAIL(STATUS_UNSUPPORTED, "it is not allowed: see /proc/sys/kernel/perf_event_paranoid");
    if (!opened)
        FAIL(STATUS_UNSUPPORTED, "this machine shows no counters: %s", strerror(trouble));
    for (int i = 0; i < COUNTERS; i++)
        counter_switch(&counters[i], true);
    enum status status = job->kind->run(job, iterations, &elapsed_ns);
    for (int i = 0; i < COUNTERS; i++) {
        counter_switch(&counters[i], false);
        out->per_iteration[i] = counter_read(&counters[i]) / (double)iterations;
        counter_close(&counters[i]);
    }
    return status;
}
