/* trace_own.c: our own format: lines of text with fields between tabs, which gzip packs well.
 *
 *   prony trace 1
 *   text TEXT                                    number 1, 2, 3 …; 0 is ""
 *   fact KEY VALUE                               after the texts
 *   site FILE FUNCTION LINE CALLER               number 1, 2, 3 …; 0 is none; CALLER is a site
 *   lane thread|stream NAME GROUP NUMBER PROCESS number 0, 1, 2 …
 *   KIND LANE START LENGTH NAME SITE CORRELATION BYTES FROM TO
 *
 * A span's line begins with its kind (kinds.def). START is in nanoseconds from the start of the
 * span before it. Fields at the end that are 0 may be left out. What a line names stands before it.
 */
#include "base/file.h"
#include "trace/trace_inside.h"

#include <stdio.h>
#include <string.h>

#define FIRST_LINE "prony trace 1"

enum { FIELDS = 10, LINE_LONGEST = 1 << 16 };

/* ---- writing --------------------------------------------------------------------------------- */

static void write_tables(const struct trace *trace, struct text *out)
{
    for (size_t i = 1; i < trace->text_count; i++)
        text_printf(out, "text\t%s\n", trace->texts[i]);
    for (size_t i = 0; i < trace->fact_count; i++)
        text_printf(out, "fact\t%s\t%s\n", trace_word(trace, trace->facts[i].key),
                    trace_word(trace, trace->facts[i].value));
    for (size_t i = 1; i < trace->site_count; i++)
        text_printf(out, "site\t%u\t%u\t%u\t%u\n", trace->sites[i].file, trace->sites[i].function,
                    trace->sites[i].line, trace->sites[i].caller);
    for (size_t i = 0; i < trace->lane_count; i++)
        text_printf(out, "lane\t%s\t%u\t%lld\t%lld\t%u\n", lane_kind_name(trace->lanes[i].kind),
                    trace->lanes[i].name, (long long)trace->lanes[i].group,
                    (long long)trace->lanes[i].number, trace->lanes[i].process);
}

static void write_span(const struct span *span, int64_t before, struct text *out)
{
    const unsigned long long last[] = {span->name,  span->site,        span->correlation,
                                       span->bytes, span->from_memory, span->to_memory};
    size_t count = sizeof last / sizeof *last;
    while (count && !last[count - 1])
        count--;
    text_printf(out, "%s\t%u\t%lld\t%lld", span_kind_name(span->kind), span->lane,
                (long long)(span->start_ns - before), (long long)span_ns(span));
    for (size_t i = 0; i < count; i++)
        text_printf(out, "\t%llu", last[i]);
    text_add_char(out, '\n');
}

static void write_spans(const struct trace *trace, size_t from, size_t to, struct text *out)
{
    for (size_t i = from; i < to; i++)
        write_span(&trace->spans[i], i ? trace->spans[i - 1].start_ns : 0, out);
}

void trace_write_text(const struct trace *trace, struct text *out)
{
    text_add(out, FIRST_LINE "\n");
    write_tables(trace, out);
    write_spans(trace, 0, trace->span_count, out);
}

