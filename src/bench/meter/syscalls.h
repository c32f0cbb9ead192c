/* syscalls.h: which system calls some work makes, as `strace -c` counts them.
 *
 * A helper process traces the one that works (ptrace) for a pass of its own: every call then takes
 * microseconds, so that nothing is timed meanwhile, but none is missed, and no privilege is needed
 * beyond tracing what is ours. Linux on x86-64 and others that have PTRACE_GET_SYSCALL_INFO. */
#ifndef PRONY_BENCH_METER_SYSCALLS_H
#define PRONY_BENCH_METER_SYSCALLS_H

#include "bench/meter/family.h"
#include "core/job.h"

#include <stdint.h>

enum { SYSCALLS_NUMBERS = 512 };

struct syscalls {
    uint64_t counts[SYSCALLS_NUMBERS]; /* by the call's number; what is beyond is in the last */
    int64_t iterations;
};

/* Runs so many iterations of the job while the family is traced, and what it starts meanwhile.
 * STATUS_UNSUPPORTED, with the reason, where the system does not allow it. */
enum status syscalls_count(struct job *job, const struct family *family, int64_t iterations,
                           struct syscalls *out);

uint64_t syscalls_total(const struct syscalls *syscalls);
const char *syscall_name(int number); /* "read"; NULL for those that have no name here */

#endif
