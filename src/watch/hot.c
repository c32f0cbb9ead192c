/* hot.c: see hot.h. */
#include "watch/hot.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Rows by key while they are summed: a table, half empty. */
struct summing {
    struct hot_row *slots;
    size_t count, room;
};

static struct hot_row *find_row(struct hot_row *slots, size_t room, uint64_t key)
{
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15 >> 24) % room;
    while (slots[at].samples && slots[at].key != key)
        at = (at + 1) % room;
    return &slots[at];
}

static enum status grow_rows(struct summing *summing)
{
    size_t room = summing->room ? 2 * summing->room : 1024;
    struct hot_row *grown = mem_array(room, sizeof *grown);
    NEED(grown);
    for (size_t i = 0; i < summing->room; i++)
        if (summing->slots[i].samples)
            *find_row(grown, room, summing->slots[i].key) = summing->slots[i];
    mem_free(summing->slots);
    summing->slots = grown;
    summing->room = room;
    return STATUS_OK;
}

/* The name that a row is given is that which most of its time has, by the majority vote of Boyer
 * and Moore: one pass, one counter. */
static void vote(struct hot_row *row, uint32_t name, double ns)
{
    if (row->name == name)
        row->name_ns += ns;
    else if (row->name_ns >= ns)
        row->name_ns -= ns;
    else {
        row->name = name;
        row->name_ns = ns - row->name_ns;
    }
}

static enum status add(struct summing *summing, uint64_t key, uint32_t site, uint32_t name,
                       double ns)
{
    if (2 * (summing->count + 1) > summing->room)
        TRY(grow_rows(summing));
    struct hot_row *row = find_row(summing->slots, summing->room, key);
    if (!row->samples) {
        *row = (struct hot_row){.key = key, .site = site};
        summing->count++;
    }
    vote(row, name, ns);
    row->ns += ns;
    row->samples++;
    return STATUS_OK;
}

