/* trace.c: the tables of a trace: texts, lanes, sites, spans. See trace.h. */
#include "trace/trace.h"

#include "base/memory.h"
#include "base/plain.h"
#include "trace/trace_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_LONGEST = 4000,  /* of a name; more is cut: a template of C++ says no more after it */
    LANES_MOST = 1 << 14, /* threads and streams */
};
#define SPANS_MOST ((size_t)UINT32_MAX - 1)
#define TIME_MOST ((int64_t)1 << 62)

const char *span_kind_name(enum span_kind kind)
{
    static const char *const names[] = {
#define KIND(key, device, help) #key,
#include "trace/kinds.def"
    };
    return names[kind];
}

bool span_kind_on_device(enum span_kind kind)
{
    static const bool devices[] = {
#define KIND(key, device, help) device,
#include "trace/kinds.def"
    };
    return devices[kind];
}

const char *memory_kind_name(enum memory_kind kind)
{
    static const char *const names[] = {"unknown", "pageable", "pinned", "device", "managed"};
    return names[kind];
}

const char *lane_kind_name(enum lane_kind kind)
{
    return kind == LANE_THREAD ? "thread" : "stream";
}

void trace_free(struct trace *trace)
{
    mem_free(trace->spans);
    mem_free(trace->lanes);
    mem_free(trace->sites);
    mem_free(trace->texts);
    mem_free(trace->facts);
    mem_free(trace->text_table);
    mem_free(trace->site_table);
    mem_free(trace->lane_table);
    arena_free(&trace->arena);
    *trace = (struct trace){0};
}

