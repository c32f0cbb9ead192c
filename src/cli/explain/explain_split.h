/* explain_split.h: `prony explain --workers N`: who of several workers does what of a training. */
#ifndef PRONY_CLI_EXPLAIN_SPLIT_H
#define PRONY_CLI_EXPLAIN_SPLIT_H

#include "cli/explain/explained.h"
#include "core/pass/pipeline_table.h"

struct split_flags {
    const char *parallelism;        /* as the axis has it; NULL: pipeline */
    const char *pipeline;           /* order of its turns; NULL: 1f1b */
    int64_t workers, micro_batches; /* micro_batches 0: as usual */
};

/* Shares out the training that was compiled, and writes who does what, as text or as a line of
 * JSON. */
enum status explain_split(struct explained *explained, const struct split_flags *flags,
                          bool as_json, struct text *out);
/* The same of one way alone; a schedule and micro-batches are a pipeline's. */
enum status explain_model(struct explained *explained, const struct split_flags *flags,
                          bool as_json, struct text *out);
enum status explain_data(struct explained *explained, const struct split_flags *flags, bool as_json,
                         struct text *out);

/* The line of JSON: what all ways have; then their own; its end. */
void explain_split_begin(const struct explained *explained, const char *parallelism,
                         int32_t workers, struct json_writer *json, struct text *out);
void explain_split_end(struct json_writer *json, struct text *out);

#endif
