/* message.c: see message.h. */
#include "core/comm/message.h"

#include "core/comm/comm_inside.h"

#include "base/clock.h"

#include <string.h>

static void note(struct messages *all, enum status status)
{
    if (all->failed == STATUS_OK)
        all->failed = status;
}

static void note_wait(struct messages *all, uint64_t since_ns)
{
    if (all->traffic)
        all->traffic->waited_ns += clock_ns() - since_ns;
}

static void finish(struct message *message)
{
    if (!message->under_way)
        return;
    const uint64_t start_ns = clock_ns();
    message->under_way = false;
    note(message->all, comm_finish(message->all->comm, &message->transfer));
    note_wait(message->all, start_ns);
}

static int peer_of(const struct message *message)
{
    return message->peer == COMM_TURN ? *message->all->turn : message->peer;
}

/* What is of no samples is not looked at: it may be no number. */
static void weigh(const struct message *message)
{
    const double share = message->of ? (double)message->samples / message->of : 1;
    const size_t count = message->bytes / dtype_bytes(message->dtype);
    float *singles = (float *)(void *)message->staged;
    double *doubles = (double *)(void *)message->staged;
    if (share <= 0)
        memset(message->staged, 0, message->bytes);
    for (size_t i = 0; message->of && share < 1 && i < count; i++)
        if (message->dtype == DTYPE_F64)
            doubles[i] *= share;
        else
            singles[i] *= (float)share;
}

void message_send(struct message *message, const void *data)
{
    finish(message);
    if (message->all->failed != STATUS_OK)
        return;
    memcpy(message->staged, data, message->bytes);
    weigh(message);
    comm_begin_send(message->all->comm, peer_of(message), message->staged, message->bytes,
                    &message->transfer);
    message->under_way = true;
    if (message->all->traffic)
        message->all->traffic->bytes += message->bytes;
}

void message_receive(struct message *message, void *data)
{
    struct messages *all = message->all;
    const uint64_t start_ns = clock_ns();
    if (all->failed == STATUS_OK)
        note(all, comm_receive(all->comm, peer_of(message), data, message->bytes));
    note_wait(all, start_ns);
}

void message_receive_add(struct message *message, void *data)
{
    struct messages *all = message->all;
    struct comm_transfer transfer;
    const uint64_t start_ns = clock_ns();
    if (all->failed == STATUS_OK) {
        comm_begin_add(all->comm, peer_of(message), data, message->bytes, message->dtype,
                       &transfer);
        note(all, comm_finish(all->comm, &transfer));
    }
    note_wait(all, start_ns);
}

static bool is_message(const struct op *op)
{
    return op->kind == OP_send || op->kind == OP_receive || op->kind == OP_receive_add;
}

int message_peer(const struct op *op)
{
    return op->kind == OP_send      ? op->attr.send.peer
           : op->kind == OP_receive ? op->attr.receive.peer
                                    : op->attr.receive_add.peer;
}

enum status messages_make(struct messages *messages, struct arena *arena,
                          const struct program *program, int slots, const int64_t *counts)
{
    const size_t ops = (size_t)program->op_count;
    bool any = false;
    for (size_t o = 0; o < ops; o++)
        any |= is_message(&program->ops[o]);
    if (!any)
        return STATUS_OK;
    if (!messages->comm)
        FAIL(STATUS_INPUT, "the program '%s' sends to other ranks, but its plan was given no comm",
             program->name);
    messages->count = (size_t)slots * ops;
    NEED(messages->list = arena_array(arena, messages->count, sizeof *messages->list));
    for (size_t i = 0; i < messages->count; i++) {
        const struct op *op = &program->ops[i % ops];
        struct message *message = &messages->list[i];
        message->all = messages;
        if (!is_message(op))
            continue;
        const struct tensor *tensor = &program->tensors[program->operands[op->first]];
        message->peer = message_peer(op);
        message->dtype = tensor->dtype;
        message->bytes =
            counts ? (size_t)counts[op->first] * dtype_bytes(tensor->dtype) : (size_t)tensor->bytes;
        if (op->kind != OP_send)
            continue;
        message->samples = op->attr.send.samples;
        message->of = op->attr.send.of;
        NEED(message->staged = arena_alloc(arena, message->bytes));
    }
    return STATUS_OK;
}

void messages_finish(struct messages *messages)
{
    for (size_t i = 0; messages->list && i < messages->count; i++)
        finish(&messages->list[i]);
}

enum status messages_failure(const struct messages *messages)
{
    if (messages->failed != STATUS_OK)
        FAIL(messages->failed, "%s", messages->comm->why);
    return STATUS_OK;
}
