/* from_arrays.c: IDX and NPY files → data set. Rows are the first dimension; the others are the
 * sample's. Integer labels are classes, others are numbers; one or several a row. */
#include "base/machine/room.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/stream.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { CLASS_ROOM = 32 };

size_t dataset_memory(const struct dataset_options *options)
{
    if (options->memory_bytes)
        return (size_t)options->memory_bytes;
    return mem_total() / 2;
}

/* The shape of one sample, from the first file; the second must have the same. */
static enum status take_shape(struct dataset *dataset, const struct stream *stream)
{
    const struct array *array = &stream->parts[0].array;
    int64_t columns = array_row_count(array);
    for (int i = 0; i < stream->part_count; i++) {
        const struct stream_part *part = &stream->parts[i];
        dataset->rows += part->array.dim[0];
        if (array_row_count(&part->array) != columns)
            FAIL(STATUS_INPUT, "%s: found %lld values a row, expected %lld as in %s", part->path,
                 (long long)array_row_count(&part->array), (long long)columns,
                 stream->parts[0].path);
    }
    if (dataset->rows > DATASET_ROWS_MOST || columns > DATASET_COLUMNS_MOST)
        FAIL(STATUS_INPUT, "%s: found %lld rows of %lld values, expected at most %d of %d",
             stream->parts[0].path, (long long)dataset->rows, (long long)columns, DATASET_ROWS_MOST,
             DATASET_COLUMNS_MOST);
    dataset->columns = (int32_t)columns;
    dataset->rank = array->rank - 1;
    for (int32_t i = 0; i < dataset->rank; i++)
        dataset->dims[i] = (int32_t)array->dim[i + 1];
    dataset->test_rows = stream->part_count > 1 ? stream->parts[1].array.dim[0] : 0;
    return STATUS_OK;
}

/* A row that is fetched takes whole pages, of which its ends may be in others'. */
static int64_t choose_window(const struct dataset *dataset, size_t memory)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t row = (size_t)dataset->columns * sizeof(float) / page * page + 2 * page;
    return memory / 2 < row ? 1 : (int64_t)(memory / 2 / row);
}

/* Loads the features, or leaves them where they are. */
static enum status take_features(struct dataset *dataset, size_t memory)
{
    struct stream *stream = dataset->stream;
    TRY(take_shape(dataset, stream));
    size_t bytes = (size_t)dataset->rows * (size_t)dataset->columns * sizeof(float);
    NEED(dataset->features = mem_reserve(bytes));
    dataset->reserved_bytes = bytes;
    stream->window = choose_window(dataset, memory);
    if (bytes > memory)
        return STATUS_OK;
    TRY(room_check((double)bytes, "%s has %.1f MB of numbers; with --memory 1000 less are kept",
                   stream->parts[0].path, (double)bytes / 1e6));
    TRY(dataset_fetch(dataset, NULL, 0, dataset->rows));
    stream_free(stream, bytes);
    dataset->stream = NULL;
    return STATUS_OK;
}

static enum status check_rows(const struct dataset *dataset, const struct stream *labels)
{
    int64_t rows = 0;
    for (int i = 0; i < labels->part_count; i++)
        rows += labels->parts[i].array.dim[0];
    if (rows != dataset->rows)
        FAIL(STATUS_INPUT, "%s: found %lld labels, expected one for each of %lld rows of %s",
             labels->parts[0].path, (long long)rows, (long long)dataset->rows, dataset->name);
    return STATUS_OK;
}

static enum status take_numbers(struct dataset *dataset, struct stream *labels)
{
    int64_t columns = array_row_count(&labels->parts[0].array), row = 0;
    size_t count;
    if (columns > DATASET_COLUMNS_MOST || !size_mul((size_t)dataset->rows, (size_t)columns, &count))
        FAIL(STATUS_INPUT, "%s: found %lld numbers a row, expected at most %d",
             labels->parts[0].path, (long long)columns, DATASET_COLUMNS_MOST);
    NEED(dataset->numbers = mem_array(count, sizeof *dataset->numbers));
    dataset->number_columns = (int32_t)columns;
    for (; row < dataset->rows; row++)
        TRY(stream_read_row(labels, row, dataset->numbers + row * columns));
    return STATUS_OK;
}

static enum status find_class(const struct stream_part *part, int64_t row, double value,
                              const struct dataset_options *options, int32_t *out)
{
    char name[CLASS_ROOM];
    snprintf(name, sizeof name, "%.0f", value);
    for (*out = 0; *out < options->class_count; ++*out)
        if (text_equal(name, options->classes[*out]))
            return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: row %lld: found the class '%s', expected one of %d: '%s' …", part->path,
         (long long)row + 1, name, options->class_count, options->classes[0]);
}

