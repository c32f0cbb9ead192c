/* trace_xplane.c: XPlane, what JAX and TensorFlow write (*.xplane.pb): messages of protobuf, read
 * by hand since five of them are all that is needed.
 *
 *   XSpace: planes 1          XPlane: name 2, lines 3, event_metadata 4 (a map)
 *   XLine: id 1, name 2, timestamp_ns 3, events 4, display_name 11
 *   XEvent: metadata_id 1, offset_ps 2, duration_ps 3
 *   XEventMetadata: id 1, name 2 */
#include "base/file.h"
#include "base/memory.h"
#include "trace/trace_inside.h"

#include <stdlib.h>
#include <string.h>

enum { XPLANE_LONGEST = 1 << 30, VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

/* A part of a message, with where it is in the file for messages. */
struct wire {
    const char *path;
    const unsigned char *at, *end, *begin;
};

struct field {
    uint32_t number, type;
    uint64_t value;   /* of numbers */
    struct wire part; /* of bytes */
};

static enum status broken(const struct wire *wire, const char *found)
{
    FAIL(STATUS_INPUT, "%s: byte %zu: found %s, expected an XPlane message", wire->path,
         (size_t)(wire->at - wire->begin), found);
}

static enum status take_varint(struct wire *wire, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (wire->at == wire->end)
            return broken(wire, "the end in a number");
        unsigned char byte = *wire->at++;
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return STATUS_OK;
    }
    return broken(wire, "a number of more than 64 bits");
}

static enum status skip(struct wire *wire, uint64_t bytes)
{
    if (bytes > (uint64_t)(wire->end - wire->at))
        return broken(wire, "a field that is longer than the rest");
    wire->at += bytes;
    return STATUS_OK;
}

static enum status take_field(struct wire *wire, struct field *field)
{
    uint64_t key;
    TRY(take_varint(wire, &key));
    *field = (struct field){.number = (uint32_t)(key >> 3), .type = key & 7};
    switch (field->type) {
    case VARINT: return take_varint(wire, &field->value);
    case FIXED64: return skip(wire, 8);
    case FIXED32: return skip(wire, 4);
    case BYTES:
        TRY(take_varint(wire, &field->value));
        field->part = *wire;
        TRY(skip(wire, field->value));
        field->part.end = wire->at;
        return STATUS_OK;
    default: return broken(wire, "a field of unknown type");
    }
}

/* ---- a plane --------------------------------------------------------------------------------- */

struct name_of {
    uint64_t id;
    uint32_t text;
};

struct plane {
    struct trace *trace;
    bool gpu;
    int64_t group; /* of its lanes */
    struct name_of *names;
    size_t name_count, name_room;
};

static enum status add_text(struct trace *trace, const struct wire *part, uint32_t *out)
{
    return trace_text(trace, (const char *)part->at, (size_t)(part->end - part->at), out);
}

/* An entry of the map: key 1, value 2: the metadata with its own id 1 and name 2. */
static enum status read_metadata(struct plane *plane, struct wire entry, int depth,
                                 struct name_of *name)
{
    struct field field;
    while (entry.at < entry.end) {
        TRY(take_field(&entry, &field));
        if (field.number == 1 && field.type == VARINT)
            name->id = field.value;
        else if (field.number == 2 && field.type == BYTES && depth == 0)
            TRY(read_metadata(plane, field.part, 1, name));
        else if (field.number == 2 && field.type == BYTES)
            TRY(add_text(plane->trace, &field.part, &name->text));
    }
    return STATUS_OK;
}

static enum status keep_name(struct plane *plane, const struct name_of *name)
{
    if (plane->name_count == plane->name_room) {
        size_t room = plane->name_room ? 2 * plane->name_room : 256;
        struct name_of *names;
        NEED(names = mem_grow(plane->names, room, sizeof *names));
        plane->names = names;
        plane->name_room = room;
    }
    plane->names[plane->name_count++] = *name;
    return STATUS_OK;
}

