/* inside.h: one configuration timed as the bench times it, then watched op by op, so that both can
 * be compared. The plan that is timed and the plan that is observed are two plans. */
#ifndef PRONY_BENCH_INSIDE_H
#define PRONY_BENCH_INSIDE_H

#include "bench/job/job_network.h"
#include "bench/measure.h"
#include "bench/meter/watch.h"
#include "profile/profile.h"
#include "record/stats.h"

struct inside_options {
    struct network_options network;
    struct measure_options measure;
};

struct inside {
    struct job *job;      /* the profiles' programs and kernel names are its */
    struct stats time_ns; /* of an iteration of the plan that is timed */
    double floor_ns;      /* of the task; NaN, with `unfounded`, when there is none */
    char unfounded[200];  /* why there are no floors; "" when there are */
    char merged[200];     /* kernels of the timed plan that no watched op ran in: those that run
                             several ops, or a step, at once; "" when there are none */
    int32_t clock_reads;  /* in a step of a watched plan that is one kernel; 0: it is not */
    int64_t launches;     /* of a step of the timed plan; a CPU has none */
    double launch_ns;     /* what starting something on a GPU takes; 0: not known, or a CPU */
    struct watch watch;   /* what else the machine did meanwhile */
    int32_t count;        /* of the programs of a step … */
    struct profile profiles[RECIPE_TURNS]; /* … each with the floors of its ops */
    struct trace trace;                    /* the watched steps; finished */
};

/* The task must outlive the result. On failure *out is to be closed too. */
enum status inside_look(struct task *task, const struct inside_options *options,
                        struct calibration *calibration, struct inside *out);
void inside_close(struct inside *inside);

/* All ops of all programs, watched. */
double inside_step_ns(const struct inside *inside);
/* What the ops do not account for: (timed - ops) ÷ timed. Negative: watched, they take longer. */
double inside_missing(const struct inside *inside);

#endif
