/* job_workers.h: a training by several workers, as one of them does its share: each has such a job,
 * and whatever is called of one is called of all (peer/peer_session.h). */
#ifndef PRONY_BENCH_JOB_JOB_WORKERS_H
#define PRONY_BENCH_JOB_JOB_WORKERS_H

#include "bench/job/job_network.h"
#include "bench/job/task.h"
#include "core/comm/turns.h"
#include "train/workers/sharing.h"

/* The task has the batch of all of them; its rows are visited as they come, and it outlives the
 * job. Its comm is there; `traffic` is the job's own. Opens nothing yet. */
enum status job_workers_open(struct task *task, const struct network_options *options,
                             const struct sharing *sharing, struct job **out);

/* As job_network_outcome; complete for worker 0 alone. The job is one of this kind, prepared. */
enum status job_workers_outcome(struct job *job, struct outcome *out);

/* Of the updates of an asynchronous server, since it was prepared; others have none. */
enum status job_workers_staleness(struct job *job, struct staleness *out);

/* What communication took since the last call: of all workers, on average. */
enum status job_workers_traffic(struct job *job, struct traffic *out);

#endif
