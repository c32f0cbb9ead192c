/* job_cold.h: a job whose every iteration finds the caches full of something else. */
#ifndef PRONY_BENCH_JOB_COLD_H
#define PRONY_BENCH_JOB_COLD_H

#include "core/job.h"

#include <stddef.h>

/* Runs `inner` one iteration at a time; before each, `bytes` of other memory are written, which
 * does not count. The inner job stays its owner's and must outlive this one. It can only be run. */
enum status job_cold_open(struct job *inner, size_t bytes, struct job **out);

#endif
