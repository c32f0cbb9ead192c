/* done.h: what was measured already, so that a stopped suite goes on where it was stopped.
 *
 * A configuration is done when there is a result for the same point, program and goal, compared
 * with the same one, on the same machine (its name, CPU and cores, and of what computes on a GPU
 * the GPU's name), by the same commit, that did not fail, since the executables that are measured
 * were changed. One that was skipped is known, and tried again: what was missing may be there by
 * now.
 */
#ifndef PRONY_BENCH_SWEEP_DONE_H
#define PRONY_BENCH_SWEEP_DONE_H

#include "base/arena.h"
#include "record/record.h"

enum { DONE_PROGRAM = 17 }; /* as TASK_PROGRAM */

enum done_state { DONE_NOT, DONE_SKIPPED, DONE_MEASURED };

/* A zeroed struct is empty and ready. */
struct done {
    struct arena arena;
    struct done_row *rows;
    size_t count, room;
};

/* Takes what it needs of a record; of any kind. */
enum status done_add(struct done *done, const struct record *record);
/* Of a record to be; what was measured before `since` (as records have it, or "") does not count.
 * Axes that its point leaves open (isa) match whatever they turned out to be. */
enum status done_find(const struct done *done, const struct record *record, const char *since,
                      enum done_state *out);
void done_free(struct done *done);

/* The hash of the program that a point runs; "" where there is none, because it cannot be made. */
enum status done_program(const struct point *point, char program[DONE_PROGRAM]);

#endif
