/* cases.c: see cases.h. */
#include "core/cases.h"

#include "base/rng.h"
#include "core/ops.h"
#include "core/requantise.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct op_case cases[] = {
#define CASE(kind, sizes, attributes, absent) {OP_##kind, sizes, attributes, absent},
#include "core/cases.def"
};

enum { CASES = sizeof cases / sizeof *cases };

static const enum op_kind apart[] = {
#define APART(kind) OP_##kind,
#include "core/cases.def"
};

/* Has a row, of either kind. */
static bool is_listed(enum op_kind kind)
{
    for (int i = 0; i < CASES; i++)
        if (cases[i].kind == kind)
            return true;
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        if (apart[i] == kind)
            return true;
    return false;
}

bool case_at(int32_t index, struct op_case *out)
{
    if (index < CASES) {
        *out = cases[index];
        return true;
    }
    for (int kind = 0, place = CASES; kind < OP_COUNT; kind++)
        if (!is_listed((enum op_kind)kind) && place++ == index) {
            *out = (struct op_case){(enum op_kind)kind, "", "", ""};
            return true;
        }
    return false;
}

/* The value of `name` in "name=value name=value", or NULL. */
static const char *find_value(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (!strncmp(at, name, length) && at[length] == '=')
            return at + length + 1;
    return NULL;
}

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == length && !strncmp(at, word, length))
            return true;
    return false;
}

/* The size a symbol or a named operand has in this case, as text. */
static const char *size_text(const struct op_case *op_case, const char *name)
{
    const char *value = find_value(op_case->sizes, name);
    if (value)
        return value;
    return strcmp(name, "*") ? "5" : "3x7";
}

/* Appends the sizes in "3x5" to the shape; "2+5" is 7. */
static void add_sizes(struct shape *shape, const char *text)
{
    for (char *end; shape->rank < SHAPE_MOST; text = end + 1) {
        int64_t dim = strtol(text, &end, 10);
        while (*end == '+')
            dim += strtol(end + 1, &end, 10);
        shape->dim[shape->rank++] = dim;
        if (*end != 'x')
            break;
    }
}

/* Summand `part` of "2+5", or NULL when there are not so many. */
static const char *summand(const char *text, int part)
{
    for (; part > 0; part--) {
        text += strcspn(text, "+ ");
        if (*text++ != '+')
            return NULL;
    }
    return text;
}

/* The symbol that adds up over the operands of a row with `...`. */
static void summed_symbol(const struct operand_row *row, char *word)
{
    const char *plus = strchr(row->dims, '+');
    assert(plus);
    snprintf(word, OPS_WORD, "%.*s", (int)strcspn(plus + 1, ",]"), plus + 1);
}

/* How many operands the row stands for in this case. */
static int operand_count(const struct op_case *op_case, const struct operand_row *row)
{
    char word[OPS_WORD];
    int count = 1;
    if (!row->many)
        return 1;
    summed_symbol(row, word);
    while (summand(size_text(op_case, word), count))
        count++;
    return count;
}

/* `part`: which of the operands, where the row stands for several. */
static struct shape shape_of(const struct op_case *op_case, const struct operand_row *row, int part)
{
    struct shape shape = {0};
    if (!row->has_dims)
        add_sizes(&shape, size_text(op_case, row->name));
    for (const char *at = row->has_dims ? row->dims : "]"; *at != ']'; at += *at == ',') {
        char word[OPS_WORD];
        int length = (int)strcspn(at, ",]");
        snprintf(word, sizeof word, "%.*s", length, at);
        if (word[0] == '+')
            shape.dim[shape.rank++] = strtol(summand(size_text(op_case, word + 1), part), NULL, 10);
        else
            add_sizes(&shape, isdigit((unsigned char)word[0]) ? word : size_text(op_case, word));
        at += length;
    }
    return shape;
}

