/* fuzz_trace.c: any bytes are a trace of some format, or are refused by one line. What was read is
 * judged without harm; its budget sums to the window; and it is written and read again as the same.
 * What is kept of it is small and is shown. */
#include "advise/advise.h"
#include "trace/export.h"
#include "trace/flame.h"
#include "trace/timeline.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum status read_bytes(const void *data, size_t size, struct trace *trace)
{
    char path[64];
    int fd = memfd_create("trace", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    enum status status = trace_read(path, trace);
    close(fd);
    return status;
}

static void judge(const struct trace *trace)
{
    struct advice advice;
    if (advise(trace, NULL, &advice) != STATUS_OK)
        abort();
    int64_t sum = 0;
    for (int part = 0; part < BUDGET_PARTS; part++)
        sum += advice.budget.part_ns[part];
    if (sum != advice.budget.window_ns)
        abort();
    struct budget_thread threads[4];
    size_t count;
    if (budget_threads(trace, &advice.steps, threads, 4, &count) != STATUS_OK)
        abort();
    for (size_t i = 0; i < count; i++)
        if (threads[i].ran_ns + threads[i].waited_ns > advice.budget.window_ns)
            abort();
    advice_free(&advice);
}

static void write_again(const struct trace *trace)
{
    struct trace again;
    struct text once = {0}, twice = {0}, other = {0};
    trace_write_text(trace, &once);
    if (read_bytes(text_of(&once), once.length, &again) != STATUS_OK)
        abort();
    trace_write_text(&again, &twice);
    if (again.span_count != trace->span_count || again.site_count != trace->site_count)
        abort();
    trace_export_chrome(trace, &other);
    if (trace_export_folded(trace, &other) != STATUS_OK ||
        trace_export_callgrind(trace, "fuzz", &other) != STATUS_OK)
        abort();
    text_free(&once);
    text_free(&twice);
    text_free(&other);
    trace_free(&again);
}

static void show(const struct trace *trace)
{
    enum { MOST = 400, NODES = 50 };
    struct timeline timeline;
    struct flame flame;
    if (timeline_make(trace, 0, 0, MOST, &timeline) != STATUS_OK || timeline.count > MOST)
        abort();
    size_t spans = 0;
    for (size_t i = 0; i < timeline.count; i++)
        spans += timeline.blocks[i].count;
    if (spans > trace->span_count || (!timeline.left_out && spans < trace->span_count))
        abort();
    timeline_free(&timeline);
    if (flame_make(trace, NODES, &flame) != STATUS_OK || flame.count > NODES)
        abort();
    flame_free(&flame);
}

/* A part of it, as it is kept in a store: it is read back as a whole trace. */
static void keep(const struct trace *trace)
{
    enum { MOST = 20 };
    struct trace part, again;
    struct text text = {0};
    if (trace_excerpt(trace, INT64_MIN, INT64_MAX, MOST, &part) != STATUS_OK ||
        part.span_count > MOST)
        abort();
    trace_write_text(&part, &text);
    if (trace_read_text("kept", text_of(&text), text.length, &again) != STATUS_OK ||
        again.span_count != part.span_count)
        abort();
    show(&again);
    text_free(&text);
    trace_free(&part);
    trace_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace trace;
    enum status status = read_bytes(data, size, &trace);
    if (status == STATUS_OK) {
        judge(&trace);
        write_again(&trace);
        show(&trace);
        keep(&trace);
        trace_free(&trace);
    } else if ((status != STATUS_INPUT && status != STATUS_UNSUPPORTED) || !*status_message()) {
        abort();
    }
    return 0;
}
