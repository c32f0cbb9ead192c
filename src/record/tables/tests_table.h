/* tests_table.h: results as ToyNeuralNet published its own: a numbered test a row, with what was
 * run, how long it took and how busy the machine was. */
#ifndef PRONY_RECORD_TESTS_TABLE_H
#define PRONY_RECORD_TESTS_TABLE_H

#include "record/tables/table.h"

enum status tests_table_print(const struct table_row *rows, size_t count, struct text *out);

#endif
