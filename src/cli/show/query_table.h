/* query_table.h: the points of a chart as rows, for people, spreadsheets and documents. */
#ifndef PRONY_CLI_QUERY_TABLE_H
#define PRONY_CLI_QUERY_TABLE_H

#include "record/tables/table.h"
#include "store/store.h"

enum status query_table(const struct store_query *query, const struct store_chart *chart,
                        enum table_format format, struct text *out);

/* A figure of the metric with its unit: "1.42 ms", "12.3 k samples/s". */
void query_figure(struct text *out, const struct metric *metric, double value);

#endif
