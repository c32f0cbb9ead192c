/* table.h: records for people and spreadsheets.
 *
 * The aligned table (and markdown) leaves out columns in which nothing varies and says their values
 * once, above it; csv has every column, in plain numbers. */
#ifndef PRONY_RECORD_TABLE_H
#define PRONY_RECORD_TABLE_H

#include "base/text.h"
#include "record/record.h"

#include <stdbool.h>

enum table_format { TABLE_ALIGNED, TABLE_CSV, TABLE_MARKDOWN };

struct table_row {
    int64_t id; /* in the store; 0 in all rows: no such column */
    const struct record *record;
};

bool table_format_parse(const char *name, enum table_format *out); /* "table", "csv", "md" */

/* Records of kind result only. */
enum status table_print(const struct table_row *rows, size_t count, enum table_format format,
                        struct text *out);

/* One row of CSV, and before it the heading where that is asked for: for more rows than one wants
 * to hold at once. */
enum status table_csv(const struct table_row *row, bool with_id, bool heading, struct text *out);

/* What tables are made of: a figure in a metric's unit ("1.42 ms"); how many characters wide a text
 * is ("µs" is two); a cell as CSV and Markdown have it (of CSV, text that a spreadsheet would
 * compute has an apostrophe before it). */
void table_figure(struct text *out, double value, const char *unit);
size_t table_width(const char *text);
void table_csv_cell(const char *text, struct text *out);
/* The heading of a CSV column in that unit: "time_median_ns", "throughput_samples_per_s". */
void table_csv_heading(const char *key, const char *unit, struct text *out);
void table_markdown_cell(const char *text, struct text *out);

#endif
