/* made.h: data sets that are drawn, not read: problems with a known answer. */
#ifndef PRONY_DATA_MADE_H
#define PRONY_DATA_MADE_H

#include "data/dataset.h"

enum { RING_MODES = 8 };

/* Points around the corners of an octagon at distance 2 from the origin, normal with σ = 0.1: a
 * density with eight modes. There is nothing to learn of a point but where points are. */
enum status dataset_ring(const char *name, int64_t rows, struct dataset **out);

/* The adding problem (Hochreiter and Schmidhuber 1997): `steps` pairs of a number from 0 to 1 and a
 * mark, which is 1 for one pair of each half and else 0; to be learnt is the sum of the two marked
 * numbers. Who guesses its mean is off by 1/6 in the mean square. */
enum status dataset_adding(const char *name, int64_t rows, int32_t steps, struct dataset **out);

#endif
