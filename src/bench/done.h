/* done.h: what was measured already, so that a stopped suite goes on where it was stopped.
 *
 * A configuration is done when there is a result for the same point and the same program, on the
 * same machine, by the same commit, that did not fail. */
#ifndef PRONY_BENCH_DONE_H
#define PRONY_BENCH_DONE_H

#include "record/facts.h"
#include "record/record.h"

enum { DONE_PROGRAM = 17 }; /* a hash as text */

/* A zeroed struct is empty and ready. */
struct done {
    struct done_row *rows;
    size_t count, room;
};

/* Takes what it needs of a record; of any kind. */
enum status done_add(struct done *done, const struct record *record);
/* Axes that the point leaves open (isa) match whatever they turned out to be. */
bool done_has(const struct done *done, const struct facts *facts, const struct point *point,
              const char *program);
void done_free(struct done *done);

/* The hash of the program that a point runs; "" where there is none, because it cannot be made. */
enum status done_program(const struct point *point, char program[DONE_PROGRAM]);

#endif
