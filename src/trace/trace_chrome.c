/* trace_chrome.c: traces in the Trace Event Format: of PyTorch (Kineto), JAX, ONNX Runtime.
 *
 * Of an event, cat says what it is where there is one; JAX says it by the name of the process.
 * Times are microseconds with a fraction, kept to the nanosecond. Events that only connect others
 * (ph s, f, i) are passed over. */
#include "trace/json_events.h"
#include "trace/trace_inside.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { PROCESSES = 256, NAME_LONGEST = 4096 };

/* What was seen, to say what the trace lacks. */
struct seen {
    bool kernels, waits, python, nodes, jax, calls;
};

struct chrome {
    struct trace *trace;
    struct json_events events;
    struct seen seen;
    bool named_gpu;
    struct { /* processes whose names say that they are GPUs: JAX */
        int64_t number;
        bool gpu;
    } processes[PROCESSES];
    size_t process_count;

    /* The event that is being read. */
    char name[NAME_LONGEST], category[64], phase[8], inner_name[256], op_name[128];
    int64_t start_ns, length_ns, process, thread, device, stream, correlation, bytes;
    bool has_start, has_process, has_stream, has_device, has_inner_name;
};

/* ---- an event's members ---------------------------------------------------------------------- */

static void copy_text(const struct json_value *value, char *to, size_t room)
{
    size_t length = value->is_text ? value->length : 0;
    length = length < room - 1 ? length : room - 1;
    memcpy(to, value->text, length);
    to[length] = 0;
}

static bool take_int(const struct json_value *value, int64_t *out)
{
    return json_scaled(value, 0, out);
}

static enum status take_time(struct chrome *chrome, const char *key, const struct json_value *value,
                             int64_t *out)
{
    if (json_scaled(value, 3, out))
        return STATUS_OK;
    FAIL(STATUS_INPUT, "%s:%zu: event %zu: found %s \"%.*s\", expected microseconds",
         chrome->events.name, chrome->events.line + 1, chrome->events.count + 1, key,
         value->length < 30 ? (int)value->length : 30, value->text);
}

static void take_argument(struct chrome *chrome, const char *key, const struct json_value *value)
{
    if (!strcmp(key, "correlation"))
        take_int(value, &chrome->correlation);
    else if (!strcmp(key, "bytes") || !strcmp(key, "Bytes"))
        take_int(value, &chrome->bytes);
    else if (!strcmp(key, "stream"))
        chrome->has_stream = take_int(value, &chrome->stream);
    else if (!strcmp(key, "device"))
        chrome->has_device = take_int(value, &chrome->device);
    else if (!strcmp(key, "op_name"))
        copy_text(value, chrome->op_name, sizeof chrome->op_name);
    else if (!strcmp(key, "name")) {
        copy_text(value, chrome->inner_name, sizeof chrome->inner_name);
        chrome->has_inner_name = true;
    }
}

static enum status take_member(void *context, bool inside, const char *key,
                               const struct json_value *value)
{
    struct chrome *chrome = context;
    if (inside) {
        take_argument(chrome, key, value);
        return STATUS_OK;
    }
    if (!strcmp(key, "name")) {
        copy_text(value, chrome->name, sizeof chrome->name);
    } else if (!strcmp(key, "cat")) {
        copy_text(value, chrome->category, sizeof chrome->category);
    } else if (!strcmp(key, "ph")) {
        copy_text(value, chrome->phase, sizeof chrome->phase);
    } else if (!strcmp(key, "ts")) {
        TRY(take_time(chrome, key, value, &chrome->start_ns));
        chrome->has_start = true;
    } else if (!strcmp(key, "dur")) {
        TRY(take_time(chrome, key, value, &chrome->length_ns));
    } else if (!strcmp(key, "pid")) {
        chrome->has_process = take_int(value, &chrome->process);
    } else if (!strcmp(key, "tid")) {
        take_int(value, &chrome->thread);
    }
    return STATUS_OK;
}

/* ---- what it is ------------------------------------------------------------------------------ */

static bool is_category(const struct chrome *chrome, const char *word)
{
    return !strcasecmp(chrome->category, word);
}

static bool on_gpu_process(const struct chrome *chrome)
{
    for (size_t i = 0; i < chrome->process_count; i++)
        if (chrome->processes[i].number == chrome->process)
            return chrome->processes[i].gpu;
    return false;
}

