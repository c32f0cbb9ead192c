/* exchange.c: see exchange.h. */
#include "core/comm/exchange.h"

#include "base/clock.h"

#include <stdio.h>

/* Pieces that a step can have on their way: at most one for each operand. */
static int32_t count_pieces(const struct program *program, bool *across)
{
    int32_t count = 0;
    *across = false;
    for (int32_t o = 0; o < program->op_count; o++)
        if (program->ops[o].kind == OP_all_reduce) {
            count += program->ops[o].inputs;
            *across |= program->ops[o].attr.all_reduce.across != 0;
        }
    return count;
}

enum status exchange_open(struct exchange *exchange, const struct program *program,
                          const struct plan_options *options, struct arena *arena)
{
    bool across;
    const int32_t pieces = count_pieces(program, &across);
    if (!pieces || options->dry)
        return STATUS_OK;
    if (!options->comm || (across && !options->across))
        FAIL(STATUS_INPUT, "the program '%s' communicates, but its plan was given no comm",
             program->name);
    *exchange = (struct exchange){.comm = options->comm,
                                  .across = options->across,
                                  .queue = options->queue,
                                  .traffic = options->traffic};
    NEED(exchange->sent = arena_array(arena, (size_t)pieces, sizeof *exchange->sent));
    return STATUS_OK;
}

static void keep_failure(struct exchange *exchange, enum status status)
{
    if (status == STATUS_OK || exchange->status != STATUS_OK)
        return;
    exchange->status = status;
    snprintf(exchange->message, sizeof exchange->message, "%s", status_message());
}

/* What was begun at this place; NULL: nothing. */
static struct sent *find_sent(const struct exchange *exchange, const void *data)
{
    for (int32_t i = 0; i < exchange->sent_count; i++)
        if (exchange->sent[i].data == data)
            return &exchange->sent[i];
    return NULL;
}

static void start_sum(struct exchange *exchange, struct comm *comm, struct comm_queue *queue,
                      void *data, size_t count, enum dtype dtype)
{
    uint64_t ticket = 0;
    if (exchange->status != STATUS_OK)
        return;
    if (exchange->queue && !exchange->sent_count) /* another plan may have used it since */
        exchange->busy_ns = comm_queue_busy_ns(exchange->queue);
    const uint64_t start_ns = clock_ns();
    keep_failure(exchange, queue ? comm_start(queue, data, count, dtype, &ticket)
                                 : comm_all_reduce(comm, data, count, dtype));
    struct sent *sent = find_sent(exchange, data);
    if (!sent)
        sent = &exchange->sent[exchange->sent_count++];
    *sent = (struct sent){data, ticket};
    exchange->waited_ns += queue ? 0 : clock_ns() - start_ns;
    const uint64_t others = (uint64_t)comm->size - 1;
    if (exchange->traffic)
        exchange->traffic->bytes += 2 * others * count * dtype_bytes(dtype) / (others + 1);
}

void exchange_start(struct exchange *exchange, void *data, size_t count, enum dtype dtype)
{
    start_sum(exchange, exchange->comm, exchange->across ? NULL : exchange->queue, data, count,
              dtype);
}

void exchange_start_across(struct exchange *exchange, void *data, size_t count, enum dtype dtype)
{
    start_sum(exchange, exchange->across, exchange->queue, data, count, dtype);
}

void exchange_wait(struct exchange *exchange, const void *data)
{
    if (!exchange->queue || exchange->status != STATUS_OK)
        return;
    const uint64_t start_ns = clock_ns();
    const struct sent *sent = find_sent(exchange, data);
    if (sent && sent->ticket)
        keep_failure(exchange, comm_wait(exchange->queue, sent->ticket));
    exchange->waited_ns += clock_ns() - start_ns;
}

enum status exchange_end(struct exchange *exchange)
{
    const enum status status = exchange->status;
    const uint64_t busy_ns = exchange->queue ? comm_queue_busy_ns(exchange->queue) : 0;
    const uint64_t busy = busy_ns - exchange->busy_ns;
    if (exchange->traffic) {
        exchange->traffic->waited_ns += exchange->waited_ns;
        exchange->traffic->hidden_ns += busy > exchange->waited_ns ? busy - exchange->waited_ns : 0;
    }
    exchange->waited_ns = 0;
    exchange->sent_count = 0;
    exchange->status = STATUS_OK;
    if (status != STATUS_OK)
        FAIL(status, "%s", exchange->message);
    return STATUS_OK;
}
