/* columns.c: see columns.h. What is read comes from a file that anybody may have written. */
#include "data/columns.h"

#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[COLUMN_KINDS] = {"number", "onehot", "code"};

int64_t columns_width(const struct columns *columns)
{
    int64_t width = 0;
    for (int32_t i = 0; i < columns->count; i++)
        width += columns->list[i].kind == COLUMN_ONE_HOT ? columns->list[i].value_count : 1;
    return width;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int32_t column_find_value(const struct column *column, const char *text)
{
    const char **found = column->value_count
                             ? bsearch(&text, column->values, (size_t)column->value_count,
                                       sizeof *column->values, compare_texts)
                             : NULL;
    return found ? (int32_t)(found - column->values) : -1;
}

bool columns_fit(const struct columns *columns)
{
    int64_t values = 0;
    for (int32_t i = 0; i < columns->count; i++)
        values += columns->list[i].value_count;
    return columns->count <= COLUMNS_SAVED_MOST && values <= COLUMNS_VALUES_MOST &&
           columns->target_count <= COLUMNS_SAVED_MOST;
}

static void write_texts(struct json_writer *writer, const char *key, const char *const *texts,
                        int32_t count)
{
    json_key(writer, key);
    json_array(writer);
    for (int32_t i = 0; i < count; i++)
        json_add_text(writer, texts[i]);
    json_end(writer);
}

static void write_column(struct json_writer *writer, const struct column *column)
{
    json_object(writer);
    json_put_text(writer, "name", column->name);
    json_put_int(writer, "place", column->place);
    json_put_text(writer, "kind", kind_names[column->kind]);
    if (column->filled) {
        json_key(writer, "fill");
        json_add_float(writer, column->fill);
    }
    if (column->kind != COLUMN_NUMBER)
        write_texts(writer, "values", column->values, column->value_count);
    json_end(writer);
}

void columns_write(const struct columns *columns, struct text *out)
{
    struct json_writer writer;
    json_begin(&writer, out);
    json_object(&writer);
    json_put_bool(&writer, "header", columns->header);
    write_texts(&writer, "target", columns->targets, columns->target_count);
    json_put_int(&writer, "target_place", columns->target_place);
    json_key(&writer, "columns");
    json_array(&writer);
    for (int32_t i = 0; i < columns->count; i++)
        write_column(&writer, &columns->list[i]);
    json_end(&writer);
    json_end(&writer);
}

static enum status refuse(const char *name, const char *what)
{
    FAIL(STATUS_INPUT, "%s: found %s, expected what prony train writes", name, what);
}

/* A text with a NUL inside would be cut short. */
static bool is_text(const struct json *value)
{
    return value && value->kind == JSON_STRING && strlen(value->string) == value->length;
}

static enum status read_texts(struct arena *arena, const char *name, const struct json *list,
                              const char ***texts, int32_t *count)
{
    if (!list || list->kind != JSON_ARRAY || list->count > COLUMNS_VALUES_MOST)
        return refuse(name, "no list of texts");
    NEED(*texts = arena_array(arena, list->count + 1, sizeof **texts));
    *count = 0;
    for (const struct json *text = list->first; text; text = text->next) {
        if (!is_text(text))
            return refuse(name, "a value that is no text");
        (*texts)[(*count)++] = text->string;
    }
    return STATUS_OK;
}

static enum status read_values(struct arena *arena, const char *name, const struct json *object,
                               struct column *column)
{
    TRY(read_texts(arena, name, json_get(object, "values"), &column->values, &column->value_count));
    if (!column->value_count)
        return refuse(name, "a column of texts without a text");
    for (int32_t i = 1; i < column->value_count; i++)
        if (strcmp(column->values[i - 1], column->values[i]) >= 0)
            return refuse(name, "texts that are not sorted");
    return STATUS_OK;
}

static enum status read_column(struct arena *arena, const char *name, const struct json *object,
                               struct column *column)
{
    const struct json *fill = json_get(object, "fill");
    const char *kind = json_text(object, "kind", "");
    int64_t place = json_int(object, "place", 0);
    if (!is_text(json_get(object, "name")) || place < 1 || place > INT32_MAX)
        return refuse(name, "a column without name or place");
    column->name = json_text(object, "name", "");
    column->place = (int32_t)place;
    while (column->kind < COLUMN_KINDS && !text_equal(kind, kind_names[column->kind]))
        column->kind++;
    if (column->kind == COLUMN_KINDS)
        return refuse(name, "a column of an unknown kind");
    if (fill) {
        column->filled = true;
        column->fill = (float)fill->number;
        if (fill->kind != JSON_NUMBER || !isfinite(column->fill))
            return refuse(name, "a fill that is no number");
    }
    return column->kind == COLUMN_NUMBER ? STATUS_OK : read_values(arena, name, object, column);
}

enum status columns_read(struct arena *arena, const char *name, const char *text,
                         struct columns **out)
{
    struct columns *columns;
    struct json *object;
    TRY(json_parse(arena, name, text, strlen(text), &object));
    NEED(columns = arena_alloc(arena, sizeof *columns));
    const struct json *list = json_get(object, "columns");
    const int64_t place = json_int(object, "target_place", 0);
    if (!list || list->kind != JSON_ARRAY || !list->count || list->count > COLUMNS_SAVED_MOST)
        return refuse(name, "no list of columns");
    if (place < 0 || place > INT32_MAX)
        return refuse(name, "a target without a place");
    columns->header = json_bool(object, "header", false);
    columns->target_place = (int32_t)place;
    TRY(read_texts(arena, name, json_get(object, "target"), &columns->targets,
                   &columns->target_count));
    NEED(columns->list = arena_array(arena, list->count, sizeof *columns->list));
    for (const struct json *column = list->first; column; column = column->next)
        TRY(read_column(arena, name, column, &columns->list[columns->count++]));
    *out = columns;
    return STATUS_OK;
}
