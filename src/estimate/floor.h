/* floor.h: the least time a task can take on this machine, whoever runs it.
 *
 * The floor belongs to the task (network, batch, phase, optimiser, precision), so it is counted on
 * the program as compiled, before any pass. FLOP: what the mathematics of forward and backward
 * needs; the update's multiply-add is not counted, because it can be the last step of the sum that
 * makes the gradient. Bytes: kept tensors (parameters, statistics, state) read once and written
 * once in forward, and again in backward + update, where the program reads or writes them; inputs
 * read and outputs written once. Gradients and activations need never reach memory.
 *
 *     floor = Σ over {forward, backward + update} of max(FLOP ÷ peak, bytes ÷ bandwidth) */
#ifndef PRONY_ESTIMATE_FLOOR_H
#define PRONY_ESTIMATE_FLOOR_H

#include "core/program.h"
#include "estimate/calibrate.h"

struct work {
    struct {
        uint64_t flop, bytes;
    } forward, backward; /* backward: with the update */
    uint64_t set_bytes;  /* all that is touched: the working set */
};

struct floor {
    double ns;           /* NaN when it is so far below any latency that it says nothing */
    const char *bound;   /* "flop" or "bytes": what most of it is made of; "latency" when it is less
                            than starting it takes */
    bool reads, updates; /* is forward, is backward bound by bytes? */
};

enum status work_count(const struct program *program, struct work *out);
/* The same in a precision, as the axis has it: what forward reads may have 16 bits where products
 * do; what is learnt keeps its 32. Where nothing is, half as much is touched. */
struct work work_in(const struct work *work, const char *precision);
void floor_of(const struct work *work, const struct ceilings *ceilings, struct floor *out);

/* One op's own, in ns: max(FLOP ÷ peak, kept tensors ÷ bandwidth at the size of all that the step
 * touches, operands ÷ bandwidth at their own size): what it reads may lie in a cache, but the
 * network's weights have to come from where they all fit. `whole` has the ceilings at the size of
 * the step. NaN when there is nothing to do. */
enum status floor_of_op(const struct program *program, const struct op *op,
                        const struct yardstick *yardstick, const struct ceilings *whole,
                        double *out);
/* Of a few bytes no distance from a floor is worth telling. */
enum { FLOOR_LEAST_NS = 1 };

#endif
