/* message.c: see message.h. */
#include "core/comm/message.h"

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

void message_send(struct message *message, const void *data)
{
    finish(message);
    if (message->all->failed != STATUS_OK)
        return;
    memcpy(message->staged, data, message->bytes);
    comm_begin_send(message->all->comm, message->peer, message->staged, message->bytes,
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
        note(all, comm_receive(all->comm, message->peer, data, message->bytes));
    note_wait(all, start_ns);
}

static bool is_message(const struct op *op)
{
    return op->kind == OP_send || op->kind == OP_receive;
}

enum status messages_make(struct messages *messages, struct arena *arena,
                          const struct program *program, int slots)
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
        message->peer = op->kind == OP_send ? op->attr.send.peer : op->attr.receive.peer;
        message->bytes = (size_t)program->tensors[program->operands[op->first]].bytes;
        if (op->kind == OP_send)
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