/* The largest value an integer operand may have, plus one. */
static uint32_t integer_range(const struct op_case *op_case, const char *name)
{
    if (!strcmp(name, "label"))
        return (uint32_t)strtoul(size_text(op_case, "k"), NULL, 10);
    if (!strcmp(name, "lengths"))
        return (uint32_t)strtoul(size_text(op_case, "t"), NULL, 10) + 1;
    if (!strcmp(name, "places"))
        return (uint32_t)(strtoul(size_text(op_case, "h"), NULL, 10) *
                          strtoul(size_text(op_case, "w"), NULL, 10));
    if (!strcmp(name, "index"))
        return (uint32_t)strtoul(size_text(op_case, "v"), NULL, 10);
    if (!strcmp(name, "count")) /* of steps: rates decay with them */
        return 100;
    if (!strcmp(name, "multiplier"))
        return REQUANTISE_ONE;
    if (!strcmp(name, "shift"))
        return 8;
    if (case_is_exact(op_case->kind)) /* sums, and what they begin with */
        return 40000;
    return 1000;
}

/* The least value an integer operand may have. Those of int8 ops make results of all sizes. */
static int64_t integer_least(const struct op_case *op_case, const struct entry *entry,
                             const char *name)
{
    if (entry->dtype == DTYPE_I8)
        return -INT8_WEIGHT_MOST;
    if (entry->dtype == DTYPE_U8 || !case_is_exact(op_case->kind))
        return 0;
    return !strcmp(name, "multiplier") ? REQUANTISE_ONE : !strcmp(name, "shift") ? 37 : -20000;
}

static void fill_integer(const struct op_case *op_case, const struct entry *entry, const char *name,
                         struct rng_key key, uint32_t i, void *data)
{
    int64_t least = integer_least(op_case, entry, name);
    uint32_t range = integer_range(op_case, name);
    if (entry->dtype == DTYPE_I32)
        ((int32_t *)data)[i] = (int32_t)(least + rng_below(key, 0, i, range));
    else
        ((uint8_t *)data)[i] =
            (uint8_t)(least + rng_below(key, 0, i, entry->dtype == DTYPE_U8 ? 256 : 255));
}

static void fill_input(const struct op_case *op_case, struct params *params, int32_t index,
                       const char *name, uint64_t seed)
{
    const struct entry *entry = &params->entries[index];
    void *data = params_data(params, index);
    struct rng_key key = {.seed = seed, .stream = (uint32_t)index};
    bool unit =
        op_case->kind == OP_divide || op_case->kind == OP_divide_grad ||
        strstr(op_case->attributes, "=sqrt") || strstr(op_case->attributes, "=reciprocal") ||
        strstr(op_case->attributes, "=log") ||
        has_word("p variance batch_variance saved_scale base target squares step size", name);
    for (uint32_t i = 0, n = (uint32_t)shape_count(&entry->shape); i < n; i++) {
        float u = rng_uniform(key, 0, i);
        float value = unit ? 0.02f + 0.96f * u : 2 * u - 1;
        if (dtype_is_integer(entry->dtype))
            fill_integer(op_case, entry, name, key, i, data);
        else if (entry->dtype == DTYPE_F64)
            ((double *)data)[i] = (double)value;
        else
            ((float *)data)[i] = value;
    }
}

enum { UNWRITTEN = 0x5a }; /* each byte of an integer that is only written */

static void fill_value(struct params *params, int32_t index, float value)
{
    const struct entry *entry = &params->entries[index];
    void *data = params_data(params, index);
    if (dtype_is_integer(entry->dtype))
        memset(data, UNWRITTEN, (size_t)entry->bytes);
    for (int64_t i = 0, n = shape_count(&entry->shape); i < n; i++)
        if (entry->dtype == DTYPE_F64)
            ((double *)data)[i] = (double)value;
        else if (entry->dtype == DTYPE_F32)
            ((float *)data)[i] = value;
}

enum { OPERANDS_MOST = 32 };

/* The weights of products are matrices, and those of convolutions of one group: a backend that
 * keeps those in blocks is tested on them. */
