/* layers_output.h: what prony profile --framework prints: each layer's time in each framework, and
 * where the difference between two arises. */
#ifndef PRONY_CLI_LAYERS_OUTPUT_H
#define PRONY_CLI_LAYERS_OUTPUT_H

#include "bench/layers/layers.h"
#include "record/tables/table.h"

struct layered {
    struct layers *layers;        /* grouped */
    const struct table_row *rows; /* the records, also of those that could not run */
    size_t row_count;
};

enum status layered_text(const struct layered *layered, struct text *out);
enum status layered_json(const struct layered *layered, struct text *out);

#endif
