/* prony_stream.c: streams of requests: some are asked before the first is waited for. A request is
 * asked of the backend when it is submitted; backends wait for all that was asked, so that one
 * wait answers every request that is in flight. */
#include "base/memory.h"
#include "library/prony_inside.h"

#include <inttypes.h>

enum { DEPTH_USUAL = 16, DEPTH_MOST = 1 << 16 };

/* Out of its network's list. */
static void leave_network(struct prony_stream *stream)
{
    struct prony_stream **link = &stream->network->streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    stream->network = NULL;
}

static void end_stream(struct prony_stream *stream, const char *why)
{
    leave_network(stream);
    stream->ended = why;
    predictor_close(&stream->predictor);
}

void inside_end_streams(struct prony *network, const char *why)
{
    while (network->streams)
        end_stream(network->streams, why);
}

static enum status open_stream(struct prony_stream *stream,
                               const struct prony_stream_options *options)
{
    const struct predictor_options asked = {
        .rows = options->rows ? options->rows : 1,
        .depth = options->depth ? options->depth : DEPTH_USUAL,
        .answering = options->resident ? ANSWER_RESIDENT : ANSWER_QUEUED,
    };
    if (asked.rows < 1)
        FAIL(STATUS_INPUT, "found %d rows, expected at least 1", asked.rows);
    if (asked.depth < 1 || asked.depth > DEPTH_MOST)
        FAIL(STATUS_INPUT, "found a depth of %d requests, expected 1 to %d", asked.depth,
             DEPTH_MOST);
    if (asked.rows > INT32_MAX / asked.depth)
        FAIL(STATUS_INPUT, "found %d requests of %d rows, expected together at most %d",
             asked.depth, asked.rows, INT32_MAX);
    return predictor_open(&stream->predictor, &stream->network->model, &asked);
}

int prony_stream_open(struct prony *network, const struct prony_stream_options *options,
                      struct prony_stream **out)
{
    static const struct prony_stream_options usual;
    locale_t theirs = inside_enter();
    struct prony_stream *stream = mem_alloc(sizeof *stream);
    enum status status = STATUS_MEMORY;
    if (stream) {
        stream->network = network;
        stream->next = network->streams;
        network->streams = stream;
        status = open_stream(stream, options ? options : &usual);
    } else {
        status_fail(status, __FILE__, __LINE__, "out of memory");
    }
    if (status != STATUS_OK) {
        prony_stream_close(stream);
        stream = NULL;
    }
    *out = stream;
    return inside_leave(theirs, status);
}

void prony_stream_close(struct prony_stream *stream)
{
    if (stream && stream->network)
        end_stream(stream, "");
    mem_free(stream);
}

static enum status check_open(const struct prony_stream *stream)
{
    if (!stream->network)
        FAIL(STATUS_INPUT, "the stream has ended: %s; expected another prony_stream_open",
             stream->ended);
    return STATUS_OK;
}

static enum status submit(struct prony_stream *stream, const float *inputs, float *outputs,
                          uint64_t *ticket)
{
    struct predictor *predictor = &stream->predictor;
    TRY(check_open(stream));
    if (predictor->asked - predictor->answered == predictor->depth)
        FAIL(STATUS_INPUT,
             "found %" PRIu64 " requests in flight, the stream's depth; expected prony_stream_wait "
             "before the next",
             predictor->depth);
    enum status status = predictor_ask(predictor, inputs, outputs);
    if (status != STATUS_OK && status != STATUS_INPUT)
        end_stream(stream, "a request failed");
    if (status == STATUS_OK && ticket)
        *ticket = predictor->asked;
    return status;
}

int prony_stream_submit(struct prony_stream *stream, const float *inputs, float *outputs,
                        uint64_t *ticket)
{
    if (!stream->predictor.scaling) /* no number becomes text */
        return (int)submit(stream, inputs, outputs, ticket);
    locale_t theirs = inside_enter();
    return inside_leave(theirs, submit(stream, inputs, outputs, ticket));
}

int prony_stream_wait(struct prony_stream *stream, uint64_t ticket)
{
    struct predictor *predictor = &stream->predictor;
    enum status status = check_open(stream);
    if (status != STATUS_OK)
        return (int)status;
    if (ticket < 1 || ticket > predictor->asked)
        return (int)status_fail(STATUS_INPUT, __FILE__, __LINE__,
                                "found the ticket %" PRIu64 ", expected one of the %" PRIu64
                                " that prony_stream_submit gave",
                                ticket, predictor->asked);
    if (ticket <= predictor->answered)
        return PRONY_OK;
    status = predictor_answer(predictor);
    if (status != STATUS_OK)
        end_stream(stream, "a request failed");
    return (int)status;
}
