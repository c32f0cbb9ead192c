/* bench.h: what a whole run of the bench shares, and how its records begin and end. */
#ifndef PRONY_BENCH_BENCH_H
#define PRONY_BENCH_BENCH_H

#include "bench/check/accuracy.h"
#include "bench/measure.h"
#include "bench/peer/job_peer.h"
#include "bench/scenario.h"
#include "bench/sweep/done.h"
#include "bench/sweep/pace.h"
#include "core/registry.h"
#include "estimate/calibrate.h"
#include "record/facts.h"
#include "record/sink.h"

struct job;
struct task;
/* What was timed in turns, before it is closed. */
struct bench_look {
    const struct task *task;
    struct job *job;             /* prepared */
    bool is_peer;                /* a job_peer; else a job_network */
    const struct record *record; /* what was measured */
};

struct bench {
    const struct registry *registry;
    const char *peers;        /* the folder with the peers */
    struct peer_bank waiting; /* peers that computed on a GPU, for more of it */
    struct measure_options measure;
    uint64_t patience_ns;    /* what takes longer is measured once, and not checked */
    const struct done *done; /* what is not to be measured again, or NULL */
    struct pace pace;        /* what is known of how long measuring takes here */
    int absent;              /* points of the plan that cannot be measured here */
    double crowd;            /* how many times longer work took when the run was planned */
    struct sink sink;
    /* Is shown everyone that was timed; or NULL. */
    enum status (*look)(void *context, const struct bench_look *look);
    void *look_context;
    bool unread; /* nobody will see what passes of their own count (passes.h): they are left out */
    struct facts facts;
    const struct json *machine, *software; /* facts as trees */
    struct calibration calibration;
    struct scenario_bound bound; /* of the scenario server */
    uint64_t seed;               /* of arrivals, and the first of `until` */
    struct {
        const char *dataset;
        double accuracy, loss; /* the one that is not 0 */
        int64_t seeds;
    } until;              /* of the scenario target */
    const char *accuracy; /* data that accuracy is measured on; NULL: what a file names */
    bool sheet;           /* precisions are compared: also how far outputs move */
    struct accuracies accuracies;
    int ok, skipped, failed; /* records written so far */
};

/* Hands a record to the sink, and counts it. What was skipped before, and is again, is there
 * already. */
enum status bench_write(struct bench *bench, const struct record *record);
/* Everything of a record that is known beforehand: point, goal, machine (of a point on a GPU with
 * the GPU's facts), software, when. Texts are in the arena. */
enum status bench_start_record(struct bench *bench, const struct point *point, struct arena *arena,
                               struct record *record);

/* Who computes there, as comparisons name it: "prony/ref", "numpy". */
enum status bench_name(const struct point *point, struct arena *arena, const char **out);

#endif