/* "Memcpy HtoD (Pageable -> Device)", "MemcpyD2H"; "Memset (Device)". */
static void find_memories(const char *name, struct span *span)
{
    static const struct {
        const char *word;
        unsigned from, to;
    } ways[] = {{"HtoD", MEMORY_UNKNOWN, MEMORY_DEVICE}, {"H2D", MEMORY_UNKNOWN, MEMORY_DEVICE},
                {"DtoH", MEMORY_DEVICE, MEMORY_UNKNOWN}, {"D2H", MEMORY_DEVICE, MEMORY_UNKNOWN},
                {"DtoD", MEMORY_DEVICE, MEMORY_DEVICE},  {"D2D", MEMORY_DEVICE, MEMORY_DEVICE},
                {"PtoP", MEMORY_DEVICE, MEMORY_DEVICE}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strstr(name, ways[i].word)) {
            span->from_memory = ways[i].from & 15;
            span->to_memory = ways[i].to & 15;
        }
    const char *arrow = strstr(name, "->"), *open = strchr(name, '(');
    if (!arrow || !open || open > arrow)
        return;
    for (unsigned kind = MEMORY_PAGEABLE; kind < MEMORY_KINDS; kind++) {
        const char *word = memory_kind_name((enum memory_kind)kind);
        if (!strncasecmp(open + 1, word, strlen(word)))
            span->from_memory = kind & 15;
        if (!strncasecmp(arrow + 2 + strspn(arrow + 2, " "), word, strlen(word)))
            span->to_memory = kind & 15;
    }
}

static const char *waiter_of(const char *name)
{
    if (strstr(name, "Wait"))
        return "queue";
    if (strstr(name, "Event"))
        return "event";
    return strstr(name, "Stream") ? "stream" : "device";
}

/* SPAN_KINDS: nothing that counts. */
static enum span_kind kind_of(const struct chrome *chrome)
{
    const char *name = chrome->name;
    if (is_category(chrome, "kernel"))
        return SPAN_kernel;
    if (is_category(chrome, "gpu_memcpy") || is_category(chrome, "memcpy"))
        return SPAN_copy;
    if (is_category(chrome, "gpu_memset") || is_category(chrome, "memset"))
        return SPAN_fill;
    if (is_category(chrome, "cuda_sync"))
        return SPAN_wait;
    if (is_category(chrome, "cuda_runtime") || is_category(chrome, "cuda_driver") ||
        is_category(chrome, "runtime") || is_category(chrome, "hip_runtime"))
        return SPAN_call;
    if (is_category(chrome, "cpu_op") || is_category(chrome, "operator"))
        return strstr(name, "DataLoader") && strstr(name, "__next__") ? SPAN_loader : SPAN_op;
    if (is_category(chrome, "python_function"))
        return SPAN_python;
    if (is_category(chrome, "user_annotation"))
        return text_starts(name, "ProfilerStep") ? SPAN_step
               : strstr(name, "DataLoader")      ? SPAN_loader
                                                 : SPAN_mark;
    if (is_category(chrome, "Node"))
        return text_ends(name, "_kernel_time") ? SPAN_op : SPAN_KINDS;
    if (is_category(chrome, "Session"))
        return !strcmp(name, "model_run") ? SPAN_step : SPAN_mark;
    if (*chrome->category || !chrome->seen.jax)
        return *chrome->category ? SPAN_KINDS : SPAN_op;
    if (on_gpu_process(chrome))
        return text_starts(name, "Memcpy")   ? SPAN_copy
               : text_starts(name, "Memset") ? SPAN_fill
                                             : SPAN_kernel;
    return *name == '$' ? SPAN_python : SPAN_op;
}

/* ---- adding ---------------------------------------------------------------------------------- */

static enum status find_lane(struct chrome *chrome, enum span_kind kind, struct span *span)
{
    struct lane lane = {.kind = LANE_THREAD, .group = chrome->process, .number = chrome->thread};
    if (span_kind_on_device(kind) || kind == SPAN_wait) {
        lane.kind = LANE_STREAM;
        lane.group = chrome->has_device ? chrome->device : chrome->process;
        lane.number = chrome->has_stream ? chrome->stream : chrome->thread;
    }
    return trace_lane(chrome->trace, &lane, &span->lane);
}

static enum status add_span(struct chrome *chrome, enum span_kind kind)
{
    struct span span = {.kind = (uint8_t)kind,
                        .start_ns = chrome->start_ns,
                        .end_ns = chrome->start_ns + chrome->length_ns,
                        .bytes = chrome->bytes > 0 ? (uint64_t)chrome->bytes : 0};
    const char *name = chrome->name;
    if (chrome->correlation > 0 && chrome->correlation <= UINT32_MAX)
        span.correlation = (uint32_t)chrome->correlation;
    if (kind == SPAN_copy)
        find_memories(name, &span);
    if (kind == SPAN_wait)
        name = waiter_of(name);
    if (is_category(chrome, "Node") && chrome->op_name[0])
        name = chrome->op_name;
    chrome->seen.kernels |= kind == SPAN_kernel;
    chrome->seen.waits |= kind == SPAN_wait;
    chrome->seen.python |= kind == SPAN_python;
    chrome->seen.calls |= kind == SPAN_call;
    chrome->seen.nodes |= is_category(chrome, "Node");
    TRY(find_lane(chrome, kind, &span));
    TRY(trace_text(chrome->trace, name, strlen(name), &span.name));
    return trace_add(chrome->trace, &span);
}

