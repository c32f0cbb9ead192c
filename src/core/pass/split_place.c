/* split_place.c: walks the ops in order. The places of an op's inputs say which of its dimensions
 * is shared out (shares.def); that says where its results are, and where the parameters must be
 * that it reads. */
#include "core/pass/split_place.h"

#include "core/ops.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SYMBOL = 8 };

static const struct share_row {
    const char *shared, *summed;
} rows[OP_COUNT] = {
#define SHARE(kind, shared, summed) [OP_##kind] = {shared, summed},
#include "core/pass/shares.def"
#undef SHARE
};

enum status placing_begin(struct placing *placing, const struct program *program, int32_t entries,
                          int32_t ranks)
{
    const size_t ops = (size_t)program->op_count + 1, tensors = (size_t)program->tensor_count + 1;
    *placing = (struct placing){.program = program, .ranks = ranks};
    struct arena *arena = &placing->arena;
    NEED(placing->groups = arena_array(arena, ops, sizeof *placing->groups));
    NEED(placing->begins = arena_array(arena, ops, sizeof *placing->begins));
    NEED(placing->summed = arena_array(arena, ops, sizeof *placing->summed));
    NEED(placing->tensors = arena_array(arena, tensors, sizeof *placing->tensors));
    NEED(placing->reduced = arena_array(arena, tensors, sizeof *placing->reduced));
    NEED(placing->entries = arena_array(arena, (size_t)entries + 1, sizeof *placing->entries));
    return STATUS_OK;
}

void placing_free(struct placing *placing)
{
    arena_free(&placing->arena);
    *placing = (struct placing){0};
}

/* ---- symbols ---- */

/* The row of an operand of a kind; operands are counted over inputs and outputs. */
static bool find_row(const struct op *op, int32_t operand, struct operand_row *row)
{
    const bool output = operand >= op->inputs;
    const char *at = ops_side(op->kind, output);
    for (int32_t i = output ? operand - op->inputs : operand; (at = ops_next(at, row)); i--)
        if (i == 0 || row->many)
            return row->has_dims;
    return false;
}

/* The symbol of an axis: "o"; "*1" for the second of those that `*` stands for. */
static bool find_symbol(const struct op *op, int32_t operand, int32_t axis, char symbol[SYMBOL])
{
    struct operand_row row;
    int32_t i = 0;
    if (!find_row(op, operand, &row))
        return false;
    for (const char *at = row.dims; *at != ']'; at += *at == ',') {
        int length = 0;
        if (*at == '*') {
            snprintf(symbol, SYMBOL, "*%d", axis - i);
            return true;
        }
        for (at += *at == '+'; isalnum((unsigned char)*at); at++)
            if (length < SYMBOL - 1)
                symbol[length++] = *at;
        symbol[length] = 0;
        if (i++ == axis)
            break;
    }
    const bool input_channels =
        (op->kind == OP_conv || op->kind == OP_conv_t || op->kind == OP_conv_dw) &&
        !strcmp(symbol, "i");
    if (input_channels)
        snprintf(symbol, SYMBOL, "c");
    return true;
}

/* The axis that has the symbol, or -1. */
static int32_t find_axis(const struct op *op, int32_t operand, const struct shape *shape,
                         const char *symbol)
{
    char found[SYMBOL];
    for (int32_t axis = 0; axis < shape->rank; axis++)
        if (find_symbol(op, operand, axis, found) && !strcmp(found, symbol))
            return axis;
    return -1;
}

static bool is_listed(const char *list, const char *symbol)
{
    for (const char *at = list; at && *at; at += *at == ' ') {
        size_t length = strcspn(at, " ");
        if ((*at == '*' && *symbol == '*') ||
            (length == strlen(symbol) && !strncmp(at, symbol, length)))
            return true;
        at += length;
    }
    return false;
}

