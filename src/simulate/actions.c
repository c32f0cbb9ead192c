/* actions.c: see actions.h. */
#include "simulate/actions.h"

#include "core/comm/message.h"

#include "base/memory.h"
#include "core/pass/split_pipeline.h"

#include <math.h>

static double cost_of_part(const struct program *program, enum part part)
{
    double cost = 0;
    for (int32_t o = program->parts[part].from; o < program->parts[part].to; o++)
        cost += split_cost(program, &program->ops[o]);
    return cost;
}

struct pace_of_parts actions_pace(const struct program *program, double seconds,
                                  const double shares[PART_COUNT])
{
    struct pace_of_parts pace = {{0}};
    double costs[PART_COUNT], all = 0, said = 0;
    for (int part = 0; part < PART_COUNT; part++) {
        costs[part] = cost_of_part(program, (enum part)part);
        all += costs[part];
        said += costs[part] > 0 ? shares[part] : 0;
    }
    for (int part = 0; part < PART_COUNT; part++)
        if (costs[part] > 0)
            pace.seconds[part] = seconds * (said > 0 ? shares[part] / said / costs[part] : 1 / all);
    return pace;
}

static enum status add(struct actions *actions, const struct action *action)
{
    if (action->kind == ACTION_COMPUTE && actions->count > actions->sealed &&
        actions->list[actions->count - 1].kind == ACTION_COMPUTE) {
        actions->list[actions->count - 1].seconds += action->seconds;
        return STATUS_OK;
    }
    if (actions->count == actions->room) {
        const int32_t room = actions->room ? 2 * actions->room : 64;
        struct action *more = mem_array((size_t)room, sizeof *more);
        NEED(more);
        for (int32_t i = 0; i < actions->count; i++)
            more[i] = actions->list[i];
        mem_free(actions->list);
        actions->list = more;
        actions->room = room;
    }
    actions->list[actions->count++] = *action;
    return STATUS_OK;
}

/* One sum for all that an all_reduce has: gradients lie one behind the other. */
static enum status add_reduction(struct actions *actions, const struct program *program,
                                 const struct op *op, int32_t *reduction_of)
{
    struct action action = {.kind = ACTION_REDUCE, .reduction = actions->reductions++};
    for (int32_t i = 0; i < op->inputs; i++) {
        const int32_t tensor = op_input(program, op, i);
        action.bytes += (size_t)program->tensors[tensor].bytes;
        reduction_of[program_root(program, tensor)] = action.reduction;
    }
    actions->reduced_bytes += action.bytes;
    return add(actions, &action);
}

static enum status add_op(struct actions *actions, const struct program *program,
                          const struct op *op, double seconds, int32_t *reduction_of)
{
    const int32_t first = op->inputs + op->outputs ? program->operands[op->first] : -1;
    struct action action = {.seconds = seconds};
    if (op->kind == OP_all_reduce)
        return add_reduction(actions, program, op, reduction_of);
    if (op->kind == OP_wait)
        action = (struct action){.kind = ACTION_WAIT,
                                 .reduction = reduction_of[program_root(program, first)]};
    else if (op->kind == OP_send || op->kind == OP_receive || op->kind == OP_receive_add)
        action = (struct action){.kind = op->kind == OP_send ? ACTION_SEND : ACTION_RECEIVE,
                                 .bytes = (size_t)program->tensors[first].bytes,
                                 .peer = message_peer(op)};
    else
        actions->seconds += seconds;
    return add(actions, &action);
}

enum status actions_add(struct actions *actions, const struct program *program,
                        const struct pace_of_parts *pace)
{
    int32_t *reduction_of = mem_array((size_t)program->tensor_count, sizeof *reduction_of);
    enum status status = STATUS_OK;
    NEED(reduction_of);
    for (int part = 0; part < PART_COUNT; part++) {
        actions->parts[part].from = actions->sealed = actions->count;
        for (int32_t o = program->parts[part].from;
             o < program->parts[part].to && status == STATUS_OK; o++) {
            const struct op *op = &program->ops[o];
            status = add_op(actions, program, op, pace->seconds[part] * split_cost(program, op),
                            reduction_of);
        }
        actions->parts[part].to = actions->count;
    }
    mem_free(reduction_of);
    return status;
}

void actions_free(struct actions *actions)
{
    mem_free(actions->list);
    *actions = (struct actions){0};
}
