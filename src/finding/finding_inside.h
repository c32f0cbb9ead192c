/* finding_inside.h: a row of the table, and what the rows share. */
#ifndef PRONY_FINDING_FINDING_INSIDE_H
#define PRONY_FINDING_FINDING_INSIDE_H

#include "finding/finding.h"

/* When a finding may be said. What ran with a handicap never counts, and only results are compared
 * that are alike in all that x, the groups and `across` do not name. */
enum finding_needs {
    FINDING_CHECKED = 1, /* from results that were found right; else also from unchecked ones */
    FINDING_QUIET = 2,   /* from results that nothing disturbed */
    FINDING_SURE = 4,    /* differences are beyond the noise, and worth 5 % */
};

/* Which results its chart has, beside the model's. */
enum finding_scope {
    FINDING_PHASE = 1,     /* of the phase that it is about */
    FINDING_SERVER = 2,    /* of the machine that it is about; else of any */
    FINDING_CPU = 4,       /* on a CPU */
    FINDING_BEST_UNIT = 8, /* on the unit of the best result */
    FINDING_WORKERS = 16,  /* also of several workers; else of one */
};

/* The query: y over x, the best of several results counts. `groups` ends with NULL. */
struct finding_chart {
    const char *x, *y;
    const char *groups[STORE_GROUPS + 1];
    unsigned scope;       /* enum finding_scope, or-ed */
    const char *baseline; /* or NULL */
    uint64_t across;      /* axes, beside x, that are compared: bit i for axes[i] */
};

struct asking;
typedef enum status finding_say(struct asking *asking);

struct finding_row {
    const char *name, *title, *question;
    const char *kind; /* of the chart */
    unsigned needs;   /* enum finding_needs, or-ed */
    struct finding_chart chart;
    finding_say *say; /* from the chart to the sentence and the command */
};
extern const struct finding_row finding_rows[FINDINGS];

/* One row being asked. */
struct asking {
    const struct finding_about *about;
    const struct finding_row *row;
    struct finding *finding;
    struct store_query query;
    struct store_chart chart;
    double spread; /* the largest of the figures that were written */
};

finding_say finding_limit, finding_batch, finding_threads, finding_frameworks, finding_unit,
    finding_precision, finding_slowest, finding_next, finding_phase, finding_busy, finding_workers;

/* finding_chart.c */

/* Draws the row's chart and writes its parameters to finding->chart. Freed by store_chart_free. */
enum status finding_draw(struct asking *asking);
/* Has finding->chart show what is like this point only, where the chart's results are unlike. */
void finding_keep_like(struct asking *asking, const struct point *point);
/* Has it show the series of this mark only. */
void finding_keep_series(struct asking *asking, const struct store_mark *mark);

/* Some points of a chart that follow each other. */
struct series {
    const struct store_mark *marks;
    size_t count;
    double best; /* the largest y, whose mark is `top` */
    const struct store_mark *top;
    struct point point; /* of top */
};
/* How many marks from `first` on are of one series; of one lot. */
size_t finding_series_length(const struct asking *asking, size_t first);
size_t finding_lot_length(const struct asking *asking, size_t first);
/* The series with the largest y of those with at least `least` points; finding->known: there is
 * one.
 */
enum status finding_best_series(struct asking *asking, size_t least, struct series *best);
/* The first value that the filters have of a key; NULL when they have none. */
const char *finding_asked_for(struct store_where where, const char *key);
/* The filters and some more; the list is in the arena. */
enum status finding_add_filters(struct arena *arena, struct store_where where,
                                const struct store_filter *more, size_t more_count,
                                struct store_where *out);

/* finding_figure.c */

/* A figure and half its 95 % interval ÷ itself; NaN: not known. */
struct figure {
    double value, spread;
};
enum status finding_figure(const struct asking *asking, const struct store_mark *mark,
                           struct figure *out);