/* A convolution whose channels are in groups has other ones for each of its results. */
static bool has_one_group(const struct program *program, const struct op *op)
{
    const int32_t x = op->kind == OP_conv     ? op_operand(program, op, AT_conv_x)
                      : op->kind == OP_conv_t ? op_operand(program, op, AT_conv_t_y)
                                              : op_operand(program, op, AT_conv_dw_x);
    const int32_t w = op->kind == OP_conv     ? op_operand(program, op, AT_conv_w)
                      : op->kind == OP_conv_t ? op_operand(program, op, AT_conv_t_w)
                                              : op_operand(program, op, AT_conv_dw_dw);
    return program->tensors[x].shape.dim[1] == program->tensors[w].shape.dim[1];
}

static bool is_conv(enum op_kind kind)
{
    return kind == OP_conv || kind == OP_conv_t || kind == OP_conv_dw;
}

/* ---- places ---- */

static struct place *place_at(const struct placing *placing, int32_t tensor)
{
    const int32_t root = program_root(placing->program, tensor);
    const int32_t entry = placing->program->tensors[root].entry;
    return entry >= 0 ? &placing->entries[entry] : &placing->tensors[root];
}

static int64_t units_of(const struct placing *placing, const struct place *place)
{
    return placing->groups[place->group].units;
}

/* The axis of a shape on which a shared tensor's units lie; -1: it cuts through them. */
static int32_t axis_of(const struct place *place, const struct shape *shape)
{
    int64_t before = 1, after = shape_count(shape);
    for (int32_t axis = 0; axis < shape->rank; axis++) {
        after /= shape->dim[axis];
        if (place->outer % before == 0 && place->block % after == 0)
            return axis;
        before *= shape->dim[axis];
    }
    return -1;
}

static int64_t divisor(int64_t a, int64_t b)
{
    return b ? divisor(b, a % b) : a;
}

/* So many units would lie on one axis of the shape; 0: none would. */
static int64_t units_for(const struct place *place, const struct shape *shape, int64_t units)
{
    int64_t before = 1;
    for (int32_t axis = 0; axis < shape->rank; axis++) {
        const int64_t dim = shape->dim[axis];
        if (place->outer % before == 0 && dim % (place->outer / before) == 0) {
            const int64_t fewer = divisor(units, dim / (place->outer / before));
            if (fewer < units && before * dim > place->outer)
                return fewer;
        }
        before *= dim;
    }
    return 0;
}

static int64_t before_axis(const struct shape *shape, int32_t axis)
{
    int64_t before = 1;
    for (int32_t i = 0; i < axis; i++)
        before *= shape->dim[i];
    return before;
}

const struct place *place_of(const struct placing *placing, int32_t tensor, int32_t *axis)
{
    const struct place *place = place_at(placing, tensor);
    *axis =
        place->kind == PLACE_SHARED ? axis_of(place, &placing->program->tensors[tensor].shape) : -1;
    return place;
}

void place_range(const struct placing *placing, const struct place *place,
                 const struct shape *shape, int32_t axis, int32_t rank, int64_t *from,
                 int64_t *count)
{
    const int64_t units = units_of(placing, place), each = shape->dim[axis] / units;
    const int64_t first = units * rank / placing->ranks, last = units * (rank + 1) / placing->ranks;
    *from = first * each;
    *count = (last - first) * each;
}

/* ---- one op ---- */

/* What is shared out in an op: which of its dimensions, in what. */
struct sharing {
    const struct op *op;
    char symbol[SYMBOL];
    int32_t group;
    int64_t inside; /* so many lots of all units lie on the axis, one after the other */
    bool any;
};

static const struct tensor *operand_of(const struct placing *placing, const struct op *op,
                                       int32_t operand)
{
    const int32_t tensor = op_operand(placing->program, op, operand);
    return tensor < 0 ? NULL : &placing->program->tensors[tensor];
}

/* An input that is shared out says what is; all of them must say the same. */
static bool take_input(struct placing *placing, struct sharing *sharing, int32_t input)
{
    const int32_t tensor = op_operand(placing->program, sharing->op, input);
    char symbol[SYMBOL];
    if (tensor < 0)
        return true;
    const struct place *place = place_at(placing, tensor);
    if (place->kind != PLACE_SHARED)
        return true;
    const struct shape *shape = &placing->program->tensors[tensor].shape;
    const int32_t axis = axis_of(place, shape);
    if (axis < 0) {
        placing->wanted_units = units_for(place, shape, units_of(placing, place));
        return false;
    }
    const int64_t inside = place->outer / before_axis(shape, axis);
    if (!find_symbol(sharing->op, input, axis, symbol) ||
        (sharing->any && (strcmp(symbol, sharing->symbol) != 0 || place->group != sharing->group ||
                          inside != sharing->inside)))
        return false;
    memcpy(sharing->symbol, symbol, sizeof symbol);
    sharing->group = place->group;
    sharing->inside = inside;
    return sharing->any = true;
}