/* Room for one more of `bytes` each. */
static enum status make_room(void **array, size_t count, size_t *room, size_t bytes)
{
    if (count < *room)
        return STATUS_OK;
    size_t more = *room ? *room + *room / 2 : 64;
    void *grown;
    NEED(grown = mem_grow(*array, more, bytes));
    *array = grown;
    *room = more;
    return STATUS_OK;
}
#define ROOM(trace, noun)                                                                          \
    make_room((void **)&(trace)->noun##s, (trace)->noun##_count, &(trace)->noun##_room,            \
              sizeof *(trace)->noun##s)

/* ---- tables that find a number again -------------------------------------------------------- */

static uint64_t hash_bytes(const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

static uint64_t hash_text(const struct trace *trace, size_t number)
{
    return hash_bytes(trace->texts[number], strlen(trace->texts[number]));
}

static uint64_t hash_site(const struct trace *trace, size_t number)
{
    return hash_bytes(&trace->sites[number], sizeof(struct site));
}

static uint64_t hash_lane_of(const struct lane *lane)
{
    int64_t key[3] = {lane->kind, lane->group, lane->number};
    return hash_bytes(key, sizeof key);
}

static uint64_t hash_lane(const struct trace *trace, size_t number)
{
    return hash_lane_of(&trace->lanes[number]);
}

typedef uint64_t hash_of(const struct trace *trace, size_t number);

static void put(uint32_t *table, size_t slots, uint64_t hash, size_t number)
{
    size_t slot = hash & (slots - 1);
    while (table[slot])
        slot = (slot + 1) & (slots - 1);
    table[slot] = (uint32_t)number + 1;
}

/* Keeps a table at most half full, for one more than `count`. */
static enum status make_slots(const struct trace *trace, uint32_t **table, size_t *slots,
                              size_t count, hash_of *hash)
{
    if (2 * (count + 1) <= *slots)
        return STATUS_OK;
    size_t more = *slots ? *slots * 2 : 256;
    uint32_t *grown;
    NEED(grown = mem_array(more, sizeof *grown));
    for (size_t i = 0; i < count; i++)
        put(grown, more, hash(trace, i), i);
    mem_free(*table);
    *table = grown;
    *slots = more;
    return STATUS_OK;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static enum status add_text(struct trace *trace, const char *text, uint32_t *out)
{
    if (trace->text_count >= UINT32_MAX - 1)
        FAIL(STATUS_INPUT, "found more than %u different names in a trace", UINT32_MAX - 1);
    TRY(make_slots(trace, &trace->text_table, &trace->text_slots, trace->text_count, hash_text));
    uint64_t hash = hash_bytes(text, strlen(text));
    for (size_t slot = hash & (trace->text_slots - 1); trace->text_table[slot];
         slot = (slot + 1) & (trace->text_slots - 1)) {
        uint32_t number = trace->text_table[slot] - 1;
        if (!strcmp(trace->texts[number], text)) {
            *out = number;
            return STATUS_OK;
        }
    }
    TRY(ROOM(trace, text));
    NEED(trace->texts[trace->text_count] = arena_text(&trace->arena, text));
    put(trace->text_table, trace->text_slots, hash, trace->text_count);
    *out = (uint32_t)trace->text_count++;
    return STATUS_OK;
}

enum status trace_text(struct trace *trace, const char *text, size_t length, uint32_t *out)
{
    char whole[TEXT_LONGEST], plain[TEXT_LONGEST];
    *out = 0;
    if (!trace->text_count) {
        uint32_t none;
        TRY(add_text(trace, "", &none));
    }
    if (length >= sizeof whole)
        length = sizeof whole - 1;
    if (!length)
        return STATUS_OK;
    memcpy(whole, text, length);
    whole[length] = 0;
    plain_copy(plain, sizeof plain, whole);
    return add_text(trace, plain, out);
}

/* ---- lanes, sites, spans, facts -------------------------------------------------------------- */

enum status trace_lane(struct trace *trace, const struct lane *lane, uint16_t *out)
{
    TRY(make_slots(trace, &trace->lane_table, &trace->lane_slots, trace->lane_count, hash_lane));
    uint64_t hash = hash_lane_of(lane);
    for (size_t slot = hash & (trace->lane_slots - 1); trace->lane_table[slot];
         slot = (slot + 1) & (trace->lane_slots - 1)) {
        uint32_t number = trace->lane_table[slot] - 1;
        struct lane *known = &trace->lanes[number];
        if (known->kind != lane->kind || known->group != lane->group ||
            known->number != lane->number)
            continue;
        if (lane->name)
            known->name = lane->name;
        *out = (uint16_t)number;
        return STATUS_OK;
    }
    if (trace->lane_count == LANES_MOST)
        FAIL(STATUS_INPUT, "found more than %d threads and streams in a trace", LANES_MOST);
    TRY(ROOM(trace, lane));
    trace->lanes[trace->lane_count] = *lane;
    put(trace->lane_table, trace->lane_slots, hash, trace->lane_count);
    *out = (uint16_t)trace->lane_count++;
    return STATUS_OK;
}

enum status trace_site(struct trace *trace, const struct site *site, uint32_t *out)
{
    if (!trace->site_count) { /* number 0 is no site */
        TRY(ROOM(trace, site));
        trace->sites[trace->site_count++] = (struct site){0};
    }
    if (site->caller >= trace->site_count)
        FAIL(STATUS_INPUT, "found a frame whose caller is number %u of %zu", site->caller,
             trace->site_count);
    TRY(make_slots(trace, &trace->site_table, &trace->site_slots, trace->site_count, hash_site));
    uint64_t hash = hash_bytes(site, sizeof *site);
    for (size_t slot = hash & (trace->site_slots - 1); trace->site_table[slot];
         slot = (slot + 1) & (trace->site_slots - 1)) {
        uint32_t number = trace->site_table[slot] - 1;
        if (!memcmp(&trace->sites[number], site, sizeof *site)) {
            *out = number;
            return STATUS_OK;
        }
    }
    if (trace->site_count >= UINT32_MAX - 1)
        FAIL(STATUS_INPUT, "found more than %u different stacks in a trace", UINT32_MAX - 1);
    TRY(ROOM(trace, site));
    trace->sites[trace->site_count] = *site;
    put(trace->site_table, trace->site_slots, hash, trace->site_count);
    *out = (uint32_t)trace->site_count++;
    return STATUS_OK;
}

enum status trace_add(struct trace *trace, const struct span *span)
{
    if (trace->span_count >= SPANS_MOST)
        FAIL(STATUS_INPUT, "found more than %zu spans in a trace", SPANS_MOST);
    TRY(ROOM(trace, span));
    trace->spans[trace->span_count++] = *span;
    return STATUS_OK;
}

enum status trace_add_fact(struct trace *trace, const char *key, const char *value)
{
    struct fact fact;
    TRY(trace_text(trace, key, strlen(key), &fact.key));
    TRY(trace_text(trace, value, strlen(value), &fact.value));
    TRY(ROOM(trace, fact));
    trace->facts[trace->fact_count++] = fact;
    return STATUS_OK;
}

const char *trace_fact(const struct trace *trace, const char *key)
{
    for (size_t i = 0; i < trace->fact_count; i++)
        if (!strcmp(trace_word(trace, trace->facts[i].key), key))
            return trace_word(trace, trace->facts[i].value);
    return NULL;
}

double trace_fact_real(const struct trace *trace, const char *key, double otherwise)
{
    const char *value = trace_fact(trace, key);
    double real;
    return value && text_to_real(value, &real) ? real : otherwise;
}

/* ---- the end --------------------------------------------------------------------------------- */

static int order_of(const void *a, const void *b, void *context)
{
    const struct span *spans = context;
    uint32_t i, k;
    memcpy(&i, a, sizeof i);
    memcpy(&k, b, sizeof k);
    const struct span *x = &spans[i], *y = &spans[k];
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns > y->end_ns ? -1 : 1;
    return (i > k) - (i < k);
}

/* Sorts numbers, of which the sort makes a copy, and then moves each span once: a tenth of the
 * memory that sorting the spans takes. */
static enum status sort_spans(struct trace *trace)
{
    uint32_t *order;
    NEED(order = mem_array(trace->span_count, sizeof *order));
    for (size_t i = 0; i < trace->span_count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, trace->span_count, sizeof *order, order_of, trace->spans);
    for (size_t begin = 0; begin < trace->span_count; begin++) {
        struct span first = trace->spans[begin];
        size_t at = begin;
        while (order[at] != begin) { /* along the circle of those that take each other's place */
            size_t next = order[at];
            trace->spans[at] = trace->spans[next];
            order[at] = (uint32_t)at;
            at = next;
        }
        trace->spans[at] = first;
        order[at] = (uint32_t)at;
    }
    mem_free(order);
    return STATUS_OK;
}

static int correlation_order(const void *a, const void *b, void *context)
{
    const struct span *spans = context;
    uint32_t i, k;
    memcpy(&i, a, sizeof i);
    memcpy(&k, b, sizeof k);
    if (spans[i].correlation != spans[k].correlation)
        return spans[i].correlation < spans[k].correlation ? -1 : 1;
    bool call = spans[i].kind == SPAN_call, other = spans[k].kind == SPAN_call;
    return call != other ? (call ? -1 : 1) : (i > k) - (i < k);
}

/* The spans that have a correlation, those of one together, the call first. */
static enum status correlated(const struct trace *trace, uint32_t **order, size_t *count)
{
    *count = 0;
    NEED(*order = mem_array(trace->span_count, sizeof **order));
    for (size_t i = 0; i < trace->span_count; i++)
        if (trace->spans[i].correlation)
            (*order)[(*count)++] = (uint32_t)i;
    qsort_r(*order, *count, sizeof **order, correlation_order, trace->spans);
    return STATUS_OK;
}

enum status trace_calls(const struct trace *trace, uint32_t **out)
{
    uint32_t *order, call = 0;
    size_t count;
    TRY(correlated(trace, &order, &count));
    *out = mem_array(trace->span_count, sizeof **out);
    for (size_t i = 0; *out && i < count; i++) {
        const struct span *span = &trace->spans[order[i]];
        if (!i || span->correlation != trace->spans[order[i - 1]].correlation)
            call = span->kind == SPAN_call ? order[i] + 1 : 0;
        if (span->kind != SPAN_call)
            (*out)[order[i]] = call;
    }
    mem_free(order);
    NEED(*out);
    return STATUS_OK;
}

/* What a call started has its site, and the other way round. */
static enum status share_sites(struct trace *trace)
{
    uint32_t *order;
    size_t count;
    TRY(correlated(trace, &order, &count));
    for (size_t from = 0, to; from < count; from = to) {
        uint32_t site = 0;
        for (to = from; to < count && trace->spans[order[to]].correlation ==
                                          trace->spans[order[from]].correlation;
             to++)
            site = site ? site : trace->spans[order[to]].site;
        for (size_t i = from; i < to; i++)
            if (!trace->spans[order[i]].site)
                trace->spans[order[i]].site = site;
    }
    mem_free(order);
    return STATUS_OK;
}

enum status trace_finish(struct trace *trace, const char *name)
{
    uint32_t none;
    TRY(trace_text(trace, "", 0, &none));
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (span->start_ns < -TIME_MOST || span->end_ns > TIME_MOST)
            FAIL(STATUS_INPUT, "%s: found the time %lld ns, expected less than 146 years", name,
                 (long long)(span->start_ns < -TIME_MOST ? span->start_ns : span->end_ns));
        if (span->end_ns < span->start_ns)
            FAIL(STATUS_INPUT, "%s: found a span (%s \"%.60s\") that ends %lld ns before it begins",
                 name, span_kind_name(span->kind), trace_word(trace, span->name),
                 (long long)(span->start_ns - span->end_ns));
    }
    TRY(sort_spans(trace));
    TRY(trace_nest(trace));
    TRY(share_sites(trace));
    trace->finished = true;
    return STATUS_OK;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Files that nobody who is advised would change: Python's own, and installed packages. */
static bool is_library(const char *file)
{
    static const char *const parts[] = {"site-packages/", "dist-packages/", "lib/python",
                                        "<frozen ",       "<string>",       "torch/"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(file, parts[i]))
            return true;
    return false;
}

uint32_t trace_user_site(const struct trace *trace, uint32_t site)
{
    for (; site && site < trace->site_count; site = trace->sites[site].caller)
        if (trace->sites[site].line && !is_library(trace_word(trace, trace->sites[site].file)))
            return site;
    return 0;
}

void trace_add_line(const struct trace *trace, uint32_t site, struct text *out)
{
    if (!site || site >= trace->site_count)
        return;
    const struct site *frame = &trace->sites[site];
    if (frame->line)
        text_printf(out, "%s:%u", trace_word(trace, frame->file), frame->line);
    else
        text_add(out, trace_word(trace, frame->function));
}