struct figure finding_ratio(struct figure a, struct figure b);
/* Is a larger than b, as the row needs it to be said? */
bool finding_exceeds(const struct asking *asking, struct figure a, struct figure b);
/* The first mark of a series that the best is no gain over, and that is one over the first; else
 * the first. */
enum status finding_first_as_good(const struct asking *asking, const struct series *series,
                                  const struct store_mark **out);
/* "1.7 ×", "about 1,400 ×"; "83 %", "about 4 %". */
void finding_add_times(struct asking *asking, struct figure figure);
void finding_add_range(struct asking *asking, struct figure least,
                       struct figure most); /* "60 to 90 ×" */
void finding_add_share(struct asking *asking, struct figure figure);
/* " (± 2 %)": the largest spread of the figures so far, where it is worth a word. */
void finding_add_spread(struct asking *asking);

/* finding_busy.c */

/* How many of some results nothing may be concluded from. */
struct finding_lack {
    int64_t all, disturbed, unchecked, most;
    char why[POINT_TEXT]; /* what disturbed most of them */
    struct point point;   /* the newest of these; else of those that were not checked */
};
enum status finding_count_lack(struct store *store, struct arena *arena, struct store_where where,
                               struct finding_lack *out);
/* "Other programs used the CPU during 8 of 9 results, and 1 more was not checked" */
void finding_add_lack(struct text *out, const struct finding_lack *lack);
/* Why nothing is said of the results under the filters, and the command that would settle it. */
enum status finding_say_lack(struct store *store, struct arena *arena, struct store_where where,
                             struct text *sentence, struct text *command);

/* finding_words.c */

void finding_rests_on(struct finding *finding, const struct store_mark *mark); /* once each */
void finding_add_work(struct text *out, const struct finding_about *about); /* "training `large`" */
const char *finding_verb(const struct finding_about *about);                /* "trains" */
/* " at batch 64 in bf16 with PyTorch": what is not as people expect. */
void finding_add_batch(struct text *out, const struct point *point);
void finding_add_manner(struct text *out, const struct point *point);
void finding_add_maker(struct text *out, const struct point *point);
/* " on one core": where a CPU has more. */
void finding_add_cores(struct text *out, const struct finding_about *about,
                       const struct point *point);
void finding_add_unit(
    struct text *out, const struct finding_about *about,
    const struct point *point); /* "your CPU", "the CPU (AMD EPYC)", "the NVIDIA H200" */
void finding_add_place(struct text *out,
                       const struct finding_about *about); /* " on this machine", " on box" */
void finding_capitalise(struct text *text, size_t from);
/* "prony bench large --phase training --backend cuda --precision tf32 --unit gpu": for what a point
 * is, of these axes (bit i for axes[i]). Names come from records, so they are words of a shell. */
void finding_begin_command(const char *command, const struct point *point, const char *phase,
                           uint64_t set, struct finding *finding);
/* " --threads 1,2,4": up to the cores of the machine; false: there is nothing to choose. */
bool finding_add_threads(const struct finding_about *about, struct text *out);
/* " --framework prony,pytorch,numpy": those that are not known to fail on that machine. */
enum status finding_add_frameworks(const struct finding_about *about, bool gpu, struct text *out);
#define FINDING_BIT(key) ((uint64_t)1 << AXIS_##key)
/* Of what a bench is told of a point all but the batch and what goes without saying. */
#define FINDING_BENCH                                                                              \
    (~(FINDING_BIT(model) | FINDING_BIT(phase) | FINDING_BIT(batch) | FINDING_BIT(isa)))

/* finding.c */

/* Fills in the best result of about's model, phase and machine. */
enum status finding_find_best(struct finding_about *about);
bool finding_is_gpu(const struct point *point);
/* Did prony open this model, of this framework ("": any)? Then a record has its program's hash. */
enum status finding_is_opened(struct store *store, const char *model, const char *framework,
                              bool *out);

#endif
