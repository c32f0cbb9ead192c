/* proof_line.h: what advice promised and what a re-run gave: a record of kind "proof", and what
 * many of them say of a rule.
 *
 *   {"prony":1,"kind":"proof","proof":{"rule":"R10","command":"python3 train.py","change":"OMP_…",
 *    "expected":2.1,"low":1.5,"high":4,"measured":2.4,"measured_low":2.3,"measured_high":2.5,
 *    "rounds":8,"verdict":"faster"},"machine":{…},"at":"…"} */
#ifndef PRONY_RECORD_PROOF_LINE_H
#define PRONY_RECORD_PROOF_LINE_H

#include "base/json.h"
#include "record/compare.h"

struct proof_line {
    const char *rule;           /* "R10" */
    const char *command;        /* that was run */
    const char *change;         /* the environment, or the other command */
    double expected, low, high; /* gain of the whole program, × */
    double measured, measured_low, measured_high;
    int64_t rounds;
    enum verdict verdict; /* of the program with the change */
};

/* Appends the line, without its newline. `machine` may be NULL. */
void proof_line_write(const struct proof_line *proof, const struct json *machine, const char *at,
                      struct text *out);
/* Reads the object. Texts point into it. */
enum status proof_line_read(const struct json *object, struct proof_line *out);

/* Faster, by an interval that shares something with what was expected. */
bool proof_held(const struct proof_line *proof);

/* Of one rule. A zeroed struct has seen none. */
enum { PROOFS_MOST = 256, PROOFS_TELLING = 3 };
struct proof_history {
    int64_t proofs, faster, held;
    double factors[PROOFS_MOST]; /* (measured - 1) ÷ (expected - 1) */
    size_t factor_count;
};
void proof_history_add(struct proof_history *history, const struct proof_line *proof);
/* Corrects the range that a rule gives, 1 + low (g - 1) … 1 + high (g - 1): with a few proofs it is
 * widened until it holds them, with more it is what nine of ten of them gave. */
void proof_history_correct(const struct proof_history *history, double *low, double *high);

#endif
