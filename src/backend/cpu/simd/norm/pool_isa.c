/* pool_isa.c: pooling of images and sums over channels, compiled once per ISA.
 *
 * Places of one row of the result go into lanes: their windows' elements are a stride apart, which
 * for 2 is two loads and a shuffle. Windows that reach over the left or right border are done one
 * by one. The bound is bytes; planes are shared by the threads. */
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/vec.h"
#include "backend/cpu/simd/vec_pick.h"
#include "backend/cpu/simd/vec_span.h"
#include "backend/cpu/team.h"

#include <math.h>
#include <string.h>

struct pooling {
    const struct call *call;
    int64_t planes;
    int64_t height, width; /* of the image */
    int64_t rows, columns; /* of what it is pooled to */
    int64_t window_h, window_w, stride_h, stride_w, pad_h, pad_w;
    int64_t first, last; /* columns whose windows lie between the borders */
    bool include_pad;
};

/* The attributes of the pooling ops begin alike. */
static struct pooling pooling_of(const struct call *call, int image, int pooled)
{
    const union attributes *attr = &call->op->attr;
    const int64_t *in = call->tensors[image]->shape.dim, *out = call->tensors[pooled]->shape.dim;
    struct pooling p = {
        .call = call,
        .planes = in[0] * in[1],
        .height = in[2],
        .width = in[3],
        .rows = out[2],
        .columns = out[3],
        .window_h = attr->max_pool.window_h,
        .window_w = attr->max_pool.window_w,
        .stride_h = attr->max_pool.stride_h,
        .stride_w = attr->max_pool.stride_w,
        .pad_h = attr->max_pool.pad_h,
        .pad_w = attr->max_pool.pad_w,
    };
    return p;
}

/* Works out which columns are between the borders, for ops that have windows. */
static void find_inner(struct pooling *p)
{
    int64_t room = p->width + p->pad_w - p->window_w;
    p->first = (p->pad_w + p->stride_w - 1) / p->stride_w;
    p->first = p->first < p->columns ? p->first : p->columns;
    p->last = room < 0 ? 0 : room / p->stride_w + 1;
    p->last = p->last > p->columns ? p->columns : p->last < p->first ? p->first : p->last;
    if (p->window_w > p->columns) /* wide windows at few places: along the window is better */
        p->last = p->first;
}

/* What of a window lies in the image: rows and columns from … to, the last not included. Of the
 * window, `padded` elements lie in the image or its pad, which is as wide behind it as before. */