/* The name of a process or thread. */
static enum status add_name(struct chrome *chrome)
{
    if (!chrome->has_process || !chrome->has_inner_name)
        return STATUS_OK;
    if (!strcmp(chrome->name, "process_name")) {
        bool gpu = strstr(chrome->inner_name, "/device:") != NULL;
        chrome->seen.jax |= gpu || !strncmp(chrome->inner_name, "/host:", 6);
        if (chrome->process_count < PROCESSES) {
            chrome->processes[chrome->process_count].number = chrome->process;
            chrome->processes[chrome->process_count++].gpu = gpu;
        }
    } else if (!strcmp(chrome->name, "thread_name") && !on_gpu_process(chrome)) {
        struct lane lane = {.group = chrome->process, .number = chrome->thread};
        uint16_t number;
        TRY(trace_text(chrome->trace, chrome->inner_name, strlen(chrome->inner_name), &lane.name));
        return trace_lane(chrome->trace, &lane, &number);
    }
    return STATUS_OK;
}

static enum status take_event(void *context, const char *object, size_t length)
{
    struct chrome *chrome = context;
    chrome->name[0] = chrome->category[0] = chrome->phase[0] = 0;
    chrome->inner_name[0] = chrome->op_name[0] = 0;
    chrome->start_ns = chrome->length_ns = chrome->process = chrome->thread = 0;
    chrome->device = chrome->stream = chrome->correlation = chrome->bytes = 0;
    chrome->has_start = chrome->has_process = chrome->has_stream = false;
    chrome->has_device = chrome->has_inner_name = false;
    TRY(json_members(&chrome->events, object, length, take_member, chrome));
    if (!strcmp(chrome->phase, "M"))
        return add_name(chrome);
    enum span_kind kind = kind_of(chrome);
    if (strcmp(chrome->phase, "X") != 0 || !chrome->has_start || kind == SPAN_KINDS)
        return STATUS_OK;
    if (chrome->length_ns < 0)
        chrome->length_ns = 0; /* Kineto writes -1 µs for what never ended */
    return add_span(chrome, kind);
}

/* "deviceProperties": [{"id": 0, "name": "NVIDIA H200", …}]: the first name. */
static enum status take_outer(void *context, const char *key, const char *value, size_t length)
{
    struct chrome *chrome = context;
    const char *name = strstr(value, "\"name\"");
    char gpu[128];
    (void)length;
    if (strcmp(key, "deviceProperties") != 0 || !name || chrome->named_gpu ||
        sscanf(name, "\"name\" : \"%120[^\"]", gpu) != 1)
        return STATUS_OK;
    chrome->named_gpu = true;
    return trace_add_fact(chrome->trace, "gpu", gpu);
}

static enum status add_facts(const struct chrome *chrome)
{
    const struct seen *seen = &chrome->seen;
    struct trace *trace = chrome->trace;
    TRY(trace_add_fact(trace, "format",
                       seen->nodes                                         ? "ONNX Runtime"
                       : seen->jax                                         ? "JAX"
                       : seen->calls || seen->kernels || chrome->named_gpu ? "Kineto"
                                                                           : "Chrome"));
    if (seen->kernels && !seen->calls)
        TRY(trace_add_fact(trace, "lacks",
                           "the calls that launched kernels: no replay is possible"));
    if (seen->calls && !seen->python)
        TRY(trace_add_fact(trace, "lacks", "lines of Python: record it with_stack=True"));
    if (seen->calls && !seen->waits)
        TRY(trace_add_fact(trace, "lacks",
                           "events of waits: the names of calls stand in for them"));
    return STATUS_OK;
}

enum status trace_chrome_read(const char *path, struct trace *trace)
{
    struct chrome *chrome;
    NEED(chrome = arena_alloc(&trace->arena, sizeof *chrome));
    chrome->trace = trace;
    chrome->events = (struct json_events){
        .name = path, .event = take_event, .member = take_outer, .context = chrome};
    enum status status = trace_pieces(path, json_events_feed, &chrome->events);
    TRY(json_events_end(&chrome->events, status));
    return add_facts(chrome);
}
