/* answer_inside.h: what answer.c gives to the questions. */
#ifndef PRONY_STORE_ANSWER_INSIDE_H
#define PRONY_STORE_ANSWER_INSIDE_H

#include "store/answer.h"

/* A chart of results about the model, of a phase and a machine ("": of any), that are not known to
 * be wrong. `groups` ends with NULL. The best of several counts. */
struct answer_chart {
    const char *x, *y;
    const char *groups[STORE_GROUPS + 1];
    const char *phase, *server, *unit; /* "": any */
    const char *baseline;              /* or NULL */
    bool any_machine;                  /* filters of machines and units do not hold */
};
/* Draws it and writes its parameters to answer->chart. Freed by store_chart_free. */
enum status answer_draw(const struct answer_about *about, const struct answer_chart *wanted,
                        struct answer *answer, struct store_query *query,
                        struct store_chart *chart);

/* Which points of a series: [first, first + count). */
struct series {
    const struct store_mark *marks;
    size_t count;
    double best; /* the largest y, whose mark is `top` */
    const struct store_mark *top;
};
/* Draws it, and finds the series with the largest y of those with at least `least` points;
 * answer->known: there is one. */
enum status answer_draw_best(const struct answer_about *about, const struct answer_chart *wanted,
                             size_t least, struct answer *answer, struct store_chart *chart,
                             struct series *best);

void answer_rests_on(struct answer *answer, const struct store_mark *mark); /* once each */
/* "prony/simd": what a group of framework and backend, at `at` and after, is called. */
void answer_add_maker(struct text *out, const struct store_mark *mark, size_t at);
/* " on box", " on box (results that came with prony)": where a mark was measured. */
enum status answer_add_place(const struct answer_about *about, const struct store_mark *mark,
                             struct text *out);
/* "prony bench large --phase training": names come from records, so they are words of a shell. */
void answer_begin_command(const struct answer_about *about, const char *command, const char *phase,
                          struct answer *answer);
/* "2.25 ×", "1234 ×" */
void answer_add_ratio(struct text *out, double ratio);
/* "9.80 k samples/s" */
void answer_add_rate(struct text *out, double rate);

typedef enum status answer_question(const struct answer_about *about, struct answer *answer);
answer_question answer_unit, answer_batch, answer_threads, answer_framework, answer_phase,
    answer_workers, answer_next;

#endif
