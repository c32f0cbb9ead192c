/* course.h: a training on a data set: how it was set up, which a resumed run keeps, and how far it
 * is. The settings are the rows of prony_settings.def. */
#ifndef PRONY_TRAIN_COURSE_H
#define PRONY_TRAIN_COURSE_H

#include "base/json.h"
#include "train/lap.h"

struct course {
#define PRONY_COURSE(type, name, key, usual, low, high, otherwise, meaning, help) type key;
#include "prony_settings.def"

    uint64_t data;      /* dataset_hash of what it learns from */
    int64_t epoch;      /* whole epochs done */
    int64_t step;       /* steps done of the next one … */
    struct score score; /* … and what they gave */
    int64_t best_epoch; /* after which the held-out loss was lowest; 0: none was held out */
    double best_loss;   /* … and what it was */
    bool stopped;       /* until_… was reached, or patience is at its end */
};

/* Sets what is 0 to the usual choice. */
void course_settle(struct course *course);
/* Is each setting usual, or within its range? */
enum status course_check(const struct course *course);

/* All of it, as members of an open JSON object; and from there: false when something is missing or
 * out of its range. Settings that an older file does not have are as usual. */
void course_write(const struct course *course, struct json_writer *writer);
bool course_read(const struct json *object, struct course *course);

/* What workers that train together have the same (workers/agree.h). */
void course_tell(const struct course *course, struct text *facts);

/* A number of 64 bits, as text: JSON numbers are doubles to many readers. */
void course_write_wide(struct json_writer *writer, const char *key, uint64_t number);
bool course_read_wide(const struct json *object, const char *key, uint64_t *out);

#endif
