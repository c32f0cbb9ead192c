/* model_export.h: where a network in 8 bits rounds, and on which scales: what another program needs
 * to compute the same. */
#ifndef PRONY_TRAIN_MODEL_EXPORT_H
#define PRONY_TRAIN_MODEL_EXPORT_H

#include "nn/formats/onnx.h"
#include "train/model.h"

/* Of a network in 8 bits; the arena owns what is found. */
enum status export_levels(const struct network *network, const struct compile_options *options,
                          struct arena *arena, struct onnx_levels *out);

#endif
