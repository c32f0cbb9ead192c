/* record.h: one result, and its line of JSON.
 *
 *   {"prony":1,"kind":"result","point":{…},"status":"ok","program":"…","kernels":[…],
 *    "result":{"time_ns":{…},"parts_ns":{…},…,"check":{…},"meters":{…}},
 *    "samples_ns":[…],"machine":{…},"software":{…},"at":"2026-11-15T10:03:58Z"}
 *
 * Lines of other kinds travel in the same files: "machine" (facts, calibration), "network" (the
 * output of explain --json), "proof" (the gain that advice promised and that a re-run gave) and
 * "profile" (where the time of a run went). A record owns nothing: its pointers belong to the code
 * that filled it, or to the arena it was read into. A figure that is not known is NaN in memory and
 * null in the line. */
#ifndef PRONY_RECORD_RECORD_H
#define PRONY_RECORD_RECORD_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "record/compare.h"
#include "record/point.h"
#include "record/stats.h"
#include "record/title.h"

#include <stddef.h>
#include <stdint.h>

enum {
    RECORD_VERSION = 1,
    RECORD_SAMPLES = 4096,      /* kept at most */
    RECORD_BYTES = 4 * 1048576, /* of a line, at most: the longest that ship have a tenth */
};

enum record_kind { RECORD_RESULT, RECORD_MACHINE, RECORD_NETWORK, RECORD_PROOF, RECORD_PROFILE };
enum record_status { RECORD_OK, RECORD_SKIPPED, RECORD_FAILED };

/* Was what was timed also right? */
enum record_verdict { RECORD_UNCHECKED, RECORD_RIGHT, RECORD_WRONG };
struct record_check {
    enum record_verdict verdict;  /* "none", "right", "wrong" */
    const char *against;          /* "ref"; NULL when unchecked */
    double difference, tolerance; /* largest seen; allowed */
    const char *reason;           /* why unchecked, or what is wrong; else NULL */
};

/* What was measured in turns with it, and which was faster. */
struct record_against {
    const char *other;     /* "prony/ref", "numpy"; NULL: it was compared with nothing */
    const char *disturbed; /* why there is no verdict: "other programs", "the host"; else NULL */
    struct comparison found;
};

struct record_meter {
    const char *name;        /* "cpu_utilisation" */
    double value;            /* in the unit metrics.def says */
    const char *unavailable; /* NULL, or why there is no value: written "not available: WHY" */
};

struct record_parts {
    double prepare, forward, backward, communicate, update;
    double scaled; /* by this, since watched they took longer than the iteration; NaN: not */
};

struct record {
    enum record_kind kind;
    struct point point;
    enum record_status status;
    const char *reason;  /* why skipped or failed, what to know of an ok one; or NULL */
    bool absent;         /* skipped since the framework cannot be started; not written */
    const char *program; /* its hash, or NULL */
    const char *goal;    /* what the scenario was to reach: "p99=1e+07ns"; or NULL */
    /* Why it did not run as its users run it ("reference BLAS (netlib)"), or NULL. Such a result is
     * shown with a mark, and no finding rests on it. */
    const char *handicap;
    const char *const *kernels;
    size_t kernel_count;

    struct stats time_ns; /* of one iteration */
    struct record_parts parts_ns;
    double start_ns, throughput;
    double floor_ns;
    const char *bound; /* "flop", "bytes", "latency", or NULL */
    double times_floor, best_times_floor;
    double times_now; /* median ÷ floor with what memory gave in that run; NaN: not looked at */
    double flop, bytes;
    int64_t parameters, layers; /* of the network; 0: unknown */
    struct record_check check;
    struct record_against against;
    const struct record_meter *meters;
    size_t meter_count;

    const double *samples_ns; /* of one iteration each, in the order taken */
    size_t sample_count;      /* at most RECORD_SAMPLES */

    const struct json *machine, *software; /* objects (see facts.h), or NULL */
    const struct json *calibration;        /* kind machine: an object, or NULL */
    const struct json *network;            /* kind network: an object */
    const struct json *proof;              /* kind proof: an object (record/proof_line.h) */
    const struct json *profile;            /* kind profile: an object (record/profile_line.h) */
    const char *at;                        /* when, as clock_stamp gives it */
};

/* An ok result of which nothing is known yet: the point as point_start, figures NaN, texts NULL. */
void record_start(struct record *record);

/* Sets time_ns, throughput, times_floor and best_times_floor from the samples (of one iteration
 * each, in the order taken), the point and floor_ns. samples_ns becomes the samples that are kept,
 * in the arena. */
enum status record_measure(struct record *record, struct arena *arena, const double *samples_ns,
                           size_t count, int64_t per);

/* Sets times_floor and best_times_floor, from time_ns and floor_ns; NaN where record_work_ns is. */
void record_compare_floor(struct record *record);

/* Sets times_now, from the floor of the hour. It is 1 at least, because whoever moved more than the
 * bursts did shows that memory gave as much, and times_floor at most. */
