/* job_cold.h: a job whose every iteration finds the caches full of something else: those of every
 * CPU that may be used, because whoever computes, here or in another process, may do so on any. */
#ifndef PRONY_BENCH_JOB_JOB_COLD_H
#define PRONY_BENCH_JOB_JOB_COLD_H

#include "base/machine/cpu.h"
#include "bench/meter/meters.h"
#include "bench/meter/pin.h"
#include "core/job.h"

/* Runs `inner` one iteration at a time; before each, other memory is written on one CPU after the
 * other, which does not count. `pins` are those CPUs, which it copies; STATUS_UNSUPPORTED where the
 * system does not say which, or does not let the caller move. The inner job stays its owner's and
 * must outlive this one. It can only be run. */
enum status job_cold_open(struct job *inner, const struct cpu *cpu, const struct pins *pins,
                          struct job **out);

/* These stand still meanwhile; they must outlive the job. */
void job_cold_meter(struct job *job, struct meters *meters, const struct family *family);

#endif
