/* pace.h: about how long configurations take to measure, before and while they are measured.
 *
 *   starting  a framework's start-up: as records of this machine have it, else what is usual
 *   checking  the reference, once for a group, and the steps of each contender's check
 *   timing    from the least to all of the time that is given, or a few iterations where one is
 *             long; a group goes on until its last contender is known
 *   counting  the passes of their own that follow
 *
 * An iteration is guessed from its FLOP and bytes and what the framework usually reaches, or did
 * here in results that were filed before. Others that want the CPU make all but the timing longer.
 * While a run goes on, the time that groups took scales what is planned for the rest. It is a guess
 * for the person who waits, and nothing is measured by it. */
#ifndef PRONY_BENCH_SWEEP_PACE_H
#define PRONY_BENCH_SWEEP_PACE_H

#include "bench/job/task.h"
#include "record/record.h"

enum { PACE_KNOWN = 32 };

/* A zeroed struct knows nothing, and is ready. A plain value. */
struct pace {
    struct pace_start {
        char framework[64], unit[8];
        double sum_log_s;
        int count;
    } starts[PACE_KNOWN]; /* how long frameworks took to start here */
    int start_count;
    int tight, timed; /* results of this machine: whose interval was tight; all */
    struct pace_rate {
        char name[64], unit[8];
        double sum_log[2]; /* of measured ÷ usual iterations: bound by their call, by their work */
        int count[2];
    } rates[PACE_KNOWN];
    int rate_count;
};

/* What a group is measured with. */
struct pace_plan {
    double seconds, patience; /* of the request */
    bool counts;              /* passes of their own follow */
    int cores;
    double fp32_per_s; /* FLOP/s of a thread, as calibrated; 0: not known */
    double crowd;      /* how many times longer others make work: watch_crowd(); 0: not known */
    double trainings;  /* > 0: each point is so many trainings to a target */
    /* Does it run here? What does not takes no time. NULL: all do. */
    bool (*runs)(const void *context, const struct point *point);
    const void *context;
};

/* Learns from a record that was made on this machine; of any kind. */
void pace_learn(struct pace *pace, const struct record *record, const char *server);

/* Seconds for a group of points. `task` has been begun, or is NULL. */
double pace_group(const struct pace *pace, const struct pace_plan *plan, const struct task *task,
                  const struct point *points, int count);

/* What planned seconds become where groups that were planned for `planned` took `taken`: a few
 * seconds of experience do not say much yet. */
double pace_correct(double seconds, double planned, double taken);

#endif
