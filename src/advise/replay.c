/* replay.c: see replay.h. */
#include "advise/replay.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LATENCY_MOST_NS = 1000000 }; /* of a launch: what is longer is something else */
enum { KINDS = 3 }; /* kernel, copy, fill: those on a device come first in kinds.def */

void replay_free(struct replay *replay)
{
    arena_free(&replay->arena);
    *replay = (struct replay){0};
}

/* ---- making: rows ---------------------------------------------------------------------------- */

struct maker {
    const struct trace *trace;
    size_t from; /* the first span that is looked at */
    const struct steps *steps;
    struct replay *replay;
    uint32_t *call_of;               /* of each span: 1 + the span of its call */
    uint32_t *row_of_call;           /* of each span: 1 + its row in calls */
    uint16_t *stream_of;             /* of each lane: its number among streams */
    double latency[KINDS], gap;      /* usual ones */
    double *stream_end, *last_event; /* in the trace's own time, while walking it */
    size_t done;                     /* ops, in launch order, that are over by then */
    double any_event;
};

#define EARLIER UINT32_MAX /* in call_of: its call stands before the part that is looked at */

static bool is_op(const struct maker *maker, size_t i)
{
    return steps_on_gpu(maker->trace, &maker->trace->spans[i], maker->steps->gpu) &&
           maker->call_of[i] != EARLIER;
}

/* An op whose call is not in the trace starts by itself: it is its own call, which takes no time.
 */
static enum status make_rows(struct maker *maker)
{
    const struct trace *trace = maker->trace;
    struct replay *replay = maker->replay;
    size_t calls = 0, ops = 0;
    for (size_t i = maker->from; i < trace->span_count; i++) {
        bool op = is_op(maker, i);
        ops += op;
        calls += trace->spans[i].kind == SPAN_call || (op && !maker->call_of[i]);
    }
    NEED(replay->calls = arena_array(&replay->arena, calls, sizeof *replay->calls));
    NEED(replay->ops = arena_array(&replay->arena, ops, sizeof *replay->ops));
    for (size_t i = maker->from; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (span->kind != SPAN_call && !(is_op(maker, i) && !maker->call_of[i]))
            continue;
        maker->row_of_call[i] = (uint32_t)replay->call_count + 1;
        struct replay_call *call = &replay->calls[replay->call_count++];
        call->span = (uint32_t)i;
        call->kind = span->kind == SPAN_call ? (uint8_t)call_kind_of(trace_word(trace, span->name))
                                             : CALL_OTHER;
    }
    for (size_t i = maker->from; i < trace->span_count; i++)
        if (is_op(maker, i))
            replay->calls[maker->row_of_call[maker->call_of[i] ? maker->call_of[i] - 1 : i] - 1]
                .ops++;
    return STATUS_OK;
}

/* Ops in the order of their calls, those of one call by their start. */
static void place_ops(struct maker *maker)
{
    struct replay *replay = maker->replay;
    uint32_t next = 0;
    for (size_t c = 0; c < replay->call_count; c++) {
        replay->calls[c].first_op = next;
        next += replay->calls[c].ops;
        replay->calls[c].ops = 0;
    }
    for (size_t i = maker->from; i < maker->trace->span_count; i++) {
        const struct span *span = &maker->trace->spans[i];
        if (!is_op(maker, i))
            continue;
        size_t own = maker->call_of[i] ? maker->call_of[i] - 1 : i;
        struct replay_call *call = &replay->calls[maker->row_of_call[own] - 1];
        size_t at = call->first_op + call->ops++;
        replay->ops[at] = (struct replay_op){.span = (uint32_t)i,
                                             .stream = maker->stream_of[span->lane],
                                             .kind = span->kind,
                                             .ns = (double)span_ns(span)};
        if (i == maker->steps->first[0])
            replay->first_op = at;
        if (i == maker->steps->first[maker->steps->count])
            replay->last_op = at;
    }
    replay->op_count = next;
}

static void number_streams(struct maker *maker)
{
    const struct trace *trace = maker->trace;
    uint16_t count = 0;
    for (size_t i = 0; i < trace->lane_count; i++)
        if (trace->lanes[i].kind == LANE_STREAM)
            maker->stream_of[i] = count++;
    maker->replay->stream_count = (size_t)count + 1; /* the last one is for copies made ahead */
}

