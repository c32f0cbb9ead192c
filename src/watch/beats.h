/* beats.h: the time of a program's steps while it is not watched.
 *
 * Watching costs time at every launch. A call that a program makes once or a few times in each step
 * is enough to count its steps. The agent notes that one, and nothing else but waits. Which call it
 * is, the watched run says.
 *
 * A host that does not wait runs ahead of its GPU. So steps are timed from one wait to another, as
 * far apart as there are, and from call to call only where there are no waits. */
#ifndef PRONY_WATCH_BEATS_H
#define PRONY_WATCH_BEATS_H

#include "trace/trace_steps.h"

struct beat {
    const char *name; /* of the call, in the trace; NULL: there is none */
    size_t a_step;    /* how often it is made in a step */
    size_t all;       /* … and in the whole run */
};

/* The call that is made least often in each step, and equally often. */
struct beat beat_choose(const struct trace *trace, const struct steps *steps);

/* The time of a step from a trace that has only these calls and waits, and how sure it is. False:
 * there are too few, or not as many as in the run that was watched. */
bool beat_times(const struct trace *trace, const struct beat *beat, double *step_ns,
                double *spread_ns);

#endif
