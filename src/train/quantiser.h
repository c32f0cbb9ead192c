/* quantiser.h: from a trained model to its numbers of 8 bits. It is run over data and watched;
 * ranges are chosen, weights rounded, and both forms compared layer by layer. */
#ifndef PRONY_TRAIN_QUANTISER_H
#define PRONY_TRAIN_QUANTISER_H

#include "core/pass/quantise.h"
#include "train/model.h"
#include "train/ranging.h"

struct quantiser_options {
    enum ranging ranging;
    bool plain;
    int32_t weight_bits; /* 8, 4 or 2 */
    bool uncorrected;    /* biases do not make up for what rounding weights moves */
    int64_t rows;        /* of the data, at most, that are looked at */
    const char *const *keep;
    int32_t keep_count;
};

/* How a layer that multiplies fares. */
struct quantised_layer {
    const char *name;
    bool stays;         /* in fp32 */
    double noise_db;    /* signal to noise of its result, on rows that were not looked at before */
    double outside;     /* share of these results beyond the range that was chosen */
    double outlier;     /* largest size of a channel of its input against the middle one … */
    int64_t outlier_at; /* … and which channel that is */
};

struct quantiser_report {
    struct arena arena;
    int32_t layer_count;
    struct quantised_layer *layers; /* the noisiest first */
    int64_t rows, checked;          /* that ranges came from, that were compared */
};

/* `how` and the parameters, empty before, are filled; how's arrays are in the arena. Rows of the
 * data's own test set are not looked at. The data is scaled in place. */
enum status model_quantise(struct model *model, struct dataset *dataset,
                           const struct quantiser_options *options, struct arena *arena,
                           struct quantisation *how, struct params *params,
                           struct quantiser_report *report);
void quantiser_report_free(struct quantiser_report *report);

#endif
