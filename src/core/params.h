/* params.h: a network's parameters on the host, outside any program.
 *
 * Named entries in canonical order and layout (dense [in][out], images NCHW, sequences [batch,
 * time, feature]), in three blocks: param, statistic, state. Programs are drafted against it and
 * declare what they need; entries are only ever added, so offsets stay valid. attach() copies the
 * blocks to a device; upload and download move them. */
#ifndef PRONY_CORE_PARAMS_H
#define PRONY_CORE_PARAMS_H

#include "base/arena.h"
#include "base/status.h"
#include "core/control.h"
#include "core/init.h"
#include "core/tensor.h"

struct entry {
    const char *name; /* unique: "dense1.weight" */
    enum role role;   /* ROLE_PARAM, ROLE_STATISTIC or ROLE_STATE */
    enum dtype dtype;
    struct shape shape;
    struct init init;
    const float *given; /* what it starts from instead of `init`; or NULL */
    const void *raw;    /* the same as bytes of its own type; or NULL */
    bool fixed;         /* a parameter that stays as it is: it has no gradient */
    bool matrix;        /* a weight that only products and updates touch, [in][out], or that only
                           convolutions of one group and updates touch, [out][in][h][w]: a device may keep
                           it in blocks of its own; nothing may view it in another shape */
    uint64_t bytes, offset; /* offset in its role's block; a multiple of PARAMS_ALIGN */
};

enum { PARAMS_ALIGN = 64 };

struct params {
    struct arena arena;
    enum dtype real; /* of the entries that are not integers: f32, or f64 for the oracle */
    bool bare;       /* names and shapes, no values: nothing is allocated, and an instance of them
                        serves dry plans only. Set before anything is declared */
    int32_t count, room;
    struct entry *entries;
    struct {
        void *data;
        uint64_t bytes, room;
    } blocks[ROLE_COUNT]; /* param, statistic, state are used */
    int32_t filled;       /* so many of the entries have a value */
    struct control control;
};

void params_init(struct params *params, enum dtype real);
void params_free(struct params *params);

/* Adds an entry, filled with zeros, and gives its index; the same name again gives the same entry,
 * which must have the same role, type and shape. */
enum status params_declare(struct params *params, const char *name, enum role role,
                           enum dtype dtype, struct shape shape, struct init init, int32_t *entry);
/* Says that the entry, of two or four dimensions, is a matrix in that sense. */
void params_mark_matrix(struct params *params, int32_t entry);
/* Says what the entry starts from: as many numbers as it has elements, which outlive `params`. */
void params_give(struct params *params, int32_t entry, const float *values);
int32_t params_find(const struct params *params, const char *name); /* -1: none */
void *params_data(const struct params *params, int32_t entry);

/* Gives the memory of the values back, while they are elsewhere; and takes it again, zeroed. */
void params_drop(struct params *params);
enum status params_hold(struct params *params);

/* Gives every entry its starting value and resets the control block: step 0, this seed. */
enum status params_fill(struct params *params, uint64_t seed);
/* Gives the entries that were declared since then theirs, by the control block's seed. */
enum status params_fill_new(struct params *params);

/* Layers that learn: "dense1.weight" and "dense1.bias" are one. */
int64_t params_layers(const struct params *params);
/* Learnt numbers (elements of role param). */
uint64_t params_count(const struct params *params);

#endif
