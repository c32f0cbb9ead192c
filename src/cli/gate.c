/* gate.c: see gate.h. */
#include "cli/gate.h"

#include <math.h>

void gate_count(struct gate *gate, const struct comparison *found, const char *disturbed)
{
    const bool beyond = found->ratio > 1 + gate->share;
    gate->pairs++;
    if (*disturbed)
        gate->disturbed++;
    else if (found->verdict == VERDICT_SLOWER)
        gate->slower += beyond;
    else if (found->verdict == VERDICT_UNKNOWN && isnan(found->low))
        gate->once += beyond;
}

enum status gate_judge(const struct gate *gate)
{
    if (!isfinite(gate->share))
        return STATUS_OK;
    if (gate->failed)
        FAIL(STATUS_WRONG, "%zu of %zu failed, and did not before", gate->failed, gate->pairs);
    if (gate->slower)
        FAIL(STATUS_WRONG, "%zu of %zu became slower by more than %g %%", gate->slower, gate->pairs,
             100 * gate->share);
    if (gate->disturbed)
        FAIL(STATUS_WRONG,
             "%zu of %zu can't be judged: the machine was disturbed; run again while nothing else "
             "runs",
             gate->disturbed, gate->pairs);
    if (gate->once)
        FAIL(STATUS_WRONG,
             "%zu of %zu cannot be judged: slower by more than %g %%, but with too few samples for "
             "an interval (--seconds gives more)",
             gate->once, gate->pairs, 100 * gate->share);
    return STATUS_OK;
}
