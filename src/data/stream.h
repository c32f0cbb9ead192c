/* stream.h: inside data/: the files that a data set's features lie in, and reading rows of them. */
#ifndef PRONY_DATA_STREAM_H
#define PRONY_DATA_STREAM_H

#include "base/file.h"
#include "data/ahead.h"
#include "data/array.h"
#include "data/dataset.h"

/* A file's bytes: all of them or, of a plain array file, those that its header is among; the
 * others are read when they are needed. A zeroed blob is closed. */
struct blob {
    unsigned char *bytes;
    size_t held, length;     /* so many of so many bytes are there */
    struct file_reader file; /* the others */
};

/* `limit` is on what is unpacked, or read whole; of a text that is longer the beginning is there.
 */
enum status blob_open(const char *path, size_t limit, struct blob *out);
void blob_close(struct blob *blob);

enum { STREAM_PARTS = 2 }; /* what is to be learnt from, and a test set of its own */

struct stream {
    int part_count;
    struct stream_part {
        const char *path; /* in the data set's arena */
        struct blob blob;
        struct array array;
        size_t data_at;       /* in the file, where `array` has no data */
        unsigned char *block; /* rows that were read last: … */
        int64_t block_first, block_rows;
    } parts[STREAM_PARTS]; /* rows of the second follow those of the first */
    int64_t window;        /* rows at a time */
    struct ahead *ahead;   /* reads the rows of `next`; NULL: none was asked for yet */
    struct request {
        const struct dataset *dataset;
        float *features;  /* a second block: where the next rows go */
        bool pending;     /* asked for, and not taken */
        uint32_t *list;   /* a copy of the caller's, of which … */
        size_t list_room; /* … there may be so many */
        bool listed;      /* it counts; else rows as they come */
        int64_t first, count;
    } next;
};

/* Of a data set whose features take so many bytes. NULL is fine. */
void stream_free(struct stream *stream, size_t reserved_bytes);
/* Rows in their order are read many at a time, others one by one. */
enum status stream_read_row(struct stream *stream, int64_t row, float *out);
/* A row of one file: it is number *at of *out, until another is asked for. */
enum status stream_bring_row(struct stream_part *part, int64_t row, struct array *out, int64_t *at);

/* Opens an array file, unless its blob is open; *out belongs to the caller also when it is refused.
 */
enum status stream_open_part(const char *path, size_t limit, struct stream_part *out);

/* Features from the files of `features` and, where `labels` has files, labels from these; each list
 * has `parts` paths. The first file of the features may be open already; it is taken over then, and
 * a zeroed blob left. Loads the features, or leaves them to be streamed. */
enum status dataset_from_arrays(const char *name, const char *const *features,
                                const char *const *labels, int parts, struct blob *first,
                                const struct dataset_options *options, struct dataset **out);

/* What features may take. */
size_t dataset_memory(const struct dataset_options *options);

#endif
