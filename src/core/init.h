/* init.h: what a parameter starts from: a function of (seed, its name), the same bits everywhere.
 */
#ifndef PRONY_CORE_INIT_H
#define PRONY_CORE_INIT_H

#include "base/status.h"
#include "core/tensor.h"

enum init_kind { INIT_ZERO, INIT_ONE, INIT_UNIFORM, INIT_NORMAL, INIT_ORTHOGONAL };

/* `scale` is the half-width of the uniform, the σ of the normal, or the length of the orthogonal
 * rows or columns, whichever are fewer. The first dimension counts the rows. */
struct init {
    enum init_kind kind;
    float scale;
};

/* Fills `data`, of this shape; values are floats, whatever the type. */
enum status init_fill(const struct init *init, uint64_t seed, const char *name, enum dtype dtype,
                      const struct shape *shape, void *data);

#endif
