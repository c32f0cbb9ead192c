/* split_balance.h: groups in a row, shared out among stages. */
#ifndef PRONY_CORE_PASS_SPLIT_BALANCE_H
#define PRONY_CORE_PASS_SPLIT_BALANCE_H

#include "base/status.h"

#include <stdint.h>

/* Gives each of `count` groups its stage: each stage has at least one group, and its groups follow
 * each other. The largest sum of costs is as small as can be. */
enum status split_balance(const double *costs, int32_t count, int32_t stages, int32_t *stage_of);

#endif
