/* ops.h: reading the rows of ops.def: checking an op's operands, counting its FLOP. */
#ifndef PRONY_CORE_OPS_H
#define PRONY_CORE_OPS_H

#include "core/program.h"

/* Does the op fit its row? The message names the op, the operand, found and expected. */
enum status ops_check(const struct program *program, const struct op *op);

#endif
