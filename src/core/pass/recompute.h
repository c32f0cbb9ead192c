/* recompute.h: a training that keeps fewer activations and computes the others again. */
#ifndef PRONY_CORE_PASS_RECOMPUTE_H
#define PRONY_CORE_PASS_RECOMPUTE_H

#include "core/program.h"

/* Makes a new program with the same results, bit for bit; the old one stays. The forward ops are
 * cut into segments. What lies between two segments is kept; what lies inside one is dropped, and
 * its ops run again before the backward ops that read it. Several cuts are tried. The one that is
 * taken computes least again of those whose activations take at most `bytes`; where none does, as
 * with 0 bytes, it is the one that takes fewest. A program that no cut makes smaller is copied.
 * Statistics move once, and random numbers are the same. To be done after a split, before fuse. */
enum status recompute(const struct program *program, uint64_t bytes, struct program **out);

#endif
