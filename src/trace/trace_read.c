/* trace_read.c: a file becomes a trace: what it is says its content, whatever its name. */
#include "base/file.h"
#include "base/inflate.h"
#include "base/memory.h"
#include "trace/trace_inside.h"

#include <string.h>

enum { PIECE = 1 << 20, BEGIN = 64 };

static enum status read_packed(const char *path, size_t length, trace_feed *feed, void *context)
{
    void *packed = NULL;
    size_t got;
    (void)length;
    TRY(file_load(path, &packed, &got));
    enum status status = inflate_pieces(path, packed, got, feed, context);
    mem_free(packed);
    return status;
}

static enum status read_plain(const struct file_reader *reader, const char *path, trace_feed *feed,
                              void *context)
{
    enum status status = STATUS_OK;
    char *piece;
    NEED(piece = mem_alloc(PIECE));
    for (size_t at = 0; at < reader->length && status == STATUS_OK;) {
        size_t bytes = reader->length - at < PIECE ? reader->length - at : PIECE;
        status = file_read_part(reader, path, at, bytes, piece);
        if (status == STATUS_OK)
            status = feed(context, piece, bytes);
        at += bytes;
    }
    mem_free(piece);
    return status;
}

enum status trace_pieces(const char *path, trace_feed *feed, void *context)
{
    struct file_reader reader = {0};
    char begin[2] = {0};
    TRY(file_open(&reader, path));
    enum status status = STATUS_OK;
    if (reader.length >= sizeof begin)
        status = file_read_part(&reader, path, 0, sizeof begin, begin);
    if (status == STATUS_OK)
        status = inflate_is_gzip(begin, sizeof begin)
                     ? read_packed(path, reader.length, feed, context)
                     : read_plain(&reader, path, feed, context);
    file_close(&reader);
    return status;
}

/* ---- which format ---------------------------------------------------------------------------- */

struct opening {
    char bytes[BEGIN];
    size_t length;
};

/* Enough of it was seen: the rest is not unpacked. */
static enum status take_opening(void *context, const char *bytes, size_t length)
{
    struct opening *opening = context;
    size_t room = sizeof opening->bytes - opening->length;
    size_t taken = length < room ? length : room;
    memcpy(opening->bytes + opening->length, bytes, taken);
    opening->length += taken;
    return opening->length == sizeof opening->bytes ? STATUS_INTERRUPTED : STATUS_OK;
}

static enum status look_at(const char *path, struct opening *opening)
{
    *opening = (struct opening){0};
    enum status status = trace_pieces(path, take_opening, opening);
    return status == STATUS_INTERRUPTED ? STATUS_OK : status;
}

struct format {
    const char *name;
    bool (*is)(const struct opening *opening);
    enum status (*read)(const char *path, struct trace *trace);
};

static bool begins_with(const struct opening *opening, const char *word)
{
    return opening->length >= strlen(word) && !memcmp(opening->bytes, word, strlen(word));
}

static bool is_own(const struct opening *opening)
{
    return begins_with(opening, "prony trace ");
}

/* Objects and arrays of objects; nothing else of JSON is a trace. */
static bool is_json(const struct opening *opening)
{
    static const char blanks[] = " \t\r\n";
    size_t at = 0;
    while (at < opening->length && memchr(blanks, opening->bytes[at], sizeof blanks - 1))
        at++;
    if (at == opening->length || (opening->bytes[at] != '{' && opening->bytes[at] != '['))
        return false;
    char first = opening->bytes[at++];
    while (at < opening->length && memchr(blanks, opening->bytes[at], sizeof blanks - 1))
        at++;
    return at == opening->length || opening->bytes[at] == (first == '[' ? '{' : '"') ||
           opening->bytes[at] == (first == '[' ? ']' : '}');
}

static bool is_sqlite(const struct opening *opening)
{
    return begins_with(opening, "SQLite format 3");
}

/* A message in field 1, that begins with an id, a name, a line or metadata. */
static bool is_xplane(const struct opening *opening)
{
    const unsigned char *bytes = (const unsigned char *)opening->bytes;
    size_t at = 1;
    if (opening->length < 16 || bytes[0] != 0x0A)
        return false;
    while (at < 6 && bytes[at] & 0x80)
        at++;
    unsigned char first = bytes[at + 1];
    return first == 0x08 || first == 0x12 || first == 0x1A || first == 0x22;
}

static const struct format formats[] = {
    {"prony", is_own, trace_own_read},
    {"Chrome", is_json, trace_chrome_read},
    {"Nsight Systems", is_sqlite, trace_nsys_read},
    {"XPlane", is_xplane, trace_xplane_read},
};

static const struct format *find_format(const struct opening *opening)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].is(opening))
            return &formats[i];
    return NULL;
}

/* The names that other tools give to what they write. */
static bool is_named_as_trace(const char *path)
{
    static const char *const ends[] = {".gz",    ".json",     ".jsonl", ".pb", ".sqlite",
                                       ".trace", ".nsys-rep", ".qdrep", NULL};
    for (const char *const *end = ends; *end; end++)
        if (text_ends(path, *end))
            return true;
    return false;
}

bool trace_is_one(const char *path)
{
    struct opening opening;
    if (look_at(path, &opening) != STATUS_OK)
        return is_named_as_trace(path);
    return find_format(&opening) || is_named_as_trace(path);
}

static enum status refuse(const char *path, const struct opening *opening)
{
    if (!opening->length)
        FAIL(STATUS_INPUT, "%s: found an empty file, expected a trace", path);
    if (text_ends(path, ".nsys-rep") || text_ends(path, ".qdrep"))
        FAIL(STATUS_INPUT,
             "%s: found a report of Nsight Systems, expected its export: nsys export -t sqlite",
             path);
    FAIL(STATUS_INPUT,
         "%s: found no trace, expected one of prony, Kineto or Chrome (JSON), JAX, ONNX Runtime, "
         "Nsight Systems (SQLite) or XPlane, plain or in gzip. A program stands after --",
         path);
}

/* Messages of a trace as a whole do not know its file. */
static enum status with_name(enum status status, const char *path)
{
    const bool named = !strncmp(status_message(), path, strlen(path));
    return status == STATUS_OK || named ? status : status_prefix(status, "%s", path);
}

enum status trace_read(const char *path, struct trace *trace)
{
    struct opening opening;
    TRY(look_at(path, &opening));
    const struct format *format = find_format(&opening);
    if (!format)
        return refuse(path, &opening);
    *trace = (struct trace){0};
    enum status status = format->read(path, trace);
    if (status == STATUS_OK && !trace->span_count && format->is != is_own)
        status = status_fail(STATUS_INPUT, __FILE__, __LINE__,
                             "%s: found no span in it, expected kernels, copies, calls or ops with "
                             "a start and a length",
                             path);
    if (status == STATUS_OK && !trace_fact(trace, "format"))
        status = trace_add_fact(trace, "format", format->name);
    if (status == STATUS_OK)
        status = trace_finish(trace, path);
    status = with_name(status, path);
    if (status != STATUS_OK)
        trace_free(trace);
    return status;
}
