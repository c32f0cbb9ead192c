/* show_record.h: a record in a table for people: its title, its marks, its result. */
#ifndef PRONY_CLI_SHOW_RECORD_H
#define PRONY_CLI_SHOW_RECORD_H

#include "cli/table/show_table.h"
#include "record/record.h"
#include "record/title.h"

/* "large, training, batch 64, 1 thread, AMD EPYC": of the axes that are `told` those that a
 * benchmark is known by, and those that are not as usual; then the machine. */
void show_record_title(const struct record *record, const bool told[AXIS_COUNT], struct text *out);

/* "prony, simd, large, batch 64": the values of these axes, in one cell. */
void show_record_values(const struct point *point, const bool varies[AXIS_COUNT], struct text *out);

/* The marks of what to know of a result: its notes, its handicap, a slow hour. */
void show_record_marks(struct show_table *table, const struct record *record, struct text *out);
/* "correct", "not checked*", "skipped†": with the mark of the reason. */
void show_record_result(struct show_table *table, const struct record *record, struct text *out);
/* The reason of a skip holds for one more, which has no row. */
void show_record_repeat(struct show_table *table, const struct record *record);

/* Adds what the record's software is, "numpy 1.24.2", unless `out` has it: names with versions. */
void show_record_software(const struct record *record, struct text *out);

/* What the machine is called: "AMD EPYC, 2 cores". */
const char *show_record_machine(const struct record *record, char title[TITLE_TEXT]);

#endif