static int name_order(const void *a, const void *b)
{
    const struct name_of *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static uint32_t find_name(const struct plane *plane, uint64_t id)
{
    const struct name_of key = {.id = id};
    const struct name_of *name =
        plane->name_count ? bsearch(&key, plane->names, plane->name_count, sizeof key, name_order)
                          : NULL;
    return name ? name->text : 0;
}

static enum span_kind kind_of(const struct plane *plane, const char *name)
{
    if (plane->gpu)
        return text_starts(name, "Memcpy")   ? SPAN_copy
               : text_starts(name, "Memset") ? SPAN_fill
                                             : SPAN_kernel;
    return *name == '$' ? SPAN_python : SPAN_op;
}

static enum status read_event(struct plane *plane, struct wire event, int64_t line_ns,
                              uint16_t lane)
{
    uint64_t id = 0, offset_ps = 0, length_ps = 0;
    struct field field;
    while (event.at < event.end) {
        TRY(take_field(&event, &field));
        if (field.type != VARINT)
            continue;
        id = field.number == 1 ? field.value : id;
        offset_ps = field.number == 2 ? field.value : offset_ps;
        length_ps = field.number == 3 ? field.value : length_ps;
    }
    struct span span = {.lane = lane, .name = find_name(plane, id)};
    span.kind = (uint8_t)kind_of(plane, trace_word(plane->trace, span.name));
    span.start_ns = line_ns + (int64_t)(offset_ps / 1000);
    span.end_ns = span.start_ns + (int64_t)(length_ps / 1000);
    return trace_add(plane->trace, &span);
}

static enum status read_line(struct plane *plane, struct wire line)
{
    struct lane lane = {.kind = plane->gpu ? LANE_STREAM : LANE_THREAD, .group = plane->group};
    struct wire again = line;
    struct field field;
    int64_t line_ns = 0;
    uint16_t number;
    while (line.at < line.end) {
        TRY(take_field(&line, &field));
        if (field.number == 1 && field.type == VARINT)
            lane.number = (int64_t)field.value;
        else if (field.number == 2 && field.type == BYTES)
            TRY(add_text(plane->trace, &field.part, &lane.name));
        else if (field.number == 3 && field.type == VARINT && field.value > INT64_MAX / 4)
            return broken(&line, "a time beyond 73 years");
        else if (field.number == 3 && field.type == VARINT)
            line_ns = (int64_t)field.value;
    }
    TRY(trace_lane(plane->trace, &lane, &number));
    while (again.at < again.end) {
        TRY(take_field(&again, &field));
        if (field.number == 4 && field.type == BYTES)
            TRY(read_event(plane, field.part, line_ns, number));
    }
    return STATUS_OK;
}

static enum status read_plane(struct plane *plane, struct wire wire)
{
    struct wire again = wire;
    struct field field;
    while (wire.at < wire.end) {
        TRY(take_field(&wire, &field));
        if (field.number == 2 && field.type == BYTES) {
            size_t length = (size_t)(field.part.end - field.part.at);
            plane->gpu = length >= 12 && memcmp(field.part.at, "/device:GPU:", 12) == 0;
        } else if (field.number == 4 && field.type == BYTES) {
            struct name_of name = {0};
            TRY(read_metadata(plane, field.part, 0, &name));
            TRY(keep_name(plane, &name));
        }
    }
    if (plane->name_count)
        qsort(plane->names, plane->name_count, sizeof *plane->names, name_order);
    while (again.at < again.end) {
        TRY(take_field(&again, &field));
        if (field.number == 3 && field.type == BYTES)
            TRY(read_line(plane, field.part));
    }
    return STATUS_OK;
}

static enum status read_space(struct trace *trace, struct wire wire)
{
    struct field field;
    int64_t group = 0;
    while (wire.at < wire.end) {
        TRY(take_field(&wire, &field));
        if (field.number != 1 || field.type != BYTES)
            continue;
        struct plane plane = {.trace = trace, .group = group++};
        enum status status = read_plane(&plane, field.part);
        mem_free(plane.names);
        TRY(status);
    }
    TRY(trace_add_fact(trace, "format", "XPlane"));
    return trace_add_fact(trace, "lacks", "the calls that launched kernels: no replay is possible");
}

static enum status keep_bytes(void *context, const char *bytes, size_t length)
{
    struct text *text = context;
    text_add_bytes(text, bytes, length);
    if (text->full)
        FAIL(STATUS_INPUT, "found more than %d bytes, expected at most that", XPLANE_LONGEST);
    return text_done(text);
}

enum status trace_xplane_read(const char *path, struct trace *trace)
{
    struct text text = {.most = XPLANE_LONGEST};
    enum status status = trace_pieces(path, keep_bytes, &text);
    const unsigned char *begin = (const unsigned char *)text_of(&text);
    if (status == STATUS_OK)
        status = read_space(trace, (struct wire){path, begin, begin + text.length, begin});
    text_free(&text);
    return status;
}
