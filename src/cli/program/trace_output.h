/* trace_output.h: what `prony profile` and `prony advise` print of a trace: for people, or one JSON
 * object. */
#ifndef PRONY_CLI_TRACE_OUTPUT_H
#define PRONY_CLI_TRACE_OUTPUT_H

#include "advise/advise.h"
#include "base/json.h"

/* What a trace is called: its command, or its file. */
const char *traced_title(const struct trace *trace, const char *path);

/* Budget, classic figures, kernels, lines. */
enum status traced_text(const struct trace *trace, const struct advice *advice, const char *title,
                        int width, struct text *out);
/* The same without its title. */
enum status traced_parts(const struct trace *trace, const struct advice *advice, int width,
                         struct text *out);
/* Findings, or why there are none. */
enum status advised_text(const struct trace *trace, const struct advice *advice, const char *title,
                         int width, struct text *out);
/* The member "findings" of an object. */
void advised_json_findings(struct json_writer *json, const struct trace *trace,
                           const struct advice *advice);
/* Was the program changed as advised, and did it gain? `after` is that of the changed program. Both
 * times are of a step: unwatched where both traces know it. */
void advised_proof(const struct advice *before, const struct advice *after, int width,
                   struct text *out);
/* The budget alone: a table; the members "budget" and "figures" of an object. */
enum status traced_budget(const struct advice *advice, int width, struct text *out);
void traced_json_budget(struct json_writer *json, const struct budget *budget);
/* All of both: as members of an object that is open, or as an object. */
enum status traced_json_members(struct json_writer *json, const struct trace *trace,
                                const struct advice *advice, const char *title);
enum status traced_json(const struct trace *trace, const struct advice *advice, const char *title,
                        struct text *out);

#endif
