/* quality.h: how good predictions are, against what is right: R², RMSE and MAE of numbers, in their
 * unit; accuracy, and precision, recall and F1 of each class; beside what somebody would reach who
 * always says the mean of what was learnt from, or the most frequent class. */
#ifndef PRONY_CLI_SHOW_QUALITY_H
#define PRONY_CLI_SHOW_QUALITY_H

#include "base/status.h"
#include "prony.h"

#include <stdbool.h>

/* What was said and what is right, of one target. */
struct quality_number {
    double squares, off; /* sums, of what is said off what is right */
};

struct quality {
    const struct prony *network;
    const struct prony_data *data;
    int32_t class_count;
    int64_t *cells; /* [classes, classes]: what it is, what was said; or NULL */
    int64_t right, answers;
    int32_t targets;                /* numbers of a row */
    struct quality_number *numbers; /* [targets], or NULL */
    float *is;                      /* [rows, targets]: what is right, so far … */
    int64_t rows, room;             /* … and how many rows these are */
};

/* A zeroed *quality is filled; network and data outlive it. */
enum status quality_open(struct quality *quality, const struct prony *network,
                         const struct prony_data *data);
void quality_close(struct quality *quality); /* zeroed is fine */
/* Rows that nothing is known of, and places that are not asked for, are passed over. */
enum status quality_add(struct quality *quality, const struct prony_prediction *prediction);
/* Is there anything to say? */
bool quality_known(const struct quality *quality);
/* The last line is the result: "accuracy 93.3 %" or "R² 0.87", after the word. */
void quality_print(const struct quality *quality, const char *word);
/* Of a network that has just learnt, over its test rows: what they say, in the unit of the data;
 * else what its score is. */
enum status quality_test(struct prony *network, const struct prony_data *data,
                         const struct prony_score *score);

#endif
