/* naming.c: see naming.h. Symbols of a file are read when its first frame is met, and a place is
 * looked up once. */
#include "watch/naming.h"

#include "base/memory.h"
#include "bench/meter/syscalls.h"
#include "watch/symbols.h"

#include "agent/python_layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 256, KNOWN = 1 << 14, FRAMES = AGENT_NATIVE_MOST + AGENT_PYTHON_MOST };

/* A place of the program and its name. */
struct place_name {
    uint64_t place;              /* 0: free */
    uint32_t file, function, op; /* texts; op: 0 where it is none */
    bool loop;                   /* of the interpreter */
};

struct naming {
    const struct gathered *gathered;
    struct trace *trace;
    struct symbols *symbols; /* of each module */
    bool *read;
    struct place_name *places; /* a table, half empty */
    size_t place_count, place_slots;
    struct named *named;
    bool *python; /* of each thread: Python has frames in it */
};

static enum status add_text(struct naming *naming, const char *text, uint32_t *out)
{
    return trace_text(naming->trace, text, strlen(text), out);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* "addmm" of "at::_ops::addmm::call"; false: it is no op. */
static bool op_of(const char *function, char op[NAME])
{
    static const char before[] = "at::_ops::", after[] = "::call";
    size_t length = strlen(function);
    if (!text_starts(function, before) || !text_ends(function, after) ||
        length < sizeof before + sizeof after)
        return false;
    snprintf(op, NAME, "aten::%.*s", (int)(length - (sizeof before - 1) - (sizeof after - 1)),
             function + sizeof before - 1);
    return true;
}

static const char *function_at(struct naming *naming, uint64_t place)
{
    size_t module = place_module(place);
    const char *path = naming->gathered->modules.paths[module];
    if (!naming->read[module] && *path == '/') /* a file that is gone has no names: no error */
        (void)symbols_read(&naming->symbols[module], path);
    naming->read[module] = true;
    return symbols_find(&naming->symbols[module], place_offset(place));
}

static enum status name_place(struct naming *naming, struct place_name *out)
{
    char readable[NAME], op[NAME];
    const char *path = naming->gathered->modules.paths[place_module(out->place)];
    const char *file = *path ? base_name(path) : "[no file]";
    const char *symbol = function_at(naming, out->place);
    if (symbol)
        symbol_readable(symbol, readable, sizeof readable);
    else
        snprintf(readable, sizeof readable, "%s+0x%" PRIx64, file, place_offset(out->place));
    out->loop = symbol && text_starts(symbol, "_PyEval_EvalFrameDefault");
    TRY(add_text(naming, file, &out->file));
    TRY(add_text(naming, readable, &out->function));
    if (symbol && op_of(readable, op))
        TRY(add_text(naming, op, &out->op));
    return STATUS_OK;
}

static struct place_name *find_place(struct place_name *places, size_t slots, uint64_t place)
{
    size_t at = (size_t)(place * 0x9e3779b97f4a7c15 >> 20) % slots;
    while (places[at].place && places[at].place != place)
        at = (at + 1) % slots;
    return &places[at];
}

static enum status grow_places(struct naming *naming)
{
    size_t slots = naming->place_slots ? 2 * naming->place_slots : KNOWN;
    struct place_name *grown = mem_array(slots, sizeof *grown);
    NEED(grown);
    for (size_t i = 0; i < naming->place_slots; i++)
        if (naming->places[i].place)
            *find_place(grown, slots, naming->places[i].place) = naming->places[i];
    mem_free(naming->places);
    naming->places = grown;
    naming->place_slots = slots;
    return STATUS_OK;
}

static enum status get_place(struct naming *naming, uint64_t place, struct place_name *out)
{
    *out = (struct place_name){0};
    if (!place)
        return add_text(naming, "[unknown]", &out->function);
    if (2 * (naming->place_count + 1) > naming->place_slots)
        TRY(grow_places(naming));
    struct place_name *slot = find_place(naming->places, naming->place_slots, place);
    if (!slot->place) {
        struct place_name made = {.place = place};
        TRY(name_place(naming, &made));
        *slot = made;
        naming->place_count++;
    }
    *out = *slot;
    return STATUS_OK;
}

/* The frames of one sighting, the innermost first. */
struct stack {
    struct site frames[FRAMES];
    size_t count;
    uint32_t op; /* a text: the innermost one; 0: none */
    bool line;
};

static enum status push_python(struct naming *naming, struct stack *stack, const uint64_t *words)
{
    const struct code *code = gathered_code(naming->gathered, words[0]);
    struct site site = {0};
    if (stack->count == FRAMES)
        return STATUS_OK;
    if (code) {
        int32_t line = python_line((enum python_lines)code->lines, code->table, code->table_bytes,
                                   code->first_line, (uint32_t)(words[1] >> 1));
        site.line =
            line > 0 ? (uint32_t)line : (uint32_t)(code->first_line > 0 ? code->first_line : 0);
        TRY(add_text(naming, code->file, &site.file));
    }
    TRY(add_text(naming, code ? code->name : "[unknown]", &site.function));
    stack->line = stack->line || site.line;
    stack->frames[stack->count++] = site;
    return STATUS_OK;
}

/* Python functions from *at on, up to one that was called from C. */
static enum status push_run(struct naming *naming, struct stack *stack, const uint64_t *python,
                            size_t count, size_t *at)
{
    for (bool entry = false; *at < count && !entry; ++*at) {
        const uint64_t *words = python + PYTHON_WORDS * *at;
        entry = words[1] & 1;
        TRY(push_python(naming, stack, words));
    }
    return STATUS_OK;
}

/* Where C's stack ends early (code without unwinding tables), what is left of Python's comes last.
 */
static enum status fill_stack(struct naming *naming, const struct sighting *sighting,
                              struct stack *stack)
{
    const uint64_t *native = naming->gathered->words + sighting->first;
    const uint64_t *python = native + sighting->native;
    size_t at = 0;
    *stack = (struct stack){.count = 0};
    for (size_t i = 0; i < sighting->native; i++) {
        struct place_name place;
        TRY(get_place(naming, native[i], &place));
        if (place.loop && at < sighting->python) {
            TRY(push_run(naming, stack, python, sighting->python, &at));
            continue;
        }
        stack->op = stack->op ? stack->op : place.op;
        if (stack->count < FRAMES)
            stack->frames[stack->count++] =
                (struct site){.file = place.file, .function = place.function};
    }
    while (at < sighting->python)
        TRY(push_run(naming, stack, python, sighting->python, &at));
    return STATUS_OK;
}

static enum status add_sites(struct naming *naming, struct stack *stack, uint32_t *site)
{
    *site = 0;
    for (size_t i = stack->count; i-- > 0;) {
        stack->frames[i].caller = *site;
        TRY(trace_site(naming->trace, &stack->frames[i], site));
    }
    return STATUS_OK;
}

/* Other calls also wait where nothing can interrupt them, as vfork does for its child. */
static bool is_of_storage(const char *call)
{
    static const char *const calls[] = {
        "read",   "pread64",    "readv",     "preadv", "preadv2", "write",      "pwrite64",
        "writev", "fsync",      "fdatasync", "open",   "openat",  "newfstatat", "stat",
        "statx",  "getdents64", "msync",     "sync",   "syncfs",  "page fault", NULL};
    for (const char *const *word = calls; *word; word++)
        if (!strcmp(call, *word))
            return true;
    return false;
}

static enum status name_of(struct naming *naming, const struct sighting *sighting,
                           const struct stack *stack, uint32_t *out)
{
    char name[64];
    if (sighting->call == SIGHTING_RUNS) {
        *out = stack->op ? stack->op : stack->count ? stack->frames[0].function : 0;
        return STATUS_OK;
    }
    const char *call = sighting->call >= 0                ? syscall_name(sighting->call)
                       : sighting->call == SIGHTING_FAULT ? "page fault"
                       : sighting->call == SIGHTING_WAKES ? "waking up"
                                                          : "unknown call";
    if (call)
        snprintf(name, sizeof name, "%s%s", call,
                 sighting->device && is_of_storage(call) ? TRACE_STORAGE : "");
    else
        snprintf(name, sizeof name, "call %d", sighting->call);
    return add_text(naming, name, out);
}

/* The samples of threads that Python does not know (those of BLAS) cannot have a line. */
static void count(struct named *named, const struct sighting *sighting, const struct stack *stack,
                  bool python)
{
    if (sighting->call != SIGHTING_RUNS)
        return;
    bool function = stack->op || stack->count;
    named->samples++;
    named->with_function += function;
    named->of_python += python;
    named->with_line += python && stack->line;
    named->with_both += python && stack->line && function;
    named->torn += sighting->torn;
    named->cut += sighting->cut;
    named->unanswered += sighting->unanswered;
}

static enum status add_sighting(struct naming *naming, const struct sighting *sighting,
                                const uint16_t *lanes, struct stack *stack)
{
    struct span span = {.start_ns = (int64_t)sighting->start_ns,
                        .end_ns = (int64_t)sighting->end_ns,
                        .lane = lanes[sighting->thread],
                        .kind = sighting->call == SIGHTING_RUNS ? SPAN_sample : SPAN_sleep};
    TRY(fill_stack(naming, sighting, stack));
    TRY(add_sites(naming, stack, &span.site));
    TRY(name_of(naming, sighting, stack, &span.name));
    count(naming->named, sighting, stack, naming->python[sighting->thread]);
    return trace_add(naming->trace, &span);
}

static enum status add_all(struct naming *naming, uint16_t *lanes, struct stack *stack)
{
    const struct gathered *gathered = naming->gathered;
    for (size_t i = 0; i < gathered->thread_count; i++) {
        const struct seen_thread *thread = &gathered->threads[i];
        struct lane lane = {
            .kind = LANE_THREAD, .group = thread->process, .number = thread->thread};
        TRY(add_text(naming, thread->name, &lane.name));
        TRY(trace_lane(naming->trace, &lane, &lanes[i]));
    }
    for (size_t i = 0; i < gathered->sighting_count; i++)
        naming->python[gathered->sightings[i].thread] |= gathered->sightings[i].python > 0;
    for (size_t i = 0; i < gathered->sighting_count; i++)
        TRY(add_sighting(naming, &gathered->sightings[i], lanes, stack));
    return STATUS_OK;
}

enum status naming_trace(const struct gathered *gathered, struct trace *trace, struct named *named)
{
    const size_t modules = gathered->modules.count;
    struct naming naming = {.gathered = gathered, .trace = trace, .named = named};
    uint16_t *lanes = NULL;
    struct stack *stack = NULL;
    enum status status;
    *named = (struct named){0};
    NEED_OR(done, naming.symbols = mem_array(modules, sizeof *naming.symbols));
    NEED_OR(done, naming.read = mem_array(modules, sizeof *naming.read));
    NEED_OR(done, lanes = mem_array(gathered->thread_count, sizeof *lanes));
    NEED_OR(done, naming.python = mem_array(gathered->thread_count, sizeof *naming.python));
    NEED_OR(done, stack = mem_alloc(sizeof *stack));
    status = add_all(&naming, lanes, stack);
done:
    for (size_t i = 0; naming.symbols && i < modules; i++)
        symbols_free(&naming.symbols[i]);
    mem_free(naming.symbols);
    mem_free(naming.read);
    mem_free(naming.places);
    mem_free(naming.python);
    mem_free(lanes);
    mem_free(stack);
    return status;
}
