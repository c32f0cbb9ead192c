/* stream.c: see stream.h. */
#include "data/stream.h"

#include "base/inflate.h"
#include "base/memory.h"

#include <string.h>

/* The header of an NPY file takes less; rows that follow each other are read so many at a time. */
enum { HEAD_BYTES = 1 << 17, BLOCK_BYTES = 1 << 18 };

/* A small file can unpack into a huge one: an array becomes no longer than its header says, and of
 * text, whose numbers are there beside it, half is allowed. What is neither is not unpacked. */
static enum status look(const char *name, const unsigned char *begin, size_t length, size_t *limit)
{
    size_t announced;
    if (!array_is_npy(begin, length) && !array_is_idx(begin, length)) {
        *limit /= 2;
        if (memchr(begin, 0, length))
            FAIL(STATUS_INPUT,
                 "%s: found bytes that are no text when unpacked, expected CSV, IDX or NPY", name);
        return STATUS_OK;
    }
    TRY(array_announced(name, begin, length, &announced));
    if (announced > *limit)
        FAIL(STATUS_INPUT,
             "%s: found %zu bytes when unpacked, by its header, expected at most the %zu that data "
             "may take; without gzip it would be streamed",
             name, announced, *limit);
    *limit = announced < *limit ? announced : *limit;
    return STATUS_OK;
}

/* Unpacks what was read, or reads on where all of it is needed. */
static enum status complete(const char *path, size_t limit, struct blob *out)
{
    unsigned char *packed = out->bytes;
    bool gzip = inflate_is_gzip(packed, out->held);
    bool array = array_is_npy(packed, out->held) || array_is_idx(packed, out->held);
    if (array || (!gzip && out->length > limit))
        return STATUS_OK;
    if (out->held < out->length) {
        NEED(packed = mem_grow(out->bytes, out->length + 1, 1));
        out->bytes = packed;
        packed[out->length] = 0;
        TRY(file_read_part(&out->file, path, out->held, out->length - out->held,
                           packed + out->held));
        out->held = out->length;
    }
    file_close(&out->file);
    if (!gzip)
        return STATUS_OK;
    out->bytes = NULL;
    enum status status =
        inflate_gzip(path, packed, out->length, limit, look, &out->bytes, &out->length);
    out->held = out->length;
    mem_free(packed);
    return status;
}

enum status blob_open(const char *path, size_t limit, struct blob *out)
{
    TRY(file_open(&out->file, path));
    out->length = out->file.length;
    out->held = out->length < HEAD_BYTES ? out->length : HEAD_BYTES;
    NEED(out->bytes = mem_alloc(out->held + 1));
    TRY(file_read_part(&out->file, path, 0, out->held, out->bytes));
    return complete(path, limit, out);
}

void blob_close(struct blob *blob)
{
    file_close(&blob->file);
    mem_free(blob->bytes);
    *blob = (struct blob){0};
}

enum status stream_open_part(const char *path, size_t limit, struct stream_part *out)
{
    struct blob *blob = &out->blob;
    if (!blob->bytes)
        TRY(blob_open(path, limit, blob));
    TRY(array_begin(path, blob->bytes, blob->held, blob->length, &out->array, &out->data_at));
    if (blob->held == blob->length)
        out->array.data = blob->bytes + out->data_at;
    return STATUS_OK;
}

void stream_free(struct stream *stream, size_t reserved_bytes)
{
    if (!stream)
        return;
    ahead_close(stream->ahead);
    mem_unreserve(stream->next.features, reserved_bytes);
    mem_free(stream->next.list);
    for (int i = 0; i < STREAM_PARTS; i++) {
        blob_close(&stream->parts[i].blob);
        mem_free(stream->parts[i].block);
    }
    mem_free(stream);
}

enum status stream_bring_row(struct stream_part *part, int64_t row, struct array *out, int64_t *at)
{
    const struct array *array = &part->array;
    size_t bytes = (size_t)array_row_count(array) * array_element_bytes(array->element);
    int64_t next = part->block_first + part->block_rows;
    *out = *array;
    *at = row;
    if (array->data)
        return STATUS_OK;
    int64_t room = bytes < BLOCK_BYTES ? (int64_t)(BLOCK_BYTES / bytes) : 1;
    if (!part->block)
        NEED(part->block = mem_array((size_t)room, bytes));
    if (row < part->block_first || row >= next) {
        int64_t left = array->dim[0] - row, count = row != next ? 1 : left < room ? left : room;
        part->block_rows = 0; /* what is half read is not there */
        TRY(file_read_part(&part->blob.file, part->path, part->data_at + (size_t)row * bytes,
                           (size_t)count * bytes, part->block));
        part->block_first = row;
        part->block_rows = count;
    }
    out->data = part->block;
    *at = row - part->block_first;
    return STATUS_OK;
}

enum status stream_read_row(struct stream *stream, int64_t row, float *out)
{
    struct stream_part *part = stream->parts;
    struct array array;
    int64_t bad, place = row, at;
    if (place >= part->array.dim[0]) {
        place -= part->array.dim[0];
        part++;
    }
    TRY(stream_bring_row(part, place, &array, &at));
    array_get_row(&array, at, out, &bad);
    if (bad >= 0)
        FAIL(STATUS_INPUT, "%s: row %lld, value %lld: found %g, expected a number", part->path,
             (long long)place + 1, (long long)bad + 1, (double)out[bad]);
    return STATUS_OK;
}
