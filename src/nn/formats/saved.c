/* saved.c: see saved.h. */
#include "nn/formats/saved.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void quantisation_write(const struct quantisation *how, struct text *out)
{
    struct json_writer writer;
    json_begin(&writer, out);
    json_object(&writer);
    json_put_int(&writer, "plain", how->plain);
    json_put_int(&writer, "weight_bits", how->weight_bits);
    json_key(&writer, "keep");
    json_array(&writer);
    for (int32_t i = 0; i < how->keep_count; i++)
        json_add_text(&writer, how->keep[i]);
    json_end(&writer);
    json_put_int(&writer, "tensors", how->count);
    json_key(&writer, "ranges"); /* tensor, low, high */
    json_array(&writer);
    for (int32_t t = 0; t < how->count; t++) {
        if (!range_is_known(&how->ranges[t]))
            continue;
        json_array(&writer);
        json_add_int(&writer, t);
        json_add_float(&writer, how->ranges[t].low);
        json_add_float(&writer, how->ranges[t].high);
        json_end(&writer);
    }
    json_end(&writer);
    json_end(&writer);
}

/* [tensor, low, high] */
static bool read_range(const struct json *row, struct quantisation *how)
{
    const struct json *at = row->first;
    if (row->kind != JSON_ARRAY || row->count != 3 || at->kind != JSON_NUMBER || !at->is_integer ||
        at->integer < 0 || at->integer >= how->count || at->next->kind != JSON_NUMBER ||
        at->next->next->kind != JSON_NUMBER)
        return false;
    struct range range = {(float)at->next->number, (float)at->next->next->number};
    how->ranges[at->integer] = range;
    return range_is_known(&range);
}

static enum status read_keep(const char *name, const struct json *list, struct arena *arena,
                             struct quantisation *how)
{
    NEED(how->keep = arena_array(arena, (list ? list->count : 0) + 1, sizeof *how->keep));
    for (const struct json *layer = list ? list->first : NULL; layer; layer = layer->next) {
        if (layer->kind != JSON_STRING)
            FAIL(STATUS_INPUT, "%s: found a layer that is no text in 'keep'", name);
        NEED(how->keep[how->keep_count++] = arena_text(arena, layer->string));
    }
    return STATUS_OK;
}

enum status quantisation_read(const char *name, const char *text, struct arena *arena,
                              struct quantisation **out)
{
    enum { TENSORS_MOST = 1 << 20 };
    struct json *object;
    struct quantisation *how;
    TRY(json_parse(arena, name, text, strlen(text), &object));
    int64_t bits = json_int(object, "weight_bits", 0), count = json_int(object, "tensors", 0);
    const struct json *ranges = json_get(object, "ranges");
    if ((bits != 8 && bits != 4 && bits != 2) || count < 1 || count > TENSORS_MOST || !ranges ||
        ranges->kind != JSON_ARRAY)
        FAIL(STATUS_INPUT,
             "%s: found weights of %lld bits and ranges of %lld tensors, expected what prony "
             "quantise writes",
             name, (long long)bits, (long long)count);
    NEED(how = arena_alloc(arena, sizeof *how));
    *how = (struct quantisation){.plain = json_int(object, "plain", 0) != 0,
                                 .weight_bits = (int32_t)bits,
                                 .count = (int32_t)count};
    NEED(how->ranges = arena_array(arena, (size_t)count, sizeof *how->ranges));
    for (int32_t t = 0; t < how->count; t++)
        how->ranges[t] = (struct range){1, -1};
    for (const struct json *row = ranges->first; row; row = row->next)
        if (!read_range(row, how))
            FAIL(STATUS_INPUT, "%s: found a range that is none, expected [tensor, low, high]",
                 name);
    *out = how;
    return read_keep(name, json_get(object, "keep"), arena, how);
}

bool saved_begins(const char *bytes, size_t count)
{
    static const char zeros[4];
    return count == SAVED_BEGIN && !memcmp(bytes + 4, zeros, sizeof zeros) && bytes[8] == '{';
}

bool saved_is(const char *path)
{
    char first[SAVED_BEGIN] = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t count = file >= 0 ? read(file, first, sizeof first) : 0;
    if (file >= 0)
        close(file);
    return count > 0 && saved_begins(first, (size_t)count);
}

enum status saved_parse(const struct safetensors *file, struct network **out)
{
    const char *text = safetensors_note(file, SAVED_NETWORK);
    const char *quantised = safetensors_note(file, SAVED_QUANTISED);
    if (!text)
        FAIL(STATUS_INPUT,
             "%s: found no network in its metadata, expected a file that prony train wrote; "
             "weights alone need the network beside them: NETWORK WEIGHTS",
             file->name);
    TRY(network_parse(file->name, text, strlen(text), out));
    enum status status = STATUS_OK;
    if (quantised)
        status = quantisation_read(file->name, quantised, &(*out)->arena, &(*out)->quantised);
    if (status != STATUS_OK) {
        network_free(*out);
        *out = NULL;
    }
    return status;
}

/* Its tensors become the network's own. */
static enum status give_tensors(const struct safetensors *file, struct network *network)
{
    struct safetensors_tensor tensor;
    NEED(network->given =
             arena_array(&network->arena, file->header->count + 1, sizeof *network->given));
    for (const struct json *at = file->header->first; at; at = at->next) {
        if (!safetensors_find(file, at, &tensor))
            continue;
        struct given *given = &network->given[network->given_count++];
        void *bytes;
        NEED(bytes = arena_alloc(&network->weights, (size_t)tensor.bytes));
        memcpy(bytes, tensor.data, (size_t)tensor.bytes);
        *given = (struct given){.count = shape_count(&tensor.shape), .dtype = tensor.dtype};
        NEED(given->name = arena_text(&network->arena, at->key));
        if (tensor.dtype == DTYPE_F32)
            given->values = bytes;
        else
            given->raw = bytes;
        if (tensor.dtype == DTYPE_I32)
            TRY(quantise_check_values(at->key, bytes, given->count, file->name));
    }
    return STATUS_OK;
}

enum status saved_read(const char *path, struct network **out)
{
    struct safetensors file = {0};
    enum status status = safetensors_open(path, &file);
    if (status == STATUS_OK)
        status = saved_parse(&file, out);
    if (status == STATUS_OK) {
        status = give_tensors(&file, *out);
        if (status != STATUS_OK) {
            network_free(*out);
            *out = NULL;
        }
    }
    safetensors_close(&file);
    return status;
}
