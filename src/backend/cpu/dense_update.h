/* dense_update.h: the optimiser within a dense_update op, as the call that its own kernel takes:
 * for some weights at a time, whose gradient is wherever it was computed. */
#ifndef PRONY_BACKEND_CPU_DENSE_UPDATE_H
#define PRONY_BACKEND_CPU_DENSE_UPDATE_H

#include "backend/cpu/kernel.h"

enum { DENSE_UPDATE_OPERANDS = 10 }; /* w, g, rate, count, two states; w, g, two states */

/* Each thread has its own. It points into itself: it stays where it is. */
struct dense_update {
    const struct call *whole;
    struct op op;
    int from[DENSE_UPDATE_OPERANDS]; /* the operand of dense_update; -1: there is none */
    void *data[DENSE_UPDATE_OPERANDS];
    int64_t counts[DENSE_UPDATE_OPERANDS];
    struct call call;
};

void dense_update_begin(struct dense_update *update, const struct call *whole);

/* The call for `count` weights from `first` on, as they are stored, and their gradient. */
const struct call *dense_update_at(struct dense_update *update, int64_t first, void *gradient,
                                   int64_t count);

#endif
