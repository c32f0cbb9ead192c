/* schedule.h: how the learning rate changes with the number of updates done. Included by C and
 * CUDA, so that every backend computes the same rate where it runs. */
#ifndef PRONY_CORE_SCHEDULE_H
#define PRONY_CORE_SCHEDULE_H

#include "base/everywhere.h"

#include <math.h>
#include <stdint.h>

enum schedule_kind {
    SCHEDULE_CONSTANT,
    SCHEDULE_STEP,   /* × factor after every `period` updates */
    SCHEDULE_COSINE, /* half a cosine from 1 down to `factor`, over `period` updates */
};

/* The factor for update number `count` (from 0). The first `warmup` updates rise to it linearly. */
EVERYWHERE double schedule_factor(int32_t kind, int32_t warmup, int32_t period, double factor,
                                  int32_t count)
{
    double value = 1;
    if (kind == SCHEDULE_STEP)
        value = pow(factor, (double)(count / period));
    if (kind == SCHEDULE_COSINE) {
        double part = count < period ? (double)count / period : 1;
        value = factor + (1 - factor) * 0.5 * (1 + cos(3.14159265358979323846 * part));
    }
    return count < warmup ? value * (count + 1) / warmup : value;
}

#endif
