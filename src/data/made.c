/* made.c: see made.h. Random numbers are counter-based: the same bits everywhere. */
#include "data/made.h"

#include "base/memory.h"
#include "base/rng.h"

#include <math.h>

enum { SEED = 1, STREAM_RING = 11, STREAM_ADDING = 12 };
static const float RADIUS = 2, SIGMA = 0.1f;

/* Room for features and, with columns of numbers, for these. */
static enum status make(const char *name, int64_t rows, int32_t columns, int32_t numbers,
                        struct dataset **out)
{
    struct dataset *dataset;
    enum status status;
    if (rows < 1 || rows > DATASET_ROWS_MOST || columns > DATASET_COLUMNS_MOST)
        FAIL(STATUS_INPUT, "%s: found %lld rows of %d numbers, expected 1 to %d of up to %d", name,
             (long long)rows, columns, DATASET_ROWS_MOST, DATASET_COLUMNS_MOST);
    NEED(dataset = mem_alloc(sizeof *dataset));
    dataset->rows = rows;
    dataset->columns = columns;
    dataset->number_columns = numbers;
    NEED_OR(fail, dataset->name = arena_text(&dataset->arena, name));
    NEED_OR(fail, dataset->features = mem_array((size_t)rows * (size_t)columns, sizeof(float)));
    if (numbers)
        NEED_OR(fail, dataset->numbers = mem_array((size_t)rows * (size_t)numbers, sizeof(float)));
    *out = dataset;
    return STATUS_OK;
fail:
    dataset_free(dataset);
    return status;
}

enum status dataset_ring(const char *name, int64_t rows, struct dataset **out)
{
    const struct rng_key key = {.seed = SEED, .stream = STREAM_RING};
    TRY(make(name, rows, 2, 0, out));
    for (int64_t row = 0; row < rows; row++) {
        float *point = (*out)->features + 2 * row, across, up;
        rng_turn((float)(row % RING_MODES) / RING_MODES, &across, &up);
        point[0] = RADIUS * across + SIGMA * rng_normal(key, (uint32_t)row, 0);
        point[1] = RADIUS * up + SIGMA * rng_normal(key, (uint32_t)row, 1);
    }
    return STATUS_OK;
}

enum status dataset_adding(const char *name, int64_t rows, int32_t steps, struct dataset **out)
{
    const struct rng_key key = {.seed = SEED, .stream = STREAM_ADDING};
    if (steps < 2)
        FAIL(STATUS_INPUT, "%s: found %d steps, expected at least 2: one of each half is marked",
             name, steps);
    TRY(make(name, rows, 2 * steps, 1, out));
    struct dataset *dataset = *out;
    dataset->rank = 2;
    dataset->dims[0] = steps;
    dataset->dims[1] = 2;
    for (int64_t row = 0; row < rows; row++) {
        float *pairs = dataset->features + row * 2 * steps;
        uint32_t sample = (uint32_t)row, half = (uint32_t)steps / 2, element = (uint32_t)steps;
        uint32_t first = rng_below(key, sample, element, half);
        uint32_t second = half + rng_below(key, sample, element + 1, (uint32_t)steps - half);
        for (uint32_t i = 0; i < (uint32_t)steps; i++) {
            pairs[2 * i] = rng_uniform(key, sample, i);
            pairs[2 * i + 1] = i == first || i == second ? 1 : 0;
        }
        dataset->numbers[row] = pairs[2 * first] + pairs[2 * second];
    }
    return STATUS_OK;
}
