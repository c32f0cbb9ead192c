/* replay.h: the run again, on paper: what would a step take if one thing were different?
 *
 * The host is one sequence of calls with its own code between them. Threads that take turns, as the
 * main thread and the one that computes gradients, are merged into it. A call starts ops of the
 * GPU. An op begins when its stream is free, what it waits for is done and its launch has arrived;
 * what the trace showed of these times is kept. Some calls go on only when the GPU is done.
 *
 * Run unchanged it takes as long as the window did, by its making. So the check is another: with
 * the usual gap and latency for every op it must still take that long. Else the model has not
 * understood the program, and no advice is drawn from it. A change is made on a copy: calls and ops
 * are plain rows. Programs that launch from several threads at once are outside the model, and show
 * as a replay that does not fit. */
#ifndef PRONY_ADVISE_REPLAY_H
#define PRONY_ADVISE_REPLAY_H

#include "advise/budget.h"

enum replay_wait {
    REPLAY_GOES_ON,
    REPLAY_WAITS_STREAM, /* until all that was launched on the stream is done */
    REPLAY_WAITS_ALL,    /* … on all streams */
    REPLAY_WAITS_EVENT,  /* until the event that was recorded last has passed */
    REPLAY_WAITS_OWN,    /* until its own op is done: a copy of pageable memory */
    REPLAY_WAITS_ROOM,   /* until an op that was launched long before is done: the queue is full */
    REPLAY_RECORDS,      /* goes on; an event is put on the stream */
    REPLAY_QUEUES,       /* goes on; later ops of the stream wait for the last event elsewhere */
};

struct replay_call {
    uint32_t span;          /* of the trace */
    uint32_t first_op, ops; /* what it starts */
    uint16_t stream;        /* of a wait or event */
    uint32_t depth;         /* REPLAY_WAITS_ROOM: of ops, from its own back to that op */
    uint8_t wait;           /* enum replay_wait */
    uint8_t kind;           /* enum call_kind */
    bool beside;            /* begins while the call before it still runs, on another thread */
    double gap_ns;          /* the host's own code before it; beside: since the start before it */
    double ns;              /* that it takes when it need not wait */
    double tail_ns;         /* from the end of what it waited for to its return */
};

struct replay_op {
    uint32_t span;
    uint16_t stream;
    bool dropped; /* is not there */
    bool ahead;   /* is started a step earlier, on a stream of its own */
    uint8_t kind; /* enum span_kind */
    double ns;
    double latency_ns; /* from the start of its call */
    double gap_ns;     /* to the op before it on its stream */
};

struct replay {
    struct replay_call *calls;
    struct replay_op *ops;
    size_t call_count, op_count, stream_count;
    int64_t window_ns;          /* that it took in the trace */
    size_t first_op, last_op;   /* that begin the first step, and the one after the last */
    double host_scale;          /* of the host's own times: 1 as they were watched */
    bool usual;                 /* each op takes the usual times below, not its own: a check */
    double usual_gap_ns;        /* between two ops that follow each other */
    double usual_latency_ns[3]; /* from a call to its kernel, copy or fill */
    struct arena arena;
};

/* For traces with steps and a GPU; else STATUS_UNSUPPORTED. replay_free frees, also after failure.
 */
enum status replay_make(const struct trace *trace, const struct steps *steps,
                        struct replay *replay);
enum status replay_copy(const struct replay *replay, struct replay *copy);
void replay_free(struct replay *replay);

/* The time of the window, in nanoseconds. */
enum status replay_run(const struct replay *replay, double *window_ns);

/* Shorter gaps between two ops are the GPU's own, and longer where each op is timed; the check
 * leaves them. */
#define REPLAY_GAP_NS 20e3

/* What the check gives, ÷ the window. */
enum status replay_check(const struct replay *replay, double *ratio);

/* Sets host_scale so that the window takes so long: what watching added is taken from the host.
 * Scales from REPLAY_SCALE_LEAST to 1; the nearest is taken. */
#define REPLAY_SCALE_LEAST 0.3
enum status replay_fit(struct replay *replay, double window_ns);

#endif
