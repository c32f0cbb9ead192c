/* flame.c: see flame.h. */
#include "trace/flame.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 120 /* frames further inside count for the one at this depth */ };

struct growing {
    const struct trace *trace;
    struct flame_node *nodes;
    uint8_t *depths;
    size_t count, room;
    uint32_t *table; /* open addressing: number + 1; 0: free */
    size_t slots;
};

static size_t hash_of(const struct flame_node *node)
{
    uint64_t key = (uint64_t)node->parent << 32 ^ (uint64_t)node->function << 16 ^ node->file;
    return (size_t)(key * 0x9e3779b97f4a7c15u >> 20);
}

static bool is_same(const struct flame_node *a, const struct flame_node *b)
{
    return a->parent == b->parent && a->function == b->function && a->file == b->file;
}

static uint32_t *slot_of(const struct growing *growing, const struct flame_node *node)
{
    size_t slot = hash_of(node) & (growing->slots - 1);
    while (growing->table[slot] && !is_same(&growing->nodes[growing->table[slot] - 1], node))
        slot = (slot + 1) & (growing->slots - 1);
    return &growing->table[slot];
}

static enum status make_room(struct growing *growing)
{
    if (growing->count < growing->room)
        return STATUS_OK;
    const size_t room = growing->room ? 2 * growing->room : 256;
    struct flame_node *nodes;
    uint8_t *depths;
    uint32_t *table;
    NEED(nodes = mem_grow(growing->nodes, room, sizeof *nodes));
    growing->nodes = nodes;
    NEED(depths = mem_grow(growing->depths, room, sizeof *depths));
    growing->depths = depths;
    NEED(table = mem_array(2 * room, sizeof *table));
    mem_free(growing->table);
    growing->table = table;
    growing->slots = 2 * room;
    growing->room = room;
    for (size_t i = 0; i < growing->count; i++)
        *slot_of(growing, &growing->nodes[i]) = (uint32_t)i + 1;
    return STATUS_OK;
}

/* The node of a frame below `parent`, made where there is none. */
static enum status child_of(struct growing *growing, uint32_t parent, uint32_t function,
                            uint32_t file, uint32_t *out)
{
    const struct flame_node node = {.function = function, .file = file, .parent = parent};
    *out = parent;
    if (growing->depths[parent] == DEEPEST)
        return STATUS_OK;
    TRY(make_room(growing));
    uint32_t *slot = slot_of(growing, &node);
    if (!*slot) {
        growing->nodes[growing->count] = node;
        growing->depths[growing->count] = (uint8_t)(growing->depths[parent] + 1);
        *slot = (uint32_t)++growing->count;
    }
    *out = *slot - 1;
    return STATUS_OK;
}

/* The root cannot be its own child: it is the only node that is not in the table. */
static enum status plant(struct growing *growing)
{
    TRY(make_room(growing));
    growing->nodes[0] = (struct flame_node){.parent = UINT32_MAX};
    growing->depths[0] = 0;
    growing->count = 1;
    return STATUS_OK;
}

/* Samples and ops end with their own frame; what runs on the GPU is named by its span. */
static bool ends_with_span(const struct trace *trace, const struct span *span, enum own_of of)
{
    const char *name = trace_word(trace, span->name);
    if (!*name || (of == OWN_SAMPLES && span->site))
        return false;
    return !span->site || !text_starts(trace_word(trace, trace->sites[span->site].function), name);
}

static enum status add_span(struct growing *growing, const uint32_t *node_of,
                            const struct span *span, enum own_of of, int64_t ns)
{
    uint32_t node = span->site ? node_of[span->site] : 0;
    if (ends_with_span(growing->trace, span, of))
        TRY(child_of(growing, node, span->name, 0, &node));
    growing->nodes[node].self_ns += ns;
    return STATUS_OK;
}

/* A caller has a smaller number than whom it calls, so it is there already. */
static enum status grow(struct growing *growing, const int64_t *own, enum own_of of)
{
    const struct trace *trace = growing->trace;
    uint32_t *node_of;
    enum status status = STATUS_OK;
    NEED(node_of = mem_array(trace->site_count + 1, sizeof *node_of));
    for (uint32_t site = 1; site < trace->site_count && status == STATUS_OK; site++)
        status = child_of(growing, node_of[trace->sites[site].caller], trace->sites[site].function,
                          trace->sites[site].file, &node_of[site]);
    for (size_t i = 0; i < trace->span_count && status == STATUS_OK; i++)
        if (own[i] > 0)
            status = add_span(growing, node_of, &trace->spans[i], of, own[i]);
    mem_free(node_of);
    return status;
}

static int more_first(const void *a, const void *b)
{
    int64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x < y) - (x > y);
}

/* Nodes with more than this are kept: a caller has at least what it calls has, so no node loses the
 * one above it. */
static enum status find_limit(const struct growing *growing, size_t most, int64_t *limit_ns)
{
    int64_t *times;
    *limit_ns = 0;
    if (growing->count <= most)
        return STATUS_OK;
    NEED(times = mem_array(growing->count, sizeof *times));
    for (size_t i = 0; i < growing->count; i++)
        times[i] = growing->nodes[i].all_ns;
    qsort(times, growing->count, sizeof *times, more_first);
    *limit_ns = times[most] > 0 ? times[most] : 0;
    mem_free(times);
    return STATUS_OK;
}

static enum status prune(struct growing *growing, size_t most, struct flame *flame)
{
    int64_t limit_ns;
    uint32_t *number;
    for (size_t i = growing->count; i-- > 0;) {
        struct flame_node *node = &growing->nodes[i];
        node->all_ns += node->self_ns;
        if (i)
            growing->nodes[node->parent].all_ns += node->all_ns;
    }
    TRY(find_limit(growing, most, &limit_ns));
    NEED(number = mem_array(growing->count, sizeof *number));
    flame->nodes = mem_array(growing->count, sizeof *flame->nodes);
    for (size_t i = 0; flame->nodes && i < growing->count; i++) {
        struct flame_node node = growing->nodes[i];
        if (i && node.all_ns <= limit_ns)
            continue;
        node.parent = i ? number[node.parent] : 0;
        node.self_ns = node.all_ns;
        number[i] = (uint32_t)flame->count;
        flame->nodes[flame->count++] = node;
        if (i)
            flame->nodes[node.parent].self_ns -= node.all_ns;
    }
    mem_free(number);
    NEED(flame->nodes);
    return STATUS_OK;
}

enum status flame_make(const struct trace *trace, size_t most, struct flame *flame)
{
    struct growing growing = {.trace = trace};
    int64_t *own;
    *flame = (struct flame){0};
    TRY(trace_own_times(trace, &own, &flame->of));
    enum status status = plant(&growing);
    if (status == STATUS_OK)
        status = grow(&growing, own, flame->of);
    if (status == STATUS_OK)
        status = prune(&growing, most, flame);
    mem_free(growing.nodes);
    mem_free(growing.depths);
    mem_free(growing.table);
    mem_free(own);
    if (status != STATUS_OK)
        flame_free(flame);
    return status;
}

void flame_free(struct flame *flame)
{
    mem_free(flame->nodes);
    *flame = (struct flame){0};
}
