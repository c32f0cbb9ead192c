/* job_library.h: a job that is a network's inference as a user of include/prony.h has it:
 * prony_predict call by call, or a stream of requests. What job_network asks of a backend by
 * itself is here asked through the library, of the same network over the same samples, so that the
 * two can be compared. */
#ifndef PRONY_BENCH_JOB_JOB_LIBRARY_H
#define PRONY_BENCH_JOB_JOB_LIBRARY_H

#include "bench/job/task.h"
#include "core/backend.h"
#include "core/job.h"

struct library_options {
    const char *model, *backend, *precision; /* as the axes have them; "": the library's usual */
    int threads;
    enum answering answering; /* steps and calls: prony_predict; the others: a stream */
};

/* The task, which is one of inference, and the texts must outlive the job. Opens nothing yet. */
enum status job_library_open(struct task *task, const struct library_options *options,
                             struct job **out);

#endif
