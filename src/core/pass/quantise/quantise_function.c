/* quantise_function.c: what is a function of one number, however many ops it takes, is one table:
 * hard-swish is x·clip(x/6 + ½, 0, 1). Its ops are put off. One that is read in 8 bits becomes a
 * table of what its function began with; one that is read as a real is copied then. */
#include "core/pass/quantise/quantise_inside.h"

#include <math.h>

enum { OF_NONE = -1, OF_CONSTANT = -2 };

/* What the tensor is a function of: itself where it begins one. */
static int32_t source_of(const struct walk *walk, int32_t tensor)
{
    const int32_t root = program_root(walk->from, tensor);
    return walk->function_of[root] == OF_NONE ? root : walk->function_of[root];
}

static int32_t joined(int32_t a, int32_t b)
{
    return a == OF_CONSTANT ? b : b == OF_CONSTANT || a == b ? a : OF_NONE;
}

static int64_t count_of(const struct walk *walk, int32_t tensor)
{
    return shape_count(&walk->from->tensors[tensor].shape);
}

static int32_t find_source(const struct walk *walk, const struct op *op)
{
    const struct program *from = walk->from;
    const int32_t a = op_input(from, op, 0), b = op->inputs > 1 ? op_input(from, op, 1) : -1;
    switch (op->kind) {
    case OP_expand: return source_of(walk, a) == OF_CONSTANT ? OF_CONSTANT : OF_NONE;
    case OP_activate:
    case OP_bound: return source_of(walk, a);
    case OP_add:
    case OP_multiply: return joined(source_of(walk, a), source_of(walk, b));
    default: return OF_NONE;
    }
}

void functions_find(struct walk *walk)
{
    const struct program *from = walk->from;
    for (int32_t t = 0; t < from->tensor_count; t++) {
        walk->function_of[t] =
            role_is_kept(from->tensors[t].role) && count_of(walk, t) == 1 ? OF_CONSTANT : OF_NONE;
        walk->put_off[t] = -1;
    }
    for (int32_t o = 0; o < from->op_count; o++) {
        const struct op *op = &from->ops[o];
        if (op->part == PART_FORWARD && op->outputs == 1 && op->inputs)
            walk->function_of[program_root(from, op_output(from, op, 0))] = find_source(walk, op);
    }
}

bool function_is_one(const struct walk *walk, int32_t tensor)
{
    return walk->function_of[program_root(walk->from, tensor)] != OF_NONE;
}

bool function_ends(const struct walk *walk, const struct op *op, int32_t read, int32_t tensor)
{
    const int32_t root = program_root(walk->from, tensor);
    const int32_t y = program_root(walk->from, op_output(walk->from, op, 0));
    return walk->function_of[program_root(walk->from, read)] == root &&
           walk->function_of[y] != root;
}

bool function_put_off(struct walk *walk, int32_t o)
{
    const struct op *op = &walk->from->ops[o];
    if (op->part != PART_FORWARD || op->outputs != 1)
        return false;
    const int32_t root = program_root(walk->from, op_output(walk->from, op, 0));
    const int32_t source = walk->function_of[root];
    if (source == OF_NONE || (source >= 0 && walk->forms[source].u8 < 0))
        return false;
    walk->put_off[root] = o;
    return true;
}

int32_t function_source(const struct walk *walk, int32_t tensor)
{
    const int32_t root = program_root(walk->from, tensor);
    return walk->put_off[root] >= 0 && walk->function_of[root] >= 0 ? walk->function_of[root] : -1;
}

/* The tensor, where what it is a function of is x. */
static double value_at(const struct walk *walk, int32_t tensor, double x)
{
    const struct program *from = walk->from;
    const int32_t root = program_root(from, tensor);
    const struct tensor *of = &from->tensors[root];
    if (role_is_kept(of->role))
        return (double)*(const float *)params_data(walk->source->params, of->entry);
    if (walk->put_off[root] < 0)
        return x;
    const struct op *op = &from->ops[walk->put_off[root]];
    const double a = value_at(walk, op_input(from, op, 0), x);
    switch (op->kind) {
    case OP_activate:
    case OP_bound: return function_value(op, a);
    case OP_add: return a + value_at(walk, op_input(from, op, 1), x);
    case OP_multiply: return a * value_at(walk, op_input(from, op, 1), x);
    default: return a;
    }
}

void function_table(struct walk *walk, int32_t tensor, struct scale to)
{
    const int32_t root = program_root(walk->from, tensor), source = function_source(walk, tensor);
    const struct op *op = &walk->from->ops[walk->put_off[root]];
    const struct scale from = walk->forms[source].scale;
    const int32_t in = walk_u8(walk, source);
    const int32_t kept = walk_table(walk, op, NULL, &from, &to);
    uint8_t *table = walk_values(walk, kept);
    for (int32_t q = 0; table && q < 256; q++)
        table[q] =
            (uint8_t)scale_level(&to, value_at(walk, tensor, (double)from.scale * (q - from.zero)));
    draft_op(&walk->draft, OP_table_int8, IN(in, kept), OUT(walk_write(walk, tensor, to)));
}