void record_compare_hour(struct record *record, double floor_now_ns);
/* Did memory give so much less than at its best that times_floor and times_now differ by more than
 * 5 %? */
bool record_slow_hour(const struct record *record);

/* The share of the limit that was reached, in per cent: 100 ÷ times_now, or without one 100 ÷
 * times_floor. NaN: not known, or faster than the limit by more than 5 %, so that the ceilings were
 * measured too low. */
#define RECORD_FLOOR_LEAST 0.95
double record_of_limit(const struct record *record);

/* What else used the CPU, or the GPU that was measured, while the result was taken: "other
 * programs", "other programs on the GPU", "the host", or "". No finding rests on a disturbed
 * result. A note is written from less on. The host of a virtual machine nearly always takes some,
 * and a few per cent of one CPU move no figure by more. */
#define RECORD_OTHERS_MATTER 0.2   /* cores that others kept busy */
#define RECORD_GPU_OTHERS_MATTER 1 /* per cent of the time that one of them computed there */
#define RECORD_STEAL_MATTERS 1     /* per cent of a CPU that the host took away: a note */
#define RECORD_STEAL_SPOILS 5      /* … and nothing is concluded */
const char *record_disturbed(const struct record *record);

/* The same for two that took turns. Others hit both alike as long as they leave a core to each
 * thread of `cores`; beyond that the two cannot be compared. "" or what disturbed. */
const char *record_crowded(const struct record *record, int64_t cores);

/* The median time, where that is the time of the work: NaN of a server, whose queries also wait for
 * each other. */
double record_work_ns(const struct record *record);

int64_t record_effective_batch(const struct record *record); /* batch × workers; 0: unknown */
int64_t record_units_per_node(const struct record *record);  /* workers ÷ nodes; 0: unknown */
int64_t record_flop(const struct record *record);            /* a whole number; 0: unknown */
/* Of the samples that were kept: 0.25 is the first quartile, 1 the largest; NaN without samples. */
double record_quantile(const struct record *record, double quantile);
double record_meter(const struct record *record, const char *name); /* NaN when not available */
/* How long the unit computes in an iteration. */
double record_compute_ns(const struct record *record);
/* Of samples that come from the host, all by iterations that were watched (bench/meter/staging.h):
 * the share in which the unit computes, of any others of the iterations that were timed; and what
 * nothing of gathering, copying and computing fills. */
double record_compute_share(const struct record *record);
double record_idle_ns(const struct record *record);

/* The record with all that it points to, in that arena. */
enum status record_copy(struct arena *arena, const struct record *record, struct record *out);

/* Appends the line, without its newline. */
void record_write(const struct record *record, struct text *out);

/* Reads one line. `name` and `line` say in messages where it stands: "FILE:LINE: MEMBER: found …,
 * expected …". Members it does not know are passed over, so that older programs read newer files.
 */
enum status record_read(struct arena *arena, const char *name, long line, const char *text,
                        size_t length, struct record *out);

/* STATUS_INPUT for a record that cannot be true: its time is no date, or its median lies beyond all
 * of its samples. Only records that come from elsewhere are asked: old ones stay readable. */
enum status record_plausible(const struct record *record);

/* Calls visit for every line of a file's text that is not blank; stops at the first that fails.
 * The record and the line (without newline, not NUL-terminated) live until visit returns. */
typedef enum status record_visit(void *context, const struct record *record, const char *line,
                                 size_t length);
enum status record_read_all(const char *name, const char *text, size_t length, record_visit *visit,
                            void *context);
/* The same, but a line that a killed process left unfinished is passed over, with a warning. */
enum status record_read_whole(const char *name, const char *text, size_t length,
                              record_visit *visit, void *context);

const char *record_status_name(enum record_status status);

enum metric_better { METRIC_LOWER, METRIC_HIGHER };
enum metric_group {
#define METRIC_GROUP(key, title) METRIC_GROUP_##key,
#include "record/metrics.def"
    METRIC_GROUPS
};
extern const char *const metric_groups[METRIC_GROUPS]; /* their titles, in the order of lists */
enum metric_index {
#define METRIC(key, title, group, unit, better, shown, value, help) METRIC_##key,
#include "record/metrics.def"
    METRIC_COUNT
};
struct metric {
    const char *key, *title;
    enum metric_group group;
    const char *unit;
    enum metric_better better;
    int shown;
    const char *help;
};
extern const struct metric metrics[METRIC_COUNT];
const struct metric *metric_find(const char *key); /* NULL when there is none */
double record_metric(const struct record *record, const struct metric *metric);

/* The axes that are computed (DERIVED in axes.def). */
enum derived_index {
#define DERIVED(key, kind, value, help) DERIVED_##key,
#include "record/axes.def"
    DERIVED_COUNT
};
struct derived {
    const char *key;
    enum axis_kind kind;
    const char *help;
};
extern const struct derived deriveds[DERIVED_COUNT];
/* As point_get: the value as text, "" when empty. */
const char *record_derived(const struct record *record, const struct derived *derived,
                           char buffer[TITLE_TEXT]);

#endif
