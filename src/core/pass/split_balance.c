/* split_balance.c: by dynamic programming: the best cut of the first i groups into k stages is the
 * best cut of some first j of them into k - 1, and a stage of the rest. */
#include "core/pass/split_balance.h"

#include "base/arena.h"

#include <assert.h>

enum status split_balance(const double *costs, int32_t count, int32_t stages, int32_t *stage_of)
{
    struct arena arena = {0};
    const size_t width = (size_t)count + 1;
    enum status status = STATUS_OK;
    double *sums, *largest; /* [count + 1], [stages + 1][count + 1] */
    int32_t *begins;        /* [stages + 1][count + 1]: where the last stage of that cut begins */
    assert(stages >= 1 && stages <= count);
    NEED_OR(done, sums = arena_array(&arena, width, sizeof *sums));
    NEED_OR(done, largest = arena_array(&arena, width * ((size_t)stages + 1), sizeof *largest));
    NEED_OR(done, begins = arena_array(&arena, width * ((size_t)stages + 1), sizeof *begins));
    for (int32_t i = 0; i < count; i++)
        sums[i + 1] = sums[i] + costs[i];
    for (int32_t i = 1; i <= count; i++)
        largest[width + (size_t)i] = sums[i];
    for (int32_t k = 2; k <= stages; k++)
        for (int32_t i = k; i <= count; i++) {
            const size_t at = (size_t)k * width + (size_t)i;
            for (int32_t j = k - 1; j < i; j++) {
                const double before = largest[(size_t)(k - 1) * width + (size_t)j];
                const double own = sums[i] - sums[j], most = before > own ? before : own;
                if (j == k - 1 || most < largest[at]) {
                    largest[at] = most;
                    begins[at] = j;
                }
            }
        }
    for (int32_t k = stages, to = count; k >= 1; k--) {
        const int32_t from = begins[(size_t)k * width + (size_t)to];
        for (int32_t i = from; i < to; i++)
            stage_of[i] = k - 1;
        to = from;
    }
done:
    arena_free(&arena);
    return status;
}
