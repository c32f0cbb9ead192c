/* split.c: split, shuffle, standardise. */
#include "data/split.h"

#include "base/memory.h"
#include "base/rng.h"
#include "data/stream.h"

#include <assert.h>
#include <math.h>
#include <string.h>

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

/* How many of each class are among `chosen` of the rows, when all have the same share: what is left
 * over by one class goes to the next. */
static void share_out(const struct dataset *dataset, const uint32_t *rows, int64_t count,
                      int64_t chosen, int64_t *quota)
{
    int64_t before = 0, given = 0;
    memset(quota, 0, (size_t)dataset->class_count * sizeof *quota);
    for (int64_t i = 0; i < count; i++)
        quota[dataset->labels[rows[i]]]++;
    for (int32_t class = 0; class < dataset->class_count; class ++) {
        before += quota[class];
        int64_t so_far = (before * chosen + count / 2) / count;
        quota[class] = so_far - given;
        given = so_far;
    }
}

/* Moves `chosen` of the rows behind the others: the last of each class. */
static enum status set_aside(const struct dataset *dataset, uint32_t *rows, int64_t count,
                             int64_t chosen)
{
    int64_t kept = count - chosen, *quota = mem_array((size_t)dataset->class_count, sizeof *quota);
    uint32_t *sorted = mem_array((size_t)count, sizeof *sorted);
    bool room = quota && sorted;
    if (room) {
        share_out(dataset, rows, count, chosen, quota);
        int64_t next_kept = kept, next_chosen = count;
        for (int64_t i = count - 1; i >= 0; i--) {
            bool choose = quota[dataset->labels[rows[i]]]-- > 0;
            sorted[choose ? --next_chosen : --next_kept] = rows[i];
        }
        memcpy(rows, sorted, (size_t)count * sizeof *rows);
    }
    mem_free(quota);
    mem_free(sorted);
    NEED(room);
    return STATUS_OK;
}

enum status split_make(const struct dataset *dataset, const struct split_options *options,
                       struct split *out)
{
    int64_t rows = dataset->rows, own = dataset->test_rows, mixed = rows - own;
    assert(rows > 0 && options->test_share >= 0 && options->validate_share >= 0 &&
           options->test_share + options->validate_share < 1 && own < rows);
    int64_t test = own ? own : count_share(rows, options->test_share, rows - 1);
    int64_t validate = count_share(rows, options->validate_share, rows - test - 1);
    int64_t train = rows - test - validate;
    NEED(out->rows = mem_array((size_t)rows, sizeof *out->rows));
    for (int64_t row = 0; row < rows; row++)
        out->rows[row] = (uint32_t)row;
    shuffle(out->rows, mixed, (struct rng_key){options->seed, STREAM_SPLIT, 0});
    if (dataset->labels && dataset->label_columns == 1) {
        TRY(set_aside(dataset, out->rows, mixed, test - own));
        TRY(set_aside(dataset, out->rows, rows - test, validate));
        if (options->first > 0 && options->first < train)
            TRY(set_aside(dataset, out->rows, train, train - options->first));
    }
    out->test_count = test;
    out->validate_count = validate;
    out->train_count = train;
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
    *scaling = (struct scaling){.tokens = scaling->tokens, .unit = scaling->unit};
}

