/* init.c: starting values, from counter-based random numbers, four to a call. */
#include "core/init.h"

#include "base/memory.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

/* Random starts are drawn from (seed, name): declaring more changes nothing that was there. */
static uint32_t name_stream(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash | 0x80000000u;
}

static void put(enum dtype dtype, void *data, int64_t i, float value)
{
    if (dtype == DTYPE_F64)
        ((double *)data)[i] = (double)value;
    else
        ((float *)data)[i] = value;
}

/* Elements 4·block … 4·block + 3, at scale 1. */
static void draw_four(enum init_kind kind, struct rng_key key, int64_t block, float out[4])
{
    struct rng_block words = rng_words(key, 0, (uint32_t)block);
    if (kind == INIT_UNIFORM) {
        for (int i = 0; i < 4; i++)
            out[i] = 2 * rng_unit(words.word[i]) - 1;
        return;
    }
    rng_normal_pair(words.word[0], words.word[1], out, out + 1);
    rng_normal_pair(words.word[2], words.word[3], out + 2, out + 3);
}

static void fill_drawn(const struct init *init, struct rng_key key, enum dtype dtype, int64_t count,
                       void *data)
{
    for (int64_t i = 0; i < count; i += 4) {
        float values[4];
        draw_four(init->kind, key, i / 4, values);
        for (int64_t k = 0; k < 4 && i + k < count; k++)
            put(dtype, data, i + k, init->scale * values[k]);
    }
}

/* In an order that does not depend on the compiler: four sums, so that they need not wait for each
 * other. */
static double dot(const double *a, const double *b, int64_t count)
{
    double sums[4] = {0};
    for (int64_t i = 0; i < count; i++)
        sums[i % 4] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* Makes `vectors` rows of `length` orthonormal, by Gram and Schmidt, each twice, which is enough.
 */
static void orthonormalise(double *rows, int64_t vectors, int64_t length)
{
    for (int64_t v = 0; v < vectors; v++) {
        double *row = rows + v * length;
        for (int64_t u = 0; u < 2 * v; u++) {
            const double *other = rows + u % v * length;
            double part = dot(row, other, length);
            for (int64_t i = 0; i < length; i++)
                row[i] -= part * other[i];
        }
        double norm = sqrt(dot(row, row, length));
        for (int64_t i = 0; i < length; i++)
            row[i] /= norm;
    }
}

static enum status fill_orthogonal(const struct init *init, struct rng_key key, enum dtype dtype,
                                   const struct shape *shape, void *data)
{
    int64_t count = shape_count(shape), rows = shape->dim[0], columns = count / rows;
    int64_t vectors = rows < columns ? rows : columns, length = count / vectors;
    double *drawn = mem_array((size_t)count, sizeof *drawn);
    NEED(drawn);
    fill_drawn(&(struct init){INIT_NORMAL, 1}, key, DTYPE_F64, count, drawn);
    orthonormalise(drawn, vectors, length);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            double value = vectors == rows ? drawn[r * length + c] : drawn[c * length + r];
            put(dtype, data, r * columns + c, init->scale * (float)value);
        }
    mem_free(drawn);
    return STATUS_OK;
}

enum status init_fill(const struct init *init, uint64_t seed, const char *name, enum dtype dtype,
                      const struct shape *shape, void *data)
{
    struct rng_key key = {.seed = seed, .stream = name_stream(name)};
    int64_t count = shape_count(shape);
    switch (init->kind) {
    case INIT_ZERO: memset(data, 0, (size_t)count * dtype_bytes(dtype)); break;
    case INIT_ONE:
        for (int64_t i = 0; i < count; i++)
            put(dtype, data, i, 1);
        break;
    case INIT_UNIFORM:
    case INIT_NORMAL: fill_drawn(init, key, dtype, count, data); break;
    case INIT_ORTHOGONAL: return fill_orthogonal(init, key, dtype, shape, data);
    }
    return STATUS_OK;
}
