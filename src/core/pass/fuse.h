/* fuse.h: merges ops where the backend has one that does the work of several. */
#ifndef PRONY_CORE_PASS_FUSE_H
#define PRONY_CORE_PASS_FUSE_H

#include "core/backend.h"

/* Makes a new program; the old one stays. Three fusions, each done only where `device` supports the
 * result and where nothing else reads what would disappear:
 *   dense + bias + activation        dense(x, w, b) → activate                     one dense
 *   conv + what follows              conv → batch_norm_fixed → add → activate →    one conv_fused
 *                                    bound, any of these, in this order
 *   dense backward + update          outer, sum_rows, dense_t, sgd, sgd            one dense_sgd
 *                                    outer, dense_t, another optimiser's op        one dense_update
 * and where the device has one kernel for the whole result, it is marked (program->whole; else
 * op_by_op says why): run apart its parts still go op by op, run together they are that kernel. On
 * a CPU an inference whose activations are large goes in portions (portion.h). A gradient that is
 * clipped, accumulated or reduced is read by somebody else, so it stays. */
enum status fuse(const struct program *program, const struct backend *backend,
                 const struct device *device, struct program **out);

#endif
