/* dataset.c: synthetic data sets, and what all of them have: memory, rows to be fetched, a hash. */
#include "data/dataset.h"

#include "base/memory.h"
#include "base/rng.h"
#include "data/split.h"
#include "data/stream.h"

#include <string.h>

/* Random streams of synthetic data; any distinct numbers do. */
enum { STREAM_FEATURES = 1, STREAM_LABELS, STREAM_NUMBERS };

/* "class 0", "class 1" … */
static enum status name_classes(struct dataset *dataset, int32_t class_count)
{
    const char **classes;
    NEED(classes = arena_array(&dataset->arena, (size_t)class_count, sizeof *classes));
    for (int32_t i = 0; i < class_count; i++)
        NEED(classes[i] = arena_format(&dataset->arena, "class %d", i));
    dataset->classes = classes;
    dataset->class_count = class_count;
    return STATUS_OK;
}

static enum status draw_labels(struct dataset *dataset, int32_t class_count, uint64_t seed)
{
    struct rng_key key = {seed, STREAM_LABELS, 0};
    TRY(name_classes(dataset, class_count));
    dataset->label_columns = 1;
    NEED(dataset->labels = mem_array((size_t)dataset->rows, sizeof *dataset->labels));
    for (int64_t row = 0; row < dataset->rows; row++)
        dataset->labels[row] = (int32_t)rng_below(key, (uint32_t)row, 0, (uint32_t)class_count);
    return STATUS_OK;
}

/* A block [rows, columns] of uniform numbers. */
static float *draw_block(int64_t rows, int32_t columns, struct rng_key key)
{
    size_t count;
    if (!size_mul((size_t)rows, (size_t)columns, &count))
        return NULL;
    float *block = mem_array(count, sizeof *block);
    for (int64_t row = 0; block && row < rows; row++)
        for (int32_t column = 0; column < columns; column++)
            block[row * columns + column] = rng_uniform(key, (uint32_t)row, (uint32_t)column);
    return block;
}

static enum status draw(struct dataset *dataset, int32_t class_count, uint64_t seed)
{
    struct rng_key features = {seed, STREAM_FEATURES, 0}, numbers = {seed, STREAM_NUMBERS, 0};
    NEED(dataset->name = arena_text(&dataset->arena, "synthetic"));
    NEED(dataset->features = draw_block(dataset->rows, dataset->columns, features));
    if (class_count > 0)
        TRY(draw_labels(dataset, class_count, seed));
    else if (dataset->number_columns > 0)
        NEED(dataset->numbers = draw_block(dataset->rows, dataset->number_columns, numbers));
    return STATUS_OK;
}

enum status dataset_synthetic(int64_t rows, int32_t columns, int32_t class_count,
                              int32_t number_columns, uint64_t seed, struct dataset **out)
{
    if (rows < 1 || rows > DATASET_ROWS_MOST || columns < 1 || columns > DATASET_COLUMNS_MOST)
        FAIL(STATUS_INPUT, "synthetic data of %lld rows × %d columns: expected at most %d × %d",
             (long long)rows, columns, DATASET_ROWS_MOST, DATASET_COLUMNS_MOST);
    struct dataset *dataset;
    NEED(dataset = mem_alloc(sizeof *dataset));
    dataset->rows = rows;
    dataset->columns = columns;
    dataset->number_columns = class_count > 0 ? 0 : number_columns;
    enum status status = draw(dataset, class_count, seed);
    if (status != STATUS_OK) {
        dataset_free(dataset);
        return status;
    }
    *out = dataset;
    return STATUS_OK;
}

void dataset_free(struct dataset *dataset)
{
    if (!dataset)
        return;
    if (dataset->reserved_bytes)
        mem_unreserve(dataset->features, dataset->reserved_bytes);
    else
        mem_free(dataset->features);
    stream_free(dataset->stream, dataset->reserved_bytes);
    mem_free(dataset->labels);
    mem_free(dataset->numbers);
    arena_free(&dataset->arena);
    mem_free(dataset);
}

