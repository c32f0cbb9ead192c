/* prove_program.h: shows that advice holds: runs a program with and without a change, in turns, and
 * says "expected 4.6 × · measured 4.57 × ± 2 % · proved". The proof is kept in the store. */
#ifndef PRONY_CLI_PROGRAM_PROVE_PROGRAM_H
#define PRONY_CLI_PROGRAM_PROVE_PROGRAM_H

#include "advise/advise.h"
#include "advise/prove.h"
#include "cli/commands.h"
#include "record/proof_line.h"
#include "watch/beats.h"

struct prove_wish {
    const char *const *words; /* the program */
    const char *command;      /* the same, as it is typed */
    const char *against;      /* a command to compare with, for a shell; NULL: a lever */
    const char *lever;        /* its key; NULL: the one that is fastest in a run each */
    const char *store;        /* a file; NULL: the user's */
    int64_t rounds;
    struct beat beat;      /* times its steps on a GPU; without a name: whole runs are timed */
    const char *agent_gpu; /* for it */
};

/* What was promised. */
struct prove_promise {
    const char *rule; /* "R10"; "" where nothing was, and two commands are only compared */
    double expected, low, high;
    enum rule_word word;
};

/* "expected 1.6 × · measured 1.58 × ± 2 % · proved". */
void prove_add_line(const struct proof *proof, const struct prove_promise *promise,
                    struct text *out);
/* Files it in the store; `change` is what was changed. */
enum status prove_keep(const struct prove_wish *wish, const struct prove_promise *promise,
                       const char *change, const struct proof *proof);
/* Says how far a proof is. */
void prove_tell(void *context, int64_t done, int64_t all);

/* The lever of this name. */
enum status prove_lever(const char *key, const struct lever **out);
/* Is there a lever for this rule, of those that need not be named? With a name: is it this one's?
 */
bool prove_possible(const char *rule, const char *lever);
/* Runs, prints to standard error, and files the proof. */
enum status prove_program(struct cli *cli, const struct prove_wish *wish,
                          const struct prove_promise *promise);

/* What the proofs in the store say of each rule; a store that cannot be opened has none. Fills
 * *histories, of RULES, which mem_free frees. */
enum status prove_histories(const char *store, struct proof_history **histories);
/* The ranges of the rules, corrected by them; `ranges` of RULES. */
enum status prove_ranges(const char *store, struct rule_range *ranges);
/* advise() with these ranges. */
enum status prove_advise(const struct trace *trace, const char *store, struct advice *advice);

#endif
