/* safetensors.c: the file format of safetensors.h. The reader trusts nothing in the file. */
#include "nn/formats/safetensors.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensors are written as they lie in memory, which must be little-endian"
#endif

enum { LENGTH_BYTES = 8, HEADER_ALIGN = 8, HEADER_MOST = 100 * 1000 * 1000 /* as published */ };

#define STATE_PREFIX "state."
#define METADATA "__metadata__"
#define CONTROL_STEP "control.step"
#define CONTROL_SEED "control.seed"
#define CONTROL_RATE "control.rate"
#define CONTROL_SCALE "control.scale"
#define CONTROL_SCALED "control.scaled"

static const char *const type_names[DTYPE_COUNT] = {[DTYPE_F32] = "F32",
                                                    [DTYPE_F64] = "F64",
                                                    [DTYPE_I32] = "I32",
                                                    [DTYPE_I8] = "I8",
                                                    [DTYPE_U8] = "U8"};

static bool is_written(const struct entry *entry, enum safetensors_content content)
{
    return entry->role != ROLE_STATE || content == SAFETENSORS_CHECKPOINT;
}

/* The entry's name in the file. */
static void add_name(const char *prefix, const struct entry *entry, struct text *out)
{
    text_clear(out);
    if (entry->role == ROLE_STATE)
        text_add(out, STATE_PREFIX);
    text_printf(out, "%s%s", prefix, entry->name);
}