enum status trace_write(const struct trace *trace, const char *path)
{
    enum { AT_A_TIME = 1 << 14 };
    struct file_writer writer = {0};
    struct text text = {0};
    enum status status;
    TRY(file_begin(&writer, path));
    text_add(&text, FIRST_LINE "\n");
    write_tables(trace, &text);
    for (size_t at = 0; at < trace->span_count; at += AT_A_TIME) {
        size_t left = trace->span_count - at;
        write_spans(trace, at, at + (left < AT_A_TIME ? left : AT_A_TIME), &text);
        TRY_OR(done, text_done(&text));
        TRY_OR(done, file_append(&writer, text_of(&text), text.length));
        text_clear(&text);
    }
    TRY_OR(done, text_done(&text));
    TRY_OR(done, file_append(&writer, text_of(&text), text.length));
    TRY_OR(done, file_commit(&writer));
done:
    file_abort(&writer);
    text_free(&text);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct own {
    const char *path;
    struct trace *trace;
    size_t line;
    int64_t before_ns;
    char rest[LINE_LONGEST]; /* the line that is not whole yet */
    size_t rest_length;
    char *fields[FIELDS];
    int field_count;
};

static enum status refuse(const struct own *own, const char *expected)
{
    FAIL(STATUS_INPUT, "%s:%zu: found \"%.80s\", expected %s", own->path, own->line, own->fields[0],
         expected);
}

/* The number in a field; 0 where the line has no such field. */
static enum status take(const struct own *own, int field, int64_t least, uint64_t most,
                        int64_t *out)
{
    *out = 0;
    if (field >= own->field_count)
        return STATUS_OK;
    if (!text_to_int(own->fields[field], out) || *out < least ||
        (*out > 0 && (uint64_t)*out > most))
        FAIL(STATUS_INPUT,
             "%s:%zu: found \"%.40s\" in field %d, expected a number from %lld to %llu", own->path,
             own->line, own->fields[field], field + 1, (long long)least, (unsigned long long)most);
    return STATUS_OK;
}

static uint64_t last_of(size_t count)
{
    return count ? count - 1 : 0;
}

static enum status read_fact(struct own *own)
{
    if (own->field_count != 3)
        return refuse(own, "a key and a value after \"fact\"");
    return trace_add_fact(own->trace, own->fields[1], own->fields[2]);
}

static enum status read_text(struct own *own)
{
    uint32_t number;
    if (own->field_count != 2)
        return refuse(own, "one text after \"text\"");
    const size_t before = own->trace->text_count;
    TRY(trace_text(own->trace, own->fields[1], strlen(own->fields[1]), &number));
    return own->trace->text_count > before ? STATUS_OK : refuse(own, "a text that is new");
}

static enum status read_site(struct own *own)
{
    const uint64_t texts = last_of(own->trace->text_count);
    int64_t file, function, line, caller;
    uint32_t number;
    TRY(take(own, 1, 0, texts, &file));
    TRY(take(own, 2, 0, texts, &function));
    TRY(take(own, 3, 0, UINT32_MAX, &line));
    TRY(take(own, 4, 0, last_of(own->trace->site_count), &caller));
    const size_t before = own->trace->site_count;
    TRY(trace_site(own->trace,
                   &(struct site){.file = (uint32_t)file,
                                  .function = (uint32_t)function,
                                  .line = (uint32_t)line,
                                  .caller = (uint32_t)caller},
                   &number));
    return own->trace->site_count > before ? STATUS_OK : refuse(own, "a site that is new");
}

static enum status read_lane(struct own *own)
{
    int64_t name, group, number, process;
    uint16_t lane;
    if (own->field_count < 2 || (strcmp(own->fields[1], lane_kind_name(LANE_THREAD)) != 0 &&
                                 strcmp(own->fields[1], lane_kind_name(LANE_STREAM)) != 0))
        return refuse(own, "thread or stream after \"lane\"");
    bool stream = !strcmp(own->fields[1], lane_kind_name(LANE_STREAM));
    TRY(take(own, 2, 0, last_of(own->trace->text_count), &name));
    TRY(take(own, 3, INT64_MIN, INT64_MAX, &group));
    TRY(take(own, 4, INT64_MIN, INT64_MAX, &number));
    TRY(take(own, 5, 0, last_of(own->trace->text_count), &process));
    return trace_lane(own->trace,
                      &(struct lane){.kind = stream ? LANE_STREAM : LANE_THREAD,
                                     .name = (uint32_t)name,
                                     .group = group,
                                     .number = number,
                                     .process = (uint32_t)process},
                      &lane);
}

static enum status read_span(struct own *own, enum span_kind kind)
{
    const struct trace *trace = own->trace;
    const int64_t most = INT64_MAX / 4; /* no sum of two overflows */
    int64_t value[FIELDS] = {0};
    const struct {
        int64_t least;
        uint64_t most;
    } ranges[] = {{0, last_of(trace->lane_count)},
                  {-most, (uint64_t)most},
                  {0, (uint64_t)most},
                  {0, last_of(trace->text_count)},
                  {0, last_of(trace->site_count)},
                  {0, UINT32_MAX},
                  {0, INT64_MAX},
                  {0, MEMORY_KINDS - 1},
                  {0, MEMORY_KINDS - 1}};
    if (own->field_count < 4 || !trace->lane_count)
        return refuse(own, "a lane that was named before, a start and a length after the kind");
    for (int i = 0; i + 1 < FIELDS; i++)
        TRY(take(own, i + 1, ranges[i].least, ranges[i].most, &value[i]));
    own->before_ns += value[1];
    if (own->before_ns > most || own->before_ns < -most)
        return refuse(own, "times of less than 73 years");
    return trace_add(own->trace, &(struct span){.kind = (uint8_t)kind,
                                                .lane = (uint16_t)value[0],
                                                .start_ns = own->before_ns,
                                                .end_ns = own->before_ns + value[2],
                                                .name = (uint32_t)value[3],
                                                .site = (uint32_t)value[4],
                                                .correlation = (uint32_t)value[5],
                                                .bytes = (uint64_t)value[6],
                                                .from_memory = (unsigned)value[7] & 15,
                                                .to_memory = (unsigned)value[8] & 15});
}

static enum status read_line(struct own *own, char *line)
{
    own->line++;
    own->field_count = 0;
    if (own->line == 1) {
        if (strcmp(line, FIRST_LINE) != 0)
            FAIL(STATUS_INPUT, "%s:1: found \"%.40s\", expected \"" FIRST_LINE "\"", own->path,
                 line);
        return STATUS_OK;
    }
    for (char *next = line; next && own->field_count < FIELDS;) {
        own->fields[own->field_count++] = next;
        next = strchr(next, '\t');
        if (next)
            *next++ = 0;
    }
    static const struct {
        const char *word;
        enum status (*read)(struct own *own);
    } tables[] = {
        {"fact", read_fact}, {"text", read_text}, {"site", read_site}, {"lane", read_lane}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (!strcmp(own->fields[0], tables[i].word))
            return tables[i].read(own);
    for (int kind = 0; kind < SPAN_KINDS; kind++)
        if (!strcmp(own->fields[0], span_kind_name((enum span_kind)kind)))
            return read_span(own, (enum span_kind)kind);
    return refuse(own, "fact, text, site, lane or a kind of span");
}

static enum status feed(void *context, const char *bytes, size_t length)
{
    struct own *own = context;
    while (length) {
        const char *end = memchr(bytes, '\n', length);
        size_t taken = end ? (size_t)(end - bytes) : length;
        if (taken >= sizeof own->rest - own->rest_length)
            FAIL(STATUS_INPUT, "%s:%zu: found a line of more than %d bytes", own->path,
                 own->line + 1, LINE_LONGEST);
        memcpy(own->rest + own->rest_length, bytes, taken);
        own->rest_length += taken;
        if (!end)
            return STATUS_OK;
        own->rest[own->rest_length] = 0;
        own->rest_length = 0;
        TRY(read_line(own, own->rest));
        bytes += taken + 1;
        length -= taken + 1;
    }
    return STATUS_OK;
}

static enum status begin_reading(const char *path, struct trace *trace, struct own **own)
{
    NEED(*own = arena_alloc(&trace->arena, sizeof **own));
    (*own)->path = path;
    (*own)->trace = trace;
    return STATUS_OK;
}

static enum status end_reading(const struct own *own)
{
    if (own->rest_length)
        FAIL(STATUS_INPUT, "%s:%zu: found the end of the file in a line, expected a whole line",
             own->path, own->line + 1);
    return STATUS_OK;
}

enum status trace_own_read(const char *path, struct trace *trace)
{
    struct own *own;
    TRY(begin_reading(path, trace, &own));
    TRY(trace_pieces(path, feed, own));
    return end_reading(own);
}

enum status trace_read_text(const char *name, const char *text, size_t length, struct trace *trace)
{
    struct own *own;
    enum status status;
    *trace = (struct trace){0};
    TRY_OR(done, begin_reading(name, trace, &own));
    TRY_OR(done, feed(own, text, length));
    TRY_OR(done, end_reading(own));
    TRY_OR(done, trace_finish(trace, name));
done:
    if (status != STATUS_OK)
        trace_free(trace);
    return status;
}