/* What the host or a stream waits for: from the wait's own span, else from the call's name. */
static void find_waits(struct maker *maker)
{
    const struct trace *trace = maker->trace;
    for (size_t c = 0; c < maker->replay->call_count; c++) {
        struct replay_call *call = &maker->replay->calls[c];
        const char *name = trace_word(trace, trace->spans[call->span].name);
        call->stream = UINT16_MAX;
        if (call->kind == CALL_QUEUE)
            call->wait = REPLAY_QUEUES;
        else if (call->kind == CALL_WAIT)
            call->wait = strstr(name, "Event")    ? REPLAY_WAITS_EVENT
                         : strstr(name, "Stream") ? REPLAY_WAITS_STREAM
                                                  : REPLAY_WAITS_ALL;
        else if (strstr(name, "EventRecord"))
            call->wait = REPLAY_RECORDS;
    }
    for (size_t i = maker->from; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if ((span->kind != SPAN_wait && span->kind != SPAN_event) || !maker->call_of[i] ||
            trace->lanes[span->lane].kind != LANE_STREAM || trace->lanes[span->lane].number < 0)
            continue;
        maker->replay->calls[maker->row_of_call[maker->call_of[i] - 1] - 1].stream =
            maker->stream_of[span->lane];
    }
}

/* ---- making: times --------------------------------------------------------------------------- */

