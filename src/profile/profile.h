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

#include "base/text.h"
#include "core/observer.h"
#include "core/program.h"

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
    struct event *events;           /* of whole steps, in the order in which they ended */
    size_t event_count, step_start; /* step_start: where the events of the running step begin */
    bool full;                      /* a step did not fit: no more events are kept */
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

/* The events of a step's programs as Chrome and Perfetto read them: JSON. Each program is a process
 * of its own, from its first event on: their clocks need not have one zero. */
void profile_trace(const struct profile *profiles, int32_t count, struct text *out);
/* The ops as KCachegrind and callgrind_annotate read them: a program calls its parts, which call
 * their ops; the cost is in nanoseconds of one step. */
void profile_callgrind(const struct profile *profiles, int32_t count, const char *creator,
                       struct text *out);

#endif
