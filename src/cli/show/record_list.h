/* record_list.h: the records of a store as a table for people: what all share is in its title. */
#ifndef PRONY_CLI_RECORD_LIST_H
#define PRONY_CLI_RECORD_LIST_H

#include "record/tables/table.h"

/* Records of kind result only. */
enum status record_list_print(const struct table_row *rows, size_t count, struct text *out);

#endif
