/* glossary.h: what words mean, in a sentence or two; the rows are in glossary.def. */
#ifndef PRONY_RECORD_GLOSSARY_H
#define PRONY_RECORD_GLOSSARY_H

#include <stddef.h>

struct term {
    const char *key;  /* "time_interval" */
    const char *term; /* "interval" */
    const char *text;
};
enum {
#define TERM(key, term, text) TERM_##key,
#include "record/words/glossary.def"
    TERM_COUNT
};
extern const struct term glossary[TERM_COUNT];

/* The row that a person means: its key or one of its terms, "Arithmetic-Intensity" too; else NULL,
 * and *near the nearest there is, or NULL. */
const struct term *glossary_find(const char *word, const char **near);

#endif
