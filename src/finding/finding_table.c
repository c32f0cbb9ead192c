/* finding_table.c: all findings, the most important first. A new one is a row here and the function
 * that says it. */
#include "finding/finding_inside.h"

#include <string.h>

#define USUAL (FINDING_CHECKED | FINDING_QUIET | FINDING_SURE)
#define HERE (FINDING_PHASE | FINDING_SERVER)

const struct finding_row finding_rows[FINDINGS] = {
    {"limit", "How close to the limit", "How close to the limit does it run?", "bars", USUAL,
     .chart = {.x = "framework",
               .y = "of_limit",
               .groups = {"threads"},
               .scope = HERE | FINDING_BEST_UNIT},
     .say = finding_limit},
    {"batch", "Which batch", "Which batch?", "lines", USUAL,
     .chart = {.x = "batch",
               .y = "throughput",
               .groups = {"framework", "backend", "threads"},
               .scope = HERE},
     .say = finding_batch},
    {"frameworks", "Who is fastest", "Which framework is fastest?", "dots", USUAL,
     .chart = {.x = "batch",
               .y = "throughput",
               .groups = {"framework"},
               .scope = HERE | FINDING_BEST_UNIT,
               .across = FINDING_BIT(framework)},
     .say = finding_frameworks},
    {"threads", "Threads", "How many threads?", "bars", USUAL,
     .chart = {.x = "threads",
               .y = "throughput",
               .groups = {"framework", "backend", "batch"},
               .scope = HERE | FINDING_CPU,
               .baseline = "first"},
     .say = finding_threads},
    {"unit", "CPU or GPU", "CPU or GPU for this network?", "lines", USUAL,
     .chart = {.x = "batch",
               .y = "throughput",
               .groups = {"unit", "source", "server"},
               .scope = FINDING_PHASE,
               .across = FINDING_BIT(unit) | FINDING_BIT(framework)},
     .say = finding_unit},
    {"precision", "Which precision", "Which precision?", "bars", USUAL,
     .chart = {.x = "precision",
               .y = "throughput",
               .groups = {"framework", "backend", "batch"},
               .scope = HERE | FINDING_BEST_UNIT},
     .say = finding_precision},
    {"slowest", "What to avoid", "What is slowest?", "dots", USUAL,
     .chart = {.x = "framework", .y = "times_floor", .scope = HERE | FINDING_BEST_UNIT},
     .say = finding_slowest},
    {"next", "What to try next", "What to try next?", "lines", USUAL,
     .chart = {.x = "batch", .y = "throughput", .groups = {"framework", "backend"}, .scope = HERE},
     .say = finding_next},
    {"phase", "Training or inference", "Training or inference?", "bars", USUAL,
     .chart = {.x = "phase",
               .y = "throughput",
               .groups = {"framework", "backend", "batch", "threads"},
               .scope = FINDING_SERVER},
     .say = finding_phase},
    {"busy", "Was the machine busy", "Was the machine busy?", "bars", 0,
     .chart =
         {.x = "model", .y = "time_interval", .groups = {"disturbed"}, .scope = FINDING_SERVER},
     .say = finding_busy},
    /* of records that came from elsewhere, which nobody checked */
    {"workers", "More machines", "What would twice the machines bring?", "lines", FINDING_QUIET,
     .chart = {.x = "workers",
               .y = "throughput",
               .groups = {"framework", "backend", "batch"},
               .scope = FINDING_PHASE | FINDING_WORKERS,
               .baseline = "first"},
     .say = finding_workers},
};

bool finding_named(const char *name, size_t *index)
{
    for (*index = 0; *index < FINDINGS; ++*index)
        if (strcmp(finding_rows[*index].name, name) == 0)
            return true;
    return false;
}
