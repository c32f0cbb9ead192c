/* quantise.c: walks the old program in order. An op that has a form in 8 bits is written in it
 * where its input is there in 8 bits; any other op is copied, and reads reals. Tensors come into
 * being as they are needed: quantise and dequantise stand where the two meet. */
#include "core/pass/quantise.h"

#include "base/text.h"
#include "core/ops.h"
#include "core/pass/quantise/quantise_inside.h"
#include "core/requantise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int32_t root_of(const struct walk *walk, int32_t tensor)
{
    return program_root(walk->from, tensor);
}

static struct form *form_of(const struct walk *walk, int32_t tensor)
{
    return &walk->forms[root_of(walk, tensor)];
}

bool walk_has_range(const struct walk *walk, int32_t tensor)
{
    int32_t root = root_of(walk, tensor);
    struct scale scale;
    if (walk->how->given)
        return walk->forms[root].u8 >= 0 || given_scale(walk, tensor, &scale);
    return root < walk->how->count && range_is_known(&walk->how->ranges[root]);
}

struct scale walk_scale(const struct walk *walk, int32_t tensor)
{
    struct scale scale = {0};
    if (walk->how->given) {
        given_scale(walk, tensor, &scale);
        return scale;
    }
    return scale_of(&walk->how->ranges[root_of(walk, tensor)], walk->how->plain);
}

bool walk_keeps(const struct walk *walk, const struct op *op)
{
    for (int32_t i = 0; i < walk->how->keep_count; i++)
        if (!strcmp(walk->how->keep[i], op->layer))
            return true;
    return false;
}

int32_t walk_next(const struct walk *walk, int32_t tensor, enum op_kind kind)
{
    int32_t o = walk->only_reader[tensor];
    if (o < 0 || walk->readers[root_of(walk, tensor)] != 1 || walk->from->ops[o].kind != kind ||
        op_input(walk->from, &walk->from->ops[o], 0) != tensor)
        return -1;
    return walk_keeps(walk, &walk->from->ops[o]) ? -1 : o;
}

int32_t walk_function(const struct walk *walk, int32_t tensor)
{
    int32_t o = walk_next(walk, tensor, OP_activate);
    return o >= 0 ? o : walk_next(walk, tensor, OP_bound);
}

bool function_bounds(const struct op *function)
{
    return !function || function->kind == OP_bound ||
           function->attr.activate.function == ACTIVATION_RELU ||
           function->attr.activate.function == ACTIVATION_NONE;
}

void walk_bounds(const struct op *function, const struct scale *scale, int32_t *low, int32_t *high)
{
    *low = 0;
    *high = scale->most;
    if (!function || !function_bounds(function))
        return;
    *low = scale_level(scale, function_value(function, -HUGE_VAL));
    *high = scale_level(scale, function_value(function, HUGE_VAL));
}

static bool takes_u8(enum op_kind kind)
{
    switch (kind) {
    case OP_dense:
    case OP_conv:
    case OP_activate:
    case OP_bound:
    case OP_add:
    case OP_concat:
    case OP_max_pool:
    case OP_average_pool: return true;
    default: return false;
    }
}

bool walk_wants(const struct walk *walk, int32_t tensor)
{
    const struct program *from = walk->from;
    struct scale scale;
    if (walk->how->given)
        return given_scale(walk, tensor, &scale);
    for (int32_t o = 0; o < from->op_count; o++)
        for (int32_t i = 0; i < from->ops[o].inputs; i++) {
            int32_t read = op_input(from, &from->ops[o], i);
            if (read >= 0 && takes_u8(from->ops[o].kind) && !walk_keeps(walk, &from->ops[o]) &&
                (root_of(walk, read) == root_of(walk, tensor) ||
                 function_ends(walk, &from->ops[o], read, tensor)))
                return true;
        }
    return false;
}

/* The tensor of the new program in the shape that the old one has. */
static int32_t in_shape(struct walk *walk, int32_t made, int32_t tensor)
{
    const struct shape *shape = &walk->from->tensors[tensor].shape;
    if (shape_equal(draft_shape(&walk->draft, made), shape))
        return made;
    const int32_t view = draft_view(&walk->draft, made, *shape);
    if (view >= 0) { /* programs are asked for their output by its name */
        struct tensor *named = &walk->draft.program->tensors[view];
        named->name = arena_text(&walk->draft.program->arena, walk->from->tensors[tensor].name);
        if (!named->name)
            draft_fail(&walk->draft, STATUS_MEMORY, "out of memory");
    }
    return view;
}

