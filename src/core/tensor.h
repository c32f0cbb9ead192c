/* tensor.h: what a tensor is: element type, shape, and the role that decides where its bytes live
 * and how long. A tensor here is a description; bytes belong to instances and plans. */
#ifndef PRONY_CORE_TENSOR_H
#define PRONY_CORE_TENSOR_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype { DTYPE_F32, DTYPE_F64, DTYPE_I32, DTYPE_I8, DTYPE_U8, DTYPE_COUNT };

size_t dtype_bytes(enum dtype dtype);
const char *dtype_name(enum dtype dtype);            /* "f32" */
bool dtype_parse(const char *name, enum dtype *out); /* false: there is none of that name */
bool dtype_is_integer(enum dtype dtype);

enum role {
    ROLE_INPUT,      /* filled by a load op from the bound data */
    ROLE_OUTPUT,     /* handed out by a store op to the bound view */
    ROLE_PARAM,      /* learnt; in the instance */
    ROLE_STATISTIC,  /* belongs to the network, saved with the weights (running means) */
    ROLE_STATE,      /* belongs to the run, saved in checkpoints (moments, chains) */
    ROLE_GRAD,       /* one per updated parameter; one block, in the order of the parameters */
    ROLE_ACTIVATION, /* lives within a step; its bytes are reused */
    ROLE_SCRATCH,    /* lives within one op */
    ROLE_COUNT
};

const char *role_name(enum role role);
bool role_is_kept(enum role role); /* param, statistic, state: in the instance, outlives plans */

enum { SHAPE_MOST = 6 };

struct shape {
    int32_t rank;
    int64_t dim[SHAPE_MOST];
};

/* SHAPE(32, 784): the rank is the number of arguments. */
#define SHAPE(...)                                                                                 \
    ((struct shape){.rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                    \
                    .dim = {__VA_ARGS__}})

/* Elements, or -1 when a dimension is not positive or the product does not fit. */
int64_t shape_count(const struct shape *shape);
bool shape_equal(const struct shape *a, const struct shape *b);
void shape_print(const struct shape *shape, struct text *out); /* "32×784" */

#endif
