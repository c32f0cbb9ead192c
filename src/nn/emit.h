/* emit.h: pieces of a program that network_compile and the recipes of train/ are both made of. Each
 * appends ops to the draft; a draft that has failed is left alone. */
#ifndef PRONY_NN_EMIT_H
#define PRONY_NN_EMIT_H

#include "nn/network.h"

/* The batch's rows of the data: the tensor that loads and random ops take. */
int32_t emit_rows(struct draft *draft);
/* The input tensor of that name with these rows of the bound data. */
int32_t emit_load(struct draft *draft, enum dtype dtype, const char *name, struct shape shape,
                  int32_t rows);
/* The rows that the network takes, as the input "x". Both are in the prepare part, which is the
 * current one. */
int32_t emit_x(struct draft *draft, const struct network *network, int32_t rows);

/* Makes `y` the program's output "y" and stores it, a row a sample. */
void emit_y(struct draft *draft, int32_t y, int32_t rows);

/* The update of all parameters that have a gradient: by the network's optimiser and schedule or
 * what the options have instead, the rate multiplied. `prefix` goes before the names of its state.
 */
void emit_update(struct draft *draft, const struct network *network,
                 const struct compile_options *options, const char *prefix, double rate);

/* The whole of a feed-forward program, its rate multiplied. */
void emit_feed_forward(struct draft *draft, const struct network *network,
                       const struct compile_options *options, double rate);

/* Puts where the layer of that name stands in the network's text before the last message. */
void emit_locate(const struct network *network, const char *layer, enum status status);

#endif