static int order_of(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static double median_of(double *values, size_t count, double otherwise)
{
    if (!count)
        return otherwise;
    qsort(values, count, sizeof *values, order_of);
    return values[count / 2];
}

static const struct span *span_of(const struct maker *maker, uint32_t span)
{
    return &maker->trace->spans[span];
}

static void start_walk(struct maker *maker)
{
    for (size_t s = 0; s < maker->replay->stream_count; s++)
        maker->stream_end[s] = maker->last_event[s] = -INFINITY;
    maker->any_event = -INFINITY;
}

/* The usual time from a call to its op where the stream was free, by kind of op, and the usual gap
 * between two ops of a stream where the second had been launched long before. */
static enum status find_usual(struct maker *maker)
{
    const struct replay *replay = maker->replay;
    double *latencies, *gaps;
    NEED(latencies = mem_array(replay->op_count, sizeof *latencies));
    if (!(gaps = mem_array(replay->op_count, sizeof *gaps))) {
        mem_free(latencies);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    for (int kind = 0; kind < KINDS; kind++) {
        size_t free_count = 0, queued_count = 0;
        start_walk(maker);
        for (size_t c = 0; c < replay->call_count; c++) {
            const struct span *call = span_of(maker, replay->calls[c].span);
            for (size_t o = 0; o < replay->calls[c].ops; o++) {
                const struct replay_op *op = &replay->ops[replay->calls[c].first_op + o];
                const struct span *span = span_of(maker, op->span);
                double before = maker->stream_end[op->stream];
                /* of the first one nothing is known of what was before it: the GPU may be behind */
                if (span->kind == kind && before <= (double)call->start_ns &&
                    span->start_ns - call->start_ns < LATENCY_MOST_NS)
                    latencies[free_count++] = (double)(span->start_ns - call->start_ns);
                if (span->kind == SPAN_kernel && before > (double)call->end_ns)
                    gaps[queued_count++] = (double)span->start_ns - before;
                maker->stream_end[op->stream] = fmax(before, (double)span->end_ns);
            }
        }
        maker->latency[kind] = median_of(latencies, free_count, 5000);
        if (kind == SPAN_kernel)
            maker->gap = fmax(median_of(gaps, queued_count, 1000), 0);
    }
    mem_free(latencies);
    mem_free(gaps);
    return STATUS_OK;
}

/* What held an op back in the trace: the stream (or an event), or its launch? */
static void time_op(struct maker *maker, const struct span *call, double waits_for,
                    struct replay_op *op)
{
    const struct span *span = span_of(maker, op->span);
    double before = fmax(maker->stream_end[op->stream], waits_for);
    double usual = maker->latency[span->kind], start = (double)span->start_ns;
    if (before >= (double)call->start_ns + usual) {
        op->gap_ns = start - before;
        op->latency_ns = fmin(usual, start - (double)call->start_ns);
    } else {
        op->latency_ns = start - (double)call->start_ns;
        op->gap_ns = fmin(maker->gap, fmax(start - before, 0));
    }
    if (op->latency_ns < 0)
        op->latency_ns = 0;
    maker->stream_end[op->stream] = fmax(maker->stream_end[op->stream], (double)span->end_ns);
}

static double awaited(const struct maker *maker, const struct replay_call *call,
                      uint16_t last_stream, double own_end)
{
    double end = -INFINITY;
    switch (call->wait) {
    case REPLAY_WAITS_STREAM:
        return maker->stream_end[call->stream == UINT16_MAX ? last_stream : call->stream];
    case REPLAY_WAITS_EVENT: return maker->any_event;
    case REPLAY_WAITS_OWN: return own_end;
    case REPLAY_WAITS_ALL:
        for (size_t s = 0; s < maker->replay->stream_count; s++)
            end = fmax(end, maker->stream_end[s]);
        return end;
    default: return -INFINITY;
    }
}

/* A call that returns only after half of its own copy has run waits for it. */
static void find_own_wait(const struct maker *maker, const struct span *span,
                          struct replay_call *call)
{
    for (size_t o = 0; o < call->ops; o++) {
        const struct span *op = span_of(maker, maker->replay->ops[call->first_op + o].span);
        if (op->kind == SPAN_copy && op->end_ns - op->start_ns > 2000 &&
            span->end_ns > op->start_ns + span_ns(op) / 2)
            call->wait = REPLAY_WAITS_OWN;
    }
}

/* A launch that goes on when one of the many ops before it is done: there was no more room. */
static void find_room_wait(struct maker *maker, const struct span *span, struct replay_call *call)
{
    enum { DEEP = 128, LONG_NS = 20000 };
    const struct replay *replay = maker->replay;
    while (maker->done < call->first_op &&
           span_of(maker, replay->ops[maker->done].span)->end_ns <= span->end_ns)
        maker->done++;
    if (call->wait != REPLAY_GOES_ON || !call->ops || !maker->done || span_ns(span) < LONG_NS ||
        call->first_op - maker->done < DEEP)
        return;
    const struct span *freed = span_of(maker, replay->ops[maker->done - 1].span);
    if (freed->end_ns > span->start_ns && span->end_ns - freed->end_ns < LONG_NS) {
        call->wait = REPLAY_WAITS_ROOM;
        call->depth = call->first_op - (uint32_t)(maker->done - 1);
    }
}

static void time_call(struct maker *maker, uint16_t last_stream, struct replay_call *call)
{
    const double least = 2000; /* ns that a wait takes when there is nothing to wait for */
    const struct span *span = span_of(maker, call->span);
    double own_end = -INFINITY;
    if (span->kind != SPAN_call)
        return;
    find_own_wait(maker, span, call);
    find_room_wait(maker, span, call);
    if (call->ops)
        own_end =
            (double)span_of(maker, maker->replay->ops[call->first_op + call->ops - 1].span)->end_ns;
    double end = awaited(maker, call, last_stream, own_end);
    if (call->wait == REPLAY_WAITS_ROOM)
        end = (double)span_of(maker, maker->replay->ops[call->first_op - call->depth].span)->end_ns;
    call->ns = (double)span_ns(span);
    if (end > (double)span->start_ns) { /* it did wait */
        call->tail_ns = (double)span->end_ns - end;
        call->ns = fmin(call->ns, call->wait == REPLAY_WAITS_OWN ? 5 * least : least);
    } else {
        call->tail_ns = fmin(call->ns, least);
    }
}

/* Goes through the trace in its own time and keeps, of each row, what a change would leave. */
static void time_rows(struct maker *maker)
{
    struct replay *replay = maker->replay;
    int64_t frontier = 0, start = 0;
    uint16_t last_stream = 0;
    start_walk(maker);
    for (size_t c = 0; c < replay->call_count; c++) {
        struct replay_call *call = &replay->calls[c];
        const struct span *span = span_of(maker, call->span);
        uint16_t stream = call->stream == UINT16_MAX ? last_stream : call->stream;
        call->beside = c && span->start_ns < frontier;
        call->gap_ns = c ? (double)(span->start_ns - (call->beside ? start : frontier)) : 0;
        for (size_t o = 0; o < call->ops; o++) {
            struct replay_op *op = &replay->ops[call->first_op + o];
            time_op(maker, span, maker->last_event[op->stream], op);
            last_stream = op->stream;
        }
        if (call->wait == REPLAY_RECORDS)
            maker->any_event = maker->stream_end[stream];
        if (call->wait == REPLAY_QUEUES)
            maker->last_event[stream] = maker->any_event;
        time_call(maker, last_stream, call);
        start = span->start_ns;
        int64_t end = span->kind == SPAN_call ? span->end_ns : span->start_ns;
        frontier = !c || end > frontier ? end : frontier;
    }
}

static enum status make_with(struct maker *maker)
{
    struct replay *replay = maker->replay;
    struct arena *arena = &replay->arena;
    size_t spans = maker->trace->span_count;
    NEED(maker->row_of_call = arena_array(arena, spans, sizeof *maker->row_of_call));
    NEED(maker->stream_of =
             arena_array(arena, maker->trace->lane_count + 1, sizeof *maker->stream_of));
    number_streams(maker);
    NEED(maker->stream_end = arena_array(arena, replay->stream_count, sizeof(double)));
    NEED(maker->last_event = arena_array(arena, replay->stream_count, sizeof(double)));
    TRY(make_rows(maker));
    place_ops(maker);
    find_waits(maker);
    TRY(find_usual(maker));
    time_rows(maker);
    replay->usual_gap_ns = maker->gap;
    memcpy(replay->usual_latency_ns, maker->latency, sizeof replay->usual_latency_ns);
    return STATUS_OK;
}

/* The window, and two steps before it, whose ops may still be under way when it begins; from the
 * call on that launched the first of these steps: a host may be far ahead of its GPU. */
static void find_part(struct maker *maker)
{
    const struct steps *steps = maker->steps;
    const int64_t window = steps->end_ns - steps->start_ns;
    const int64_t from_ns = steps->start_ns - 2 * window / (int64_t)steps->count;
    const uint32_t first_call = maker->call_of[steps->first[0]];
    while (maker->trace->spans[maker->from].start_ns < from_ns)
        maker->from++;
    if (first_call && first_call - 1 < maker->from)
        maker->from = first_call - 1;
    maker->replay->window_ns = window;
}

/* What was launched before the part is left out: it comes before all that is in it. */
static void drop_earlier_calls(struct maker *maker)
{
    for (size_t i = maker->from; i < maker->trace->span_count; i++)
        if (maker->call_of[i] && maker->call_of[i] - 1 < maker->from)
            maker->call_of[i] = is_op(maker, i) ? EARLIER : 0;
}

enum status replay_make(const struct trace *trace, const struct steps *steps, struct replay *replay)
{
    struct maker maker = {.trace = trace, .steps = steps, .replay = replay};
    *replay = (struct replay){.host_scale = 1};
    if (steps->gpu < 0 || !steps->count)
        FAIL(STATUS_UNSUPPORTED, "the trace has no %s, so that it cannot be replayed",
             steps->gpu < 0 ? "kernels of a GPU" : "steps that repeat");
    TRY(trace_calls(trace, &maker.call_of));
    find_part(&maker);
    drop_earlier_calls(&maker);
    enum status status = make_with(&maker);
    mem_free(maker.call_of);
    return status;
}

enum status replay_copy(const struct replay *replay, struct replay *copy)
{
    *copy = *replay;
    copy->arena = (struct arena){0};
    NEED(copy->calls = arena_array(&copy->arena, replay->call_count, sizeof *copy->calls));
    NEED(copy->ops = arena_array(&copy->arena, replay->op_count, sizeof *copy->ops));
    memcpy(copy->calls, replay->calls, replay->call_count * sizeof *copy->calls);
    memcpy(copy->ops, replay->ops, replay->op_count * sizeof *copy->ops);
    return STATUS_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

struct player {
    const struct replay *replay;
    double *op_end;     /* of each op */
    double *end;        /* of each stream: when the last op that was launched on it ends … */
    double *waits_for;  /* … and what its later ops wait for */
    double any_event;   /* when the event that was recorded last passes */
    double before;      /* the start of the call whose copy was made ahead last; or -INFINITY */
    double used, spare; /* the end of the ops before the copy made ahead last, and before that */
    double first, last; /* starts of the ops that begin and end the window */
    uint16_t last_stream;
};

/* A copy made ahead starts when the one before it was asked for, on a stream of its own, and when
 * the step before the last is done: there are two buffers. */
static double start_ahead(struct player *player, const struct replay_op *op, double call_start)
{
    double *end = &player->end[player->replay->stream_count - 1];
    double asked = isinf(player->before) ? call_start : player->before;
    if (player->end[op->stream] > player->used) {
        player->spare = player->used;
        player->used = player->end[op->stream];
    }
    double start = fmax(fmax(*end, player->spare), asked + op->latency_ns);
    *end = start + op->ns;
    player->waits_for[op->stream] = fmax(player->waits_for[op->stream], *end);
    player->before = call_start;
    return start;
}

static double start_op(struct player *player, const struct replay_op *op, double call_start)
{
    if (op->ahead)
        return start_ahead(player, op, call_start);
    double before = fmax(player->end[op->stream], player->waits_for[op->stream]);
    const struct replay *replay = player->replay;
    const bool unusual = replay->usual && op->gap_ns > REPLAY_GAP_NS;
    double gap = unusual ? fmin(replay->usual_gap_ns, op->gap_ns) : op->gap_ns;
    double latency = replay->usual ? replay->usual_latency_ns[op->kind] : op->latency_ns;
    double start = fmax(before + gap, call_start + latency);
    player->end[op->stream] = fmax(player->end[op->stream], start + op->ns);
    player->last_stream = op->stream;
    return start;
}

/* The end of its own ops. */
static double play_ops(struct player *player, const struct replay_call *call, double call_start)
{
    double end = call_start;
    for (size_t o = call->first_op; o < call->first_op + call->ops; o++) {
        const struct replay_op *op = &player->replay->ops[o];
        player->op_end[o] = -INFINITY;
        if (op->dropped)
            continue;
        double start = start_op(player, op, call_start);
        end = player->op_end[o] = start + op->ns;
        if (o == player->replay->first_op)
            player->first = start;
        if (o == player->replay->last_op)
            player->last = start;
    }
    return end;
}

static double play_wait(struct player *player, const struct replay_call *call, double own_end)
{
    uint16_t stream = call->stream == UINT16_MAX ? player->last_stream : call->stream;
    double end = -INFINITY;
    switch (call->wait) {
    case REPLAY_WAITS_STREAM: return player->end[stream];
    case REPLAY_WAITS_EVENT: return player->any_event;
    case REPLAY_WAITS_OWN: return own_end;
    case REPLAY_WAITS_ROOM: return player->op_end[call->first_op - call->depth];
    case REPLAY_WAITS_ALL:
        for (size_t s = 0; s < player->replay->stream_count; s++)
            end = fmax(end, player->end[s]);
        return end;
    case REPLAY_RECORDS: player->any_event = player->end[stream]; return -INFINITY;
    case REPLAY_QUEUES: player->waits_for[stream] = player->any_event; return -INFINITY;
    default: return -INFINITY;
    }
}

static void play(struct player *player)
{
    const struct replay *replay = player->replay;
    double frontier = 0, start = 0;
    for (size_t c = 0; c < replay->call_count; c++) {
        const struct replay_call *call = &replay->calls[c];
        start = (call->beside ? start : frontier) + call->gap_ns * replay->host_scale;
        double own_end = play_ops(player, call, start);
        double waited = play_wait(player, call, own_end);
        double end = fmax(start + call->ns * replay->host_scale, waited + call->tail_ns);
        frontier = call->beside ? fmax(frontier, end) : end;
    }
}

enum status replay_run(const struct replay *replay, double *window_ns)
{
    struct player player = {.replay = replay,
                            .any_event = -INFINITY,
                            .before = -INFINITY,
                            .used = -INFINITY,
                            .spare = -INFINITY};
    struct arena arena = {0};
    player.end = arena_array(&arena, replay->stream_count, sizeof *player.end);
    player.waits_for = arena_array(&arena, replay->stream_count, sizeof *player.waits_for);
    player.op_end = arena_array(&arena, replay->op_count, sizeof *player.op_end);
    if (!player.end || !player.waits_for || !player.op_end) {
        arena_free(&arena);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    for (size_t s = 0; s < replay->stream_count; s++)
        player.end[s] = player.waits_for[s] = -INFINITY;
    play(&player);
    *window_ns = player.last - player.first;
    arena_free(&arena);
    return STATUS_OK;
}

enum status replay_check(const struct replay *replay, double *ratio)
{
    struct replay check = *replay;
    double window;
    check.usual = true;
    check.host_scale = 1;
    TRY(replay_run(&check, &window));
    *ratio = window / (double)replay->window_ns;
    return STATUS_OK;
}

enum status replay_fit(struct replay *replay, double window_ns)
{
    double low = REPLAY_SCALE_LEAST, high = 1, window;
    replay->host_scale = 1;
    TRY(replay_run(replay, &window));
    if (window <= window_ns)
        return STATUS_OK;
    for (int i = 0; i < 30; i++) {
        replay->host_scale = (low + high) / 2;
        TRY(replay_run(replay, &window));
        if (window > window_ns)
            high = replay->host_scale;
        else
            low = replay->host_scale;
    }
    return STATUS_OK;
}
