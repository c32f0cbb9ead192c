/* predict.h: a trained network applied to every row of a data set. */
#ifndef PRONY_TRAIN_PREDICT_H
#define PRONY_TRAIN_PREDICT_H

#include "train/model.h"

struct predictor {
    struct model model; /* its classes and scaling are those of the weights */
    struct safetensors file;
};

/* What is said of some rows that follow each other. */
struct prediction {
    int64_t first, rows;
    int32_t width;
    const float *outputs;   /* [rows, width]: a probability per class (with a binary loss, of the
                               second one), or the last layer's values */
    const int32_t *classes; /* [rows], or NULL when the network gives numbers */
};

/* Is given all rows in turn, some at a time; a failure ends the prediction. */
typedef enum status prediction_visit(void *context, const struct prediction *prediction);

/* Reads what the weights say of themselves, so that the data can be read with their classes. A
 * zeroed *predictor is filled; the network outlives it. */
enum status predictor_open(const struct network *network, const char *weights,
                           struct predictor *predictor);
void predictor_close(struct predictor *predictor); /* fine after a failed open */

/* Standardises the data set in place. Memory is taken for a few batches, however many rows there
 * are. */
enum status predictor_run(struct predictor *predictor, struct dataset *dataset,
                          const struct backend *backend, const struct device_options *device,
                          prediction_visit *visit, void *context);

#endif
