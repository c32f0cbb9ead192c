/* gpu_seen.c: see gpu_seen.h. A file is read block by block, three times: names, stacks, spans. */
#include "watch/gpu_seen.h"

#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NUMBERS = (1 << 16) + 1 };
static const uint64_t time_most = (uint64_t)1 << 61;

/* A call, or an event that waits for the time of its call. */
struct moment {
    uint32_t correlation, stream;
    uint64_t start_ns, event;
    uint8_t device;
};
struct moments {
    struct moment *moments;
    size_t count, room;
};

struct gpu_reader {
    const char *path;
    int file;
    size_t blocks;
    struct trace *trace; /* NULL: only counts */
    struct gpu_seen *seen;
    double kernel_ns;
    bool counting;           /* in the last pass: what does not fit is counted once */
    uint32_t *texts, *sites; /* by number, those of the trace; 0: not known */
    struct moments calls, events;
};

typedef enum status visit_record(struct gpu_reader *reader, const struct gpu_record *record);
static visit_record take_span;

static enum status note_moment(struct moments *moments, const struct moment *moment)
{
    if (moments->count == moments->room) {
        const size_t room = moments->room ? 2 * moments->room : 1024;
        struct moment *grown = mem_grow(moments->moments, room, sizeof *grown);
        NEED(grown);
        moments->moments = grown;
        moments->room = room;
    }
    moments->moments[moments->count++] = *moment;
    return STATUS_OK;
}

/* ---- blocks and records ---------------------------------------------------------------------- */

static size_t read_at(int file, void *to, size_t bytes, off_t from)
{
    size_t got = 0;
    while (got < bytes) {
        const ssize_t more = pread(file, (char *)to + got, bytes - got, from + (off_t)got);
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            break;
        got += (size_t)more;
    }
    return got;
}

static bool record_fits(const struct gpu_record *record, size_t left)
{
    return record->bytes >= sizeof *record && record->bytes % sizeof(uint64_t) == 0 &&
           record->bytes <= left;
}

/* What is behind a record that does not fit cannot be found. */
static enum status visit_block(struct gpu_reader *reader, const unsigned char *block, size_t bytes,
                               visit_record *visit)
{
    struct gpu_block head;
    memcpy(&head, block, sizeof head);
    size_t at = sizeof head, end = sizeof head + head.used;
    if (end > bytes) {
        reader->seen->unreadable += reader->counting;
        end = bytes;
    }
    while (at + sizeof(struct gpu_record) <= end) {
        const struct gpu_record *record = (const void *)(block + at);
        if (!record_fits(record, end - at)) {
            reader->seen->unreadable += reader->counting;
            break;
        }
        TRY(visit(reader, record));
        at += record->bytes;
    }
    return STATUS_OK;
}

static enum status visit_all(struct gpu_reader *reader, visit_record *visit)
{
    enum status status = STATUS_OK;
    unsigned char *block = mem_alloc(GPU_BLOCK);
    NEED(block);
    reader->counting = visit == take_span;
    for (size_t i = 1; i < reader->blocks && status == STATUS_OK; i++) {
        const size_t got = read_at(reader->file, block, GPU_BLOCK, (off_t)i * GPU_BLOCK);
        if (got <= sizeof(struct gpu_block))
            break;
        status = visit_block(reader, block, got, visit);
    }
    mem_free(block);
    return status;
}

/* ---- names and stacks ------------------------------------------------------------------------ */

static bool text_fits(const struct gpu_text *text)
{
    return text->record.bytes >= sizeof *text && text->length <= text->record.bytes - sizeof *text;
}

static enum status take_text(struct gpu_reader *reader, const struct gpu_record *record)
{
    const struct gpu_text *text = (const void *)record;
    const char *bytes = (const char *)(text + 1);
    if (record->kind != GPU_TEXT && record->kind != GPU_GPU)
        return STATUS_OK;
    if (!text_fits(text) || (record->kind == GPU_TEXT && record->number >= NUMBERS)) {
        reader->seen->unreadable++;
        return STATUS_OK;
    }
    if (record->kind == GPU_TEXT)
        return trace_text(reader->trace, bytes, text->length, &reader->texts[record->number]);
    char name[GPU_REASON];
    snprintf(name, sizeof name, "%.*s", (int)strnlen(bytes, text->length), bytes);
    return trace_fact(reader->trace, "gpu") ? STATUS_OK
                                            : trace_add_fact(reader->trace, "gpu", name);
}

