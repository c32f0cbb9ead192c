/* job_kernel.h: one case of core/cases.h on one backend, as a job: what a micro-benchmark times.
 *
 * An op that changes what it reads (an optimiser, running statistics) starts from the
 * case's values again before every KERNEL_RUNS runs, which does not count: an optimiser that has
 * used up its gradient would let its state decay into subnormal numbers, which take another time.
 * The check also looks at what the timed runs left: subnormal or infinite numbers are refused. */
#ifndef PRONY_BENCH_JOB_JOB_KERNEL_H
#define PRONY_BENCH_JOB_JOB_KERNEL_H

#include "core/backend.h"
#include "core/cases.h"
#include "core/job.h"

/* The quickest decay in the list halves its state; 2^-64 of it is far from subnormal. */
enum { KERNEL_RUNS = 64 };

struct kernel_options {
    const struct backend *backend;
    struct device_options device;
    const struct backend *reference; /* computes in double precision: who says what is right */
    struct op_case op_case;
};

/* Nothing is opened before prepare, which is STATUS_UNSUPPORTED where the backend lacks the op. */
enum status job_kernel_open(const struct kernel_options *options, struct job **out);

/* The program of the one op, for counting its work; after prepare. */
const struct program *job_kernel_program(const struct job *job);

#endif
