/* gaps.c: see gaps.h. */
#include "data/gaps.h"

#include "base/memory.h"
#include "base/plain.h"
#include "base/text.h"
#include "data/columns.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static int compare_floats(const void *a, const void *b)
{
    const float left = *(const float *)a, right = *(const float *)b;
    return (left > right) - (left < right);
}

float gaps_figure(float *numbers, int64_t count, bool median)
{
    double sum = 0;
    if (!count)
        return 0;
    if (median) {
        qsort(numbers, (size_t)count, sizeof *numbers, compare_floats);
        return (float)(((double)numbers[(count - 1) / 2] + (double)numbers[count / 2]) / 2);
    }
    for (int64_t i = 0; i < count; i++)
        sum += (double)numbers[i];
    return (float)(sum / (double)count);
}

/* The figure of a feature over these rows, whose missing cells are NaN; `room` is for as many. */
static float find_figure(const struct dataset *dataset, int64_t feature, const uint32_t *rows,
                         int64_t count, float *room)
{
    int64_t known = 0;
    for (int64_t i = 0; i < count; i++) {
        const float number = dataset->features[(int64_t)rows[i] * dataset->columns + feature];
        if (!isnan(number))
            room[known++] = number;
    }
    return gaps_figure(room, known, dataset->gaps->median);
}

/* "medians of the 168 training rows: rooms 4, built 19" */
static enum status add_note(struct dataset *dataset, int64_t rows)
{
    enum { SHOWN = 8 };
    const struct columns *table = dataset->table;
    struct text note = {0};
    char name[40];
    int32_t told = 0;
    text_printf(&note, "%s%s of the %lld training rows:", dataset->notes ? dataset->notes : "",
                dataset->gaps->median ? "medians" : "means", (long long)rows);
    for (int32_t i = 0; i < table->count && told <= SHOWN; i++) {
        const struct column *column = &table->list[i];
        if (!column->gaps)
            continue;
        plain_copy(name, sizeof name, column->name);
        if (told++ < SHOWN)
            text_printf(&note, "%s %s %.6g", told > 1 ? "," : "", name, (double)column->fill);
        else
            text_add(&note, " …");
    }
    text_add_char(&note, '\n');
    enum status status = text_done(&note);
    if (status == STATUS_OK && told)
        NEED_OR(done, dataset->notes = arena_text(&dataset->arena, text_of(&note)));
done:
    text_free(&note);
    return status;
}

enum status gaps_fill(struct dataset *dataset, const uint32_t *rows, int64_t count)
{
    const struct gaps *gaps = dataset->gaps;
    const int32_t width = dataset->columns;
    int64_t feature = 0;
    float *fills, *room;
    if (!gaps)
        return STATUS_OK;
    assert(!dataset->scaling && !dataset->stream);
    NEED(fills = mem_array((size_t)width + (size_t)count, sizeof *fills));
    room = fills + width;
    for (size_t i = 0; i < gaps->count; i++)
        dataset->features[gaps->cells[i]] = NAN;
    for (int32_t i = 0; i < dataset->table->count; i++) {
        struct column *column = &dataset->table->list[i];
        if (column->filled)
            column->fill = fills[feature] = find_figure(dataset, feature, rows, count, room);
        feature += column->kind == COLUMN_ONE_HOT ? column->value_count : 1;
    }
    for (size_t i = 0; i < gaps->count; i++)
        dataset->features[gaps->cells[i]] = fills[gaps->cells[i] % (uint64_t)width];
    mem_free(fills);
    return add_note(dataset, count);
}
