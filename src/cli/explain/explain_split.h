/* explain_split.h: `prony explain --workers N`: who of several workers does what of a training. */
#ifndef PRONY_CLI_EXPLAIN_SPLIT_H
#define PRONY_CLI_EXPLAIN_SPLIT_H

#include "cli/explain/explained.h"
#include "core/pass/split_ranks.h"
#include "train/workers/sharing.h"

struct split_flags {
    struct sharing_flags said; /* without a parallelism: pipeline */
    int64_t workers;
    struct sharing sharing; /* what that says */
    int32_t copies;         /* of the network */
};

/* Reads what was said; then there are the workers of one copy, and *batch has its samples. With a
 * batch of 0 that is a usual number. */
enum status explain_split_settle(struct split_flags *flags, int64_t *batch);

/* Shares out the training that was compiled, and writes who does what, as text or as a line of
 * JSON. */
enum status explain_split(struct explained *explained, const struct split_flags *flags,
                          bool as_json, struct text *out);
/* The same of one way alone; a schedule and micro-batches are a pipeline's. */
enum status explain_model(struct explained *explained, const struct split_flags *flags,
                          bool as_json, struct text *out);
enum status explain_server(struct explained *explained, const struct split_flags *flags,
                           bool as_json, struct text *out);
enum status explain_data(struct explained *explained, const struct split_flags *flags, bool as_json,
                         struct text *out);

/* Where there are several copies: makes the ranks' programs sum across them, and says how many
 * bytes of one these are at most. */
enum status explain_split_across(const struct split_flags *flags, int32_t batch,
                                 struct split_ranks *split, uint64_t *bytes);
/* … says so, in a line. */
void explain_split_copies(const struct split_flags *flags, int32_t batch, uint64_t bytes,
                          struct text *out);
/* The line of JSON: what all ways have; then their own; its end. */
void explain_split_begin(const struct explained *explained, const struct split_flags *flags,
                         struct json_writer *json, struct text *out);
void explain_split_end(struct json_writer *json, struct text *out);

#endif
