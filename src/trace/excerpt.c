/* excerpt.c: a part of a trace that is small enough to be kept. See trace_excerpt in trace.h. */
#include "base/memory.h"
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_LONGEST = 160, FACTS_MOST = 64 };

/* What the numbers of one trace are in the other; 0: not there yet. */
struct excerpt {
    const struct trace *from;
    struct trace *to;
    uint32_t *texts, *sites;
    uint16_t *lanes; /* number + 1 */
};

static int longer_first(const void *a, const void *b)
{
    int64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x < y) - (x > y);
}

static bool touches(const struct span *span, int64_t from_ns, int64_t to_ns)
{
    return span->start_ns < to_ns && (span->end_ns > from_ns || span->start_ns >= from_ns);
}

/* A span as long is taken; *ties: how many of exactly that length. */
static enum status find_least(const struct trace *trace, int64_t from_ns, int64_t to_ns,
                              size_t most, int64_t *least_ns, size_t *ties)
{
    size_t count = 0;
    int64_t *lengths;
    *least_ns = 0;
    *ties = most;
    NEED(lengths = mem_array(trace->span_count + 1, sizeof *lengths));
    for (size_t i = 0; i < trace->span_count; i++)
        if (touches(&trace->spans[i], from_ns, to_ns))
            lengths[count++] = span_ns(&trace->spans[i]);
    if (count > most) {
        qsort(lengths, count, sizeof *lengths, longer_first);
        *least_ns = lengths[most];
        for (size_t i = 0; i < most; i++)
            *ties -= lengths[i] > *least_ns;
    }
    mem_free(lengths);
    return STATUS_OK;
}

static enum status take_text(struct excerpt *excerpt, uint32_t old, uint32_t *out)
{
    const char *word = trace_word(excerpt->from, old);
    size_t length = strlen(word);
    if (!excerpt->texts[old] && *word) {
        if (length > NAME_LONGEST)
            for (length = NAME_LONGEST; ((unsigned char)word[length] & 0xC0) == 0x80;)
                length--; /* not within a character */
        TRY(trace_text(excerpt->to, word, length, &excerpt->texts[old]));
    }
    *out = excerpt->texts[old];
    return STATUS_OK;
}

/* The stack from its outermost frame on: a caller has the smaller number. */
static enum status take_site(struct excerpt *excerpt, uint32_t old, uint32_t *out)
{
    const struct trace *from = excerpt->from;
    while (old && !excerpt->sites[old]) {
        uint32_t next = old;
        struct site site;
        while (from->sites[next].caller && !excerpt->sites[from->sites[next].caller])
            next = from->sites[next].caller;
        site = from->sites[next];
        site.caller = excerpt->sites[site.caller];
        TRY(take_text(excerpt, site.file, &site.file));
        TRY(take_text(excerpt, site.function, &site.function));
        TRY(trace_site(excerpt->to, &site, &excerpt->sites[next]));
    }
    *out = old ? excerpt->sites[old] : 0;
    return STATUS_OK;
}

static enum status take_lane(struct excerpt *excerpt, uint16_t old, uint16_t *out)
{
    if (!excerpt->lanes[old]) {
        struct lane lane = excerpt->from->lanes[old];
        TRY(take_text(excerpt, lane.name, &lane.name));
        TRY(take_text(excerpt, lane.process, &lane.process));
        TRY(trace_lane(excerpt->to, &lane, out));
        excerpt->lanes[old] = (uint16_t)(*out + 1);
    }
    *out = (uint16_t)(excerpt->lanes[old] - 1);
    return STATUS_OK;
}

static enum status take_span(struct excerpt *excerpt, const struct span *old)
{
    struct span span = *old;
    TRY(take_text(excerpt, old->name, &span.name));
    TRY(take_site(excerpt, old->site, &span.site));
    TRY(take_lane(excerpt, old->lane, &span.lane));
    return trace_add(excerpt->to, &span);
}

static enum status take_facts(struct excerpt *excerpt)
{
    const struct trace *from = excerpt->from;
    for (size_t i = 0; i < from->fact_count && i < FACTS_MOST; i++)
        TRY(trace_add_fact(excerpt->to, trace_word(from, from->facts[i].key),
                           trace_word(from, from->facts[i].value)));
    return STATUS_OK;
}

static enum status take_all(struct excerpt *excerpt, int64_t from_ns, int64_t to_ns, size_t most)
{
    const struct trace *from = excerpt->from;
    int64_t least_ns;
    size_t ties;
    TRY(find_least(from, from_ns, to_ns, most, &least_ns, &ties));
    NEED(excerpt->texts = mem_array(from->text_count + 1, sizeof *excerpt->texts));
    NEED(excerpt->sites = mem_array(from->site_count + 1, sizeof *excerpt->sites));
    NEED(excerpt->lanes = mem_array(from->lane_count + 1, sizeof *excerpt->lanes));
    TRY(take_facts(excerpt));
    for (size_t i = 0; i < from->span_count; i++) {
        const struct span *span = &from->spans[i];
        if (!touches(span, from_ns, to_ns) || span_ns(span) < least_ns ||
            (span_ns(span) == least_ns && !ties))
            continue;
        ties -= span_ns(span) == least_ns;
        TRY(take_span(excerpt, span));
    }
    return trace_finish(excerpt->to, "excerpt");
}

enum status trace_excerpt(const struct trace *trace, int64_t from_ns, int64_t to_ns, size_t most,
                          struct trace *out)
{
    struct excerpt excerpt = {.from = trace, .to = out};
    *out = (struct trace){0};
    enum status status = take_all(&excerpt, from_ns, to_ns, most);
    mem_free(excerpt.texts);
    mem_free(excerpt.sites);
    mem_free(excerpt.lanes);
    if (status != STATUS_OK)
        trace_free(out);
    return status;
}