bool scaling_changes(const struct scaling *scaling)
{
    bool changes = scaling->unit && scaling->columns;
    for (int32_t column = 0; !changes && column < scaling->columns; column++)
        changes = scaling->mean[column] != 0 || scaling->scale[column] != 1;
    return changes && !scaling->tokens;
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

/* The least value of each column becomes 0, the greatest 1. */
static enum status measure_range(struct dataset *dataset, const uint32_t *rows, int64_t count,
                                 double *least, double *most, struct scaling *out)
{
    int32_t columns = dataset->columns;
    int64_t window = dataset_window(dataset);
    double lowest = (double)INFINITY, highest = -(double)INFINITY;
    for (int32_t column = 0; column < columns; column++) {
        least[column] = (double)INFINITY;
        most[column] = -(double)INFINITY;
    }
    for (int64_t first = 0; first < count; first += window) {
        int64_t end = count - first < window ? count : first + window;
        TRY(dataset_fetch(dataset, rows, first, end - first));
        for (int64_t i = first; i < end; i++)
            for (int32_t column = 0; column < columns; column++) {
                double value = (double)dataset->features[(int64_t)rows[i] * columns + column];
                least[column] = fmin(least[column], value);
                most[column] = fmax(most[column], value);
            }
    }
    for (int32_t column = 0; column < columns; column++) {
        lowest = fmin(lowest, least[column]);
        highest = fmax(highest, most[column]);
    }
    bool together = dataset->rank > 1;
    for (int32_t column = 0; column < columns; column++) {
        double from = together ? lowest : least[column];
        double range = (together ? highest : most[column]) - from;
        out->mean[column] = (float)from;
        out->scale[column] = isfinite((float)(1 / range)) ? (float)(1 / range) : 1;
    }
    return STATUS_OK;
}

enum status scaling_make(struct dataset *dataset, const uint32_t *rows, int64_t count,
                         struct scaling *out)
{
    double *sums;
    if (out->tokens)
        return STATUS_OK;
    TRY(scaling_alloc(dataset->columns, out));
    NEED(sums = mem_array((size_t)dataset->columns, 2 * sizeof *sums));
    double *more = sums + dataset->columns;
    enum status status = out->unit ? measure_range(dataset, rows, count, sums, more, out)
                                   : measure(dataset, rows, count, sums, more, out);
    mem_free(sums);
    return status;
}

/* Floats that are whole numbers below scaling->tokens become integers where they lie. */
static enum status take_tokens(const struct scaling *scaling, const struct dataset *dataset,
                               int64_t row, float *features)
{
    for (int32_t column = 0; column < dataset->columns; column++) {
        float value = features[column];
        int32_t token = value >= 0 && value < (float)scaling->tokens ? (int32_t)value : -1;
        if (token < 0 || (float)token != value)
            FAIL(STATUS_INPUT,
                 "%s: row %lld, value %d: found %g, expected a token: a whole number from 0 to %d",
                 dataset->name, (long long)row + 1, column + 1, (double)value, scaling->tokens - 1);
        memcpy(&features[column], &token, sizeof token);
    }
    return STATUS_OK;
}

enum status scaling_apply_row(const struct scaling *scaling, const struct dataset *dataset,
                              int64_t row, float *features)
{
    if (scaling->tokens)
        return take_tokens(scaling, dataset, row, features);
    for (int32_t column = 0; column < scaling->columns; column++)
        features[column] = (features[column] - scaling->mean[column]) * scaling->scale[column];
    for (int32_t column = 0; scaling->unit && column < scaling->columns; column++) {
        float chance = features[column];
        features[column] = chance < 0 ? 0 : chance > 1 ? 1 : chance;
    }
    return STATUS_OK;
}

void scaling_undo_row(const struct scaling *scaling, float *features)
{
    for (int32_t column = 0; column < scaling->columns; column++)
        features[column] = features[column] / scaling->scale[column] + scaling->mean[column];
}

/* Is it the same, or a copy: of a network and of its quantised form? */
static bool scaling_equal(const struct scaling *a, const struct scaling *b)
{
    size_t bytes = (size_t)a->columns * sizeof *a->mean;
    return a == b ||
           (a->columns == b->columns && a->tokens == b->tokens && a->unit == b->unit &&
            (!bytes || (!memcmp(a->mean, b->mean, bytes) && !memcmp(a->scale, b->scale, bytes))));
}

enum status scaling_apply(const struct scaling *scaling, struct dataset *dataset)
{
    assert(scaling->tokens || !scaling->columns || scaling->columns == dataset->columns);
    if (dataset->scaling && scaling_equal(dataset->scaling, scaling))
        return STATUS_OK;
    if (dataset->scaling)
        FAIL(STATUS_INPUT,
             "%s: found features that were scaled for another network, expected data that was just "
             "opened",
             dataset->name);
    dataset->scaling = scaling;
    for (int64_t row = 0; !dataset->stream && row < dataset->rows; row++)
        TRY(scaling_apply_row(scaling, dataset, row, dataset->features + row * dataset->columns));
    return STATUS_OK;
}
