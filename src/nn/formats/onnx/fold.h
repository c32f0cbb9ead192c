/* fold.h: what fold.c and fold_numbers.c share. */
#ifndef PRONY_NN_FORMATS_ONNX_FOLD_H
#define PRONY_NN_FORMATS_ONNX_FOLD_H

#include "nn/formats/onnx/importer.h"

/* Works out the first output of the node, whose inputs are all known. */
typedef enum status folder(struct import *in, struct constant **out);

folder fold_function, fold_range, fold_pair, fold_equal, fold_compare, fold_not, fold_triangle,
    fold_where;

/* The numbers of input `i`. */
struct constant *fold_known(const struct import *in, size_t i);
/* to[i, j, …] = from[offset + i·step[0] + j·step[1] + …] */
void fold_walk(struct constant *to, const struct constant *from, int64_t offset,
               const int64_t *step);
/* How far apart neighbours of each dimension are. */
void fold_strides(const struct shape *shape, int64_t *out);
/* The same numbers in a larger shape: what has the size 1 is repeated. */
enum status fold_spread(struct import *in, const struct constant *from, struct shape shape,
                        struct constant **out);

#endif
