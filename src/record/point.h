/* point.h: one measured configuration, a value for every axis of axes.def.
 *
 * A plain value without pointers: copy it, compare it, keep arrays of it. An axis that does not
 * apply (the optimiser of inference, the threads of a GPU) is empty: "" or 0. */
#ifndef PRONY_RECORD_POINT_H
#define PRONY_RECORD_POINT_H

#include "base/json.h"
#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POINT_TEXT = 256, POINT_NUMBER = 24 }; /* room for a text value; for an integer as text */

#define POINT_FIELD_TEXT(key) char key[POINT_TEXT];
#define POINT_FIELD_INT(key) int64_t key;
struct point {
#define AXIS(key, kind, where, dlbs, otherwise, help) POINT_FIELD_##kind(key)
#include "record/axes.def"
};

enum axis_kind { AXIS_TEXT, AXIS_INT };

/* What an axis needs to mean something. */
enum axis_where {
    AXIS_TRAINING = 1, /* phase is training */
    AXIS_CPU = 2,      /* unit is cpu */
    AXIS_PRONY = 4,    /* framework is prony */
    AXIS_WORKERS = 8,  /* more than one worker */
    AXIS_FOUND = 16,   /* a fact of the run: no flag asks for it */
    AXIS_ASIDE = 32,   /* results that differ in it are of the same configuration */
};

enum axis_index {
#define AXIS(key, kind, where, dlbs, otherwise, help) AXIS_##key,
#include "record/axes.def"
    AXIS_COUNT
};

struct axis {
    const char *key;
    enum axis_kind kind;
    unsigned where; /* enum axis_where, or-ed */
    const char *dlbs, *otherwise, *help;
    size_t offset; /* in struct point */
};
extern const struct axis axes[AXIS_COUNT];

/* A value of an axis that has a closed list of them. */
enum choice {
#define CHOICE(key, name, text) CHOICE_##key##_##name,
#include "record/axes.def"
    CHOICE_COUNT
};
const char *choice_name(enum choice choice); /* "real/dram" */
/* The axis's choice of that name; CHOICE_COUNT: it has none such. */
enum choice choice_find(enum axis_index axis, const char *name);

const struct axis *axis_find(const char *key); /* NULL when there is none */
/* As axis_find, but a key that is no axis is an error that names the nearest. */
enum status axis_need(const char *key, const struct axis **out);
/* Can this be asked for? Refuses what is not among the axis's choices, or not a number ≥ 1. Stored
 * records are not checked like this: another version may know more choices. */
enum status axis_check(const struct axis *axis, const char *value);

void point_start(struct point *point); /* every axis as axes.def says; what applies or not */
/* Empties the axes that do not apply, so that equal work has equal points. */
void point_settle(struct point *point);
bool point_applies(const struct point *point, const struct axis *axis);

/* Has the point's axis this value? A stored point may have one that is no choice here. */
bool point_is(const struct point *point, enum choice choice);
void point_choose(struct point *point, enum choice choice); /* gives it this value */

/* "" empties. Refuses text that is too long, and for INT what is not a number ≥ 0. */
enum status point_set(struct point *point, const struct axis *axis, const char *value);
/* The value as text, "" when empty; `buffer` is used for integers. */
const char *point_get(const struct point *point, const struct axis *axis,
                      char buffer[POINT_NUMBER]);
int point_compare(const struct point *a, const struct point *b); /* <0, 0, >0: axis by axis */

/* A JSON object with the axes that are not empty. Reading starts from an empty point, passes over
 * keys that are no axis, and says "point.KEY: found …, expected …". */
void point_write(const struct point *point, struct json_writer *writer);
enum status point_read(const struct json *object, struct point *point);

/* "large training, batch 64, fp32, prony/simd on cpu, 2 threads": what a person calls it. */
void point_label(const struct point *point, struct text *out);
/* " --batch 64 --precision bf16": of a set of axes (bit i for axes[i]) those that are not as
 * point_start has them, as flags. */
void point_flags(const struct point *point, uint64_t set, struct text *out);
/* "prony bench large --phase training --batch 64": what measures it again, with the axes that are
 * not as point_start has them; nothing for a point without a network. */
void point_command(const struct point *point, struct text *out);

#endif
