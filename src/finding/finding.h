/* finding.h: a finding is a sentence about the results of a store, and all sentences come from
 * here.
 *
 * One table (finding_table.c) has a row for each: the question, the query, when it may be said, how
 * the chart is drawn. Nothing is known in advance: a finding is computed from the results that are
 * there and changes with them. It is left out, or says "not known", where they do not carry it. */
#ifndef PRONY_FINDING_FINDING_H
#define PRONY_FINDING_FINDING_H

#include "store/store.h"

/* The machine that the findings are about; the texts are in the arena. */
struct finding_machine {
    const char *title; /* what people call it */
    int64_t cores;     /* 0: not known */
    bool gpu;     /* something was measured on a GPU of it; a caller that sees one may set it */
    bool no_gpu;  /* a caller knows that commands run where there is none */
    bool here;    /* it is the one that this program runs on */
    bool shipped; /* its results came with prony */
};

/* What the findings are about. Texts are in the arena, or "". */
struct finding_about {
    struct store *store;
    struct arena *arena;
    struct store_where where; /* what was asked for */
    const char *model;        /* the filter's, or the newest result's */
    const char *phase;        /* the filter's, or training if there are results of it */
    const char *server; /* the filter's, or the newest result's; others may know what it does not */
    const char *framework; /* the filter's, or "" */
    const char *source;    /* "own" where there are own results and none was asked for, else "" */
    bool one_machine;      /* no result of another machine is compared with, or asked instead */
    bool workers;          /* there are results of several workers: a finding of their own */
    struct finding_machine machine;
    /* The result with the most samples a second there; 0: there is none, and it is a usual point of
     * the model, the phase and the unit that was asked for. */
    int64_t best_id;
    struct point best;
};
/* `where` must outlive it. STATUS_INPUT when there is no result under the filters. */
enum status finding_about(struct store *store, struct arena *arena, struct store_where where,
                          struct finding_about *out);

enum { FINDING_IDS = 16 };
struct finding {
    const char *name, *title, *question;
    const char *kind; /* how the chart is drawn: "bars", "lines", "dots" */
    bool known;       /* else the sentence says what is missing */
    bool approximate; /* known to more than 5 % only: the sentence says "about" */
    bool nothing;     /* it says that there is no difference */
    struct text sentence;
    struct text chart;        /* parameters of /api/query that show it */
    struct text command;      /* that asks one's own machine; "": none can */
    char asks[POINT_TEXT];    /* the framework that the command names, or "" */
    struct text left_out;     /* results that it does not rest on, and why; or "" */
    int64_t ids[FINDING_IDS]; /* results it rests on */
    size_t id_count;
};

/* The result with the most samples a second, whether or not something may be concluded from it; 0:
 * there is none. */
enum status finding_fastest(const struct finding_about *about, int64_t *id);

/* A GPU is compared with a whole CPU only: one that was also measured with a thread for each core.
 * Then the best of the mark's results is what it can do, with one thread too. */
enum status finding_whole_unit(struct store *store, const char *unit, const struct store_mark *mark,
                               bool *whole);

enum { FINDINGS = 11 };
/* The place of a finding in the table, which begins with the most important; false: there is none
 * of this name. */
bool finding_named(const char *name, size_t *index);
enum status finding_ask(const struct finding_about *about, size_t index, struct finding *out);
void finding_free(struct finding *finding);
void finding_write(const struct finding *finding, struct json_writer *json); /* as /api/answers */

/* What is known of one machine: the most important findings over all its networks. */
enum { OVERVIEW_FINDINGS = 6, OVERVIEW_OTHERS = 16 };
struct overview_machine {
    const char *server, *source, *title;
    int64_t results;
};
struct overview {
    struct overview_machine machine; /* server "": there is no result */
    const char *newest;              /* when its newest result was taken */
    struct overview_machine others[OVERVIEW_OTHERS];
    size_t other_count;
    struct finding findings[OVERVIEW_FINDINGS];
    size_t count;
    struct text lacking, command; /* without findings: why, and what would settle it */
};
/* Of the machine that the filters name, or of the newest own result, or of the newest. Texts are in
 * the arena. Freed by overview_free. */
enum status overview_find(struct store *store, struct arena *arena, struct store_where where,
                          struct overview *out);
void overview_write(const struct overview *overview, struct json_writer *json);
void overview_free(struct overview *overview);

#endif