/* A tensor like the old one, of another type. */
static int32_t like(struct walk *walk, int32_t root, enum role role, enum dtype dtype)
{
    const struct tensor *old = &walk->from->tensors[root];
    return draft_tensor(&walk->draft, role, dtype, old->name, old->shape);
}

static void copy_op(struct walk *walk, const struct op *op);

static void note(struct walk *walk, enum status status)
{
    if (status != STATUS_OK)
        draft_fail(&walk->draft, status, "%s", status_message());
}

/* A parameter that stays real. */
static int32_t keep_real(struct walk *walk, const struct tensor *old)
{
    int32_t entry;
    enum status status = params_declare(walk->params, old->name, old->role, old->dtype, old->shape,
                                        (struct init){.kind = INIT_ZERO}, &entry);
    if (status == STATUS_OK && old->matrix)
        params_mark_matrix(walk->params, entry);
    if (status == STATUS_OK && walk->source)
        memcpy(params_data(walk->params, entry), params_data(walk->source->params, old->entry),
               (size_t)old->bytes);
    note(walk, status);
    return status == STATUS_OK ? draft_kept(&walk->draft, entry) : -1;
}

int32_t walk_keep(struct walk *walk, const char *layer, const char *name, enum dtype dtype,
                  struct shape shape)
{
    char *full = arena_format(&walk->draft.program->arena, "%s.%s", layer, name);
    int32_t entry;
    if (!full) {
        draft_fail(&walk->draft, STATUS_MEMORY, "out of memory");
        return -1;
    }
    enum status status = params_declare(walk->params, full, ROLE_PARAM, dtype, shape,
                                        (struct init){.kind = INIT_ZERO}, &entry);
    note(walk, status);
    if (status != STATUS_OK)
        return -1;
    if (dtype == DTYPE_I8)
        params_mark_matrix(walk->params, entry);
    return draft_kept(&walk->draft, entry);
}

void *walk_values(const struct walk *walk, int32_t kept)
{
    if (kept < 0 || !walk->source || walk->draft.status != STATUS_OK)
        return NULL;
    return params_data(walk->params, walk->draft.program->tensors[kept].entry);
}

int32_t walk_table(struct walk *walk, const struct op *at, const struct op *function,
                   const struct scale *from, const struct scale *to)
{
    char name[32];
    snprintf(name, sizeof name, "table%d", walk->draft.next_id);
    int32_t tensor = walk_keep(walk, at->layer, name, DTYPE_U8, SHAPE(256));
    uint8_t *table = walk_values(walk, tensor);
    if (table && walk->how->given)
        given_table(table, function, from, to);
    else if (table)
        table_fill(table, function, from, to);
    return tensor;
}

int32_t walk_real(struct walk *walk, int32_t tensor)
{
    int32_t root = root_of(walk, tensor);
    struct form *form = form_of(walk, tensor);
    const struct tensor *old = &walk->from->tensors[root];
    if (form->real < 0 && role_is_kept(old->role))
        form->real = keep_real(walk, old);
    if (form->real < 0 && form->u8 < 0 && walk->put_off[root] >= 0) {
        const struct op *op = &walk->from->ops[walk->put_off[root]];
        const char *layer = walk->draft.layer;
        walk->put_off[root] = -1;
        walk->draft.layer = op->layer;
        copy_op(walk, op);
        walk->draft.layer = layer;
    }
    if (form->real < 0) {
        form->real = like(walk, root, old->role, old->dtype);
        if (form->u8 >= 0) {
            int32_t in = in_shape(walk, form->u8, root);
            struct op *op = draft_op(&walk->draft, OP_dequantise, IN(in, -1), OUT(form->real));
            op->attr.dequantise.scale = form->scale.scale;
            op->attr.dequantise.zero = form->scale.zero;
        }
    }
    return in_shape(walk, form->real, tensor);
}

int32_t walk_u8(struct walk *walk, int32_t tensor)
{
    struct form *form = form_of(walk, tensor);
    if (form->u8 < 0 && form->real < 0 && function_source(walk, tensor) >= 0)
        function_table(walk, root_of(walk, tensor), walk_scale(walk, tensor));
    if (form->u8 < 0) {
        int32_t real = form->real;
        int32_t made = walk_write(walk, root_of(walk, tensor), walk_scale(walk, tensor));
        struct op *op = draft_op(&walk->draft, OP_quantise, IN(real), OUT(made));
        op->attr.quantise.scale = form->scale.scale;
        op->attr.quantise.zero = form->scale.zero;
        op->attr.quantise.high = form->scale.most;
    }
    return in_shape(walk, form->u8, tensor);
}

