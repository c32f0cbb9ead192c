/* point.c: points, by the table of axes. Only the table knows which axes there are. */
#include "record/point.h"
#include "record/member.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const struct axis axes[AXIS_COUNT] = {
#define AXIS(key, kind, where, dlbs, otherwise, help)                                              \
    {#key, AXIS_##kind, where, dlbs, otherwise, help, offsetof(struct point, key)},
#include "record/axes.def"
};

static const char *text_at(const struct point *point, const struct axis *axis)
{
    return (const char *)point + axis->offset;
}

static int64_t int_at(const struct point *point, const struct axis *axis)
{
    int64_t number;
    memcpy(&number, (const char *)point + axis->offset, sizeof number);
    return number;
}

static void set_int(struct point *point, const struct axis *axis, int64_t number)
{
    memcpy((char *)point + axis->offset, &number, sizeof number);
}

const struct axis *axis_find(const char *key)
{
    for (size_t i = 0; i < AXIS_COUNT; i++)
        if (strcmp(axes[i].key, key) == 0)
            return &axes[i];
    return NULL;
}

enum status axis_need(const char *key, const struct axis **out)
{
    const char *keys[AXIS_COUNT];
    for (size_t i = 0; i < AXIS_COUNT; i++)
        keys[i] = axes[i].key;
    *out = axis_find(key);
    if (*out)
        return STATUS_OK;
    const char *near = text_nearest(key, keys, AXIS_COUNT);
    if (near)
        FAIL(STATUS_INPUT, "no axis is called \"%s\"; did you mean \"%s\"?", key, near);
    FAIL(STATUS_INPUT, "no axis is called \"%s\"", key);
}

static const struct {
    enum axis_index axis;
    const char *name;
} choices[CHOICE_COUNT] = {
#define CHOICE(key, name, text) {AXIS_##key, text},
#include "record/axes.def"
};

const char *choice_name(enum choice choice)
{
    return choices[choice].name;
}

enum choice choice_find(enum axis_index axis, const char *name)
{
    int i = 0;
    while (i < CHOICE_COUNT && (choices[i].axis != axis || strcmp(choices[i].name, name) != 0))
        i++;
    return (enum choice)i;
}

static enum status check_choice(const struct axis *axis, const char *value)
{
    const enum axis_index index = (enum axis_index)(axis - axes);
    struct text expected = {0};
    for (int i = 0; i < CHOICE_COUNT; i++)
        if (choices[i].axis == index)
            text_printf(&expected, "%s%s", expected.length ? "|" : "", choices[i].name);
    enum status status = STATUS_OK;
    if (expected.length && choice_find(index, value) == CHOICE_COUNT)
        status = status_fail(STATUS_INPUT, __FILE__, __LINE__, "%s: found \"%s\", expected %s",
                             axis->key, value, text_of(&expected));
    text_free(&expected);
    return status;
}

enum status axis_check(const struct axis *axis, const char *value)
{
    int64_t number;
    if (axis->kind == AXIS_INT && (!text_to_int(value, &number) || number < 1))
        FAIL(STATUS_INPUT, "%s: found \"%s\", expected a whole number from 1", axis->key, value);
    return check_choice(axis, value);
}

void point_start(struct point *point)
{
    memset(point, 0, sizeof *point);
    for (size_t i = 0; i < AXIS_COUNT; i++) {
        enum status status = point_set(point, &axes[i], axes[i].otherwise);
        assert(status == STATUS_OK); /* or axes.def is wrong */
        (void)status;
    }
}

bool point_is(const struct point *point, enum choice choice)
{
    return strcmp(text_at(point, &axes[choices[choice].axis]), choices[choice].name) == 0;
}

bool point_applies(const struct point *point, const struct axis *axis)
{
    unsigned where = axis->where;
    return !((where & AXIS_TRAINING) && !point_is(point, CHOICE_phase_training)) &&
           !((where & AXIS_CPU) && strcmp(point->unit, "cpu") != 0) &&
           !((where & AXIS_PRONY) && strcmp(point->framework, "prony") != 0) &&
           !((where & AXIS_WORKERS) && point->workers < 2);
}

void point_settle(struct point *point)
{
    for (size_t i = 0; i < AXIS_COUNT; i++) {
        if (point_applies(point, &axes[i]))
            continue;
        if (axes[i].kind == AXIS_INT)
            set_int(point, &axes[i], 0);
        else
            memset((char *)point + axes[i].offset, 0, POINT_TEXT);
    }
}

