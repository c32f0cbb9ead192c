/* gaps.h: the cells of a table that were missing, where a mean or median stands for them.
 *
 * The figure is that of the rows that are learnt from: a row that is held out or tested must tell
 * the network nothing. These rows are known once the data was split. So the reader puts the figure
 * of all rows there for the time being, keeps the places, and gaps_fill fills them anew. */
#ifndef PRONY_DATA_GAPS_H
#define PRONY_DATA_GAPS_H

#include "data/dataset.h"

struct gaps {
    bool median; /* else the mean */
    size_t count;
    uint64_t *cells; /* [count]: places in the data set's features, in the arena */
};

/* Finds the figure of each column that may be filled over these rows, keeps it in dataset->table,
 * and puts it into the cells that were missing, of all rows. Adds a line to dataset->notes. To be
 * called before the features are scaled; does nothing where no mean or median was asked for. */
enum status gaps_fill(struct dataset *dataset, const uint32_t *rows, int64_t count);

/* The mean or median of so many numbers, which it may sort; 0 of none. */
float gaps_figure(float *numbers, int64_t count, bool median);

#endif
