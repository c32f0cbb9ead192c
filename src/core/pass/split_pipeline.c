/* split_pipeline.c: the layers in the order of the program are units; each op belongs to one. Units
 * that share something cannot be cut apart; the others are cut into stages (pipeline_table.h), and
 * each stage's program is written from its ops, with a receive for each tensor of another stage at
 * the beginning of a part and a send behind the op that wrote it. */
#include "core/pass/split_pipeline.h"

#include "core/pass/pipeline_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ops that belong to no unit: every stage has them that needs what they write, or the step's end.
 */
enum { EVERYWHERE = -1 };

struct unit {
    const char *layer;
    double cost;
    bool learns;  /* reads a parameter: a stage may begin here … */
    bool sharing; /* … unless it and one before it use the same thing */
    int32_t stage;
};

/* What goes from stage to stage in each run of a part. */
struct transfer {
    int32_t tensor, writer; /* a root, and the op that writes it */
    int32_t from, to;
};

struct cut {
    struct arena arena;
    const struct program *program;
    const struct params *params;
    const struct pipeline_options *options;
    int32_t unit_count, transfer_count;
    struct unit *units;
    int32_t *unit_of; /* per op */
    int32_t *writer;  /* per root: the last op that writes it, -1: none does */
    int32_t *owner;   /* per entry: the last unit that uses it, -1: none does */
    struct transfer *transfers;
};

double split_cost(const struct program *program, const struct op *op)
{
    const double flop = (double)op_flop(program, op) / 16, bytes = (double)op_bytes(program, op);
    return flop > bytes ? flop : bytes;
}

static int32_t stage_of(const struct cut *cut, int32_t op)
{
    return cut->unit_of[op] < 0 ? EVERYWHERE : cut->units[cut->unit_of[op]].stage;
}

/* Does it live within a step, so that stages hand it to each other? */
static bool is_passed(const struct tensor *tensor)
{
    return !role_is_kept(tensor->role) && tensor->role != ROLE_GRAD;
}

static enum status find_writers(struct cut *cut)
{
    const struct program *program = cut->program;
    NEED(cut->writer =
             arena_array(&cut->arena, (size_t)program->tensor_count + 1, sizeof *cut->writer));
    for (int32_t t = 0; t < program->tensor_count; t++)
        cut->writer[t] = -1;
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        for (int32_t i = 0; i < op->outputs; i++)
            if (op_output(program, op, i) >= 0)
                cut->writer[program_root(program, op_output(program, op, i))] = o;
    }
    return STATUS_OK;
}

/* The last unit of this layer, or -1. */
static int32_t find_unit(const struct cut *cut, const char *layer)
{
    for (int32_t u = cut->unit_count - 1; u >= 0; u--)
        if (!strcmp(cut->units[u].layer, layer))
            return u;
    return -1;
}

/* The last unit that writes what the op reads; the first where none does. */
static int32_t unit_of_inputs(const struct cut *cut, const struct op *op)
{
    const struct program *program = cut->program;
    int32_t unit = 0;
    for (int32_t i = 0; i < op->inputs; i++) {
        int32_t tensor = op_input(program, op, i);
        int32_t writer = tensor < 0 ? -1 : cut->writer[program_root(program, tensor)];
        if (writer >= 0 && cut->unit_of[writer] > unit)
            unit = cut->unit_of[writer];
    }
    return unit;
}

/* Forward ops make the units: a layer's follow each other. An op of no layer (a loss) and a
 * backward op are where their layer is, or what they read. */
static enum status find_units(struct cut *cut)
{
    const struct program *program = cut->program;
    NEED(cut->units = arena_array(&cut->arena, (size_t)program->op_count + 1, sizeof *cut->units));
    NEED(cut->unit_of =
             arena_array(&cut->arena, (size_t)program->op_count + 1, sizeof *cut->unit_of));
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        cut->unit_of[o] = EVERYWHERE;
        if (op->part != PART_FORWARD && op->part != PART_BACKWARD)
            continue;
        int32_t unit = *op->layer ? find_unit(cut, op->layer) : unit_of_inputs(cut, op);
        bool begins = op->part == PART_FORWARD && *op->layer && unit != cut->unit_count - 1;
        if (unit < 0 || begins || !cut->unit_count) {
            cut->units[cut->unit_count] = (struct unit){.layer = op->layer};
            unit = cut->unit_count++;
        }
        cut->unit_of[o] = unit;
    }
    if (!cut->unit_count)
        FAIL(STATUS_INPUT, "%s: found a program without layers, expected some to share out",
             program->name);
    return STATUS_OK;
}