struct patch {
    int64_t top, bottom, left, right;
    int64_t padded;
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct patch patch_at(const struct pooling *p, int64_t row, int64_t column)
{
    int64_t top = row * p->stride_h - p->pad_h, left = column * p->stride_w - p->pad_w;
    int64_t bottom = top + p->window_h, right = left + p->window_w;
    return (struct patch){
        .top = top < 0 ? 0 : top,
        .bottom = smaller(bottom, p->height),
        .left = left < 0 ? 0 : left,
        .right = smaller(right, p->width),
        .padded = (smaller(bottom, p->height + p->pad_h) - top) *
                  (smaller(right, p->width + p->pad_w) - left),
    };
}

static void largest_of_one(const struct pooling *p, const float *plane, int64_t row, int64_t column,
                           float *y, int32_t *place)
{
    struct patch patch = patch_at(p, row, column);
    int64_t best = patch.top * p->width + patch.left;
    for (int64_t r = patch.top; r < patch.bottom; r++)
        for (int64_t at = r * p->width + patch.left; at < r * p->width + patch.right; at++)
            if (plane[at] > plane[best] || isnan(plane[at]))
                best = at;
    y[column] = plane[best];
    if (place)
        place[column] = (int32_t)best;
}

/* A vector of places of one row: the largest of their windows and where it is. */
static inline __attribute__((always_inline)) void
largest_of_lanes(const float *plane, int64_t width, struct patch patch, const int64_t window,
                 const int64_t stride, int64_t count, float *y, int32_t *place)
{
    int64_t corner = patch.top * width + patch.left;
    pick_index lane = pick_series((int32_t)stride);
    pick_index best_index = pick_moved(lane, (int32_t)corner);
    vec best = pick_strided(plane + corner, stride, count);
    for (int64_t r = patch.top; r < patch.bottom; r++)
        for (int64_t k = 0; k < window; k++) {
            int64_t at = r * width + patch.left + k;
            vec value = pick_strided(plane + at, stride, count);
            pick_larger(value, pick_moved(lane, (int32_t)at), &best, &best_index);
        }
    vec_store_part(y, best, count);
    if (place)
        pick_store(place, best_index, count);
}

/* With the usual windows known, their loops have no branches left. */
static void largest_of_many(const struct pooling *p, const float *plane, int64_t row,
                            int64_t column, int64_t count, float *y, int32_t *place)
{
    struct patch patch = patch_at(p, row, column);
    place = place ? place + column : NULL;
    if (p->window_w == 2 && p->stride_w == 2)
        largest_of_lanes(plane, p->width, patch, 2, 2, count, y + column, place);
    else if (p->window_w == 3 && p->stride_w == 2)
        largest_of_lanes(plane, p->width, patch, 3, 2, count, y + column, place);
    else
        largest_of_lanes(plane, p->width, patch, p->window_w, p->stride_w, count, y + column,
                         place);
}

/* A vector of places of some rows of a plane, only the largest, of windows of 2 or 3 columns that
 * are 2 apart: first the largest of each column, which windows share, then of neighbours. */
static inline __attribute__((always_inline)) void largest_of_pairs(const struct pooling *p,
                                                                   const float *plane, int64_t row,
                                                                   int64_t rows, int64_t column,
                                                                   const int64_t window, float *y)
{
    const int64_t count = smaller(p->last - column, VEC_LANES);
    const uint32_t pairs = (uint32_t)((1ull << 2 * count) - 1), high_pairs = pairs >> VEC_LANES;
    const uint32_t third = pairs >> 1, high_third = third >> VEC_LANES;
    for (y += row * p->columns; rows > 0; rows--, row++, y += p->columns) {
        int64_t top = row * p->stride_h - p->pad_h, bottom = smaller(top + p->window_h, p->height);
        top = top < 0 ? 0 : top;
        const float *x = plane + top * p->width + column * 2 - p->pad_w;
        vec low = vec_load_mask(x, pairs), high = vec_load_mask(x + VEC_LANES, high_pairs);
        vec next = window == 3 ? vec_load_mask(x + 2, third) : vec_zero();
        vec next_high = window == 3 ? vec_load_mask(x + 2 + VEC_LANES, high_third) : vec_zero();
        for (int64_t r = top + 1; r < bottom; r++) {
            x += p->width;
            low = pick_largest(vec_load_mask(x, pairs), low);
            high = pick_largest(vec_load_mask(x + VEC_LANES, high_pairs), high);
            if (window == 3) {
                next = pick_largest(vec_load_mask(x + 2, third), next);
                next_high = pick_largest(vec_load_mask(x + 2 + VEC_LANES, high_third), next_high);
            }
        }
        vec best = pick_largest(pick_odd(low, high), pick_even(low, high));
        if (window == 3)
            best = pick_largest(pick_even(next, next_high), best);
        vec_store_part(y + column, best, count);
    }
}

static void largest_of_plane(const struct pooling *p, const float *x, float *y, int32_t *place)
{
    bool pairs = !place && p->stride_w == 2 && (p->window_w == 2 || p->window_w == 3);
    /* All rows at once, or row by row, so that a wide plane is read in its order. */
    int64_t rows = p->last - p->first > VEC_LANES ? 1 : p->rows;
    for (int64_t row = 0; pairs && row < p->rows; row += rows)
        for (int64_t q = p->first; q < p->last; q += VEC_LANES)
            if (p->window_w == 2)
                largest_of_pairs(p, x, row, rows, q, 2, y);
            else
                largest_of_pairs(p, x, row, rows, q, 3, y);
    for (int64_t row = 0; row < p->rows; row++, y += p->columns) {
        for (int64_t q = 0; q < p->first; q++)
            largest_of_one(p, x, row, q, y, place);
        for (int64_t q = p->first; q < p->last && !pairs; q += VEC_LANES)
            largest_of_many(p, x, row, q, smaller(p->last - q, VEC_LANES), y, place);
        for (int64_t q = p->last; q < p->columns; q++)
            largest_of_one(p, x, row, q, y, place);
        place += place ? p->columns : 0;
    }
}

static void max_pool_member(void *context, int member, int members)
{
    const struct pooling *p = context;
    const struct call *call = p->call;
    long plane, last;
    pool_share(p->planes, 1, member, members, &plane, &last);
    for (; plane < last; plane++) {
        int64_t at = plane * p->rows * p->columns;
        largest_of_plane(
            p, (const float *)call->data[AT_max_pool_x] + plane * p->height * p->width,
            (float *)call->data[AT_max_pool_y] + at,
            call->data[AT_max_pool_places] ? (int32_t *)call->data[AT_max_pool_places] + at : NULL);
    }
}

static void run_planes(struct pooling *p, pool_task *task)
{
    int64_t bytes = p->planes * (p->height * p->width + p->rows * p->columns) * 4;
    pool_run(p->call->pool, team_for_bytes(p->call->pool, bytes, p->planes), task, p);
}

static void run_max_pool(const struct call *call)
{
    struct pooling p = pooling_of(call, 0, 1);
    find_inner(&p);
    run_planes(&p, max_pool_member);
}

/* Places stay within their plane, so planes need not wait for each other. */
static void max_unpool_member(void *context, int member, int members)
{
    const struct pooling *p = context;
    int64_t image = p->height * p->width, pooled = p->rows * p->columns;
    long plane, last;
    pool_share(p->planes, 1, member, members, &plane, &last);
    for (; plane < last; plane++) {
        const float *x = (const float *)p->call->data[AT_max_unpool_x] + plane * pooled;
        const int32_t *place =
            (const int32_t *)p->call->data[AT_max_unpool_places] + plane * pooled;
        float *y = (float *)p->call->data[AT_max_unpool_y] + plane * image;
        memset(y, 0, (size_t)image * sizeof *y);
        for (int64_t i = 0; i < pooled; i++)
            y[place[i]] += x[i];
    }
}

static void run_max_unpool(const struct call *call)
{
    struct pooling p = pooling_of(call, 2, 0);
    run_planes(&p, max_unpool_member);
}

static void max_unpool_grad_member(void *context, int member, int members)
{
    const struct pooling *p = context;
    int64_t image = p->height * p->width, pooled = p->rows * p->columns;
    long plane, last;
    pool_share(p->planes, 1, member, members, &plane, &last);
    for (; plane < last; plane++) {
        const float *dy = (const float *)p->call->data[AT_max_unpool_grad_dy] + plane * image;
        const int32_t *place =
            (const int32_t *)p->call->data[AT_max_unpool_grad_places] + plane * pooled;
        float *dx = (float *)p->call->data[AT_max_unpool_grad_dx] + plane * pooled;
        for (int64_t i = 0; i < pooled; i++)
            dx[i] = dy[place[i]];
    }
}

static void run_max_unpool_grad(const struct call *call)
{
    struct pooling p = pooling_of(call, 0, 2);
    run_planes(&p, max_unpool_grad_member);
}

/* What the sum over a patch is divided by. */
static float divisor(const struct pooling *p, struct patch patch)
{
    return p->include_pad ? (float)patch.padded
                          : (float)((patch.bottom - patch.top) * (patch.right - patch.left));
}

static void average_of_one(const struct pooling *p, const float *plane, int64_t row, int64_t column,
                           float *y)
{
    struct patch patch = patch_at(p, row, column);
    float sum = 0;
    for (int64_t r = patch.top; r < patch.bottom; r++)
        sum += sum_span(plane + r * p->width + patch.left, patch.right - patch.left);
    y[column] = sum / divisor(p, patch);
}

static void average_of_many(const struct pooling *p, const float *plane, int64_t row,
                            int64_t column, int64_t count, float *y)
{
    struct patch patch = patch_at(p, row, column);
    vec sum = vec_zero();
    for (int64_t r = patch.top; r < patch.bottom; r++)
        for (int64_t k = patch.left; k < patch.right; k++)
            sum = vec_add(sum, pick_strided(plane + r * p->width + k, p->stride_w, count));
    vec_store_part(y + column, vec_div(sum, vec_set(divisor(p, patch))), count);
}

static void average_pool_member(void *context, int member, int members)
{
    const struct pooling *p = context;
    long plane, last;
    pool_share(p->planes, 1, member, members, &plane, &last);
    for (; plane < last; plane++)
        for (int64_t row = 0; row < p->rows; row++) {
            const float *x =
                (const float *)p->call->data[AT_average_pool_x] + plane * p->height * p->width;
            float *y =
                (float *)p->call->data[AT_average_pool_y] + (plane * p->rows + row) * p->columns;
            for (int64_t q = 0; q < p->first; q++)
                average_of_one(p, x, row, q, y);
            for (int64_t q = p->first; q < p->last; q += VEC_LANES)
                average_of_many(p, x, row, q, p->last - q < VEC_LANES ? p->last - q : VEC_LANES, y);
            for (int64_t q = p->last; q < p->columns; q++)
                average_of_one(p, x, row, q, y);
        }
}

static void run_average_pool(const struct call *call)
{
    struct pooling p = pooling_of(call, 0, 1);
    find_inner(&p);
    p.include_pad = call->op->attr.average_pool.include_pad;
    run_planes(&p, average_pool_member);
}

static void average_pool_grad_member(void *context, int member, int members)
{
    const struct pooling *p = context;
    int64_t image = p->height * p->width;
    long plane, last;
    pool_share(p->planes, 1, member, members, &plane, &last);
    for (; plane < last; plane++) {
        const float *dy =
            (const float *)p->call->data[AT_average_pool_grad_dy] + plane * p->rows * p->columns;
        float *dx = (float *)p->call->data[AT_average_pool_grad_dx] + plane * image;
        memset(dx, 0, (size_t)image * sizeof *dx);
        for (int64_t row = 0; row < p->rows; row++)
            for (int64_t column = 0; column < p->columns; column++) {
                struct patch patch = patch_at(p, row, column);
                float share = *dy++ / divisor(p, patch);
                for (int64_t r = patch.top; r < patch.bottom; r++)
                    for (int64_t k = patch.left; k < patch.right; k++)
                        dx[r * p->width + k] += share;
            }
    }
}

static void run_average_pool_grad(const struct call *call)
{
    struct pooling p = pooling_of(call, 1, 0);
    p.include_pad = call->op->attr.average_pool_grad.include_pad;
    run_planes(&p, average_pool_grad_member);
}

/* y[c] = Σ x[n, c, …]: channels are shared by the threads, each summed in one order. */
static void sum_channels_member(void *context, int member, int members)
{
    const struct call *call = context;
    const int64_t *dim = call->tensors[AT_sum_channels_x]->shape.dim;
    int64_t inner = call->counts[0] / (dim[0] * dim[1]);
    float *y = call->data[AT_sum_channels_y];
    long c, last;
    pool_share(dim[1], 1, member, members, &c, &last);
    for (; c < last; c++) {
        float sum = 0;
        for (int64_t n = 0; n < dim[0]; n++)
            sum += sum_span((const float *)call->data[AT_sum_channels_x] + (n * dim[1] + c) * inner,
                            inner);
        y[c] = call->op->attr.sum_channels.accumulate ? y[c] + sum : sum;
    }
}

static void run_sum_channels(const struct call *call)
{
    int members = team_for_bytes(call->pool, call->counts[0] * 4,
                                 call->tensors[AT_sum_channels_x]->shape.dim[1]);
    pool_run(call->pool, members, sum_channels_member, (void *)call);
}

static const struct kernel rows[] = {
    {ROW(max_pool)},     {ROW(max_unpool)},        {ROW(max_unpool_grad)},
    {ROW(average_pool)}, {ROW(average_pool_grad)}, {ROW(sum_channels)},
};

const struct kernel_list ISA(pool_list) = KERNEL_LIST(rows);