static bool is_matrix(const struct op_case *op_case, const char *name)
{
    switch (op_case->kind) {
    case OP_dense:
    case OP_dense_t:
    case OP_dense_sgd:
    case OP_dense_int8: return !strcmp(name, "w");
    case OP_dense_update: return has_word("w direction size", name);
    case OP_outer: return !strcmp(name, "dw");
    case OP_conv:
    case OP_conv_int8:
    case OP_conv_fused:
    case OP_conv_t:
    case OP_conv_dw:
        return (!strcmp(name, "w") || !strcmp(name, "dw")) &&
               strtoll(size_text(op_case, "c"), NULL, 10) ==
                   strtoll(size_text(op_case, "i"), NULL, 10);
    default: return false;
    }
}

/* Of an operand; where its row allows any, the case says which: "y:u8". */
static enum dtype type_of(const struct op_case *op_case, const struct operand_row *row,
                          enum dtype real)
{
    char typed[2 * OPS_WORD];
    for (int type = 0; type < DTYPE_COUNT; type++) {
        snprintf(typed, sizeof typed, "%s:%s", row->name, dtype_name((enum dtype)type));
        if (has_word(op_case->sizes, typed))
            return (enum dtype)type;
    }
    dtype_parse(row->dtype, &real);
    return real;
}

/* One operand in memory of its own, filled, a guard behind it. */
static enum status declare_operand(const struct op_case *op_case, struct params *params,
                                   const struct operand_row *row, int part, const char *name,
                                   bool output, uint64_t seed, int32_t *entry)
{
    struct init zero = {.kind = INIT_ZERO};
    enum dtype dtype = type_of(op_case, row, params->real);
    char guard[2 * OPS_WORD];
    int32_t guard_entry;
    TRY(params_declare(params, name, ROLE_STATE, dtype, shape_of(op_case, row, part), zero, entry));
    if (is_matrix(op_case, row->name))
        params_mark_matrix(params, *entry);
    if (output)
        fill_value(params, *entry, NAN);
    else
        fill_input(op_case, params, *entry, row->name, seed);
    snprintf(guard, sizeof guard, "guard %s", name);
    TRY(params_declare(params, guard, ROLE_STATE, params->real, SHAPE(CASE_GUARD_ELEMENTS), zero,
                       &guard_entry));
    fill_value(params, guard_entry, CASE_GUARD);
    return STATUS_OK;
}

/* Declares the operands of one side; an output that updates an input in place is that input. */
static enum status declare_side(const struct op_case *op_case, struct params *params, bool outputs,
                                uint64_t seed, int32_t *entries, int32_t *count)
{
    struct operand_row row;
    for (const char *at = ops_side(op_case->kind, outputs); (at = ops_next(at, &row));)
        for (int part = 0; part < operand_count(op_case, &row); part++) {
            char name[OPS_WORD + 8];
            assert(*count < OPERANDS_MOST);
            int32_t *entry = &entries[(*count)++];
            snprintf(name, sizeof name, part ? "%s %d" : "%s", row.name, part + 1);
            *entry = params_find(params, name);
            if (row.optional && has_word(op_case->absent, row.name))
                *entry = -1;
            else if (*entry < 0)
                TRY(declare_operand(op_case, params, &row, part, name, outputs, seed, entry));
        }
    return STATUS_OK;
}

/* Accumulating ops read what they write. */
static void settle_outputs(const struct op_case *op_case, struct params *params,
                           const int32_t *outputs, int32_t count, uint64_t seed)
{
    const char *accumulate = find_value(op_case->attributes, "accumulate");
    for (int32_t i = 0; accumulate && i < count; i++)
        if (outputs[i] >= 0)
            fill_input(op_case, params, outputs[i], "", seed + 1);
}

static void set_attributes(const struct op_case *op_case, struct op *op)
{
    const char *at = op_case->attributes;
    while (*at) {
        char name[OPS_WORD], value[OPS_WORD];
        size_t name_length = strcspn(at, "="), value_length = strcspn(at + name_length + 1, " ");
        snprintf(name, sizeof name, "%.*s", (int)name_length, at);
        snprintf(value, sizeof value, "%.*s", (int)value_length, at + name_length + 1);
        bool known = ops_set(op, name, value);
        assert(known);
        (void)known;
        at += name_length + 1 + value_length;
        at += strspn(at, " ");
    }
}