/* A unit and one before it that use the same entry, or have the same layer, stay together with all
 * between them. */
static void tie(struct cut *cut, int32_t first, int32_t last)
{
    for (int32_t u = first + 1; u <= last; u++)
        cut->units[u].sharing = true;
}

static void tie_layers(struct cut *cut)
{
    for (int32_t u = 0; u < cut->unit_count; u++) {
        int32_t last = find_unit(cut, cut->units[u].layer);
        if (last > u)
            tie(cut, u, last);
    }
}

static enum status tie_entries(struct cut *cut)
{
    const struct program *program = cut->program;
    size_t entries = (size_t)cut->params->count + 1;
    int32_t *first = arena_array(&cut->arena, entries, sizeof *first);
    NEED(first);
    NEED(cut->owner = arena_array(&cut->arena, entries, sizeof *cut->owner));
    for (size_t e = 0; e < entries; e++)
        first[e] = cut->owner[e] = -1;
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        const int32_t unit = cut->unit_of[o];
        for (int32_t i = 0; unit >= 0 && i < op->inputs + op->outputs; i++) {
            int32_t tensor = program->operands[op->first + i];
            int32_t entry = tensor < 0 ? -1 : program->tensors[tensor].entry;
            if (entry < 0)
                continue;
            cut->units[unit].learns |= program->tensors[tensor].role == ROLE_PARAM;
            first[entry] = first[entry] < 0 || unit < first[entry] ? unit : first[entry];
            cut->owner[entry] = unit > cut->owner[entry] ? unit : cut->owner[entry];
        }
    }
    for (int32_t e = 0; e < cut->params->count; e++)
        tie(cut, first[e], cut->owner[e]);
    return STATUS_OK;
}

/* Updates are where their parameter is. */
static enum status place_updates(struct cut *cut)
{
    const struct program *program = cut->program;
    for (int32_t o = program->parts[PART_UPDATE].from; o < program->parts[PART_UPDATE].to; o++) {
        const struct op *op = &program->ops[o];
        if (op->kind == OP_tick)
            continue;
        if (op->kind == OP_clip)
            FAIL(STATUS_UNSUPPORTED,
                 "%s: found clipping by the norm of all gradients, which no stage of a pipeline "
                 "has: leave clip out, or take --parallelism data",
                 program->name);
        int32_t w = op_input(program, op, 0);
        cut->unit_of[o] = w < 0 ? EVERYWHERE : cut->owner[program->tensors[w].entry];
    }
    return STATUS_OK;
}

static void count_costs(struct cut *cut)
{
    const struct program *program = cut->program;
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        if (cut->unit_of[o] < 0)
            continue;
        const double cost = split_cost(program, op);
        cut->units[cut->unit_of[o]].cost += op->part == PART_UPDATE && cut->options->micros > 1
                                                ? cost / cut->options->micros
                                                : cost;
    }
}

/* The rank of another split that has the network's entry, or -1. */
static int32_t rank_of(const struct split_ranks *split, int32_t entry)
{
    for (int32_t r = 0; r < split->count; r++)
        for (int32_t e = 0; e < split->ranks[r].params.count; e++)
            if (split->ranks[r].slices[e].entry == entry)
                return r;
    return -1;
}

/* Each group is where the other split has what it learns. */
static void place_groups(const struct cut *cut, int32_t *stage_of_group)
{
    for (int32_t e = 0; e < cut->params->count; e++) {
        const int32_t rank = cut->owner[e] < 0 ? -1 : rank_of(cut->options->as, e);
        if (rank >= 0 && cut->params->entries[e].role == ROLE_PARAM)
            stage_of_group[cut->units[cut->owner[e]].stage] = rank;
    }
}