int32_t walk_write(struct walk *walk, int32_t tensor, struct scale scale)
{
    struct form *form = form_of(walk, tensor);
    form->u8 = like(walk, root_of(walk, tensor), ROLE_ACTIVATION, DTYPE_U8);
    form->scale = scale;
    return in_shape(walk, form->u8, tensor);
}

/* As it is, over reals. */
static void copy_op(struct walk *walk, const struct op *op)
{
    int32_t operands[32], count = op->inputs + op->outputs;
    if (count > (int32_t)(sizeof operands / sizeof *operands)) {
        draft_fail(&walk->draft, STATUS_UNSUPPORTED, "%s has %d operands, too many to quantise",
                   op->layer, count);
        return;
    }
    for (int32_t i = 0; i < count; i++) {
        int32_t tensor = walk->from->operands[op->first + i];
        operands[i] = tensor < 0 ? -1 : walk_real(walk, tensor);
    }
    draft_op(&walk->draft, op->kind, operands, op->inputs, operands + op->inputs, op->outputs)
        ->attr = op->attr;
}

static bool is_u8(const struct walk *walk, int32_t tensor)
{
    return form_of(walk, tensor)->u8 >= 0 ||
           (!walk->how->given && function_source(walk, tensor) >= 0 &&
            walk_has_range(walk, tensor));
}

/* activate and bound by themselves */
static bool take_function(struct walk *walk, const struct op *op)
{
    int32_t x = op_input(walk->from, op, 0), y = op_output(walk->from, op, 0);
    if (form_of(walk, x)->u8 < 0 || !walk_has_range(walk, y))
        return false;
    int32_t in = walk_u8(walk, x);
    struct scale from = form_of(walk, x)->scale, to = walk_scale(walk, y);
    int32_t table = walk_table(walk, op, op, &from, &to);
    draft_op(&walk->draft, OP_table_int8, IN(in, table), OUT(walk_write(walk, y, to)));
    return true;
}

/* A sum and the relu or bound behind it. */
static bool take_add(struct walk *walk, const struct op *op)
{
    int32_t a = op_input(walk->from, op, 0), b = op_input(walk->from, op, 1);
    int32_t y = op_output(walk->from, op, 0), next = walk_function(walk, y);
    const struct op *function = next >= 0 ? &walk->from->ops[next] : NULL;
    int32_t times_a, times_b, shift;
    bool any = is_u8(walk, a) || is_u8(walk, b), both = is_u8(walk, a) && is_u8(walk, b);
    if (function_is_one(walk, op_output(walk->from, op, 0)) || !(walk->how->given ? both : any) ||
        !walk_has_range(walk, a) || !walk_has_range(walk, b) ||
        role_is_kept(walk->from->tensors[root_of(walk, a)].role) ||
        role_is_kept(walk->from->tensors[root_of(walk, b)].role))
        return false;
    if (function && function_bounds(function))
        y = op_output(walk->from, function, 0);
    else
        function = NULL;
    if (!walk_has_range(walk, y))
        return false;
    int32_t in_a = walk_u8(walk, a), in_b = walk_u8(walk, b);
    struct scale of_a = form_of(walk, a)->scale, of_b = form_of(walk, b)->scale;
    struct scale of_y = walk_scale(walk, y);
    if (!ratio_split_pair((double)of_a.scale / (double)of_y.scale,
                          (double)of_b.scale / (double)of_y.scale, &times_a, &times_b, &shift))
        return false;
    if (function)
        walk->gone[next] = true;
    struct op *sum =
        draft_op(&walk->draft, OP_add_int8, IN(in_a, in_b), OUT(walk_write(walk, y, of_y)));
    sum->attr.add_int8.zero_a = of_a.zero;
    sum->attr.add_int8.zero_b = of_b.zero;
    sum->attr.add_int8.multiplier_a = times_a;
    sum->attr.add_int8.multiplier_b = times_b;
    sum->attr.add_int8.shift = shift;
    sum->attr.add_int8.zero = of_y.zero;
    walk_bounds(function, &of_y, &sum->attr.add_int8.low, &sum->attr.add_int8.high);
    return true;
}

