/* notes.h: what to know of a result that is right: why its figures are less than they might be. */
#ifndef PRONY_BENCH_SWEEP_NOTES_H
#define PRONY_BENCH_SWEEP_NOTES_H

#include "bench/measure.h"
#include "record/record.h"

/* Appends "; time was up at ± 2.1 %; …". `rate` is a scenario's queries a second, or 0; `options`
 * are those it was measured by. */
void notes_add(const struct record *record, const struct timing *timing, double rate,
               const struct measure_options *options, struct text *notes);

#endif