enum status case_program(const struct op_case *op_case, uint64_t seed, struct params *params,
                         struct program **out)
{
    int32_t entries[2][OPERANDS_MOST], counts[2] = {0};
    for (int side = 0; side < 2; side++)
        TRY(declare_side(op_case, params, side == 1, seed, entries[side], &counts[side]));
    settle_outputs(op_case, params, entries[1], counts[1], seed);
    params->control.seed = seed;
    params->control.step = 5;
    params->control.rate = 0.25;

    struct draft draft;
    TRY(program_begin(&draft, params, op_name(op_case->kind), 1, params->real));
    draft_part(&draft, PART_FORWARD);
    int32_t tensors[2][OPERANDS_MOST];
    for (int side = 0; side < 2; side++)
        for (int32_t i = 0; i < counts[side]; i++)
            tensors[side][i] = entries[side][i] < 0 ? -1 : draft_kept(&draft, entries[side][i]);
    set_attributes(op_case,
                   draft_op(&draft, op_case->kind, tensors[0], counts[0], tensors[1], counts[1]));
    return program_finish(&draft, out);
}

static double value_at(const struct params *params, int32_t entry, int64_t i)
{
    const void *data = params_data(params, entry);
    switch (params->entries[entry].dtype) {
    case DTYPE_F64: return ((const double *)data)[i];
    case DTYPE_I32: return (double)((const int32_t *)data)[i];
    case DTYPE_I8: return (double)((const int8_t *)data)[i];
    case DTYPE_U8: return (double)((const uint8_t *)data)[i];
    default: return (double)((const float *)data)[i];
    }
}

/* The largest difference of an operand; infinite where something is not a number and should be. */
static double largest_difference(const struct params *found, const struct params *expected,
                                 int32_t entry, double *size)
{
    /* what lies beyond a sample's length may hold anything */
    bool unwritten = has_word("gates cells", found->entries[entry].name);
    double most = 0;
    *size = 0;
    for (int64_t i = 0, n = shape_count(&found->entries[entry].shape); i < n; i++) {
        double value = value_at(expected, entry, i);
        *size = fmax(*size, fabs(value));
        if (isnan(value) && unwritten)
            continue;
        double difference = fabs(value_at(found, entry, i) - value);
        most = isnan(difference) ? (double)INFINITY : fmax(most, difference);
    }
    return most;
}

double case_tolerance(const char *precision)
{
    static const struct {
        const char *precision;
        double tolerance;
    } rows[] = {{"tf32", 6e-3}, {"fp16", 6e-3}, {"bf16", 5e-2}, {"fp8", 0.5}};
    for (size_t i = 0; precision && i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].precision, precision) == 0)
            return rows[i].tolerance;
    return 3e-6;
}

bool case_is_exact(enum op_kind kind)
{
    for (int side = 0; side < 2; side++)
        if (strstr(ops_side(kind, side == 1), "8["))
            return true;
    return kind == OP_dequantise || kind == OP_fake_quantise || kind == OP_argmax;
}

enum dtype case_oracle(enum op_kind kind)
{
    return case_is_exact(kind) ? DTYPE_F32 : DTYPE_F64;
}

enum status case_compare(const struct op_case *op_case, const struct params *found,
                         const struct params *expected, double tolerance, double *error)
{
    bool exact = case_is_exact(op_case->kind);
    static const double NEAR_0 = 1e-7; /* there it is absolute */
    *error = 0;
    for (int32_t e = 0; e < found->count; e++) {
        const char *name = found->entries[e].name;
        double size, most = largest_difference(found, expected, e, &size);
        if (!strcmp(name, "sums")) /* room to work in: what is left there is nobody's business */
            continue;
        if (text_starts(name, "guard ") && most > 0)
            FAIL(STATUS_WRONG, "it writes beyond the end of '%s'", name + strlen("guard "));
        if (exact && most > 0)
            FAIL(STATUS_WRONG, "'%s' differs by %g, expected the same bits", name, most);
        *error = fmax(*error, most / (size + NEAR_0 / tolerance));
        if (!(most <= tolerance * size + NEAR_0))
            FAIL(STATUS_WRONG, "'%s' differs by %g where the largest value is %g", name, most,
                 size);
    }
    return STATUS_OK;
}
