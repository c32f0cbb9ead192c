/* ops.c: the rows of ops.def, read as text when a program is checked or counted.
 *
 * A row's operands are unified with the op's tensors: each symbol gets the first size it meets and
 * must have that size wherever it stands again. The FLOP expression is evaluated over the same
 * symbols. Rows are short and programs are checked once, so the text is parsed each time. */
#include "core/ops.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct attribute_row {
    const char *name; /* NULL ends the list */
    bool is_real;
};

#define INT(name) {#name, false},
#define REAL(name) {#name, true},
#define OP(kind, inputs, outputs, flop, attributes)                                                \
    static const struct attribute_row attributes_##kind[] = {attributes{NULL, false}};
#include "core/ops.def"
#undef OP
#undef INT
#undef REAL

static const struct op_row {
    const char *name, *inputs, *outputs, *flop;
    const struct attribute_row *attributes;
} rows[OP_COUNT] = {
#define OP(kind, inputs, outputs, flop, attributes)                                                \
    [OP_##kind] = {#kind, inputs, outputs, flop, attributes_##kind},
#include "core/ops.def"
#undef OP
};

const char *op_name(enum op_kind kind)
{
    return rows[kind].name;
}

enum { WORD = OPS_WORD, SYMBOLS = 16 };

static const char *take_word(const char *at, char *word)
{
    int length = 0;
    for (; isalnum((unsigned char)*at) || *at == '_'; at++)
        if (length < WORD - 1)
            word[length++] = *at;
    word[length] = 0;
    return at;
}

const char *ops_side(enum op_kind kind, bool outputs)
{
    return outputs ? rows[kind].outputs : rows[kind].inputs;
}

const char *ops_next(const char *at, struct operand_row *row)
{
    while (*at == ' ')
        at++;
    if (!*at)
        return NULL;
    *row = (struct operand_row){0};
    at = take_word(at, row->name);
    if (*at == '?') {
        row->optional = true;
        at++;
    } else if (!strncmp(at, "...", 3)) {
        row->many = true;
        at += 3;
    }
    if (*at == ':')
        at = take_word(at + 1, row->dtype);
    if (*at == '[') {
        row->has_dims = true;
        row->dims = at + 1;
        at = strchr(at, ']') + 1;
    }
    return at;
}

/* What the symbols of a row stand for, for one op. */
struct bindings {
    int count;
    char names[SYMBOLS][WORD];
    int64_t values[SYMBOLS];
    bool has_rest; /* `*` */
    struct shape rest;
};

static int64_t *find_symbol(struct bindings *bindings, const char *name)
{
    for (int i = 0; i < bindings->count; i++)
        if (!strcmp(bindings->names[i], name))
            return &bindings->values[i];
    return NULL;
}

static void print_expected(const struct operand_row *row, const struct bindings *bindings,
                           struct text *out)
{
    for (const char *at = row->dims; *at != ']'; at++)
        text_add_char(out, *at);
    text_add(out, " with");
    for (int i = 0; i < bindings->count; i++)
        text_printf(out, " %s=%" PRId64, bindings->names[i], bindings->values[i]);
    if (bindings->has_rest) {
        text_add(out, " *=");
        shape_print(&bindings->rest, out);
    }
}

/* Unifies one operand's dimensions with a shape; false when they do not fit. */
static bool unify(const struct operand_row *row, const struct shape *shape,
                  struct bindings *bindings)
{
    const char *at = row->dims;
    int i = 0;
    while (*at != ']') {
        if (*at == ',')
            at++;
        if (*at == '*') {
            struct shape rest = {.rank = shape->rank - i};
            for (int k = 0; k < rest.rank; k++)
                rest.dim[k] = shape->dim[i + k];
            if (rest.rank < 0 || (bindings->has_rest && !shape_equal(&rest, &bindings->rest)))
                return false;
            bindings->has_rest = true;
            bindings->rest = rest;
            return true; /* `*` is last */
        }
        char word[WORD];
        bool adds = *at == '+';
        at = take_word(at + adds, word);
        if (i >= shape->rank)
            return false;
        int64_t dim = shape->dim[i++];
        if (isdigit((unsigned char)word[0])) {
            if (dim != strtol(word, NULL, 10))
                return false;
            continue;
        }
        int64_t *value = find_symbol(bindings, word);
        if (value && adds && __builtin_add_overflow(*value, dim, value))
            return false;
        if (value && !adds && *value != dim)
            return false;
        if (!value && bindings->count < SYMBOLS) {
            memcpy(bindings->names[bindings->count], word, WORD);
            bindings->values[bindings->count++] = dim;
        }
    }
    return i == shape->rank;
}

static bool dtype_fits(const char *wanted, enum dtype dtype, enum dtype real)
{
    if (!strcmp(wanted, "any"))
        return true;
    dtype_parse(wanted, &real); /* none is named: it stays the program's */
    return dtype == real;
}

static enum status check_operand(const struct program *program, const struct op *op,
                                 const struct operand_row *row, int32_t index,
                                 struct bindings *bindings)
{
    if (index < 0) {
        if (row->optional)
            return STATUS_OK;
        FAIL(STATUS_INPUT, "op %s (%s): its operand '%s' is missing", op_name(op->kind), op->layer,
             row->name);
    }
    if (index >= program->tensor_count)
        FAIL(STATUS_INPUT, "op %s (%s): its operand '%s' is no tensor of the program",
             op_name(op->kind), op->layer, row->name);
    const struct tensor *tensor = &program->tensors[index];
    if (!dtype_fits(row->dtype, tensor->dtype, program->real))
        FAIL(STATUS_INPUT, "op %s (%s): '%s' is %s, expected %s", op_name(op->kind), op->layer,
             row->name, dtype_name(tensor->dtype),
             *row->dtype ? row->dtype : dtype_name(program->real));
    if (!row->has_dims || unify(row, &tensor->shape, bindings))
        return STATUS_OK;
    struct text found = {0}, expected = {0};
    shape_print(&tensor->shape, &found);
    print_expected(row, bindings, &expected);
    enum status status = status_fail(
        STATUS_INPUT, __FILE__, __LINE__, "op %s (%s): '%s' has the shape %s, expected %s",
        op_name(op->kind), op->layer, row->name, text_of(&found), text_of(&expected));
    text_free(&found);
    text_free(&expected);
    return status;
}

/* Checks `count` operands against one side of the row. */
static enum status check_side(const struct program *program, const struct op *op, const char *text,
                              const int32_t *operands, int32_t count, struct bindings *bindings)
{
    struct operand_row row;
    int32_t used = 0;
    while ((text = ops_next(text, &row))) {
        if (!row.many && used >= count)
            FAIL(STATUS_INPUT, "op %s (%s): its operand '%s' is missing", op_name(op->kind),
                 op->layer, row.name);
        do {
            if (used < count)
                TRY(check_operand(program, op, &row, operands[used++], bindings));
        } while (row.many && used < count);
    }
    if (used != count)
        FAIL(STATUS_INPUT, "op %s (%s): has %d operands, expected %d", op_name(op->kind), op->layer,
             count, used);
    return STATUS_OK;
}

static enum status bind_symbols(const struct program *program, const struct op *op,
                                struct bindings *bindings)
{
    const struct op_row *row = &rows[op->kind];
    const int32_t *operands = program->operands + op->first;
    *bindings = (struct bindings){0};
    TRY(check_side(program, op, row->inputs, operands, op->inputs, bindings));
    return check_side(program, op, row->outputs, operands + op->inputs, op->outputs, bindings);
}

const char *op_operand_name(enum op_kind kind, int32_t operand, int32_t inputs)
{
    static _Thread_local struct operand_row row;
    const char *at = operand < inputs ? rows[kind].inputs : rows[kind].outputs;
    int32_t wanted = operand < inputs ? operand : operand - inputs;
    for (int32_t i = 0; (at = ops_next(at, &row)); i++)
        if (i == wanted || row.many)
            return row.name;
    return "";
}

/* An operand whose name stands on both sides is updated in place: it must be one tensor. */
static enum status check_in_place(const struct program *program, const struct op *op)
{
    char name[WORD];
    for (int32_t o = 0; o < op->outputs; o++) {
        snprintf(name, sizeof name, "%s", op_operand_name(op->kind, op->inputs + o, op->inputs));
        for (int32_t i = 0; i < op->inputs; i++) {
            bool many = strstr(rows[op->kind].inputs, "...") != NULL;
            if (strcmp(name, op_operand_name(op->kind, i, op->inputs)) || (many && i != o))
                continue;
            int32_t out = op_output(program, op, o);
            if (out >= 0 && out != op_input(program, op, i))
                FAIL(STATUS_INPUT, "op %s (%s): '%s' is updated in place and must be one tensor",
                     op_name(op->kind), op->layer, name);
        }
    }
    return STATUS_OK;
}

enum status ops_check(const struct program *program, const struct op *op)
{
    struct bindings bindings;
    TRY(bind_symbols(program, op, &bindings));
    return check_in_place(program, op);
}

static bool operand_present(const struct program *program, const struct op *op, const char *name)
{
    for (int32_t i = 0; i < op->inputs + op->outputs; i++)
        if (!strcmp(name, op_operand_name(op->kind, i, op->inputs)) &&
            program->operands[op->first + i] >= 0)
            return true;
    return false;
}

/* The place of the attribute among those of its kind, or -1. */
static int find_attribute(enum op_kind kind, const char *name)
{
    const struct attribute_row *row = rows[kind].attributes;
    for (int i = 0; row[i].name; i++)
        if (!strcmp(row[i].name, name))
            return i;
    return -1;
}

/* Where its value is within the op's attributes, in bytes: they follow `none`. */
static size_t attribute_offset(int attribute)
{
    return sizeof(int32_t) * (size_t)(1 + attribute);
}

/* What a word of a FLOP expression stands for. */
static uint64_t factor_of(const struct op *op, struct bindings *bindings, const char *word)
{
    int64_t *value = find_symbol(bindings, word);
    if (value)
        return (uint64_t)*value;
    int attribute = find_attribute(op->kind, word);
    if (attribute < 0)
        return strtoull(word, NULL, 10);
    int32_t integer;
    memcpy(&integer, (const char *)&op->attr + attribute_offset(attribute), sizeof integer);
    return (uint64_t)integer;
}

uint64_t op_flop(const struct program *program, const struct op *op)
{
    struct bindings bindings;
    if (bind_symbols(program, op, &bindings) != STATUS_OK)
        return 0;
    uint64_t sum = 0, product = 1;
    bool counts = true, any = false;
    for (const char *at = rows[op->kind].flop;; at++) {
        if (*at == '+' || !*at) {
            sum += counts && any ? product : 0;
            product = 1;
            counts = true;
            any = false;
            if (!*at)
                return sum * (uint64_t)program->portions;
        } else if (*at == '*') {
            any = true;
            product *= (uint64_t)shape_count(&bindings.rest);
        } else if (*at != ' ') {
            char word[WORD];
            at = take_word(at, word);
            if (*at == ':') {
                counts = operand_present(program, op, word);
                continue;
            }
            at--;
            any = true;
            product *= factor_of(op, &bindings, word);
        }
    }
}

uint64_t op_bytes(const struct program *program, const struct op *op)
{
    uint64_t bytes = 0;
    for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
        int32_t tensor = program->operands[op->first + i];
        bytes += tensor < 0 ? 0 : program->tensors[tensor].bytes;
    }
    return bytes * (uint64_t)program->portions;
}