/* Groups of units that stay together are what is cut. */
static enum status cut_stages(struct cut *cut)
{
    const int32_t stages = cut->options->stages;
    int32_t count = 0, *stage_of_group;
    double *costs;
    NEED(costs = arena_array(&cut->arena, (size_t)cut->unit_count, sizeof *costs));
    NEED(stage_of_group =
             arena_array(&cut->arena, (size_t)cut->unit_count, sizeof *stage_of_group));
    bool before =
        false; /* a layer that learns was there: what comes before the first stays with it */
    for (int32_t u = 0; u < cut->unit_count; u++) {
        struct unit *unit = &cut->units[u];
        if (!u || (unit->learns && !unit->sharing && before))
            count++;
        before |= unit->learns;
        unit->stage = count - 1; /* the group, at first */
        costs[count - 1] += unit->cost;
    }
    if (stages > count)
        FAIL(STATUS_INPUT,
             "%s: found %d stages, expected at most %d: a stage begins with a layer that learns; "
             "take --workers %d or fewer",
             cut->program->name, stages, count, count);
    if (cut->options->as)
        place_groups(cut, stage_of_group);
    else
        TRY(pipeline_balance(costs, count, stages, stage_of_group));
    for (int32_t u = 0; u < cut->unit_count; u++)
        cut->units[u].stage = stage_of_group[cut->units[u].stage];
    return STATUS_OK;
}

static bool is_listed(const struct cut *cut, int32_t tensor, int32_t to)
{
    for (int32_t i = cut->transfer_count - 1; i >= 0; i--)
        if (cut->transfers[i].tensor == tensor && cut->transfers[i].to == to)
            return true;
    return false;
}

/* Lists the tensor if another stage than `to` writes it in this step. */
static enum status list_transfer(struct cut *cut, int32_t tensor, int32_t to)
{
    const struct program *program = cut->program;
    const int32_t root = program_root(program, tensor), writer = cut->writer[root];
    const int32_t from = writer < 0 ? EVERYWHERE : stage_of(cut, writer);
    if (!is_passed(&program->tensors[root]) || from < 0 || from == to || is_listed(cut, root, to))
        return STATUS_OK;
    if ((program->ops[writer].part == PART_FORWARD) != (from < to))
        FAIL(STATUS_UNSUPPORTED,
             "%s: the layers before stage %d need '%s', which comes from behind them: a pipeline "
             "passes values forward and gradients back; --parallelism data or model",
             program->name, from + 1, program->tensors[root].name);
    cut->transfers[cut->transfer_count++] = (struct transfer){root, writer, from, to};
    return STATUS_OK;
}

/* As they are sent: what two ranks say to each other arrives in order. */
static int sent_before(const void *a, const void *b)
{
    const struct transfer *x = a, *y = b;
    if (x->writer != y->writer)
        return x->writer < y->writer ? -1 : 1;
    if (x->tensor != y->tensor)
        return x->tensor < y->tensor ? -1 : 1;
    return x->to < y->to ? -1 : 1;
}

static enum status find_transfers(struct cut *cut)
{
    const struct program *program = cut->program;
    NEED(cut->transfers =
             arena_array(&cut->arena, (size_t)program->operand_count + 1, sizeof *cut->transfers));
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        const int32_t to = stage_of(cut, o);
        for (int32_t i = 0; to >= 0 && i < op->inputs; i++)
            if (op_input(program, op, i) >= 0)
                TRY(list_transfer(cut, op_input(program, op, i), to));
    }
    qsort(cut->transfers, (size_t)cut->transfer_count, sizeof *cut->transfers, sent_before);
    return STATUS_OK;
}

