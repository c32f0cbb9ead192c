/* show_figure.h: figures as people read them, for cells of tables and for sentences. */
#ifndef PRONY_CLI_SHOW_FIGURE_H
#define PRONY_CLI_SHOW_FIGURE_H

#include "base/text.h"
#include "record/record.h"

/* "48.7 ms ± 2 %"; without an interval "48.7 ms". "–" for NaN, here and below. */
void show_time(struct text *out, double ns);
void show_interval(struct text *out, const struct stats *time);
/* "1,310"; "13.1"; "12.3 M" from ten millions on. */
void show_rate(struct text *out, double per_s);
/* "83 %", "8.3 %", "0.07 %". */
void show_share(struct text *out, double percent);
/* "118 GFLOP/s", "25.1 GB/s", "2.1 GFLOP": a count with its prefix before the unit. */
void show_scaled(struct text *out, double count, const char *unit);
/* "4.7 GFLOP = 2.35 G multiply-adds". */
void show_flop(struct text *out, double flop);

/* How far a result is from its limit: median ÷ the least time possible, in the hour it was measured
 * in where that is known. NaN: unknown. */
double show_times_limit(const struct record *record);
/* "83 %": 100 ÷ that. */
void show_of_limit(struct text *out, const struct record *record);
/* "multiply-adds", "memory", "launch latency" for "flop", "bytes", "latency". */
const char *show_bound(const char *bound);
/* "correct", "wrong", "not checked", "skipped", "failed". */
const char *show_result(const struct record *record);

#endif
