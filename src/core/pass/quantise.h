/* quantise.h: an inference program in fp32 becomes one in 8 bits (docs/quantisation.md). */
#ifndef PRONY_CORE_PASS_QUANTISE_H
#define PRONY_CORE_PASS_QUANTISE_H

#include "core/params.h"
#include "core/pass/quantise_numbers.h"
#include "core/program.h"

/* How it is done. The program that is made depends on this and on no weight: so one for any batch
 * is made of a saved file, which keeps it. */
struct quantisation {
    bool plain;          /* scales are powers of two, activations have 7 bits */
    int32_t weight_bits; /* 8, 4 or 2 */
    int32_t count;
    struct range *ranges; /* [count]: of each tensor of the fp32 program; of a view, its root's */
    int32_t keep_count;
    const char **keep; /* layers that stay in fp32 */
    /* Scales are those of the program's own quantise and dequantise ops, as of a file that came in
     * 8 bits: there are no ranges, and `why` says of each layer that is kept why it is. */
    bool given;
    const char **why;
};

/* Where values come from. */
struct quantise_source {
    const struct params *params; /* of the fp32 program */
    /* Per tensor of it the mean of each channel (dimension 1), or NULL; with it the bias makes up
     * for what rounding the weights moves, on average. NULL: no bias does. */
    const double *const *means;
};

/* What became of a tensor of the fp32 program. */
struct quantised {
    int32_t tensor; /* of the new program; -1: it is gone, or a parameter */
    bool is_u8;     /* on this scale; else reals */
    struct scale scale;
};

/* Makes a new program; the old one stays. Its parameters are declared in `params`, which may have
 * them already. With a source they get their values, and `how` is changed where a layer's output
 * needs a wider range than was seen. `map`, of as many elements as the old program has tensors, or
 * NULL. */
enum status quantise(const struct program *program, struct quantisation *how,
                     const struct quantise_source *source, struct params *params,
                     struct quantised *map, struct program **out);

/* The same of a program that rounds to 8 bits by itself (`given`): finds which of its layers have a
 * form in integers with these values of its parameters, and fills `how`, from the arena. */
enum status quantise_given(const struct program *program, const struct params *values,
                           struct arena *arena, struct quantisation *how, struct params *params,
                           struct program **out);

/* Do parameters from a file keep to the definition? Kernels rely on it. The path is for messages.
 */
enum status quantise_check(const struct params *params, const char *path);
/* The same of one. */
enum status quantise_check_values(const char *name, const int32_t *values, int64_t count,
                                  const char *path);

/* Every activation an output: none shares its bytes, all can be fetched after a step. */
enum status quantise_expose(const struct program *program, struct program **out);

#endif
