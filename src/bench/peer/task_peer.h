/* task_peer.h: a task in the words of the peer protocol (docs/peers.md): the requests that describe
 * it, and the comparison of a peer's answers with the reference. */
#ifndef PRONY_BENCH_PEER_TASK_PEER_H
#define PRONY_BENCH_PEER_TASK_PEER_H

#include "bench/job/task.h"
#include "bench/peer/job_peer.h"
#include "record/point.h"

/* What another prony must do as this one would, or refuse: of what it has always done by itself
 * only what is asked for otherwise, so that older builds can be compared. Only a prony's point has
 * a fusion. The values are the point's; `out` is zeroed. */
void task_peer_axes(const struct point *point, struct peer_axis out[PEER_AXES]);

/* Each appends one request line. prepare writes the task's files first; the point says by whom and
 * where it is computed: backend, unit, threads, precision, and of another prony the axes that are
 * prony's. `search_s`: the longest that it may search for settings. `apart`: its layers
 * will be watched one by one. */
enum status task_peer_prepare(struct task *task, const struct point *point, double search_s,
                              bool apart, struct text *out);
enum status task_peer_check(const struct task *task, int32_t stage, struct text *out);

/* `export` and `compare` of struct peer_work; the context is the task, and there is an answer for
 * each stage. */
enum status task_peer_export(void *context);
enum status task_peer_compare(void *context, const struct json *const *answers, double *error);

#endif
