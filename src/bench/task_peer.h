/* task_peer.h: a task in the words of the peer protocol (docs/peers.md): the requests that describe
 * it, and the judgement of a peer's answer to the check. */
#ifndef PRONY_BENCH_TASK_PEER_H
#define PRONY_BENCH_TASK_PEER_H

#include "bench/task.h"

/* Each appends one request line. prepare writes the task's files first. */
enum status task_peer_prepare(struct task *task, int threads, const char *backend,
                              struct text *out);
enum status task_peer_check(const struct task *task, struct text *out);

/* The judge of struct peer_work; the context is the task. */
enum status task_peer_judge(void *context, const struct json *answer, double *error);

#endif