/* Pooling keeps the scale. */
static bool take_pool(struct walk *walk, const struct op *op)
{
    int32_t x = op_input(walk->from, op, 0), y = op_output(walk->from, op, 0);
    bool max = op->kind == OP_max_pool;
    if (!is_u8(walk, x) || (max && op_operand(walk->from, op, AT_max_pool_places) >= 0))
        return false;
    if (walk->how->given && !given_pool(walk, op))
        return false;
    int32_t in = walk_u8(walk, x);
    struct scale scale = form_of(walk, x)->scale;
    int32_t out = walk_write(walk, y, scale);
    struct op *pool =
        draft_op(&walk->draft, max ? OP_max_pool_int8 : OP_average_pool_int8, IN(in), OUT(out));
    ops_take_attributes(pool, op);
    if (!max)
        pool->attr.average_pool_int8.zero = scale.zero;
    return true;
}

enum { CONCAT_MOST = 32 };

/* All on the scale of the result. */
static bool take_concat(struct walk *walk, const struct op *op)
{
    int32_t y = op_output(walk->from, op, 0), parts[CONCAT_MOST];
    if (op->inputs > CONCAT_MOST || !walk_has_range(walk, y))
        return false;
    for (int32_t i = 0; i < op->inputs; i++)
        if (!is_u8(walk, op_input(walk->from, op, i)))
            return false;
    struct scale to = walk_scale(walk, y);
    for (int32_t i = 0; i < op->inputs; i++) {
        int32_t x = op_input(walk->from, op, i);
        parts[i] = walk_u8(walk, x);
        struct scale from = form_of(walk, x)->scale;
        if (from.zero == to.zero && !(from.scale < to.scale) && !(from.scale > to.scale))
            continue;
        int32_t rescaled = draft_tensor(&walk->draft, ROLE_ACTIVATION, DTYPE_U8, "rescaled",
                                        *draft_shape(&walk->draft, parts[i]));
        int32_t table = walk_table(walk, op, NULL, &from, &to);
        draft_op(&walk->draft, OP_table_int8, IN(parts[i], table), OUT(rescaled));
        parts[i] = rescaled;
    }
    int32_t out = walk_write(walk, y, to);
    draft_op(&walk->draft, OP_concat_int8, parts, op->inputs, OUT(out));
    return true;
}

/* Writes the op in 8 bits; false: it has no such form here. */
static bool take_op(struct walk *walk, int32_t o)
{
    const struct op *op = &walk->from->ops[o];
    if (op->part != PART_FORWARD || walk_keeps(walk, op))
        return false;
    switch (op->kind) {
    case OP_dense:
    case OP_conv: return walk_product(walk, o);
    case OP_activate:
    case OP_bound: return take_function(walk, op);
    case OP_add: return take_add(walk, op);
    case OP_max_pool:
    case OP_average_pool: return take_pool(walk, op);
    case OP_concat: return take_concat(walk, op);
    case OP_quantise:
    case OP_dequantise: return walk->how->given && given_conversion(walk, op);
    default: return false;
    }
}

static enum status survey(struct walk *walk, struct arena *arena)
{
    const struct program *from = walk->from;
    size_t tensors = (size_t)from->tensor_count + 1;
    NEED(walk->forms = arena_array(arena, tensors, sizeof *walk->forms));
    NEED(walk->readers = arena_array(arena, tensors, sizeof *walk->readers));
    NEED(walk->only_reader = arena_array(arena, tensors, sizeof *walk->only_reader));
    NEED(walk->function_of = arena_array(arena, tensors, sizeof *walk->function_of));
    NEED(walk->put_off = arena_array(arena, tensors, sizeof *walk->put_off));
    NEED(walk->gone = arena_array(arena, (size_t)from->op_count + 1, sizeof *walk->gone));
    for (int32_t t = 0; t < from->tensor_count; t++) {
        walk->forms[t] = (struct form){.real = -1, .u8 = -1, .rounded = -1};
        walk->only_reader[t] = -1;
    }
    for (int32_t o = 0; o < from->op_count; o++)
        for (int32_t i = 0; i < from->ops[o].inputs; i++) {
            int32_t tensor = op_input(from, &from->ops[o], i);
            if (tensor < 0)
                continue;
            walk->readers[root_of(walk, tensor)]++;
            walk->only_reader[tensor] = o;
        }
    functions_find(walk);
    return STATUS_OK;
}

