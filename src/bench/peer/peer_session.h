/* peer_session.h: this prony as a peer of another one, by the protocol of docs/peers.md, so that
 * two builds can be timed in turns: `prony bench large --against ../before/build/prony`.
 *
 * It computes with the weights and the data it is given, on the backend it is told. */
#ifndef PRONY_BENCH_PEER_SESSION_H
#define PRONY_BENCH_PEER_SESSION_H

#include "core/job.h"
#include "core/registry.h"

struct comm;
struct task;
struct peer_session {
    const struct registry *registry; /* given; the rest is zeroed at first */
    struct comm *comm; /* … and this: to the other workers, of which each answers every request, and
                          the first one's answers count; NULL: it works alone */
    struct task *task;
    struct job *job;
    uint64_t iteration_ns; /* of the last run */
};

/* A request in, a line out, without its newline: also where the request is refused. */
enum status peer_session_answer(struct peer_session *session, const char *line, size_t length,
                                struct text *out);
void peer_session_close(struct peer_session *session);

#endif
