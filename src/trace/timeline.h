/* timeline.h: a stretch of a trace as few blocks, for a screen: a row for each lane and each depth
 * of open spans. Spans that are too short to be seen are one block with those beside them. */
#ifndef PRONY_TRACE_TIMELINE_H
#define PRONY_TRACE_TIMELINE_H

#include "trace/trace.h"

enum { TIMELINE_LANES = 24, TIMELINE_DEEPEST = 12 };

struct timeline_block {
    int64_t start_ns, end_ns;
    uint32_t name, site; /* of the longest span in it */
    uint32_t count;      /* spans that are one block */
    uint16_t lane;       /* a place in `lanes` */
    uint8_t depth, kind; /* enum span_kind, of that span */
};

struct timeline {
    uint16_t lanes[TIMELINE_LANES]; /* of the trace: GPUs first, then those that do most */
    uint8_t depths[TIMELINE_LANES]; /* rows of each */
    size_t lane_count, left_out;    /* lanes that have spans and no row */
    int64_t from_ns, to_ns;         /* what is shown */
    int64_t start_ns, end_ns;       /* all that there is */
    struct timeline_block *blocks;
    size_t count;
};

/* At most `most` blocks, which is 400 or more. Of a stretch in which there is nothing, as from 0 to
 * 0, all is shown. timeline_free frees. */
enum status timeline_make(const struct trace *trace, int64_t from_ns, int64_t to_ns, size_t most,
                          struct timeline *timeline);
void timeline_free(struct timeline *timeline);

#endif
