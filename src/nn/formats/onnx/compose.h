/* compose.h: operators that are made of layers: a value goes through one after the other.
 *
 * Each function writes lines and changes the value that it is given, a copy of the writer's own;
 * the last of them says that it is what the node gives (compose_give). */
#ifndef PRONY_NN_FORMATS_ONNX_COMPOSE_H
#define PRONY_NN_FORMATS_ONNX_COMPOSE_H

#include "nn/formats/onnx/importer.h"

/* A layer of that kind, of one input, with these arguments. */
enum status compose_apply(struct import *in, struct value *x, const char *kind, const char *format,
                          ...) __attribute__((format(printf, 4, 5)));
/* scale·x + shift */
enum status compose_affine(struct import *in, struct value *x, double scale, double shift);
/* The larger, or the smaller, of x and 0. */
enum status compose_above_zero(struct import *in, struct value *x);
enum status compose_below_zero(struct import *in, struct value *x);
enum status compose_absolute(struct import *in, struct value *x);
/* 1 where x is above the number, else 0; it learns nothing. */
enum status compose_step(struct import *in, struct value *x, double number);
/* Known numbers of that shape, all of them the same. */
enum status compose_known(struct import *in, struct shape shape, float number, struct value *out);
/* Repeats x where it has the size 1 and the shape more. */
enum status compose_spread(struct import *in, struct shape shape, struct value *x);
/* Axis `axis` so many times: the whole of it, or each place of it. */
enum status compose_tile(struct import *in, int32_t axis, int64_t times, bool each,
                         struct value *x);
/* Over these axes, which stay with the size 1: sum, mean or max. */
enum status compose_reduce(struct import *in, const char *function, const bool axes[SHAPE_MOST],
                           struct value *x);
/* Along that axis the product with a matrix [size, new size] of known numbers. */
enum status compose_matrix(struct import *in, int32_t axis, const struct constant *matrix,
                           struct value *x);
/* Room for the numbers of so many places, or refuses: what a small file can make large is bounded.
 */
enum status compose_places(struct import *in, int64_t count, int64_t **out);
/* Places of an axis; or of all elements of a sample, which become that shape. */
enum status compose_pick_axis(struct import *in, int32_t axis, const int64_t *places, int64_t count,
                              struct value *x);
enum status compose_pick(struct import *in, const int64_t *places, struct shape shape,
                         struct value *x);
/* Takes the mean from each row of the last dimension and divides by the deviation. */
enum status compose_normalise(struct import *in, double epsilon, struct value *x);
/* Output 0 of the node is this. */
enum status compose_give(struct import *in, const struct value *x);

/* "3,2,1" of rank 3 and axis 1: exchanges it with the last. */
enum status compose_exchange(struct import *in, int32_t rank, int32_t axis, const char **out);

#endif
