/* fuzz_csv.c: any text is a data set whose labels are classes and whose values are finite, or it is
 * refused. */
#include "base/memory.h"
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
                                                 {.label = "x..y"}};
    if (!size)
        return 0;
    char *text = mem_alloc(size); /* one byte less of text, and a NUL */
    need(text);
    memcpy(text, data + 1, size - 1);
    struct dataset *dataset;
    enum status status = dataset_parse_csv("fuzz", text, size - 1,
                                           &all[data[0] % (sizeof all / sizeof *all)], &dataset);
    need(status == STATUS_OK || (status == STATUS_INPUT && *status_message()));
    mem_free(text);
    if (status == STATUS_OK) {
        check(dataset);
        dataset_free(dataset);
    }
    return 0;
}