/* The class that a label is: of those that are known, or the number itself. */
static enum status take_label(struct dataset *dataset, const struct stream_part *part, int64_t row,
                              double value, const struct dataset_options *options, int32_t *out)
{
    if (options->class_count > 0)
        return find_class(part, row, value, options, out);
    if (value < 0 || value >= DATASET_CLASSES_MOST)
        FAIL(STATUS_INPUT,
             "%s: row %lld: found the label %.0f, expected 0 to %d, or --numbers for numbers to "
             "learn",
             part->path, (long long)row + 1, value, DATASET_CLASSES_MOST - 1);
    *out = (int32_t)value;
    if (*out >= dataset->class_count)
        dataset->class_count = *out + 1;
    return STATUS_OK;
}

/* The classes are 0 … the largest label, or those that are known. */
static enum status take_labels(struct dataset *dataset, struct stream *labels,
                               const struct dataset_options *options)
{
    int64_t columns = array_row_count(&labels->parts[0].array);
    int32_t *label;
    if (columns > DATASET_COLUMNS_MOST)
        FAIL(STATUS_INPUT, "%s: found %lld labels a row, expected at most %d",
             labels->parts[0].path, (long long)columns, DATASET_COLUMNS_MOST);
    NEED(label = mem_array((size_t)dataset->rows, (size_t)columns * sizeof *label));
    dataset->labels = label;
    dataset->label_columns = (int32_t)columns;
    for (int i = 0; i < labels->part_count; i++) {
        struct stream_part *part = &labels->parts[i];
        for (int64_t row = 0; row < part->array.dim[0]; row++) {
            struct array array;
            int64_t at;
            TRY(stream_bring_row(part, row, &array, &at));
            for (int64_t k = 0; k < columns; k++)
                TRY(take_label(dataset, part, row, array_get(&array, at * columns + k), options,
                               label++));
        }
    }
    return STATUS_OK;
}

static enum status name_classes(struct dataset *dataset, const struct dataset_options *options)
{
    int32_t known = options->class_count, count = known > 0 ? known : dataset->class_count;
    dataset->class_count = count;
    NEED(dataset->classes = arena_array(&dataset->arena, (size_t)count, sizeof *dataset->classes));
    for (int32_t i = 0; i < count; i++)
        NEED(dataset->classes[i] = known > 0 ? arena_text(&dataset->arena, options->classes[i])
                                             : arena_format(&dataset->arena, "%d", i));
    return STATUS_OK;
}

static enum status use_labels(struct dataset *dataset, struct stream *labels,
                              const struct dataset_options *options)
{
    const struct array *array = &labels->parts[0].array;
    TRY(check_rows(dataset, labels));
    for (int i = 1; i < labels->part_count; i++)
        if (labels->parts[i].array.rank != array->rank ||
            array_row_count(&labels->parts[i].array) != array_row_count(array))
            FAIL(STATUS_INPUT, "%s: found labels of another shape than those of %s",
                 labels->parts[i].path, labels->parts[0].path);
    if (options->numbers || !array_is_integer(array))
        return take_numbers(dataset, labels);
    TRY(take_labels(dataset, labels, options));
    return name_classes(dataset, options);
}

static enum status open_parts(struct dataset *dataset, const char *const *paths, int parts,
                              size_t memory, struct stream *stream)
{
    stream->part_count = parts;
    for (int i = 0; i < parts; i++) {
        NEED(stream->parts[i].path = arena_text(&dataset->arena, paths[i]));
        TRY(stream_open_part(paths[i], memory, &stream->parts[i]));
    }
    return STATUS_OK;
}

static enum status fill(struct dataset *dataset, const char *const *features,
                        const char *const *labels, int parts, struct stream *label_files,
                        const struct dataset_options *options)
{
    size_t memory = dataset_memory(options);
    TRY(open_parts(dataset, features, parts, memory, dataset->stream));
    TRY(take_features(dataset, memory));
    if (!labels[0] || options->passed_over || dataset_unlabelled(options))
        return STATUS_OK;
    TRY(open_parts(dataset, labels, parts, memory, label_files));
    return use_labels(dataset, label_files, options);
}

enum status dataset_from_arrays(const char *name, const char *const *features,
                                const char *const *labels, int parts, struct blob *first,
                                const struct dataset_options *options, struct dataset **out)
{
    struct dataset *dataset = NULL;
    struct stream *label_files = NULL;
    enum status status;
    NEED_OR(done, dataset = mem_alloc(sizeof *dataset));
    NEED_OR(done, dataset->stream = mem_alloc(sizeof *dataset->stream));
    NEED_OR(done, label_files = mem_alloc(sizeof *label_files));
    NEED_OR(done, dataset->name = arena_text(&dataset->arena, name));
    if (first) {
        dataset->stream->parts[0].blob = *first;
        *first = (struct blob){0};
    }
    status = fill(dataset, features, labels, parts, label_files, options);
done:
    stream_free(label_files, 0);
    if (status == STATUS_OK)
        *out = dataset;
    else
        dataset_free(dataset);
    return status;
}