/* Puts an operand where it must be; false where it is elsewhere already. */
static bool put(struct placing *placing, int32_t tensor, struct place place)
{
    struct place *at = place_at(placing, tensor);
    if (at->kind == PLACE_UNKNOWN)
        *at = place;
    return at->kind == place.kind &&
           (place.kind != PLACE_SHARED ||
            (at->group == place.group && at->outer == place.outer && at->block == place.block));
}

/* An operand with the symbol has some of its places; a parameter's are in one piece. */
static bool put_shared(struct placing *placing, const struct sharing *sharing, int32_t operand,
                       int32_t axis)
{
    const int32_t tensor = op_operand(placing->program, sharing->op, operand);
    const struct tensor *own = &placing->program->tensors[tensor];
    const int64_t units = placing->groups[sharing->group].units;
    const int64_t outer = before_axis(&own->shape, axis) * sharing->inside;
    const struct place place = {PLACE_SHARED, sharing->group, outer,
                                shape_count(&own->shape) / (outer * units)};
    if (own->shape.dim[axis] % (sharing->inside * units) ||
        (own->entry >= 0 && sharing->inside > 1))
        return false;
    const enum place_kind before = place_at(placing, tensor)->kind;
    if (put(placing, tensor, place))
        return true;
    if (before == PLACE_WHOLE && operand < sharing->op->inputs && own->entry < 0)
        placing->wanted = program_root(placing->program, tensor);
    return false;
}

/* The parts of a sum are added up before an op that wants the sum. */
static void reduce_input(struct placing *placing, int32_t o, int32_t input)
{
    const int32_t tensor = op_input(placing->program, &placing->program->ops[o], input);
    struct place *place = tensor < 0 ? NULL : place_at(placing, tensor);
    if (!place || place->kind != PLACE_PARTIAL)
        return;
    place->kind = PLACE_WHOLE;
    placing->reduced[program_root(placing->program, tensor)] = o + 1;
}

/* The sum of two parts of sums is a part of their sum. */
static bool adds_parts(const struct placing *placing, const struct op *op)
{
    const int32_t a = op_input(placing->program, op, 0), b = op_input(placing->program, op, 1);
    return place_at(placing, a)->kind == PLACE_PARTIAL &&
           place_at(placing, b)->kind == PLACE_PARTIAL;
}

static bool put_operand(struct placing *placing, const struct sharing *sharing, int32_t operand,
                        bool summed)
{
    const struct op *op = sharing->op;
    const struct tensor *own = operand_of(placing, op, operand);
    const int32_t tensor = op_operand(placing->program, op, operand);
    if (!own)
        return true;
    const int32_t axis = sharing->any ? find_axis(op, operand, &own->shape, sharing->symbol) : -1;
    if (axis >= 0)
        return put_shared(placing, sharing, operand, axis);
    if (!sharing->any || operand < op->inputs)
        return put(placing, tensor, (struct place){.kind = PLACE_WHOLE});
    return summed && own->entry < 0 && put(placing, tensor, (struct place){.kind = PLACE_PARTIAL});
}

static bool begin_group(const struct placing *placing, int32_t o, struct sharing *sharing)
{
    const char *symbol = place_begin(placing, o);
    if (sharing->any || !symbol)
        return false;
    snprintf(sharing->symbol, SYMBOL, "%s", symbol);
    sharing->group = placing->begins[o] - 1;
    sharing->inside = 1;
    return sharing->any = true;
}

/* A result of which each rank has some places already, as of a table's rows, says what is shared
 * where no input has that dimension. */
