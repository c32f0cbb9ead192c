/* software.h: what ran, and how it was tuned, told apart.
 *
 * The software is versions, compilers and libraries; tuning is what a peer tried and kept because
 * it was the fastest here. Two results of the same software may be tuned in different ways. */
#ifndef PRONY_RECORD_SOFTWARE_H
#define PRONY_RECORD_SOFTWARE_H

#include "base/json.h"
#include "record/point.h"

/* Moves settings from a peer's software to its tuning, and drops the parts that other axes have:
 * "python 3.11.2, numpy 1.24.2, weights [in][out]". Records had both in one text once. */
void software_split(struct point *point);

/* Adds the text members of an object, "key value, …", to a field of a point, as many as fit; of a
 * BLAS that says its name and version only these. */
void software_add(char field[POINT_TEXT], const struct json *members);

#endif
