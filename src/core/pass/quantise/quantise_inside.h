/* quantise_inside.h: what quantise.c and quantise_product.c share: the walk over the old program.
 */
#ifndef PRONY_CORE_PASS_QUANTISE_QUANTISE_INSIDE_H
#define PRONY_CORE_PASS_QUANTISE_QUANTISE_INSIDE_H

#include "core/pass/quantise.h"

/* What there is of a tensor of the old program, by its root. -1: not yet. */
struct form {
    int32_t real, u8;
    struct scale scale;         /* of u8 */
    int32_t rounded;            /* u8 that a quantise op of the old program made of the real … */
    struct scale rounded_scale; /* … which stays more exact */
};

struct walk {
    const struct program *from;
    struct quantisation *how;
    const struct quantise_source *source;
    struct params *params;
    struct draft draft;
    struct form *forms;   /* per tensor */
    int32_t *readers;     /* per root: how many operands read it */
    int32_t *only_reader; /* per tensor: one of the ops that read it in its own shape */
    bool *gone;           /* per op: another does its work */
    int32_t *function_of; /* per root: quantise_function.c */
    int32_t *put_off; /* per root: the op that makes it, which is to be done when it is read; -1 */
};

/* The op that alone reads the tensor, in the shape it has, where it is of that kind; or -1. */
int32_t walk_next(const struct walk *walk, int32_t tensor, enum op_kind kind);
/* The activate or bound that alone reads the tensor; or -1. */
int32_t walk_function(const struct walk *walk, int32_t tensor);
bool walk_keeps(const struct walk *walk, const struct op *op);
/* Does an op read the tensor that will take it in 8 bits? */
bool walk_wants(const struct walk *walk, int32_t tensor);
bool walk_has_range(const struct walk *walk, int32_t tensor);
struct scale walk_scale(const struct walk *walk, int32_t tensor);

/* The tensor as it is needed, made of what there is. */
int32_t walk_real(struct walk *walk, int32_t tensor);
int32_t walk_u8(struct walk *walk, int32_t tensor);
/* Where an op writes the tensor, in 8 bits on this scale. */
int32_t walk_write(struct walk *walk, int32_t tensor, struct scale scale);
/* A parameter "LAYER.NAME". */
int32_t walk_keep(struct walk *walk, const char *layer, const char *name, enum dtype dtype,
                  struct shape shape);
/* Where its values go, until the next one is declared; NULL where it gets none, or is none. */
void *walk_values(const struct walk *walk, int32_t kept);
/* The table of a function (NULL: of none) between two scales. */
int32_t walk_table(struct walk *walk, const struct op *at, const struct op *function,
                   const struct scale *from, const struct scale *to);
/* The levels between which a function leaves numbers on this scale as they are. */
void walk_bounds(const struct op *function, const struct scale *scale, int32_t *low, int32_t *high);
/* Does the function only bound? Then it needs no table. */
bool function_bounds(const struct op *function);

/* A dense or conv op and what follows it. False: it stays in fp32. */
bool walk_product(struct walk *walk, int32_t o);

/* Functions of one number (quantise_function.c): finds what each tensor is a function of. */
void functions_find(struct walk *walk);
/* Is the tensor one, or known? */
bool function_is_one(const struct walk *walk, int32_t tensor);
/* Is what the op reads a function of the tensor, and what it gives is none? */
bool function_ends(const struct walk *walk, const struct op *op, int32_t read, int32_t tensor);
/* Is the op part of a function of a tensor that is there in 8 bits? Then it is done when, and if,
 * its result is read. */
bool function_put_off(struct walk *walk, int32_t o);
/* What a tensor that was put off is a function of; -1: it was not. */
int32_t function_source(const struct walk *walk, int32_t tensor);
/* Writes such a tensor in 8 bits, by a table. */
void function_table(struct walk *walk, int32_t tensor, struct scale to);

/* Of a program with scales of its own (quantise_given.c): the one by which all that read the tensor
 * round it; false: it is read as a real, too, or not at all. */
bool given_scale(const struct walk *walk, int32_t tensor, struct scale *out);
/* quantise and dequantise. */
bool given_conversion(struct walk *walk, const struct op *op);
/* A table that rounds as the file's ops do, in fp32. */
void given_table(uint8_t table[256], const struct op *function, const struct scale *from,
                 const struct scale *to);
/* Does pooling in integers round as the file says? */
bool given_pool(const struct walk *walk, const struct op *op);
/* The layer stays in fp32. */
void given_note(struct walk *walk, const struct op *op, const char *why);
/* It does, where it has products of another kind than dense and conv. */
void given_other(struct walk *walk, const struct op *op);

/* The weights of a channel: so many of the values, `stride` apart, times the factor. */
struct channel_weights {
    const float *values;
    int64_t count, stride;
    double factor;
};

/* The step of which all weights of a channel are -127 to 127 whole ones, and its bias is a whole
 * one where it can be; false: there is none. */
bool given_step(const struct channel_weights *w, double bias, double x_scale, double *step);

#endif
