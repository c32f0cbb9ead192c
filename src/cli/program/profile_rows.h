/* profile_rows.h: two profiles row by row: parts of the budget by their names, ops, kernels and
 * functions by what people call them. */
#ifndef PRONY_CLI_PROGRAM_PROFILE_ROWS_H
#define PRONY_CLI_PROGRAM_PROFILE_ROWS_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

struct profile_row {
    const char *name;
    double before_ns, after_ns; /* NaN: it is not in that profile */
    double change_ns;           /* what is not there takes no time */
};

struct profile_rows {
    struct profile_row *list; /* the most changed first; a budget's in its order */
    size_t count;
    double gained_ns, lost_ns; /* sums of both, above 0 */
};

struct profile_side {
    const char *title;
    int64_t steps;
    double ns;        /* of a step or of the window: unwatched where both profiles know it */
    double window_ns; /* the same as it was watched */
    bool unwatched;
};

struct profile_pair {
    struct profile_side before, after;
    bool by_step;     /* figures are of a step; else of the window: a run without steps */
    const char *what; /* the rows are: "ops and kernels", "functions" */
    struct profile_rows parts, rows;
};

/* Of two objects as traced_json_members writes them. All lives in the arena. */
enum status profile_pair_make(struct arena *arena, const struct json *before,
                              const struct json *after, struct profile_pair *out);

#endif
