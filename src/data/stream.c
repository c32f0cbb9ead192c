/* stream.c: see stream.h. */
#include "data/stream.h"

#include "base/file.h"
#include "base/memory.h"
#include "data/inflate.h"

/* A small file can unpack into a huge one: an array becomes no longer than its header says. */
static enum status look(const char *name, const unsigned char *begin, size_t length, size_t *limit)
{
    size_t announced;
    if (!array_is_npy(begin, length) && !array_is_idx(begin, length))
        return STATUS_OK;
    TRY(array_announced(name, begin, length, &announced));
    *limit = announced < *limit ? announced : *limit;
    return STATUS_OK;
}

enum status blob_open(const char *path, size_t limit, struct blob *out)
{
    TRY(file_map(path, &out->map, &out->map_bytes));
    out->bytes = out->map;
    out->length = out->map_bytes;
    if (!inflate_is_gzip(out->bytes, out->length))
        return STATUS_OK;
    TRY(inflate_gzip(path, out->map, out->map_bytes, limit, look, &out->unpacked, &out->length));
    out->bytes = out->unpacked;
    file_unmap(out->map, out->map_bytes);
    out->map = NULL;
    return STATUS_OK;
}

void blob_close(struct blob *blob)
{
    file_unmap(blob->map, blob->map_bytes);
    mem_free(blob->unpacked);
    *blob = (struct blob){0};
}

enum status stream_open_part(const char *path, size_t limit, struct stream_part *out)
{
    if (!out->blob.bytes)
        TRY(blob_open(path, limit, &out->blob));
    return array_parse(path, out->blob.bytes, out->blob.length, &out->array);
}

void stream_free(struct stream *stream, size_t reserved_bytes)
{
    if (!stream)
        return;
    ahead_close(stream->ahead);
    mem_unreserve(stream->next.features, reserved_bytes);
    mem_free(stream->next.list);
    for (int i = 0; i < STREAM_PARTS; i++)
        blob_close(&stream->parts[i].blob);
    mem_free(stream);
}

enum status stream_read_row(const struct stream *stream, int64_t row, float *out)
{
    const struct stream_part *part = stream->parts;
    int64_t bad, place = row;
    if (place >= part->array.dim[0]) {
        place -= part->array.dim[0];
        part++;
    }
    array_get_row(&part->array, place, out, &bad);
    if (bad >= 0)
        FAIL(STATUS_INPUT, "%s: row %lld, value %lld: found %g, expected a number", part->path,
             (long long)place + 1, (long long)bad + 1, (double)out[bad]);
    return STATUS_OK;
}