static void take_output(const struct placing *placing, struct sharing *sharing, int32_t operand)
{
    const struct op *op = sharing->op;
    const struct tensor *own = operand_of(placing, op, operand);
    const struct place *place =
        own ? place_at(placing, op_operand(placing->program, op, operand)) : NULL;
    char symbol[SYMBOL];
    if (!place || place->kind != PLACE_SHARED)
        return;
    const int32_t axis = axis_of(place, &own->shape);
    if (axis < 0 || !find_symbol(op, operand, axis, symbol) ||
        !is_listed(rows[op->kind].shared, symbol))
        return;
    for (int32_t i = 0; i < op->inputs; i++)
        if (operand_of(placing, op, i) &&
            find_axis(op, i, &operand_of(placing, op, i)->shape, symbol) >= 0)
            return;
    memcpy(sharing->symbol, symbol, sizeof symbol);
    sharing->group = place->group;
    sharing->inside = place->outer / before_axis(&own->shape, axis);
    sharing->any = true;
}

static bool place_op(struct placing *placing, int32_t o)
{
    const struct op *op = &placing->program->ops[o];
    struct sharing sharing = {.op = op};
    if (op->kind == OP_add && adds_parts(placing, op))
        return put(placing, op_output(placing->program, op, 0),
                   (struct place){.kind = PLACE_PARTIAL});
    for (int32_t i = 0; i < op->inputs; i++) {
        reduce_input(placing, o, i);
        if (!take_input(placing, &sharing, i))
            return false;
    }
    if (placing->begins[o] && !begin_group(placing, o, &sharing))
        return false;
    for (int32_t i = 0; i < op->outputs && !sharing.any; i++)
        take_output(placing, &sharing, op->inputs + i);
    const struct share_row *row = &rows[op->kind];
    const bool summed = sharing.any && is_listed(row->summed, sharing.symbol);
    const bool known = !sharing.any || summed || is_listed(row->shared, sharing.symbol);
    if (!known || (sharing.any && is_conv(op->kind) && !has_one_group(placing->program, op)) ||
        (summed && op->kind == OP_dense && op->attr.dense.activation))
        return false;
    placing->summed[o] = summed;
    for (int32_t i = 0; i < op->inputs + op->outputs; i++)
        if (!put_operand(placing, &sharing, i, summed))
            return false;
    return true;
}

static bool has_units(const struct placing *placing)
{
    for (int32_t g = 0; g < placing->group_count; g++)
        if (placing->groups[g].units && placing->groups[g].units < placing->ranks)
            return false;
    return true;
}

bool placing_run(struct placing *placing)
{
    const struct program *program = placing->program;
    placing->wanted = -1;
    placing->wanted_units = 0;
    for (int32_t t = 0; t < program->tensor_count; t++) {
        placing->tensors[t] = (struct place){0};
        placing->reduced[t] = 0;
        if (program->tensors[t].entry >= 0)
            placing->entries[program->tensors[t].entry] = (struct place){0};
    }
    if (!has_units(placing))
        return false;
    for (int32_t o = 0; o < program->op_count; o++)
        if (!place_op(placing, o))
            return false;
    return true;
}

/* ---- beginnings ---- */

const char *place_begin(const struct placing *placing, int32_t o)
{
    const struct program *program = placing->program;
    const struct op *op = &program->ops[o];
    const bool gathers = op->kind == OP_gather;
    if (op->part != PART_FORWARD || (op->kind != OP_dense && op->kind != OP_conv && !gathers))
        return NULL;
    const int32_t w = op_input(program, op, gathers ? AT_gather_table : 1); /* of both others */
    if (program->tensors[program_root(program, w)].role != ROLE_PARAM)
        return NULL;
    return gathers ? "v" : "o";
}

int64_t place_units(const struct placing *placing, int32_t o)
{
    const struct program *program = placing->program;
    const struct op *op = &program->ops[o];
    if (op->kind == OP_gather)
        return program->tensors[op_input(program, op, AT_gather_table)].shape.dim[1];
    const struct shape *w = &program->tensors[op_input(program, op, 1)].shape;
    return op->kind == OP_dense ? w->dim[1] : w->dim[0];
}
