/* crowd.h: what the threads of a program do at the same time; from samples of the host. */
#ifndef PRONY_ADVISE_CROWD_H
#define PRONY_ADVISE_CROWD_H

#include "trace/trace_steps.h"

/* What a sample says of its thread. */
enum seen { SEEN_OTHER, SEEN_PYTHON, SEEN_SPIN, SEEN_FAULT };
enum seen seen_in(const struct trace *trace, uint32_t site);

/* Sums over the window. A thread that is ready but has no core counts as one that runs. */
struct crowd {
    double window_ns;
    double thread_ns;  /* of all threads that run */
    double any_ns;     /* in which one or more run */
    double crowded_ns; /* in which more run than there are cores, and one or more of them spin */
    double lost_ns; /* of that: the others would be done so much sooner without those that spin */
    double storage_ns; /* in which one or more wait for storage, and none runs */
};
/* `cores`: 0 where they are not known; then none is crowded. */
enum status crowd_find(const struct trace *trace, const struct steps *steps, double cores,
                       struct crowd *out);

#endif
