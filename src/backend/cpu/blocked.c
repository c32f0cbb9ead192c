/* blocked.c: see blocked.h. */
#include "backend/cpu/blocked.h"

#include <string.h>

uint64_t blocked_bytes(const struct shape *shape)
{
    if (shape->rank == 4)
        return (uint64_t)shape_count(shape) * sizeof(float);
    int64_t in = blocked_up(shape->dim[0], BLOCKED_LANES);
    return (uint64_t)(in * blocked_up(shape->dim[1], BLOCKED_ROWS)) * sizeof(float);
}

int64_t blocked_groups(const struct shape *shape)
{
    if (shape->rank == 4)
        return shape->dim[0] / BLOCKED_PANEL;
    return blocked_up(shape->dim[1], BLOCKED_ROWS) / BLOCKED_ROWS;
}

int64_t blocked_place(const struct shape *shape, int64_t i, int64_t g)
{
    int64_t in = shape->dim[0], from = i / blocked_chunk(in) * blocked_chunk(in);
    return (from * blocked_groups(shape) + g * blocked_width(in, from) + i - from) * BLOCKED_ROWS;
}

static void pack_panels(const struct shape *shape, const float *canonical, float *blocked,
                        int64_t first, int64_t last)
{
    int64_t taps = shape_count(shape) / shape->dim[0], panel = BLOCKED_PANEL * taps;
    for (int64_t p = first; p < last; p++)
        for (int64_t k = 0; k < taps; k++)
            for (int64_t o = 0; o < BLOCKED_PANEL; o++)
                blocked[p * panel + k * BLOCKED_PANEL + o] = canonical[p * panel + o * taps + k];
}

static void unpack_panels(const struct shape *shape, const float *blocked, float *canonical,
                          int64_t first, int64_t last)
{
    int64_t taps = shape_count(shape) / shape->dim[0], panel = BLOCKED_PANEL * taps;
    for (int64_t p = first; p < last; p++)
        for (int64_t k = 0; k < taps; k++)
            for (int64_t o = 0; o < BLOCKED_PANEL; o++)
                canonical[p * panel + o * taps + k] = blocked[p * panel + k * BLOCKED_PANEL + o];
}

/* 16 inputs of one group, zeros beyond the matrix. */
static void pack_part(const struct shape *shape, const float *canonical, float *to, int64_t i,
                      int64_t g)
{
    int64_t in = shape->dim[0], out = shape->dim[1], o = g * BLOCKED_ROWS;
    memset(to, 0, BLOCKED_ROWS * BLOCKED_LANES * sizeof *to);
    for (int64_t k = 0; k < BLOCKED_LANES && i + k < in; k++)
        for (int64_t r = 0; r < BLOCKED_ROWS && o + r < out; r++)
            to[r * BLOCKED_LANES + k] = canonical[(i + k) * out + o + r];
}

/* 16 inputs of two groups side by side, all within the matrix. Rows of a power of two share their
 * sets of L1, so whole lines are copied before they are transposed. */
static void pack_two(const float *from, int64_t out, float *first, float *second)
{
    float lines[BLOCKED_LANES][2 * BLOCKED_ROWS];
    for (int k = 0; k < BLOCKED_LANES; k++)
        memcpy(lines[k], from + k * out, sizeof lines[k]);
    for (int r = 0; r < BLOCKED_ROWS; r++)
        for (int k = 0; k < BLOCKED_LANES; k++) {
            first[r * BLOCKED_LANES + k] = lines[k][r];
            second[r * BLOCKED_LANES + k] = lines[k][BLOCKED_ROWS + r];
        }
}

void blocked_pack(const struct shape *shape, const float *canonical, float *blocked, int64_t first,
                  int64_t last)
{
    if (shape->rank == 4) {
        pack_panels(shape, canonical, blocked, first, last);
        return;
    }
    int64_t in = shape->dim[0], out = shape->dim[1], two;
    for (int64_t i = 0; i < in; i += BLOCKED_LANES)
        for (int64_t g = first; g < last; g += 1 + two) {
            float *to = blocked + blocked_place(shape, i, g);
            two = i + BLOCKED_LANES <= in && g + 2 <= last && (g + 2) * BLOCKED_ROWS <= out;
            if (two)
                pack_two(canonical + i * out + g * BLOCKED_ROWS, out, to,
                         blocked + blocked_place(shape, i, g + 1));
            else
                pack_part(shape, canonical, to, i, g);
        }
}

void blocked_unpack(const struct shape *shape, const float *blocked, float *canonical,
                    int64_t first, int64_t last)
{
    if (shape->rank == 4) {
        unpack_panels(shape, blocked, canonical, first, last);
        return;
    }
    int64_t in = shape->dim[0], out = shape->dim[1];
    for (int64_t i = 0; i < in; i += BLOCKED_LANES)
        for (int64_t g = first; g < last; g++) {
            int64_t o = g * BLOCKED_ROWS;
            const float *from = blocked + blocked_place(shape, i, g);
            for (int64_t k = 0; k < BLOCKED_LANES && i + k < in; k++)
                for (int64_t r = 0; r < BLOCKED_ROWS && o + r < out; r++)
                    canonical[(i + k) * out + o + r] = from[r * BLOCKED_LANES + k];
        }
}