void op_attributes(const struct op *op, void (*visit)(void *, const char *, const char *),
                   void *context)
{
    const char *values = (const char *)&op->attr + sizeof(int32_t); /* after `none` */
    for (const struct attribute_row *row = rows[op->kind].attributes; row->name; row++) {
        char text[WORD];
        int32_t integer;
        float real;
        memcpy(&integer, values, sizeof integer);
        memcpy(&real, values, sizeof real);
        values += sizeof integer;
        if (row->is_real)
            snprintf(text, sizeof text, "%g", (double)real);
        else if (!strcmp(row->name, "activation") || !strcmp(row->name, "function"))
            snprintf(text, sizeof text, "%s", activation_name((enum activation)integer));
        else if (!strcmp(row->name, "optimiser"))
            snprintf(text, sizeof text, "%s", op_name((enum op_kind)integer));
        else
            snprintf(text, sizeof text, "%" PRId32, integer);
        visit(context, row->name, text);
    }
}

bool ops_set_number(struct op *op, const char *name, double value)
{
    int attribute = find_attribute(op->kind, name);
    if (attribute < 0)
        return false;
    float real = (float)value;
    int32_t integer = (int32_t)value;
    bool is_real = rows[op->kind].attributes[attribute].is_real;
    memcpy((char *)&op->attr + attribute_offset(attribute),
           is_real ? (const void *)&real : &integer, sizeof integer);
    return true;
}

bool ops_set(struct op *op, const char *name, const char *value)
{
    double number;
    enum activation activation;
    if (text_to_real(value, &number))
        return ops_set_number(op, name, number);
    for (int kind = 0; !strcmp(name, "optimiser") && kind < OP_COUNT; kind++)
        if (!strcmp(op_name((enum op_kind)kind), value))
            return ops_set_number(op, name, kind);
    return activation_parse(value, &activation) && ops_set_number(op, name, activation);
}

void ops_take_attributes(struct op *op, const struct op *from)
{
    const struct attribute_row *of = rows[from->kind].attributes;
    for (int a = 0; of[a].name; a++) {
        int attribute = find_attribute(op->kind, of[a].name);
        if (attribute >= 0)
            memcpy((char *)&op->attr + attribute_offset(attribute),
                   (const char *)&from->attr + attribute_offset(a), sizeof(int32_t));
    }
}
