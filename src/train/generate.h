/* generate.h: samples like the data that a network has learnt: by a recipe that can (vae, gan,
 * rbm). */
#ifndef PRONY_TRAIN_GENERATE_H
#define PRONY_TRAIN_GENERATE_H

#include "train/model.h"

enum { GENERATE_MOST = 100000, GENERATE_SWEEPS = 1000 };

struct generate_options {
    int32_t rows;        /* at most GENERATE_MOST */
    int32_t class_index; /* on this condition; below 0: all classes in turn */
    int64_t sweeps; /* of Gibbs sampling, where that is how it is done: a multiple of RECIPE_SWEEPS,
                     * or 0: as usual */
    uint64_t seed;
    bool (*stop)(void *context); /* asked now and then: shall it end? NULL: it shall not */
    void *context;
};

/* Writes [rows, inputs of the network] on the scale of the data, some rows at a time. The model's
 * plans were released before; its device is left behind, its step and seed are as before. */
enum status generate_rows(struct model *model, const struct generate_options *options, float *out);

#endif
