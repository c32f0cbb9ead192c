/* split.c: split, shuffle, standardise. */
#include "data/split.h"

#include "base/memory.h"
#include "base/rng.h"
#include "data/stream.h"

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

/* A share of the rows, of which `most` may be taken. */
static int64_t count_share(int64_t rows, double share, int64_t most)
{
    int64_t count = llround((double)rows * share);
    if (share > 0 && count == 0)
        count = 1;
    return count < most ? count : most;
}

enum status split_make(int64_t rows, const struct split_options *options, struct split *out)
{
    assert(rows > 0 && options->test_share >= 0 && options->validate_share >= 0 &&
           options->test_share + options->validate_share < 1 && options->test_rows < rows);
    int64_t test = options->test_rows;
    NEED(out->rows = mem_array((size_t)rows, sizeof *out->rows));
    for (int64_t row = 0; row < rows; row++)
        out->rows[row] = (uint32_t)row;
    shuffle(out->rows, rows - test, (struct rng_key){options->seed, STREAM_SPLIT, 0});
    if (!test)
        test = count_share(rows, options->test_share, rows - 1);
    out->test_count = test;
    out->validate_count = count_share(rows, options->validate_share, rows - test - 1);
    out->train_count = rows - test - out->validate_count;
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

/* Adds up, for each column, the values of the rows, or the squares of what they are off the mean.
 */
static enum status add_up(struct dataset *dataset, const uint32_t *rows, int64_t count,
                          const double *mean, double *sums)
{
    int32_t columns = dataset->columns;
    int64_t window = dataset_window(dataset);
    for (int64_t first = 0; first < count; first += window) {
        int64_t end = count - first < window ? count : first + window;
        TRY(dataset_fetch(dataset, rows, first, end - first));
        for (int64_t i = first; i < end; i++) {
            const float *row = dataset->features + (int64_t)rows[i] * columns;
            for (int32_t column = 0; column < columns; column++) {
                double off = (double)row[column] - (mean ? mean[column] : 0);
                sums[column] += mean ? off * off : off;
            }
        }
    }
    return STATUS_OK;
}

/* Sums over `count` rows become means: of each column, or the same for all of them. */
static void make_means(double *sums, int32_t columns, int64_t count, bool together)
{
    double all = 0;
    for (int32_t column = 0; column < columns; column++) {
        sums[column] /= (double)count;
        all += sums[column];
    }
    for (int32_t column = 0; together && column < columns; column++)
        sums[column] = all / columns;
}

static enum status measure(struct dataset *dataset, const uint32_t *rows, int64_t count,
                           double *mean, double *variance, struct scaling *out)
{
    int32_t columns = dataset->columns;
    bool together = dataset->rank > 1;
    TRY(add_up(dataset, rows, count, NULL, mean));
    make_means(mean, columns, count, together);
    TRY(add_up(dataset, rows, count, mean, variance));
    make_means(variance, columns, count, together);
    for (int32_t column = 0; column < columns; column++) {
        double deviation = sqrt(variance[column]);
        out->mean[column] = (float)mean[column];
        /* what rounding leaves of a constant column must not be blown up to variance 1 */
        bool constant = deviation <= 1e-7 * fabs(mean[column]) || !isfinite((float)(1 / deviation));
        out->scale[column] = constant ? 1 : (float)(1 / deviation);
    }
    return STATUS_OK;
}

enum status scaling_make(struct dataset *dataset, const uint32_t *rows, int64_t count,
                         struct scaling *out)
{
    double *sums;
    TRY(scaling_alloc(dataset->columns, out));
    NEED(sums = mem_array((size_t)dataset->columns, 2 * sizeof *sums));
    enum status status = measure(dataset, rows, count, sums, sums + dataset->columns, out);
    mem_free(sums);
    return status;
}

void scaling_apply_row(const struct scaling *scaling, float *row)
{
    for (int32_t column = 0; column < scaling->columns; column++)
        row[column] = (row[column] - scaling->mean[column]) * scaling->scale[column];
}

void scaling_apply(const struct scaling *scaling, struct dataset *dataset)
{
    assert(scaling->columns == dataset->columns);
    if (dataset->stream) {
        dataset->stream->scaling = scaling;
        return;
    }
    for (int64_t row = 0; row < dataset->rows; row++)
        scaling_apply_row(scaling, dataset->features + row * dataset->columns);
}
