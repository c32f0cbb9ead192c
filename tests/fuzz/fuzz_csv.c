/* fuzz_csv.c: any text is a data set whose labels are classes and whose values are finite, or it is
 * refused. One that was read is read again, by what is saved of its columns, to the same bits. */
#include "base/memory.h"
#include "base/text.h"
#include "data/columns.h"
#include "data/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
    if (!holds)
        abort();
}

static void check(const struct dataset *dataset)
{
    need(dataset->rows > 0 && dataset->columns > 0);
    for (int64_t i = 0; i < dataset->rows * dataset->columns; i++)
        need(isfinite(dataset->features[i]));
    for (int64_t i = 0; dataset->labels && i < dataset->rows * dataset->label_columns; i++)
        need(dataset->labels[i] >= 0 && dataset->labels[i] < dataset->class_count);
    for (int64_t i = 0; dataset->numbers && i < dataset->rows * dataset->number_columns; i++)
        need(isfinite(dataset->numbers[i]));
}

/* A copy with a NUL. */
static char *copy_of(const uint8_t *data, size_t size)
{
    char *text = mem_alloc(size + 1);
    need(text);
    memcpy(text, data, size);
    return text;
}

/* As a network would read the file that it learnt from. */
static void read_again(const struct dataset *dataset, const uint8_t *data, size_t size)
{
    struct text saved = {0};
    struct arena arena = {0};
    struct columns *columns;
    struct dataset *again;
    columns_write(dataset->table, &saved);
    need(text_done(&saved) == STATUS_OK);
    need(columns_read(&arena, "saved", text_of(&saved), &columns) == STATUS_OK);
    char *text = copy_of(data, size);
    const struct dataset_options options = {.columns = columns, .passed_over = true};
    need(dataset_parse_csv("again", text, size, &options, &again) == STATUS_OK);
    need(again->rows == dataset->rows && again->columns == dataset->columns);
    need(!memcmp(again->features, dataset->features,
                 (size_t)(again->rows * again->columns) * sizeof *again->features));
    dataset_free(again);
    mem_free(text);
    arena_free(&arena);
    text_free(&saved);
}

/* The first byte chooses the options; the rest is the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const classes[] = {"a", "b"};
    static const struct dataset_options all[] = {{0},
                                                 {.label = "1"},
                                                 {.label = "y"},
                                                 {.inputs = 2},
                                                 {.classes = classes, .class_count = 2},
                                                 {.numbers = true},
                                                 {.label = "2..3"},
                                                 {.label = "x..y"},
                                                 {.fill = "median"},
                                                 {.fill = "mean", .encode = "1"},
                                                 {.fill = "7", .drop = "2", .as_classes = true},
                                                 {.encode = "1=onehot,2=code", .label = "none"},
                                                 {.fill = "zero", .label = "none"},
                                                 {.drop_rows = true},
                                                 {.drop_rows = true, .fill = "zero"}};
    if (!size)
        return 0;
    const struct dataset_options *options = &all[data[0] % (sizeof all / sizeof *all)];
    char *text = copy_of(data + 1, size - 1);
    struct dataset *dataset;
    enum status status = dataset_parse_csv("fuzz", text, size - 1, options, &dataset);
    need(status == STATUS_OK || (status == STATUS_INPUT && *status_message()));
    mem_free(text);
    if (status == STATUS_OK) {
        check(dataset);
        if (columns_fit(dataset->table) && !options->drop_rows)
            read_again(dataset, data + 1, size - 1);
        dataset_free(dataset);
    }
    return 0;
}
