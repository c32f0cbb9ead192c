/* ingestion_table.h: what copying samples to a unit costs, in the words of profilers: computing ÷
 * copying, overlap, throughput of the copies, utilisation. */
#ifndef PRONY_CLI_INGESTION_TABLE_H
#define PRONY_CLI_INGESTION_TABLE_H

#include "record/table.h"

enum status ingestion_table_print(const struct table_row *rows, size_t count, struct text *out);

#endif
