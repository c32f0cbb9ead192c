/* suite_ranks.h: a suite by several ranks, as mpirun starts them: each measures its share of the
 * lines, and the first has the results of all. */
#ifndef PRONY_CLI_SUITE_RANKS_H
#define PRONY_CLI_SUITE_RANKS_H

#include "cli/suite_file.h"
#include "cli/training/workers.h"

/* Leaves the suite this rank's lines, and gives a rank that is not the first a file of its own for
 * --out, which begins with what the first one's holds. Ranks of one machine wait here for their
 * turn. */
enum status suite_ranks_begin(const struct worker *worker, struct suite *suite);
/* This rank is done, and how: the next one of its machine may begin. The first files the records of
 * all others in the output, and fails where one of them failed. */
enum status suite_ranks_end(const struct worker *worker, const struct suite *suite,
                            struct bench_output *output, enum status status);

#endif