/* FNV-1a, continued from `hash`. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ byte[i]) * 0x100000001B3u;
    return hash;
}

int64_t dataset_window(const struct dataset *dataset)
{
    return dataset->stream ? dataset->stream->window : dataset->rows;
}

/* Reads the rows into the block; nothing else in the data set changes. */
static enum status read_rows(const struct dataset *dataset, float *block, const uint32_t *list,
                             int64_t first, int64_t count)
{
    mem_drop(block, dataset->reserved_bytes);
    for (int64_t i = first; i < first + count; i++) {
        int64_t row = list ? (int64_t)list[i] : i;
        float *features = block + row * dataset->columns;
        TRY(stream_read_row(dataset->stream, row, features));
        if (dataset->scaling)
            TRY(scaling_apply_row(dataset->scaling, dataset, row, features));
    }
    return STATUS_OK;
}

/* In the thread. */
static enum status read_request(void *context)
{
    const struct request *next = context;
    const uint32_t *list = next->listed ? next->list : NULL;
    return read_rows(next->dataset, next->features, list, list ? 0 : next->first, next->count);
}

/* Is it what was asked for? */
static bool is_expected(const struct request *next, const uint32_t *list, int64_t first,
                        int64_t count)
{
    size_t bytes = (size_t)count * sizeof *list;
    return next->pending && next->first == first && next->count == count &&
           next->listed == (list != NULL) && (!list || !memcmp(next->list, list + first, bytes));
}

enum status dataset_fetch(struct dataset *dataset, const uint32_t *list, int64_t first,
                          int64_t count)
{
    struct stream *stream = dataset->stream;
    if (!stream)
        return STATUS_OK;
    bool expected = is_expected(&stream->next, list, first, count);
    enum status status = stream->ahead ? ahead_take(stream->ahead) : STATUS_OK;
    stream->next.pending = false;
    dataset->fetches++;
    if (!expected) /* how reading other rows went is no matter */
        return read_rows(dataset, dataset->features, list, first, count);
    float *block = stream->next.features;
    stream->next.features = dataset->features;
    dataset->features = block;
    return status;
}

static enum status keep_list(struct request *next, const uint32_t *list, int64_t count)
{
    next->listed = list != NULL;
    if (!list)
        return STATUS_OK;
    if (next->list_room < (size_t)count) {
        uint32_t *grown;
        NEED(grown = mem_grow(next->list, (size_t)count, sizeof *grown));
        next->list = grown;
        next->list_room = (size_t)count;
    }
    memcpy(next->list, list, (size_t)count * sizeof *list);
    return STATUS_OK;
}

enum status dataset_expect(struct dataset *dataset, const uint32_t *list, int64_t first,
                           int64_t count)
{
    struct stream *stream = dataset->stream;
    if (!stream || stream->next.pending)
        return STATUS_OK;
    struct request *next = &stream->next;
    if (!stream->ahead)
        TRY(ahead_open(&stream->ahead));
    if (!next->features)
        NEED(next->features = mem_reserve(dataset->reserved_bytes));
    TRY(keep_list(next, list ? list + first : NULL, count));
    next->dataset = dataset;
    next->first = first;
    next->count = count;
    next->pending = true;
    ahead_ask(stream->ahead, read_request, next);
    return STATUS_OK;
}

void dataset_settle(struct dataset *dataset)
{
    struct stream *stream = dataset->stream;
    if (!stream || !stream->ahead)
        return;
    ahead_take(stream->ahead);
    stream->next.pending = false;
}

enum status dataset_hash(struct dataset *dataset, uint64_t *out)
{
    uint64_t hash = 0xCBF29CE484222325u;
    size_t rows = (size_t)dataset->rows, columns = (size_t)dataset->columns;
    int64_t window = dataset_window(dataset);
    hash = hash_bytes(hash, &dataset->columns, sizeof dataset->columns);
    for (int64_t first = 0; first < dataset->rows; first += window) {
        int64_t left = dataset->rows - first, count = left < window ? left : window;
        TRY(dataset_fetch(dataset, NULL, first, count));
        hash = hash_bytes(hash, dataset->features + (size_t)first * columns,
                          (size_t)count * columns * sizeof *dataset->features);
    }
    if (dataset->labels)
        hash = hash_bytes(hash, dataset->labels,
                          rows * (size_t)dataset->label_columns * sizeof *dataset->labels);
    if (dataset->numbers)
        hash = hash_bytes(hash, dataset->numbers,
                          rows * (size_t)dataset->number_columns * sizeof *dataset->numbers);
    for (int32_t i = 0; i < dataset->class_count; i++)
        hash = hash_bytes(hash, dataset->classes[i], strlen(dataset->classes[i]) + 1);
    *out = hash;
    return STATUS_OK;
}
