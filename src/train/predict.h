/* predict.h: a trained network applied to every row of a data set. */
#ifndef PRONY_TRAIN_PREDICT_H
#define PRONY_TRAIN_PREDICT_H

#include "train/model.h"

/* Answers to some rows that follow each other. */
struct prediction {
    int64_t first, rows;
    const uint32_t *list;   /* which rows of the data set they are; NULL: first, first + 1 … */
    int32_t width;          /* numbers a row */
    int32_t places;         /* classes a row */
    const float *outputs;   /* [rows, width]: a probability per class and place (with a binary loss,
                               of the second one), or the last layer's values */
    const int32_t *classes; /* [rows, places], or NULL when the network gives numbers */
};

/* Is given all rows in turn, some at a time; a failure ends the prediction. */
typedef enum status prediction_visit(void *context, const struct prediction *prediction);

/* Scales the data set in place. Memory is taken for a few batches, however many rows there are. */
enum status predict_data(struct model *model, struct dataset *dataset, prediction_visit *visit,
                         void *context);
/* The same of some rows of the data set. */
enum status predict_some(struct model *model, struct dataset *dataset, const uint32_t *rows,
                         int64_t count, prediction_visit *visit, void *context);

#endif
