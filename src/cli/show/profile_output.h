/* profile_output.h: what `prony profile` prints: a table for people, or one JSON object. */
#ifndef PRONY_CLI_PROFILE_OUTPUT_H
#define PRONY_CLI_PROFILE_OUTPUT_H

#include "bench/inside.h"

/* What was looked into. */
struct profiled {
    const struct task *task;
    const char *phase, *backend;
    int threads; /* 0: of a GPU */
    const struct inside *inside;
    double flop_per_s; /* what its unit computes at best; 0: unknown */
};

enum status profiled_text(const struct profiled *profiled, struct text *out);
enum status profiled_json(const struct profiled *profiled, struct text *out);

/* Beyond this share, a line says what the ops do not account for. */
#define PROFILE_ADDS_UP 0.10

#endif
