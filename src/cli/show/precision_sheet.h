/* precision_sheet.h: what ends `prony bench NETWORK --precision all`: for each precision its time
 * against fp32's, the bytes that it moves, and its cost in right answers. Where a smaller type is
 * no faster than fp32, it gives the reason. */
#ifndef PRONY_CLI_SHOW_PRECISION_SHEET_H
#define PRONY_CLI_SHOW_PRECISION_SHEET_H

#include "record/tables/table.h"

/* Appends a table for each configuration that was measured in fp32 and another precision. */
enum status precision_sheet_print(const struct table_row *rows, size_t count, struct text *out);

#endif
