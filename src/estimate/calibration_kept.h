/* calibration_kept.h: the ceilings in the user's cache folder, for commands that need them, and as
 * a table. */
#ifndef PRONY_ESTIMATE_CALIBRATION_KEPT_H
#define PRONY_ESTIMATE_CALIBRATION_KEPT_H

#include "estimate/calibrate.h"

/* Reads what is kept. Where there is no folder for it nothing is kept, and nothing is lost: what is
 * needed is measured. */
enum status calibration_open(struct calibration *calibration);
/* Keeps what was found, and frees. A disk that is full or not ours is only told. */
void calibration_close(struct calibration *calibration);

/* A line for each precision, and for what is read from each cache and from memory. */
void calibration_brief(const struct calibration *calibration, const struct cpu *cpu,
                       struct text *out);
/* Peaks, then the curves: a row for each working set. */
void calibration_text(const struct calibration *calibration, struct text *out);

/* Says so where memory behind the last cache, which a virtual machine shares with whoever else is
 * on its host, gave much less in this calibration (`found`) than it ever did (`kept`); else
 * nothing. */
void calibration_compare(const struct calibration *kept, const struct calibration *found,
                         struct text *out);

#endif