static uint64_t pair(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

static bool has_python(const struct trace *trace, uint32_t site)
{
    while (site && !trace->sites[site].line)
        site = trace->sites[site].caller;
    return site != 0;
}

/* Each function of the stack once, however often it calls itself: those of Python, or of a stack
 * without any those of C. */
static enum status add_functions(struct summing *summing, const struct trace *trace,
                                 const struct span *span)
{
    const bool python = has_python(trace, span->site);
    for (uint32_t site = span->site; site; site = trace->sites[site].caller) {
        const struct site *frame = &trace->sites[site];
        bool again = false;
        if (python && !frame->line)
            continue;
        for (uint32_t outer = frame->caller; outer && !again; outer = trace->sites[outer].caller)
            again = trace->sites[outer].function == frame->function &&
                    trace->sites[outer].file == frame->file;
        if (!again)
            TRY(add(summing, pair(frame->file, frame->function), site, frame->function,
                    (double)span_ns(span)));
    }
    return STATUS_OK;
}

/* The innermost line of the user's own files, or where there is none, of Python. */
static uint32_t line_site(const struct trace *trace, uint32_t site)
{
    uint32_t user = trace_user_site(trace, site);
    while (!user && site && !trace->sites[site].line)
        site = trace->sites[site].caller;
    return user ? user : site;
}

static enum status add_span(struct summing *summing, const struct trace *trace, enum hot_by by,
                            const struct span *span)
{
    const double ns = (double)span_ns(span);
    uint32_t site;
    switch (by) {
    case HOT_LINES:
        site = line_site(trace, span->site);
        return site ? add(summing, pair(trace->sites[site].file, trace->sites[site].line), site,
                          span->name, ns)
                    : STATUS_OK;
    case HOT_FUNCTIONS: return add_functions(summing, trace, span);
    case HOT_NAMES:
    case HOT_CALLS: break;
    }
    return add(summing, span->name, span->site, span->name, ns);
}

static int most_first(const void *a, const void *b)
{
    const struct hot_row *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

enum status hot_find(const struct trace *trace, enum hot_by by, int lane, struct hot *out)
{
    struct summing summing = {0};
    const enum span_kind kind = by == HOT_CALLS ? SPAN_sleep : SPAN_sample;
    *out = (struct hot){0};
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (span->kind != kind || (lane >= 0 && span->lane != lane))
            continue;
        out->all_ns += (double)span_ns(span);
        enum status status = add_span(&summing, trace, by, span);
        if (status != STATUS_OK) {
            mem_free(summing.slots);
            return status;
        }
    }
    for (size_t i = 0; i < summing.room; i++)
        if (summing.slots[i].samples)
            summing.slots[out->count++] = summing.slots[i];
    out->rows = summing.slots;
    if (out->count)
        qsort(out->rows, out->count, sizeof *out->rows, most_first);
    return STATUS_OK;
}

void hot_free(struct hot *hot)
{
    mem_free(hot->rows);
    *hot = (struct hot){0};
}

enum { HOT_DEEP = 512 };

/* The child of a node for this function, made where there is none. */
static enum status child_of(struct hot_tree *tree, size_t node, const struct site *frame,
                            size_t *out)
{
    for (*out = tree->nodes[node].first; *out; *out = tree->nodes[*out].next)
        if (tree->nodes[*out].function == frame->function && tree->nodes[*out].file == frame->file)
            return STATUS_OK;
    if (tree->count == tree->room) {
        struct hot_node *grown = mem_grow(tree->nodes, 2 * tree->room, sizeof *grown);
        NEED(grown);
        tree->nodes = grown;
        tree->room *= 2;
    }
    *out = tree->count++;
    tree->nodes[*out] = (struct hot_node){
        .function = frame->function, .file = frame->file, .next = tree->nodes[node].first};
    tree->nodes[node].first = *out;
    return STATUS_OK;
}

/* Of a Python program the functions of Python, without those that import, and then what runs, an op
 * or a function of C; of another program all functions. One that calls itself is there once. The
 * innermost first; how many. */
static size_t choose_frames(const struct trace *trace, const struct span *span,
                            struct site frames[HOT_DEEP])
{
    size_t count = 0;
    const bool python = has_python(trace, span->site);
    if (python && span->site && !trace->sites[span->site].line)
        frames[count++] = (struct site){.function = span->name};
    for (uint32_t s = span->site; s && count < HOT_DEEP; s = trace->sites[s].caller) {
        const struct site *site = &trace->sites[s];
        bool again = count && frames[count - 1].function == site->function &&
                     frames[count - 1].file == site->file;
        if (!again && (!python || (site->line &&
                                   !text_starts(trace_word(trace, site->file), "<frozen import"))))
            frames[count++] = *site;
    }
    return count;
}

static enum status add_stack(struct hot_tree *tree, const struct trace *trace,
                             const struct span *span)
{
    struct site frames[HOT_DEEP];
    size_t depth = choose_frames(trace, span, frames), node = 0;
    const double ns = (double)span_ns(span);
    tree->nodes[0].ns += ns;
    while (depth > 0) {
        TRY(child_of(tree, node, &frames[--depth], &node));
        tree->nodes[node].ns += ns;
    }
    tree->nodes[node].self_ns += ns;
    return STATUS_OK;
}

enum status hot_tree_find(const struct trace *trace, struct hot_tree *out)
{
    enum { ROOM = 1024 };
    *out = (struct hot_tree){.count = 1, .room = ROOM};
    NEED(out->nodes = mem_array(ROOM, sizeof *out->nodes));
    for (size_t i = 0; i < trace->span_count; i++)
        if (trace->spans[i].kind == SPAN_sample) {
            enum status status = add_stack(out, trace, &trace->spans[i]);
            if (status != STATUS_OK) {
                hot_tree_free(out);
                return status;
            }
        }
    return STATUS_OK;
}

void hot_tree_free(struct hot_tree *tree)
{
    mem_free(tree->nodes);
    *tree = (struct hot_tree){0};
}
