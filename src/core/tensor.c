/* tensor.c: names and sizes of element types, roles and shapes. */
#include "core/tensor.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} dtypes[DTYPE_COUNT] = {
    [DTYPE_F32] = {"f32", 4}, [DTYPE_F64] = {"f64", 8}, [DTYPE_I32] = {"i32", 4},
    [DTYPE_I8] = {"i8", 1},   [DTYPE_U8] = {"u8", 1},
};

size_t dtype_bytes(enum dtype dtype)
{
    return dtypes[dtype].bytes;
}

const char *dtype_name(enum dtype dtype)
{
    return dtypes[dtype].name;
}

bool dtype_parse(const char *name, enum dtype *out)
{
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (!strcmp(name, dtypes[i].name)) {
            *out = (enum dtype)i;
            return true;
        }
    return false;
}

bool dtype_is_integer(enum dtype dtype)
{
    return dtype != DTYPE_F32 && dtype != DTYPE_F64;
}

const char *role_name(enum role role)
{
    static const char *const names[ROLE_COUNT] = {
        [ROLE_INPUT] = "input",           [ROLE_OUTPUT] = "output",   [ROLE_PARAM] = "param",
        [ROLE_STATISTIC] = "statistic",   [ROLE_STATE] = "state",     [ROLE_GRAD] = "grad",
        [ROLE_ACTIVATION] = "activation", [ROLE_SCRATCH] = "scratch",
    };
    return names[role];
}

bool role_is_kept(enum role role)
{
    return role == ROLE_PARAM || role == ROLE_STATISTIC || role == ROLE_STATE;
}

int64_t shape_count(const struct shape *shape)
{
    int64_t count = 1;
    if (shape->rank < 0 || shape->rank > SHAPE_MOST)
        return -1;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] <= 0 || __builtin_mul_overflow(count, shape->dim[i], &count))
            return -1;
    return count;
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

void shape_print(const struct shape *shape, struct text *out)
{
    for (int i = 0; i < shape->rank; i++)
        text_printf(out, "%s%" PRId64, i ? "×" : "", shape->dim[i]);
}