enum status point_set(struct point *point, const struct axis *axis, const char *value)
{
    if (axis->kind == AXIS_INT) {
        int64_t number = 0;
        if (value[0] && (!text_to_int(value, &number) || number < 0))
            FAIL(STATUS_INPUT, "%s: found \"%s\", expected a whole number", axis->key, value);
        set_int(point, axis, number);
        return STATUS_OK;
    }
    size_t length = strlen(value);
    if (length >= POINT_TEXT)
        FAIL(STATUS_INPUT, "%s: found %zu bytes (\"%.40s…\"), expected at most %d", axis->key,
             length, value, POINT_TEXT - 1);
    memcpy((char *)point + axis->offset, value, length + 1);
    return STATUS_OK;
}

void point_choose(struct point *point, enum choice choice)
{
    char *value = (char *)point + axes[choices[choice].axis].offset;
    memcpy(value, choices[choice].name, strlen(choices[choice].name) + 1);
}

const char *point_get(const struct point *point, const struct axis *axis, char buffer[POINT_NUMBER])
{
    if (axis->kind == AXIS_TEXT)
        return text_at(point, axis);
    int64_t number = int_at(point, axis);
    if (number == 0)
        return "";
    snprintf(buffer, POINT_NUMBER, "%lld", (long long)number);
    return buffer;
}

int point_compare(const struct point *a, const struct point *b)
{
    for (size_t i = 0; i < AXIS_COUNT; i++) {
        const struct axis *axis = &axes[i];
        int order;
        if (axis->kind == AXIS_INT)
            order = (int_at(a, axis) > int_at(b, axis)) - (int_at(a, axis) < int_at(b, axis));
        else
            order = strcmp(text_at(a, axis), text_at(b, axis));
        if (order)
            return order;
    }
    return 0;
}

void point_write(const struct point *point, struct json_writer *writer)
{
    json_object(writer);
    for (size_t i = 0; i < AXIS_COUNT; i++) {
        const struct axis *axis = &axes[i];
        if (axis->kind == AXIS_INT && int_at(point, axis)) {
            json_put_int(writer, axis->key, int_at(point, axis));
        } else if (axis->kind == AXIS_TEXT && text_at(point, axis)[0]) {
            json_put_text(writer, axis->key, text_at(point, axis));
        }
    }
    json_end(writer);
}

static enum status read_axis(const struct axis *axis, const struct json *object,
                             struct point *point)
{
    if (axis->kind == AXIS_INT) {
        int64_t number = 0;
        TRY(member_int(object, "point", axis->key, 0, &number));
        set_int(point, axis, number);
        return STATUS_OK;
    }
    const char *text;
    TRY(member_text(object, "point", axis->key, &text));
    if (text && point_set(point, axis, text) != STATUS_OK)
        return status_prefix(STATUS_INPUT, "point");
    return STATUS_OK;
}

enum status point_read(const struct json *object, struct point *point)
{
    memset(point, 0, sizeof *point);
    for (size_t i = 0; i < AXIS_COUNT; i++)
        TRY(read_axis(&axes[i], object, point));
    return STATUS_OK;
}

void point_label(const struct point *point, struct text *out)
{
    text_printf(out, "%s %s", point->model, point->phase);
    if (point->batch)
        text_printf(out, ", batch %lld", (long long)point->batch);
    if (point->precision[0])
        text_printf(out, ", %s", point->precision);
    text_printf(out, ", %s", point->framework);
    if (point->backend[0])
        text_printf(out, "/%s", point->backend);
    if (point->unit[0])
        text_printf(out, " on %s", point->unit);
    if (point->threads)
        text_printf(out, ", %lld thread%s", (long long)point->threads,
                    point->threads == 1 ? "" : "s");
    if (point->workers > 1)
        text_printf(out, ", %lld workers", (long long)point->workers);
}

void point_flags(const struct point *point, uint64_t set, struct text *out)
{
    struct point usual;
    char buffer[POINT_NUMBER], other[POINT_NUMBER];
    point_start(&usual);
    for (size_t i = 0; i < AXIS_COUNT; i++) {
        const char *value = point_get(point, &axes[i], buffer);
        if (!(set & (uint64_t)1 << i) || (axes[i].where & AXIS_FOUND) || !value[0] ||
            strcmp(value, point_get(&usual, &axes[i], other)) == 0)
            continue;
        text_printf(out, " --%s ", axes[i].key);
        text_add_word(out, value);
    }
}

void point_command(const struct point *point, struct text *out)
{
    struct point asked = *point;
    if (!point->model[0] || !point->batch || point->nodes > 1)
        return; /* nothing here runs it */
    if (point->workers > 1 && point_is(point, CHOICE_scaling_strong))
        asked.batch *= point->workers;
    text_add(out, "prony bench ");
    text_add_word(out, point->model);
    point_flags(&asked, ~((uint64_t)1 << AXIS_model), out);
}