static enum status take_stack(struct gpu_reader *reader, const struct gpu_record *record)
{
    const struct gpu_stack *stack = (const void *)record;
    const struct gpu_frame *frames = (const void *)(stack + 1);
    uint32_t site = 0;
    if (record->kind != GPU_STACK)
        return STATUS_OK;
    if (record->bytes < sizeof *stack || record->number >= NUMBERS ||
        stack->count > GPU_FRAMES_MOST ||
        sizeof *stack + stack->count * sizeof *frames > record->bytes) {
        reader->seen->unreadable++;
        return STATUS_OK;
    }
    for (size_t i = stack->count; i-- > 0;) {
        const struct gpu_frame *frame = &frames[i];
        const struct site made = {
            .file = frame->file < NUMBERS ? reader->texts[frame->file] : 0,
            .function = frame->function < NUMBERS ? reader->texts[frame->function] : 0,
            .line = frame->line > 0 ? (uint32_t)frame->line : 0,
            .caller = site};
        TRY(trace_site(reader->trace, &made, &site));
    }
    reader->sites[record->number] = site;
    return STATUS_OK;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static unsigned memory_of(uint8_t kind)
{
    static const uint8_t memories[] = {MEMORY_UNKNOWN, MEMORY_PAGEABLE, MEMORY_PINNED,
                                       MEMORY_DEVICE,  MEMORY_DEVICE,   MEMORY_MANAGED,
                                       MEMORY_DEVICE,  MEMORY_MANAGED};
    return kind < sizeof memories ? memories[kind] : MEMORY_UNKNOWN;
}

static enum status name_of(struct gpu_reader *reader, const struct gpu_span *in, uint32_t *out)
{
    static const char *const waiters[] = {"device", "event", "queue", "stream", "device"};
    char text[64] = "";
    *out = in->name < NUMBERS ? reader->texts[in->name] : 0;
    if (in->record.kind == GPU_COPY)
        snprintf(text, sizeof text, "copy from %s to %s memory",
                 memory_kind_name((enum memory_kind)memory_of(in->from)),
                 memory_kind_name((enum memory_kind)memory_of(in->to)));
    else if (in->record.kind == GPU_FILL)
        snprintf(text, sizeof text, "fill");
    else if (in->record.kind == GPU_WAIT)
        snprintf(text, sizeof text, "%s",
                 waiters[in->wait < sizeof waiters / sizeof *waiters ? in->wait : 0]);
    return *text ? trace_text(reader->trace, text, strlen(text), out) : STATUS_OK;
}

static enum status stream_lane(struct gpu_reader *reader, uint8_t device, uint32_t stream,
                               uint16_t *lane)
{
    return trace_lane(reader->trace,
                      &(struct lane){.kind = LANE_STREAM,
                                     .group = device,
                                     .number = stream == GPU_STREAM_NONE ? -1 : (int64_t)stream},
                      lane);
}

static enum status add_span(struct gpu_reader *reader, const struct gpu_span *in)
{
    static const uint8_t kinds[GPU_KINDS] = {[GPU_KERNEL] = SPAN_kernel,
                                             [GPU_COPY] = SPAN_copy,
                                             [GPU_FILL] = SPAN_fill,
                                             [GPU_WAIT] = SPAN_wait,
                                             [GPU_CALL] = SPAN_call};
    struct span span = {.kind = kinds[in->record.kind],
                        .start_ns = (int64_t)in->start_ns,
                        .end_ns = (int64_t)in->end_ns,
                        .correlation = in->record.number,
                        .bytes = in->record.kind == GPU_KERNEL ? 0 : in->bytes,
                        .from_memory = memory_of(in->from) & 15,
                        .to_memory = memory_of(in->to) & 15};
    TRY(name_of(reader, in, &span.name));
    if (in->record.kind != GPU_CALL) {
        TRY(stream_lane(reader, in->device, in->place, &span.lane));
        return trace_add(reader->trace, &span);
    }
    span.site = in->stack < NUMBERS ? reader->sites[in->stack] : 0;
    reader->seen->with_line += span.site != 0;
    TRY(trace_lane(reader->trace,
                   &(struct lane){.kind = LANE_THREAD,
                                  .group = reader->seen->process,
                                  .number = (int64_t)in->place},
                   &span.lane));
    TRY(note_moment(&reader->calls,
                    &(struct moment){.correlation = in->record.number, .start_ns = in->start_ns}));
    return trace_add(reader->trace, &span);
}

static void count_span(struct gpu_reader *reader, const struct gpu_span *span)
{
    struct gpu_seen *seen = reader->seen;
    if (!seen->kernels)
        seen->device = span->device;
    seen->kernels += span->record.kind == GPU_KERNEL;
    seen->copies += span->record.kind == GPU_COPY;
    seen->fills += span->record.kind == GPU_FILL;
    seen->calls += span->record.kind == GPU_CALL;
    if (span->record.kind == GPU_KERNEL)
        reader->kernel_ns += (double)(span->end_ns - span->start_ns);
}

static enum status take_span(struct gpu_reader *reader, const struct gpu_record *record)
{
    const struct gpu_span *span = (const void *)record;
    if (record->kind < GPU_KERNEL && record->kind)
        return STATUS_OK;
    if (record->kind >= GPU_KINDS || !record->kind || record->bytes != sizeof *span ||
        span->end_ns < span->start_ns || span->end_ns > time_most ||
        (!span->start_ns && record->kind != GPU_EVENT)) {
        reader->seen->unreadable++;
        return STATUS_OK;
    }
    count_span(reader, span);
    if (!reader->trace)
        return STATUS_OK;
    if (record->kind == GPU_EVENT)
        return note_moment(&reader->events, &(struct moment){.correlation = record->number,
                                                             .event = span->bytes,
                                                             .stream = span->place,
                                                             .device = span->device});
    const enum status status = add_span(reader, span);
    if (status != STATUS_INPUT)
        return status;
    reader->seen->unreadable++; /* more threads or streams than a trace has room for */
    return STATUS_OK;
}

/* ---- events, which have the time of their call ------------------------------------------------
 */

static int by_correlation(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static enum status add_events(struct gpu_reader *reader)
{
    struct moments *calls = &reader->calls;
    if (calls->count)
        qsort(calls->moments, calls->count, sizeof *calls->moments, by_correlation);
    for (size_t i = 0; i < reader->events.count; i++) {
        const struct moment *event = &reader->events.moments[i];
        const struct moment *call = calls->count ? bsearch(event, calls->moments, calls->count,
                                                           sizeof *event, by_correlation)
                                                 : NULL;
        if (!call)
            continue;
        struct span span = {.kind = SPAN_event,
                            .start_ns = (int64_t)call->start_ns,
                            .end_ns = (int64_t)call->start_ns,
                            .correlation = event->correlation,
                            .bytes = event->event};
        TRY(stream_lane(reader, event->device, event->stream, &span.lane));
        TRY(trace_add(reader->trace, &span));
    }
    return STATUS_OK;
}

/* How much of what ran has a call. */
static void count_calls(struct gpu_reader *reader)
{
    const struct moments *calls = &reader->calls;
    const struct trace *trace = reader->trace;
    for (size_t i = 0; i < trace->span_count && calls->count; i++) {
        const struct moment wanted = {.correlation = trace->spans[i].correlation};
        reader->seen->with_call +=
            span_kind_on_device((enum span_kind)trace->spans[i].kind) &&
            bsearch(&wanted, calls->moments, calls->count, sizeof wanted, by_correlation) != NULL;
    }
}

/* ---- a file, a folder ------------------------------------------------------------------------ */

static enum status read_head(struct gpu_reader *reader)
{
    struct gpu_head head;
    struct stat found;
    struct gpu_seen *seen = reader->seen;
    if (fstat(reader->file, &found) != 0 || !S_ISREG(found.st_mode) ||
        read_at(reader->file, &head, sizeof head, 0) != sizeof head ||
        memcmp(head.magic, GPU_MAGIC, sizeof head.magic) != 0 || head.version != GPU_VERSION)
        FAIL(STATUS_UNSUPPORTED, "%s: found no file of the GPU's agent of this prony",
             reader->path);
    const uint32_t blocks = head.blocks;
    const size_t there = ((size_t)found.st_size + GPU_BLOCK - 1) / GPU_BLOCK;
    reader->blocks = blocks < there ? blocks : there;
    if (blocks > there)
        seen->unreadable++;
    seen->process = head.process;
    seen->cupti = head.cupti;
    seen->init_ns = (double)head.init_ns;
    seen->lost = (double)head.lost;
    head.reason[sizeof head.reason - 1] = '\0';
    snprintf(seen->reason, sizeof seen->reason, "%s", head.reason);
    seen->killed = !head.ended && !*head.reason;
    return STATUS_OK;
}

static enum status read_opened(struct gpu_reader *reader, double *kernel_ns)
{
    TRY(read_head(reader));
    if (reader->trace) {
        NEED(reader->texts = mem_array(NUMBERS, sizeof *reader->texts));
        NEED(reader->sites = mem_array(NUMBERS, sizeof *reader->sites));
        TRY(visit_all(reader, take_text));
        TRY(visit_all(reader, take_stack));
    }
    TRY(visit_all(reader, take_span));
    *kernel_ns = reader->kernel_ns;
    if (!reader->trace)
        return STATUS_OK;
    TRY(add_events(reader));
    count_calls(reader);
    return STATUS_OK;
}

static enum status read_file(const char *path, struct trace *trace, struct gpu_seen *seen,
                             double *kernel_ns)
{
    struct gpu_reader reader = {.path = path, .trace = trace, .seen = seen};
    *seen = (struct gpu_seen){.processes = 1};
    reader.file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (reader.file < 0)
        FAIL(STATUS_IO, "%s: cannot be opened: %s", path, strerror(errno));
    enum status status = read_opened(&reader, kernel_ns);
    close(reader.file);
    mem_free(reader.texts);
    mem_free(reader.sites);
    mem_free(reader.calls.moments);
    mem_free(reader.events.moments);
    return status;
}

enum status gpu_file_read(const char *path, struct trace *trace, struct gpu_seen *seen)
{
    double kernel_ns;
    return read_file(path, trace, seen, &kernel_ns);
}

static enum status add_facts(const struct gpu_seen *seen, struct trace *trace)
{
    char number[40];
    if (seen->lost <= 0)
        return STATUS_OK;
    snprintf(number, sizeof number, "%.0f", seen->lost);
    return trace_add_fact(trace, "lost", number);
}

enum status gpu_seen_read(const char *folder, struct trace *trace, struct gpu_seen *seen)
{
    char path[PATH_MAX], longest[PATH_MAX] = "", reason[GPU_REASON] = "";
    double most_ns = -1;
    size_t processes = 0, computed = 0;
    *seen = (struct gpu_seen){0};
    DIR *files = opendir(folder);
    if (!files)
        return STATUS_OK;
    for (struct dirent *entry; (entry = readdir(files)) != NULL;) {
        struct gpu_seen one;
        double kernel_ns = 0;
        if (!text_starts(entry->d_name, GPU_PREFIX))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (read_file(path, NULL, &one, &kernel_ns) != STATUS_OK)
            continue; /* not ready: the process was killed as it began */
        processes++;
        computed += one.kernels > 0;
        if (*one.reason)
            memcpy(reason, one.reason, sizeof reason);
        if (kernel_ns > most_ns) {
            most_ns = kernel_ns;
            memcpy(longest, path, sizeof longest);
        }
    }
    closedir(files);
    if (!*longest)
        return STATUS_OK;
    TRY(gpu_file_read(longest, trace, seen));
    seen->processes = processes;
    seen->computed = computed;
    memcpy(seen->reason, reason, sizeof seen->reason);
    return add_facts(seen, trace);
}
