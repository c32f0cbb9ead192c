/* ingestion_table.h: what bringing samples to a unit costs, in the words of profilers: gathering,
 * copying and computing, what overlaps, computing ÷ copying, throughput of the copies, utilisation.
 * All but the iteration and the samples a second are of the iterations that were watched. */
#ifndef PRONY_RECORD_INGESTION_TABLE_H
#define PRONY_RECORD_INGESTION_TABLE_H

#include "record/tables/table.h"

enum status ingestion_table_print(const struct table_row *rows, size_t count, struct text *out);

#endif
