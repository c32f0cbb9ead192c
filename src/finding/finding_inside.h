/* finding_inside.h: what finding.c gives to the questions. */
#ifndef PRONY_FINDING_FINDING_INSIDE_H
#define PRONY_FINDING_FINDING_INSIDE_H

#include "finding/finding.h"

/* A chart of results about the model, of a phase and a machine ("": of any), that are not known to
 * be wrong. `groups` ends with NULL. The best of several counts; results of one series are alike
 * in all that x and the groups do not name. */
struct finding_chart {
    const char *x, *y;
    const char *groups[STORE_GROUPS + 1];
    const char *phase, *server, *unit; /* "": any */
    const char *baseline;              /* or NULL */
    uint64_t across;                   /* axes, beside x, that are compared: bit i for axes[i] */
    bool any_machine;                  /* filters of machines and units do not hold */
};
/* Draws it and writes its parameters to finding->chart. Freed by store_chart_free. */
enum status finding_draw(const struct finding_about *about, const struct finding_chart *wanted,
                         struct finding *finding, struct store_query *query,
                         struct store_chart *chart);
/* Has finding->chart show what is like this point only, where the chart's results are unlike. */
void finding_keep_like(const struct point *point, const struct store_query *query,
                       const struct store_chart *chart, struct finding *finding);

/* Some points of a chart that follow each other. */
struct series {
    const struct store_mark *marks;
    size_t count;
    double best; /* the largest y, whose mark is `top` */
    const struct store_mark *top;
    struct point point; /* of top */
};
/* Draws it, and finds the series with the largest y of those with at least `least` points;
 * finding->known: there is one. */
enum status finding_draw_best(const struct finding_about *about, const struct finding_chart *wanted,
                              size_t least, struct finding *finding, struct store_chart *chart,
                              struct series *best);

/* The first mark of a throughput that the best is no gain over: one of 5 %, and beyond what the
 * intervals of the two hide. */
enum status finding_first_as_good(const struct finding_about *about, const struct series *series,
                                  const struct store_mark **out);

/* The chart whose best series has about->best. */
enum status finding_draw_fastest(const struct finding_about *about, struct finding *finding,
                                 struct store_chart *chart, struct series *best);

void finding_rests_on(struct finding *finding, const struct store_mark *mark); /* once each */
void finding_add_name(struct text *out, const struct point *point);            /* "prony/simd" */
void finding_add_manner(struct text *out, const struct point *point);          /* " in tf32", "" */
void finding_add_maker(struct text *out, const struct point *point); /* both, and ", 2 threads" */
/* "box", "the GPU of box" */
void finding_add_place(struct text *out, const char *unit, const char *server);
/* "prony bench large --phase training --backend cuda --precision tf32 --unit gpu": for what a point
 * is, of these axes (bit i for axes[i]). Names come from records, so they are words of a shell. */
void finding_begin_command(const char *command, const struct point *point, const char *phase,
                           uint64_t set, struct finding *finding);
#define FINDING_BIT(key) ((uint64_t)1 << AXIS_##key)
/* Of what a bench is told of a point all but the batch and what goes without saying. */
#define FINDING_BENCH                                                                              \
    (~(FINDING_BIT(model) | FINDING_BIT(phase) | FINDING_BIT(batch) | FINDING_BIT(isa)))
extern const char finding_came_with[]; /* "results that came with prony" */
/* "2.25 ×", "1234 ×" */
void finding_add_ratio(struct text *out, double ratio);
/* "9.80 k samples/s" */
void finding_add_rate(struct text *out, double rate);

typedef enum status finding_question(const struct finding_about *about, struct finding *finding);
finding_question finding_unit, finding_batch, finding_threads, finding_framework, finding_phase,
    finding_workers, finding_next;

#endif
