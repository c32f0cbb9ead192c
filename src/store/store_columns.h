/* store_columns.h: what questions are about, in memory, a column at a time.
 *
 * Every question looks at all results, and often at all axes of them; in memory 100,000 results
 * take a few milliseconds, out of the file a few hundred. So the columns are read once and, when
 * the file grew, only what is new of them. Values of axes are small numbers (codes) into a list of
 * words: comparing, counting and grouping never look at text. Metrics are read when first asked
 * for. */
#ifndef PRONY_STORE_STORE_COLUMNS_H
#define PRONY_STORE_STORE_COLUMNS_H

#include "base/arena.h"
#include "record/record.h"

#include <stdint.h>

/* Keys: the axes, the derived axes, and three that no row of axes.def has. */
enum {
    KEY_DERIVED = AXIS_COUNT, /* the first derived one */
    KEY_STATUS = AXIS_COUNT + DERIVED_COUNT,
    KEY_CHECK,  /* right, wrong, none */
    KEY_SOURCE, /* own, shipped */
    KEY_COUNT
};
_Static_assert(KEY_COUNT <= 64, "sets of keys are 64 bits");

/* The different values of a key. Code 0 is "", the value of what does not say. */
struct words {
    const char **texts;
    int64_t *numbers; /* of an INT key */
    uint32_t count, room;
    uint32_t *slots; /* hash table of codes + 1; a power of two of them */
    uint32_t slot_count;
    uint32_t *ranks; /* the place of each code in their order, for the first `ranked` codes */
    uint32_t ranked;
};

struct column {
    struct words words;
    uint32_t *codes; /* [count] */
};

struct columns {
    struct arena arena; /* the words' texts */
    size_t count, room; /* results */
    int64_t *ids;       /* [count], ascending */
    /* What tells configurations apart: a hash of the codes of every axis but those
     * that are AXIS_ASIDE. */
    uint64_t *configurations;
    struct column keys[KEY_COUNT];
    struct {
        double *values; /* [count]; NaN: none */
        size_t count, room;
    } metrics[METRIC_COUNT];
    int64_t version; /* of the file, as SQLite counts it */
    int64_t change;  /* removals from it */
    bool read;
};

struct store;

/* A question stands between begin and end: it sees the file as it is at one moment. Begin reads
 * what is new. */
enum status columns_begin(struct store *store);
void columns_end(struct store *store);

/* Inside a question: the values of a metric, [count]. */
enum status columns_metric(struct store *store, enum metric_index metric, const double **out);
/* The ends of the 95 % interval of a metric that has one, else NULL both. */
enum status columns_interval(struct store *store, const struct metric *metric, const double **low,
                             const double **high);
/* The order of a key's codes: numbers as numbers, texts as texts, nothing first. */
enum status columns_ranks(struct store *store, int key, const uint32_t **out);

uint32_t words_find(const struct words *words, const char *text); /* its code; UINT32_MAX: none */

void columns_clear(struct columns *columns); /* frees everything; ready again */

const char *key_name(int key);
enum axis_kind key_kind(int key);
int key_find(const char *name);                   /* -1 when there is none */
enum status key_need(const char *name, int *out); /* else refuse_name */
/* Says what was found, and the nearest name there is, or all of them. */
enum status refuse_name(const char *name, const char *wanted, const char *const *names,
                        size_t count);

#endif