static void add_note(struct json_writer *writer, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add_note(struct json_writer *writer, const char *key, const char *format, ...)
{
    char value[32]; /* one number */
    va_list list;
    va_start(list, format);
    vsnprintf(value, sizeof value, format, list);
    va_end(list);
    json_put_text(writer, key, value);
}

static void add_control(struct json_writer *writer, const struct control *control)
{
    add_note(writer, CONTROL_STEP, "%" PRIu64, control->step);
    add_note(writer, CONTROL_SEED, "%" PRIu64, control->seed);
    add_note(writer, CONTROL_RATE, "%.17g", control->rate);
    if (control->scale) {
        add_note(writer, CONTROL_SCALE, "%" PRIu64, control->scale);
        add_note(writer, CONTROL_SCALED, "%" PRIu64, control->scaled);
    }
}

static void add_entry(struct json_writer *writer, const struct entry *entry, uint64_t offset)
{
    struct text name = {0};
    add_name("", entry, &name);
    json_key(writer, text_of(&name));
    json_object(writer);
    json_put_text(writer, "dtype", type_names[entry->dtype]);
    json_key(writer, "shape");
    json_array(writer);
    for (int32_t i = 0; i < entry->shape.rank; i++)
        json_add_int(writer, entry->shape.dim[i]);
    json_end(writer);
    json_key(writer, "data_offsets");
    json_array(writer);
    json_add_uint(writer, offset);
    json_add_uint(writer, offset + entry->bytes);
    json_end(writer);
    json_end(writer);
    writer->text->failed |= name.failed;
    text_free(&name);
}

/* The JSON, padded with blanks so that the data begins aligned. */
static enum status write_header(const struct params *params, enum safetensors_content content,
                                const struct safetensors_note *notes, size_t note_count,
                                struct text *out)
{
    struct json_writer writer;
    uint64_t offset = 0;
    json_begin(&writer, out);
    json_object(&writer);
    json_key(&writer, METADATA);
    json_object(&writer);
    for (size_t i = 0; i < note_count; i++) {
        json_put_text(&writer, notes[i].key, notes[i].value);
    }
    if (content == SAFETENSORS_CHECKPOINT)
        add_control(&writer, &params->control);
    json_end(&writer);
    for (int32_t i = 0; i < params->count; i++) {
        const struct entry *entry = &params->entries[i];
        if (!is_written(entry, content))
            continue;
        add_entry(&writer, entry, offset);
        offset += entry->bytes;
    }
    json_end(&writer);
    while (!out->failed && out->length % HEADER_ALIGN)
        text_add_char(out, ' ');
    return text_done(out);
}

static enum status write_parts(struct file_writer *writer, const struct text *header,
                               const struct params *params, enum safetensors_content content)
{
    unsigned char length[LENGTH_BYTES];
    for (int i = 0; i < LENGTH_BYTES; i++)
        length[i] = (unsigned char)((uint64_t)header->length >> 8 * i);
    TRY(file_append(writer, length, sizeof length));
    TRY(file_append(writer, header->data, header->length));
    for (int32_t i = 0; i < params->count; i++)
        if (is_written(&params->entries[i], content))
            TRY(file_append(writer, params_data(params, i), params->entries[i].bytes));
    return file_commit(writer);
}

enum status safetensors_write(const char *path, const struct params *params,
                              enum safetensors_content content,
                              const struct safetensors_note *notes, size_t note_count)
{
    struct text header = {0};
    struct file_writer writer = {0};
    enum status status;
    TRY_OR(done, write_header(params, content, notes, note_count, &header));
    TRY_OR(done, file_begin(&writer, path));
    status = write_parts(&writer, &header, params, content);
done:
    file_abort(&writer);
    text_free(&header);
    return status;
}

/* One tensor as the file describes it. */
struct found {
    const char *name;
    const char *type;
    struct shape shape;
    uint64_t from, to;
};

/* Element bytes of a published type name; 0: unknown. All are known, so that a file in a type that
 * prony has no use for is refused for that, and not as damaged. */
static uint64_t type_bytes(const char *type)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {{"F64", 8}, {"I64", 8}, {"U64", 8},  {"F32", 4},     {"I32", 4},
                 {"U32", 4}, {"F16", 2}, {"BF16", 2}, {"I16", 2},     {"U16", 2},
                 {"I8", 1},  {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (text_equal(type, types[i].name))
            return types[i].bytes;
    return 0;
}

static enum status read_shape(const struct safetensors *file, const struct json *tensor,
                              struct shape *out)
{
    const struct json *shape = json_get(tensor, "shape");
    if (!shape || shape->kind != JSON_ARRAY)
        FAIL(STATUS_INPUT, "%s: tensor '%s': found no shape", file->name, tensor->key);
    if (shape->count > SHAPE_MOST)
        FAIL(STATUS_INPUT, "%s: tensor '%s': found %zu dimensions, expected at most %d", file->name,
             tensor->key, shape->count, SHAPE_MOST);
    for (const struct json *dim = shape->first; dim; dim = dim->next) {
        if (!dim->is_integer || dim->integer < 0)
            FAIL(STATUS_INPUT, "%s: tensor '%s': found a dimension that is no size", file->name,
                 tensor->key);
        out->dim[out->rank++] = dim->integer;
    }
    return STATUS_OK;
}

static enum status read_offsets(const struct safetensors *file, const struct json *tensor,
                                struct found *out)
{
    const struct json *offsets = json_get(tensor, "data_offsets");
    if (!offsets || offsets->kind != JSON_ARRAY || offsets->count != 2 ||
        !offsets->first->is_integer || !offsets->first->next->is_integer)
        FAIL(STATUS_INPUT, "%s: tensor '%s': found no pair of data_offsets", file->name,
             tensor->key);
    int64_t from = offsets->first->integer, to = offsets->first->next->integer;
    if (from < 0 || to < from || (uint64_t)to > file->data_bytes)
        FAIL(STATUS_INPUT,
             "%s: tensor '%s': found data_offsets %lld to %lld, expected them within the %zu bytes "
             "of data",
             file->name, tensor->key, (long long)from, (long long)to, file->data_bytes);
    out->from = (uint64_t)from;
    out->to = (uint64_t)to;
    return STATUS_OK;
}

/* Elements × bytes; false when it does not fit. A dimension may be 0. */
static bool count_bytes(const struct shape *shape, uint64_t element, size_t *out)
{
    size_t bytes = element;
    for (int32_t i = 0; i < shape->rank; i++)
        if (!size_mul(bytes, (size_t)shape->dim[i], &bytes))
            return false;
    *out = bytes;
    return true;
}

static enum status read_tensor(const struct safetensors *file, const struct json *tensor,
                               struct found *out)
{
    size_t bytes;
    if (tensor->kind != JSON_OBJECT)
        FAIL(STATUS_INPUT, "%s: '%s': found no tensor, expected {dtype, shape, data_offsets}",
             file->name, tensor->key);
    *out = (struct found){.name = tensor->key, .type = json_text(tensor, "dtype", "")};
    uint64_t element = type_bytes(out->type);
    if (!element)
        FAIL(STATUS_INPUT, "%s: tensor '%s': found dtype '%.20s', expected F32, F64, I32, I8 or U8",
             file->name, tensor->key, out->type);
    TRY(read_shape(file, tensor, &out->shape));
    TRY(read_offsets(file, tensor, out));
    if (!count_bytes(&out->shape, element, &bytes) || bytes != out->to - out->from)
        FAIL(STATUS_INPUT, "%s: tensor '%s': found %llu bytes of data, expected its shape's",
             file->name, tensor->key, (unsigned long long)(out->to - out->from));
    return STATUS_OK;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct found *left = a, *right = b;
    if (left->from != right->from)
        return left->from < right->from ? -1 : 1;
    return left->to < right->to ? -1 : left->to > right->to;
}

/* Every tensor is sound, and together they cover the data once, without gaps. */
static enum status check_tensors(struct safetensors *file)
{
    struct found *list;
    size_t count = 0;
    uint64_t end = 0;
    NEED(list = arena_array(&file->arena, file->header->count + 1, sizeof *list));
    for (const struct json *member = file->header->first; member; member = member->next)
        if (!text_equal(member->key, METADATA))
            TRY(read_tensor(file, member, &list[count++]));
    qsort(list, count, sizeof *list, compare_offsets);
    for (size_t i = 0; i < count; i++) {
        if (list[i].from != end)
            FAIL(STATUS_INPUT,
                 "%s: tensor '%s': found data from byte %llu, expected it from %llu%s", file->name,
                 list[i].name, (unsigned long long)list[i].from, (unsigned long long)end,
                 list[i].from < end ? ": it overlaps another" : "");
        end = list[i].to;
    }
    if (end != file->data_bytes)
        FAIL(STATUS_INPUT, "%s: found %zu bytes of data, expected %llu", file->name,
             file->data_bytes, (unsigned long long)end);
    return STATUS_OK;
}

static enum status check_metadata(const struct safetensors *file)
{
    const struct json *metadata = json_get(file->header, METADATA);
    if (metadata && metadata->kind != JSON_OBJECT)
        FAIL(STATUS_INPUT, "%s: found " METADATA " that is no object", file->name);
    for (const struct json *note = metadata ? metadata->first : NULL; note; note = note->next)
        if (note->kind != JSON_STRING)
            FAIL(STATUS_INPUT, "%s: " METADATA " '%s': found no text", file->name, note->key);
    return STATUS_OK;
}

enum status safetensors_parse(const char *name, const void *bytes, size_t length,
                              struct safetensors *file)
{
    const unsigned char *byte = bytes;
    uint64_t header = 0;
    NEED(file->name = arena_text(&file->arena, name));
    if (length < LENGTH_BYTES)
        FAIL(STATUS_INPUT, "%s: found %zu bytes, expected a safetensors file", name, length);
    for (int i = 0; i < LENGTH_BYTES; i++)
        header |= (uint64_t)byte[i] << 8 * i;
    if (header > length - LENGTH_BYTES || header > HEADER_MOST)
        FAIL(STATUS_INPUT,
             "%s: found a header of %llu bytes in a file of %zu, expected a safetensors file that "
             "is complete",
             name, (unsigned long long)header, length);
    const char *json = (const char *)byte + LENGTH_BYTES;
    TRY(json_parse(&file->arena, file->name, json, (size_t)header, &file->header));
    if (file->header->kind != JSON_OBJECT)
        FAIL(STATUS_INPUT, "%s: found a header that is no JSON object", name);
    file->data = byte + LENGTH_BYTES + header;
    file->data_bytes = length - LENGTH_BYTES - (size_t)header;
    TRY(check_metadata(file));
    return check_tensors(file);
}

enum status safetensors_open(const char *path, struct safetensors *file)
{
    size_t length;
    TRY(file_load(path, &file->loaded, &length));
    return safetensors_parse(path, file->loaded, length, file);
}

void safetensors_close(struct safetensors *file)
{
    mem_free(file->loaded);
    arena_free(&file->arena);
    *file = (struct safetensors){0};
}

const char *safetensors_note(const struct safetensors *file, const char *key)
{
    return json_text(json_get(file->header, METADATA), key, NULL);
}

bool safetensors_find(const struct safetensors *file, const struct json *member,
                      struct safetensors_tensor *out)
{
    struct found found;
    if (text_equal(member->key, METADATA) || text_starts(member->key, STATE_PREFIX) ||
        read_tensor(file, member, &found) != STATUS_OK)
        return false;
    *out = (struct safetensors_tensor){
        .shape = found.shape, .data = file->data + found.from, .bytes = found.to - found.from};
    for (int type = 0; type < DTYPE_COUNT; type++)
        if (text_equal(found.type, type_names[type])) {
            out->dtype = (enum dtype)type;
            return true;
        }
    return false;
}

static enum status load_entry(const struct safetensors *file, const char *prefix,
                              struct params *params, int32_t index, struct text *name)
{
    const struct entry *entry = &params->entries[index];
    struct found found;
    add_name(prefix, entry, name);
    TRY(text_done(name));
    const struct json *tensor = json_get(file->header, text_of(name));
    if (!tensor)
        FAIL(STATUS_INPUT, "%s: found no tensor '%s', expected it for this network", file->name,
             text_of(name));
    TRY(read_tensor(file, tensor, &found));
    if (!text_equal(found.type, type_names[entry->dtype]))
        FAIL(STATUS_INPUT, "%s: tensor '%s': found dtype %s, expected %s", file->name,
             text_of(name), found.type, type_names[entry->dtype]);
    if (!shape_equal(&found.shape, &entry->shape)) {
        struct text text = {0};
        text_add(&text, "found shape ");
        shape_print(&found.shape, &text);
        text_add(&text, ", expected ");
        shape_print(&entry->shape, &text);
        status_fail(STATUS_INPUT, __FILE__, __LINE__, "%s: tensor '%s': %s", file->name,
                    text_of(name), text_of(&text));
        text_free(&text);
        return STATUS_INPUT;
    }
    memcpy(params_data(params, index), file->data + found.from, entry->bytes);
    return STATUS_OK;
}

/* The scale of the loss, where the training had one. */
static bool load_scale(const struct safetensors *file, struct control *control)
{
    const char *scale = safetensors_note(file, CONTROL_SCALE);
    const char *scaled = safetensors_note(file, CONTROL_SCALED);
    control->scale = control->scaled = 0;
    return !scale || (scaled && text_to_uint(scale, &control->scale) &&
                      text_to_uint(scaled, &control->scaled));
}

static enum status load_control(const struct safetensors *file, struct control *control)
{
    struct control read = *control;
    const char *step = safetensors_note(file, CONTROL_STEP);
    const char *seed = safetensors_note(file, CONTROL_SEED);
    const char *rate = safetensors_note(file, CONTROL_RATE);
    if (!step || !seed || !rate)
        FAIL(STATUS_INPUT, "%s: found weights only, expected a checkpoint (" CONTROL_STEP " …)",
             file->name);
    if (!text_to_uint(step, &read.step) || !text_to_uint(seed, &read.seed) ||
        !text_to_real(rate, &read.rate) || !load_scale(file, &read))
        FAIL(STATUS_INPUT, "%s: found a control block that holds no numbers", file->name);
    *control = read;
    return STATUS_OK;
}

/* Nothing in the file is left over. */
static enum status check_all_known(const struct safetensors *file, enum safetensors_content content,
                                   const struct params *params)
{
    for (const struct json *tensor = file->header->first; tensor; tensor = tensor->next) {
        bool state = text_starts(tensor->key, STATE_PREFIX);
        if (text_equal(tensor->key, METADATA) || (state && content == SAFETENSORS_WEIGHTS))
            continue;
        if (params_find(params, tensor->key + (state ? strlen(STATE_PREFIX) : 0)) < 0)
            FAIL(STATUS_INPUT, "%s: found tensor '%s', which this network does not have",
                 file->name, tensor->key);
    }
    return STATUS_OK;
}

enum status safetensors_load(const struct safetensors *file, enum safetensors_content content,
                             struct params *params)
{
    struct text name = {0};
    enum status status = check_all_known(file, content, params);
    for (int32_t i = 0; status == STATUS_OK && i < params->count; i++)
        if (is_written(&params->entries[i], content))
            status = load_entry(file, "", params, i, &name);
    if (status == STATUS_OK && content == SAFETENSORS_CHECKPOINT)
        status = load_control(file, &params->control);
    text_free(&name);
    return status;
}

enum status safetensors_load_entry(const struct safetensors *file, struct params *params,
                                   int32_t entry)
{
    struct text name = {0};
    enum status status;
    add_name("", &params->entries[entry], &name);
    TRY_OR(done, text_done(&name));
    memset(params_data(params, entry), 0, params->entries[entry].bytes);
    if (json_get(file->header, text_of(&name)))
        status = load_entry(file, "", params, entry, &name);
done:
    text_free(&name);
    return status;
}

enum status safetensors_load_part(const struct safetensors *file, const char *prefix,
                                  struct params *params)
{
    struct text name = {0};
    enum status status = STATUS_OK;
    for (int32_t i = 0; status == STATUS_OK && i < params->count; i++)
        if (is_written(&params->entries[i], SAFETENSORS_WEIGHTS))
            status = load_entry(file, prefix, params, i, &name);
    text_free(&name);
    return status;
}
