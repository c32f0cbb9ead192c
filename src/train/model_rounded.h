/* model_rounded.h: the weights of a network that got used to few bits, as it predicts with them.
 * Its file has them as they are learnt, so that a training goes on from there. */
#ifndef PRONY_TRAIN_MODEL_ROUNDED_H
#define PRONY_TRAIN_MODEL_ROUNDED_H

#include "train/model.h"

/* Rounds the parameters on the host of a model that was trained so. */
enum status model_round(struct model *model);

#endif
