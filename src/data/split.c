/* split.c: split, shuffle, standardise. */
#include "data/split.h"

#include "base/memory.h"
#include "base/rng.h"

#include <assert.h>
#include <math.h>

/* Random streams apart from those of a program's ops, which are counted from 0. */
enum { STREAM_SPLIT = 0x7F000001, STREAM_SHUFFLE };

static void shuffle(uint32_t *rows, int64_t count, struct rng_key key)
{
    for (int64_t i = count - 1; i > 0; i--) {
        uint32_t j = rng_below(key, (uint32_t)i, 0, (uint32_t)i + 1);
        uint32_t row = rows[i];
        rows[i] = rows[j];
        rows[j] = row;
    }
}

enum status split_make(int64_t rows, double test_share, uint64_t seed, struct split *out)
{
    assert(rows > 0 && test_share >= 0 && test_share < 1);
    int64_t test = llround((double)rows * test_share);
    if (test_share > 0 && test == 0)
        test = 1;
    if (test >= rows)
        test = rows - 1;
    NEED(out->rows = mem_array((size_t)rows, sizeof *out->rows));
    for (int64_t row = 0; row < rows; row++)
        out->rows[row] = (uint32_t)row;
    shuffle(out->rows, rows, (struct rng_key){seed, STREAM_SPLIT, 0});
    out->train_count = rows - test;
    out->test_count = test;
    return STATUS_OK;
}

void split_free(struct split *split)
{
    mem_free(split->rows);
    *split = (struct split){0};
}

void split_shuffle(uint32_t *rows, int64_t count, uint64_t seed, uint64_t epoch)
{
    shuffle(rows, count, (struct rng_key){seed, STREAM_SHUFFLE, epoch});
}

enum status scaling_alloc(int32_t columns, struct scaling *out)
{
    NEED(out->mean = mem_array((size_t)columns, 2 * sizeof *out->mean));
    out->scale = out->mean + columns;
    out->columns = columns;
    return STATUS_OK;
}

void scaling_free(struct scaling *scaling)
{
    mem_free(scaling->mean);
    *scaling = (struct scaling){0};
}

enum status scaling_make(const struct dataset *dataset, const uint32_t *rows, int64_t count,
                         struct scaling *out)
{
    int32_t columns = dataset->columns;
    TRY(scaling_alloc(columns, out));
    for (int32_t column = 0; column < columns; column++) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < count; i++)
            sum += (double)dataset->features[(int64_t)rows[i] * columns + column];
        double mean = sum / (double)count;
        for (int64_t i = 0; i < count; i++) {
            double off = (double)dataset->features[(int64_t)rows[i] * columns + column] - mean;
            squares += off * off;
        }
        double deviation = sqrt(squares / (double)count);
        out->mean[column] = (float)mean;
        /* what rounding leaves of a constant column must not be blown up to variance 1 */
        bool constant = deviation <= 1e-7 * fabs(mean) || !isfinite((float)(1 / deviation));
        out->scale[column] = constant ? 1 : (float)(1 / deviation);
    }
    return STATUS_OK;
}

void scaling_apply(const struct scaling *scaling, struct dataset *dataset)
{
    assert(scaling->columns == dataset->columns);
    float *feature = dataset->features;
    for (int64_t row = 0; row < dataset->rows; row++)
        for (int32_t column = 0; column < dataset->columns; column++, feature++)
            *feature = (*feature - scaling->mean[column]) * scaling->scale[column];
}
