/* timeline.c: see timeline.h. */
#include "trace/timeline.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

enum { UNSEEN = 0xFF, PIXELS = 1600 /* a block is at least so small a part of what is shown */ };

/* ---- lanes ----------------------------------------------------------------------------------- */

struct lane_use {
    double ns; /* a double: lanes of hostile traces overflow no sum */
    uint16_t lane;
    bool used, device;
};

static int order_of(const void *a, const void *b)
{
    const struct lane_use *x = a, *y = b;
    if (x->used != y->used)
        return x->used ? -1 : 1;
    if (x->device != y->device)
        return x->device ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return (x->lane > y->lane) - (x->lane < y->lane);
}

static enum status choose_lanes(const struct trace *trace, struct timeline *timeline)
{
    struct lane_use *uses;
    NEED(uses = mem_array(trace->lane_count + 1, sizeof *uses));
    for (size_t i = 0; i < trace->lane_count; i++)
        uses[i] =
            (struct lane_use){.lane = (uint16_t)i, .device = trace->lanes[i].kind == LANE_STREAM};
    for (size_t i = 0; i < trace->span_count; i++) {
        struct lane_use *use = &uses[trace->spans[i].lane];
        use->used = true;
        use->ns += (double)span_ns(&trace->spans[i]);
    }
    qsort(uses, trace->lane_count, sizeof *uses, order_of);
    for (size_t i = 0; i < trace->lane_count && uses[i].used; i++)
        if (timeline->lane_count < TIMELINE_LANES)
            timeline->lanes[timeline->lane_count++] = uses[i].lane;
        else
            timeline->left_out++;
    mem_free(uses);
    return STATUS_OK;
}

/* ---- depths ---------------------------------------------------------------------------------- */

/* A look at a thread: it ends where the next begins, whatever time it stands for. */
static bool is_look(const struct span *span)
{
    return span->kind == SPAN_sample || span->kind == SPAN_sleep;
}

/* How deep each span lies in those that are open on its lane; what is deeper still shares the last
 * row. It is the same whatever part is shown. */
static void find_depths(const struct trace *trace, const uint8_t *place_of,
                        struct timeline *timeline, uint8_t *depths)
{
    int64_t open[TIMELINE_LANES][TIMELINE_DEEPEST];
    uint8_t count[TIMELINE_LANES] = {0};
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        const uint8_t place = place_of[span->lane];
        if (place == UNSEEN)
            continue;
        while (count[place] && open[place][count[place] - 1] <= span->start_ns)
            count[place]--;
        if (count[place] == TIMELINE_DEEPEST)
            count[place]--;
        depths[i] = count[place];
        open[place][count[place]++] = is_look(span) ? span->start_ns : span->end_ns;
        if (count[place] > timeline->depths[place])
            timeline->depths[place] = count[place];
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The newest block of each row while they are made; 0: none, else its number + 1. */
struct rows {
    size_t last[TIMELINE_LANES][TIMELINE_DEEPEST];
    int64_t longest_ns[TIMELINE_LANES][TIMELINE_DEEPEST]; /* of its spans */
};

static bool joins(const struct timeline_block *block, const struct span *span, int64_t least_ns)
{
    return span_ns(span) < least_ns && block->end_ns - block->start_ns < least_ns &&
           span->start_ns - block->end_ns < least_ns;
}

static void join(struct timeline_block *block, const struct span *span, int64_t *longest_ns)
{
    if (span->end_ns > block->end_ns)
        block->end_ns = span->end_ns;
    block->count++;
    if (span_ns(span) <= *longest_ns)
        return;
    *longest_ns = span_ns(span);
    block->name = span->name;
    block->site = span->site;
    block->kind = span->kind;
}

/* Says false when there are more than `most`. */
static bool make_blocks(const struct trace *trace, const uint8_t *place_of, const uint8_t *depths,
                        int64_t least_ns, size_t most, struct timeline *timeline)
{
    struct rows rows = {0};
    timeline->count = 0;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        const uint8_t place = place_of[span->lane], depth = depths[i];
        if (place == UNSEEN || span->end_ns < timeline->from_ns || span->start_ns > timeline->to_ns)
            continue;
        size_t *last = &rows.last[place][depth];
        if (*last && is_look(span) && timeline->blocks[*last - 1].end_ns > span->start_ns)
            timeline->blocks[*last - 1].end_ns = span->start_ns;
        if (*last && joins(&timeline->blocks[*last - 1], span, least_ns)) {
            join(&timeline->blocks[*last - 1], span, &rows.longest_ns[place][depth]);
            continue;
        }
        if (timeline->count == most)
            return false;
        timeline->blocks[timeline->count] = (struct timeline_block){.start_ns = span->start_ns,
                                                                    .end_ns = span->end_ns,
                                                                    .name = span->name,
                                                                    .site = span->site,
                                                                    .count = 1,
                                                                    .lane = place,
                                                                    .depth = depth,
                                                                    .kind = span->kind};
        *last = ++timeline->count;
        rows.longest_ns[place][depth] = span_ns(span);
    }
    return true;
}

