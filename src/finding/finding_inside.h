/* finding_inside.h: what finding.c gives to the questions. */
#ifndef PRONY_FINDING_FINDING_INSIDE_H
#define PRONY_FINDING_FINDING_INSIDE_H

#include "finding/finding.h"

/* A chart of results about the model, of a phase and a machine ("": of any), that are not known to
 * be wrong. `groups` ends with NULL. The best of several counts; results of one series are alike
 * in all that x and the groups do not name. */
struct answer_chart {
    const char *x, *y;
    const char *groups[STORE_GROUPS + 1];
    const char *phase, *server, *unit; /* "": any */
    const char *baseline;              /* or NULL */
    uint64_t across;                   /* axes, beside x, that are compared: bit i for axes[i] */
    bool any_machine;                  /* filters of machines and units do not hold */
};
/* Draws it and writes its parameters to answer->chart. Freed by store_chart_free. */
enum status answer_draw(const struct answer_about *about, const struct answer_chart *wanted,
                        struct answer *answer, struct store_query *query,
                        struct store_chart *chart);
/* Has answer->chart show what is like this point only, where the chart's results are unlike. */
void answer_keep_like(const struct point *point, const struct store_query *query,
                      const struct store_chart *chart, struct answer *answer);

/* Some points of a chart that follow each other. */
struct series {
    const struct store_mark *marks;
    size_t count;
    double best; /* the largest y, whose mark is `top` */
    const struct store_mark *top;
    struct point point; /* of top */
};
/* Draws it, and finds the series with the largest y of those with at least `least` points;
 * answer->known: there is one. */
enum status answer_draw_best(const struct answer_about *about, const struct answer_chart *wanted,
                             size_t least, struct answer *answer, struct store_chart *chart,
                             struct series *best);

/* The first mark of a throughput that the best is no gain over: one of 5 %, and beyond what the
 * intervals of the two hide. */
enum status answer_first_as_good(const struct answer_about *about, const struct series *series,
                                 const struct store_mark **out);

/* The chart whose best series has about->best. */
enum status answer_draw_fastest(const struct answer_about *about, struct answer *answer,
                                struct store_chart *chart, struct series *best);

void answer_rests_on(struct answer *answer, const struct store_mark *mark); /* once each */
void answer_add_name(struct text *out, const struct point *point);          /* "prony/simd" */
void answer_add_manner(struct text *out, const struct point *point);        /* " in tf32", "" */
void answer_add_maker(struct text *out, const struct point *point); /* both, and ", 2 threads" */
/* "box", "the GPU of box" */
void answer_add_place(struct text *out, const char *unit, const char *server);
/* "prony bench large --phase training --backend cuda --precision tf32 --unit gpu": for what a point
 * is, of these axes (bit i for axes[i]). Names come from records, so they are words of a shell. */
void answer_begin_command(const char *command, const struct point *point, const char *phase,
                          uint64_t set, struct answer *answer);
#define ANSWER_BIT(key) ((uint64_t)1 << AXIS_##key)
/* Of what a bench is told of a point all but the batch and what goes without saying. */
#define ANSWER_BENCH                                                                               \
    (~(ANSWER_BIT(model) | ANSWER_BIT(phase) | ANSWER_BIT(batch) | ANSWER_BIT(isa)))
extern const char answer_came_with[]; /* "results that came with prony" */
/* "2.25 ×", "1234 ×" */
void answer_add_ratio(struct text *out, double ratio);
/* "9.80 k samples/s" */
void answer_add_rate(struct text *out, double rate);

typedef enum status answer_question(const struct answer_about *about, struct answer *answer);
answer_question answer_unit, answer_batch, answer_threads, answer_framework, answer_phase,
    answer_workers, answer_next;

#endif
