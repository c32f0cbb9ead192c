/* ops.h: reading the rows of ops.def: checking an op's operands, counting its FLOP. */
#ifndef PRONY_CORE_OPS_H
#define PRONY_CORE_OPS_H

#include "core/program.h"

/* One operand of a row of ops.def. */
enum { OPS_WORD = 24 };
struct operand_row {
    char name[OPS_WORD];
    char dtype[OPS_WORD]; /* "", "i32", "i8", "u8", "any" */
    bool optional, many, has_dims;
    const char *dims; /* after '[', up to ']' */
};

/* Walks the operands of one side of a row: returns where the next begins, NULL when there is none.
 */
const char *ops_side(enum op_kind kind, bool outputs);
const char *ops_next(const char *at, struct operand_row *row);

/* Sets an attribute from text ("activation", "relu"); false when there is none of that name or the
 * text does not fit. */
bool ops_set(struct op *op, const char *name, const char *value);

bool ops_set_number(struct op *op, const char *name, double value);

/* Gives the op those attributes of another that it has too, by their names. */
void ops_take_attributes(struct op *op, const struct op *from);

/* Does the op fit its row? The message names the op, the operand, found and expected. */
enum status ops_check(const struct program *program, const struct op *op);

#endif