/* Blocks become longer until they are few: at the latest each row is a handful of them. */
static enum status fill(const struct trace *trace, const uint8_t *place_of, const uint8_t *depths,
                        size_t most, struct timeline *timeline)
{
    const int64_t shown_ns = timeline->to_ns - timeline->from_ns;
    int64_t least_ns = shown_ns / PIXELS;
    NEED(timeline->blocks = mem_array(most, sizeof *timeline->blocks));
    while (!make_blocks(trace, place_of, depths, least_ns, most, timeline))
        least_ns = least_ns < INT64_MAX / 2 ? 2 * least_ns + 1 : INT64_MAX;
    return STATUS_OK;
}

static void find_ends(const struct trace *trace, struct timeline *timeline)
{
    if (!trace->span_count)
        return;
    timeline->start_ns = timeline->end_ns = trace->spans[0].start_ns;
    for (size_t i = 0; i < trace->span_count; i++)
        if (trace->spans[i].end_ns > timeline->end_ns)
            timeline->end_ns = trace->spans[i].end_ns;
}

static enum status make(const struct trace *trace, uint8_t *place_of, uint8_t *depths, size_t most,
                        struct timeline *timeline)
{
    TRY(choose_lanes(trace, timeline));
    for (size_t i = 0; i < trace->lane_count; i++)
        place_of[i] = UNSEEN;
    for (size_t i = 0; i < timeline->lane_count; i++)
        place_of[timeline->lanes[i]] = (uint8_t)i;
    find_depths(trace, place_of, timeline, depths);
    return fill(trace, place_of, depths, most, timeline);
}

enum status timeline_make(const struct trace *trace, int64_t from_ns, int64_t to_ns, size_t most,
                          struct timeline *timeline)
{
    uint8_t *place_of, *depths = NULL;
    enum status status;
    assert(most >= TIMELINE_LANES * TIMELINE_DEEPEST);
    *timeline = (struct timeline){0};
    find_ends(trace, timeline);
    from_ns = from_ns > timeline->start_ns ? from_ns : timeline->start_ns;
    to_ns = to_ns < timeline->end_ns ? to_ns : timeline->end_ns;
    timeline->from_ns = from_ns < to_ns ? from_ns : timeline->start_ns;
    timeline->to_ns = from_ns < to_ns ? to_ns : timeline->end_ns;
    NEED(place_of = mem_alloc(trace->lane_count + 1));
    NEED_OR(done, depths = mem_alloc(trace->span_count + 1));
    status = make(trace, place_of, depths, most, timeline);
done:
    mem_free(place_of);
    mem_free(depths);
    if (status != STATUS_OK)
        timeline_free(timeline);
    return status;
}

void timeline_free(struct timeline *timeline)
{
    mem_free(timeline->blocks);
    *timeline = (struct timeline){0};
}
