/* portion.h: an inference in portions of its samples. */
#ifndef PRONY_CORE_PASS_PORTION_H
#define PRONY_CORE_PASS_PORTION_H

#include "core/program.h"

/* How many samples a portion of this program has best; program->batch where there is nothing to
 * win, or where one sample depends on another. */
int32_t portion_samples(const struct program *program);

/* Makes a new program, which runs its ops for so many samples, and that as often as it takes for
 * all of them; the old one stays. `samples` divides the batch. */
enum status portion(const struct program *program, int32_t samples, struct program **out);

#endif
