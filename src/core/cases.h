/* cases.h: programs of one op, made from the rows of cases.def and ops.def.
 *
 * Every operand of the op becomes an entry of the parameters, in its own memory, with a guard entry
 * behind it. So any backend can be fed, run and read by attach, run and download. A kernel that
 * writes beyond its output is seen. */
#ifndef PRONY_CORE_CASES_H
#define PRONY_CORE_CASES_H

#include "core/params.h"
#include "core/program.h"

struct op_case {
    enum op_kind kind;
    const char *sizes, *attributes, *absent;
};

/* The cases, counted from 0; false beyond the last. Every op that can run by itself has one. */
bool case_at(int32_t index, struct op_case *out);

/* Adds the case's operands to `params` (empty before), fills them by seed, and drafts the program.
 * Inputs hold random numbers that suit them (labels within the classes, lengths within the time),
 * outputs NaN, guards CASE_GUARD. */
#define CASE_GUARD 12345.0f
enum { CASE_GUARD_ELEMENTS = 16 };
enum status case_program(const struct op_case *op_case, uint64_t seed, struct params *params,
                         struct program **out);

/* How far results may be off in that precision (as the axis has it; NULL: fp32) after sums of a
 * thousand products, relative to the largest value. */
double case_tolerance(const char *precision);

/* Ops over numbers of 8 bits (docs/quantisation.md): every backend gives the same bits as the
 * reference. */
bool case_is_exact(enum op_kind kind);
/* The precision of the reference that results are compared with. */
enum dtype case_oracle(enum op_kind kind);

/* Are these the results of the case, where `expected` has them in the oracle's precision?
 * STATUS_WRONG names the operand that differs by more than `tolerance`, or that was written beyond
 * its end. *error is the largest difference, relative to the largest value of its operand. */
enum status case_compare(const struct op_case *op_case, const struct params *found,
                         const struct params *expected, double tolerance, double *error);

#endif
