/* finding.h: a finding is a sentence that answers a question people come with, from a store.
 *
 * Nothing is known in advance: each is computed from the results that are there and changes with
 * them. Where results are missing, the sentence names them. */
#ifndef PRONY_FINDING_FINDING_H
#define PRONY_FINDING_FINDING_H

#include "store/store.h"

/* What the questions are about. Texts are in the arena, or "". */
struct finding_about {
    struct store *store;
    struct arena *arena;
    struct store_where where; /* what was asked for */
    const char *model;        /* the filter's, or the newest result's */
    const char *phase;        /* the filter's, or training if there are results of it */
    const char *server; /* the filter's, or the newest result's; others may know what it does not */
    const char *framework; /* the filter's, or "" */
    const char *source;    /* "own" where there are own results and none was asked for, else "" */
    /* The result with the most samples a second there; 0: there is none, and it is a usual point of
     * the model, the phase and the unit that was asked for. */
    int64_t best_id;
    struct point best;
};
/* `where` must outlive it. STATUS_INPUT when there is no result under the filters. */
enum status finding_about(struct store *store, struct arena *arena, struct store_where where,
                          struct finding_about *out);

/* What is faster than its floor by more than that was compared with ceilings that were seen too
 * low, as on a busy machine: it says nothing. */
#define FINDING_FLOOR_LEAST 0.95

enum { FINDING_IDS = 16 };
struct finding {
    const char *name, *question;
    bool known;
    struct text sentence;
    struct text chart;        /* parameters of /api/query that show it */
    struct text command;      /* that asks one's own machine; "": none can */
    char asks[POINT_TEXT];    /* the framework that the command names, or "" */
    struct text left_out;     /* results that it does not rest on, and why; or "" */
    int64_t ids[FINDING_IDS]; /* results it rests on */
    size_t id_count;
};

/* A GPU is compared with a whole CPU only: one that was also measured with a thread for each core.
 * Then the best of the mark's results is what it can do, with one thread too. */
enum status finding_whole_unit(struct store *store, const char *unit, const struct store_mark *mark,
                               bool *whole);

enum { FINDINGS = 7 };
/* The place of a question in their list; false: there is none of this name. */
bool finding_named(const char *name, size_t *index);
enum status finding_ask(const struct finding_about *about, size_t index, struct finding *out);
void finding_free(struct finding *finding);

#endif