/* Which of the ops that are everywhere a stage has: those that write what it reads, and tick. */
static void find_common(const struct cut *cut, int32_t stage, bool *read, bool *has)
{
    const struct program *program = cut->program;
    for (int32_t o = program->op_count - 1; o >= 0; o--) {
        const struct op *op = &program->ops[o];
        has[o] = cut->unit_of[o] >= 0 ? stage_of(cut, o) == stage : op->kind == OP_tick;
        for (int32_t i = 0; cut->unit_of[o] < 0 && i < op->outputs; i++)
            has[o] |= op_output(program, op, i) >= 0 &&
                      read[program_root(program, op_output(program, op, i))];
        for (int32_t i = 0; has[o] && i < op->inputs; i++)
            if (op_input(program, op, i) >= 0 &&
                is_passed(&program->tensors[program_root(program, op_input(program, op, i))]))
                read[program_root(program, op_input(program, op, i))] = true;
    }
}

/* All that comes from other stages in a part, in the order in which it is sent. */
static void write_receives(const struct cut *cut, struct rank_writer *writer, int32_t stage,
                           enum part part)
{
    for (int32_t i = 0; i < cut->transfer_count; i++) {
        const struct transfer *transfer = &cut->transfers[i];
        const struct op *sent_by = &cut->program->ops[transfer->writer];
        if (transfer->to != stage || sent_by->part != part)
            continue;
        draft_part(&writer->draft, part);
        writer->draft.layer = sent_by->layer;
        int32_t tensor = rank_tensor(writer, transfer->tensor);
        struct op *op = draft_op(&writer->draft, OP_receive, NOTHING, OUT(tensor));
        op->attr.receive.peer = transfer->from;
    }
}

static void write_sends(const struct cut *cut, struct rank_writer *writer, int32_t o)
{
    for (int32_t i = 0; i < cut->transfer_count; i++) {
        const struct transfer *transfer = &cut->transfers[i];
        if (transfer->writer != o)
            continue;
        int32_t tensor = rank_tensor(writer, transfer->tensor);
        struct op *op = draft_op(&writer->draft, OP_send, IN(tensor), NOTHING);
        op->attr.send.peer = transfer->to;
    }
}

static enum status write_stage(const struct cut *cut, int32_t stage, struct split_ranks *out)
{
    const struct program *program = cut->program;
    struct arena arena = {0};
    struct rank_writer writer = {0};
    char name[300];
    enum status status;
    bool *read, *has;
    snprintf(name, sizeof name, "%s: stage %d of %d", program->name, stage + 1,
             cut->options->stages);
    NEED_OR(done, read = arena_array(&arena, (size_t)program->tensor_count + 1, sizeof *read));
    NEED_OR(done, has = arena_array(&arena, (size_t)program->op_count + 1, sizeof *has));
    find_common(cut, stage, read, has);
    TRY_OR(done, rank_writer_begin(&writer, out, stage, program, cut->params, name));
    write_receives(cut, &writer, stage, PART_FORWARD);
    write_receives(cut, &writer, stage, PART_BACKWARD);
    for (int32_t o = 0; o < program->op_count; o++) {
        if (!has[o])
            continue;
        rank_op(&writer, &program->ops[o]);
        if (stage_of(cut, o) == stage)
            write_sends(cut, &writer, o);
    }
    status = rank_writer_finish(&writer);
done:
    arena_free(&arena);
    return status;
}

static enum status write_stages(struct cut *cut, struct split_ranks *out)
{
    TRY(find_writers(cut));
    TRY(find_units(cut));
    tie_layers(cut);
    TRY(tie_entries(cut));
    TRY(place_updates(cut));
    count_costs(cut);
    TRY(cut_stages(cut));
    TRY(find_transfers(cut));
    TRY(split_ranks_begin(out, cut->options->stages, cut->params, cut->options->own));
    for (int32_t stage = 0; stage < cut->options->stages; stage++)
        TRY(write_stage(cut, stage, out));
    return STATUS_OK;
}

enum status split_pipeline(const struct program *program, const struct params *params,
                           const struct pipeline_options *options, struct split_ranks *out)
{
    struct cut cut = {.program = program, .params = params, .options = options};
    *out = (struct split_ranks){0};
    enum status status = write_stages(&cut, out);
    if (status != STATUS_OK)
        split_ranks_free(out);
    arena_free(&cut.arena);
    return status;
}