static void fill_map(const struct walk *walk, struct quantised *map)
{
    for (int32_t t = 0; t < walk->from->tensor_count; t++) {
        const struct form *form = form_of(walk, t);
        bool kept = role_is_kept(walk->from->tensors[root_of(walk, t)].role);
        map[t] = (struct quantised){.tensor = kept            ? -1
                                              : form->u8 >= 0 ? form->u8
                                                              : form->real,
                                    .is_u8 = form->u8 >= 0,
                                    .scale = form->scale};
    }
}

static enum status walk_program(struct walk *walk, struct quantised *map, struct program **out)
{
    const struct program *from = walk->from;
    struct draft *draft = &walk->draft;
    TRY(program_begin(draft, walk->params, from->name, from->batch, from->real));
    for (int32_t o = 0; o < from->op_count; o++) {
        if (walk->gone[o])
            continue;
        draft->layer = from->ops[o].layer;
        draft_part(draft, from->ops[o].part);
        if (take_op(walk, o) || (!walk_keeps(walk, &from->ops[o]) && function_put_off(walk, o)))
            continue;
        given_other(walk, &from->ops[o]);
        copy_op(walk, &from->ops[o]);
    }
    if (map)
        fill_map(walk, map);
    return program_finish(draft, out);
}

enum status quantise(const struct program *program, struct quantisation *how,
                     const struct quantise_source *source, struct params *params,
                     struct quantised *map, struct program **out)
{
    struct arena arena = {0};
    struct walk walk = {.from = program, .how = how, .source = source, .params = params};
    enum status status = survey(&walk, &arena);
    if (status == STATUS_OK)
        status = walk_program(&walk, map, out);
    arena_free(&arena);
    if (status == STATUS_OK && source)
        params->filled = params->count;
    return status;
}

enum status quantise_given(const struct program *program, const struct params *values,
                           struct arena *arena, struct quantisation *how, struct params *params,
                           struct program **out)
{
    const struct quantise_source source = {.params = values};
    size_t most = (size_t)program->op_count + 1;
    *how = (struct quantisation){.given = true, .weight_bits = 8};
    NEED(how->keep = arena_array(arena, most, sizeof *how->keep));
    NEED(how->why = arena_array(arena, most, sizeof *how->why));
    TRY(quantise(program, how, &source, params, NULL, out));
    for (int32_t i = 0; i < how->keep_count; i++) { /* names are the program's */
        const char *name = arena_text(arena, how->keep[i]);
        if (!name) {
            program_free(*out);
            *out = NULL;
            NEED(NULL);
        }
        how->keep[i] = name;
    }
    return STATUS_OK;
}

enum status quantise_expose(const struct program *program, struct program **out)
{
    struct draft draft;
    TRY(program_recast(program, &draft));
    for (int32_t t = 0; draft.status == STATUS_OK && t < draft.program->tensor_count; t++)
        if (draft.program->tensors[t].role == ROLE_ACTIVATION)
            draft.program->tensors[t].role = ROLE_OUTPUT;
    for (int32_t o = 0; o < program->op_count; o++)
        draft_copy(&draft, program, &program->ops[o]);
    return program_finish(&draft, out);
}

/* The bounds of the integers "LAYER.NAME"; false: it has none. */
static bool bounds_of(const char *name, int32_t *low, int32_t *high)
{
    static const struct {
        const char *name;
        int32_t low, high;
    } rows[] = {{".multiplier", 0, INT32_MAX},
                {".shift", REQUANTISE_SHIFT_LEAST, REQUANTISE_SHIFT_MOST},
                {".bias", -INT8_BIAS_MOST, INT8_BIAS_MOST}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (text_ends(name, rows[i].name)) {
            *low = rows[i].low;
            *high = rows[i].high;
            return true;
        }
    return false;
}

enum status quantise_check_values(const char *name, const int32_t *values, int64_t count,
                                  const char *path)
{
    int32_t low, high;
    if (!bounds_of(name, &low, &high))
        return STATUS_OK;
    for (int64_t i = 0; i < count; i++)
        if (values[i] < low || values[i] > high)
            FAIL(STATUS_INPUT, "%s: found %d in '%s', expected %d to %d", path, values[i], name,
                 low, high);
    return STATUS_OK;
}

enum status quantise_check(const struct params *params, const char *path)
{
    for (int32_t e = 0; e < params->count; e++) {
        const struct entry *entry = &params->entries[e];
        if (entry->dtype == DTYPE_I32 && entry->role == ROLE_PARAM)
            TRY(quantise_check_values(entry->name, params_data(params, e),
                                      shape_count(&entry->shape), path));
    }
    return STATUS_OK;
}
