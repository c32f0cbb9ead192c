/* profile.h: where the time of a step goes, op by op, from the events of a watched run.
 *
 * A profile listens to a plan that was prepared to be observed (core/observer.h), step after step.
 * It keeps each op's time in every step, of which the middle half counts, and the events themselves
 * of as many steps as there is room for: a timeline. The plan that is timed is another one: being
 * watched costs a little, and takes away what ops win by overlapping.
 *
 * It knows nothing of how fast a machine is: floors are filled in by whoever does. */
#ifndef PRONY_PROFILE_PROFILE_H
#define PRONY_PROFILE_PROFILE_H

#include "core/observer.h"
#include "core/program.h"
#include "trace/trace.h"

enum { PROFILE_STEPS = 200 /* looked at, at most */, PROFILE_EVENTS = 1 << 15 /* kept, at most */ };

struct profile_op {
    const char *kernel; /* "" when no event named one: it was folded into another op */
    double ns;          /* of one step: the mean of the middle half; NaN when it was not seen */
    double floor_ns;    /* the least it could take here; NaN when not known */
};

struct profile {
    const struct program *program; /* not owned; must outlive the profile, as must the plan */
    struct profile_op *ops;        /* one for each op of the program */
    double *taken_ns;              /* [op][PROFILE_STEPS]: what each step took … */
    double *step_ns; /* … and what the step that is running took so far; -1: nothing */
    int32_t steps;
    struct event *events; /* of whole steps, in the order in which they ended */
    size_t event_count;
    size_t step_from[PROFILE_STEPS + 1]; /* where the events of each kept step begin … */
    int32_t kept_steps;                  /* … and those of the running step: after so many */
    bool full;                           /* a step did not fit: no more events are kept */
};

enum status profile_open(struct profile *profile, const struct program *program);
void profile_free(struct profile *profile); /* zeroed is fine */

/* What the plan is prepared with. */
struct observer profile_observer(struct profile *profile);
/* A step is over: what it took is kept, or, as for the first one, only thrown away. */
void profile_step(struct profile *profile, bool keep);
/* After the last step: sets ns of every op. */
void profile_finish(struct profile *profile);

double profile_part_ns(const struct profile *profile, enum part part);
double profile_step_ns(const struct profile *profile); /* all parts */

/* Adds the kept steps of all programs to a trace that is not finished: a span for each event and a
 * mark for each step. What passed between steps is cut out: the profile kept its books then. So
 * are steps of more than 1.5 × the median: something else had the core. `gpu`: events are kernels
 * of a GPU. */
enum status profile_spans(const struct profile *profiles, int32_t count, bool gpu,
                          struct trace *trace);

#endif
