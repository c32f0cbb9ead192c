/* shape_isa.c: elements moved, picked and added up, compiled once per ISA. Along an axis of k
 * places, a tensor is [n, k, c]: n times, k places of c elements each.
 *
 * The bound is bytes: each operand is read or written once. What only moves elements is written as
 * a span of its output, a stretch at a time that lies together in its input too; threads share the
 * output, and so each element and each sum is one thread's: the bits do not depend on their number.
 */
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/vec.h"
#include "backend/cpu/simd/vec_lanes.h"
#include "backend/cpu/simd/vec_span.h"
#include "backend/cpu/team.h"

#include <math.h>
#include <string.h>

static int64_t dim(const struct call *call, int operand, int axis)
{
    return call->tensors[operand]->shape.dim[axis];
}

/* Writes the items from `from` to `to` of the op's output. */
typedef void items_run(const struct call *call, int64_t from, int64_t to);

struct items {
    const struct call *call;
    items_run *run;
    int64_t count, grain;
};

static void items_member(void *context, int member, int members)
{
    const struct items *items = context;
    long from, to;
    pool_share(items->count, items->grain, member, members, &from, &to);
    if (from < to)
        items->run(items->call, from, to);
}

/* `grain` items belong together; all of them are so many elements to read and write. */
static void run_items(const struct call *call, items_run *run, int64_t count, int64_t grain,
                      int64_t elements)
{
    struct items items = {call, run, count, grain};
    int64_t bytes = elements * (int64_t)sizeof(float);
    pool_run(call->pool, team_for_bytes(call->pool, bytes, count / grain), items_member, &items);
}

/* The elements of the output, which is operand number `output`. */
static void run_output(const struct call *call, items_run *run, int output)
{
    int64_t count = call->counts[output];
    run_items(call, run, count, 1024, 2 * count);
}

/* Short stretches are a few vectors: a call of memcpy would take longer. */
static inline void copy_span(float *to, const float *from, int64_t count)
{
    enum { SHORT = 8 * VEC_LANES };
    if (count > SHORT) {
        memcpy(to, from, (size_t)count * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < count; i += VEC_LANES)
        vec_store_part(to + i, vec_load_part(from + i, count - i), count - i);
}

static inline void fill_span(float *to, float value, int64_t count)
{
    vec values = vec_set(value);
    for (int64_t i = 0; i < count; i += VEC_LANES)
        vec_store_part(to + i, values, count - i);
}

/* Elements of the output one behind the other, within one row of so many. */
struct stretch {
    int64_t at, count;
    int64_t row, place; /* the row, and where in it the first of them is */
};

static inline struct stretch stretch_first(int64_t from, int64_t to, int64_t width)
{
    struct stretch s = {.at = from, .row = from / width, .place = from % width};
    s.count = width - s.place < to - from ? width - s.place : to - from;
    return s;
}

static inline void stretch_next(struct stretch *s, int64_t to, int64_t width)
{
    s->at += s->count;
    s->count = width < to - s->at ? width : to - s->at;
    s->row++;
    s->place = 0;
}

#define EACH_STRETCH(s, from, to, width)                                                           \
    for (struct stretch s = stretch_first(from, to, width); s.at < to; stretch_next(&s, to, width))

/* y[n,…] = x[n,…] + b[…] */
static void items_add_rows(const struct call *call, int64_t from, int64_t to)
{
    EACH_STRETCH(s, from, to, call->counts[1])
    {
        const float *x = floats(call, AT_add_rows_x) + s.at,
                    *b = floats(call, AT_add_rows_b) + s.place;
        float *y = floats(call, AT_add_rows_y) + s.at;
        for (int64_t i = 0; i < s.count; i += VEC_LANES) {
            int64_t left = s.count - i;
            vec_store_part(y + i, vec_add(vec_load_part(x + i, left), vec_load_part(b + i, left)),
                           left);
        }
    }
}

static void items_mask(const struct call *call, int64_t from, int64_t to)
{
    EACH_STRETCH(s, from, to, call->counts[1])
    {
        const float *x = floats(call, AT_mask_x) + s.at,
                    *keep = floats(call, AT_mask_keep) + s.place;
        float *y = floats(call, AT_mask_y) + s.at;
        for (int64_t i = 0; i < s.count; i += VEC_LANES) {
            int64_t left = s.count - i;
            vec_store_part(y + i,
                           vec_choose_positive(vec_load_part(keep + i, left),
                                               vec_load_part(x + i, left), vec_zero()),
                           left);
        }
    }
}

/* y[n,k,c] = x[n,c] */
static void items_expand(const struct call *call, int64_t from, int64_t to)
{
    int64_t times = dim(call, AT_expand_y, 1), width = dim(call, AT_expand_y, 2);
    if (width == 1) {
        EACH_STRETCH(s, from, to, times)
        fill_span(floats(call, AT_expand_y) + s.at, floats(call, AT_expand_x)[s.row], s.count);
        return;
    }
    EACH_STRETCH(s, from, to, width)
    copy_span(floats(call, AT_expand_y) + s.at,
              floats(call, AT_expand_x) + s.row / times * width + s.place, s.count);
}

/* y[n,b,a,c] = x[n,a,b,c]: rows of c elements */
static void items_transpose(const struct call *call, int64_t from, int64_t to)
{
    int64_t first = dim(call, AT_transpose_x, 1), second = dim(call, AT_transpose_x, 2),
            inner = dim(call, AT_transpose_x, 3);
    int64_t a = from % first, b = from / first % second, n = from / (first * second);
    for (int64_t row = from; row < to; row++) {
        copy_span(floats(call, AT_transpose_y) + row * inner,
                  floats(call, AT_transpose_x) + ((n * first + a) * second + b) * inner, inner);
        if (++a < first)
            continue;
        a = 0;
        if (++b < second)
            continue;
        b = 0;
        n++;
    }
}

/* The same with single elements: squares of them are transposed in registers. Items are columns of
 * x, which are rows of y. */
static void items_transpose_elements(const struct call *call, int64_t from, int64_t to)
{
    int64_t first = dim(call, AT_transpose_x, 1), second = dim(call, AT_transpose_x, 2), columns;
    _Alignas(64) float square[VEC_LANES * VEC_LANES];
    for (int64_t at = from; at < to; at += columns) {
        int64_t n = at / second, b = at % second;
        columns = second - b < to - at ? second - b : to - at;
        columns = columns < VEC_LANES ? columns : VEC_LANES;
        for (int64_t a = 0; a < first; a += VEC_LANES) {
            int64_t rows = first - a < VEC_LANES ? first - a : VEC_LANES;
            lanes_from_samples(floats(call, AT_transpose_x) + (n * first + a) * second + b, second,
                               rows, columns, square);
            for (int64_t k = 0; k < columns; k++)
                vec_store_part(floats(call, AT_transpose_y) + (n * second + b + k) * first + a,
                               vec_load(square + k * VEC_LANES), rows);
        }
    }
}

/* y: the inputs' rows one behind the other */
static void items_concat(const struct call *call, int64_t from, int64_t to)
{
    int parts = call->op->inputs;
    int64_t width = dim(call, parts, 1) * dim(call, parts, 2);
    float *y = floats(call, parts);
    EACH_STRETCH(s, from, to, width)
    {
        int64_t at = s.at, end = s.at + s.count, before = s.at - s.place; /* of this part */
        for (int part = 0; at < end; part++) {
            int64_t own = dim(call, part, 1) * dim(call, part, 2), place = at - before;
            int64_t count = own - place < end - at ? own - place : end - at;
            before += own;
            if (count <= 0)
                continue;
            copy_span(y + at, floats(call, part) + s.row * own + place, count);
            at += count;
        }
    }
}

/* y[n,m,c] = x[n,from + m,c] */
static void items_slice(const struct call *call, int64_t from, int64_t to)
{
    int64_t begin = call->op->attr.slice.from * dim(call, AT_slice_x, 2);
    int64_t width = dim(call, AT_slice_x, 1) * dim(call, AT_slice_x, 2),
            taken = dim(call, AT_slice_y, 1) * dim(call, AT_slice_y, 2);
    EACH_STRETCH(s, from, to, taken)
    copy_span(floats(call, AT_slice_y) + s.at,
              floats(call, AT_slice_x) + s.row * width + begin + s.place, s.count);
}

/* dx[n,from + m,c] = dy[n,m,c], zeros before and behind */
static void items_slice_grad(const struct call *call, int64_t from, int64_t to)
{
    int64_t begin = call->op->attr.slice_grad.from * dim(call, AT_slice_grad_dy, 2);
    int64_t width = dim(call, AT_slice_grad_dx, 1) * dim(call, AT_slice_grad_dx, 2),
            taken = dim(call, AT_slice_grad_dy, 1) * dim(call, AT_slice_grad_dy, 2);
    EACH_STRETCH(s, from, to, width)
    {
        float *dx = floats(call, AT_slice_grad_dx) + s.at;
        int64_t first = begin > s.place ? begin - s.place : 0; /* of those that are taken */
        int64_t last = begin + taken > s.place ? begin + taken - s.place : 0;
        first = first < s.count ? first : s.count;
        last = last < s.count ? last : s.count;
        fill_span(dx, 0, first);
        copy_span(dx + first,
                  floats(call, AT_slice_grad_dy) + s.row * taken + s.place + first - begin,
                  last - first);
        fill_span(dx + last, 0, s.count - last);
    }
}

/* y[n,m,…] = table[n,index[n,m],…]: rows of y */
static void items_gather(const struct call *call, int64_t from, int64_t to)
{
    const int32_t *index = call->data[AT_gather_index];
    int64_t rows = dim(call, AT_gather_table, 1), width = dim(call, AT_gather_table, 2),
            picks = dim(call, AT_gather_index, 1);
    const int64_t all = call->op->attr.gather.rows ? call->op->attr.gather.rows : rows;
    for (int64_t at = from; at < to; at++) {
        int64_t row = (int64_t)index[at] - call->op->attr.gather.from;
        float *y = floats(call, AT_gather_y) + at * width;
        if (row >= 0 && row < rows)
            copy_span(y, floats(call, AT_gather_table) + (at / picks * rows + row) * width, width);
        else
            fill_span(y, index[at] >= 0 && index[at] < all ? 0 : NAN, width);
    }
}

/* dtable[n,index[n,m],…] += dy[n,m,…], for m in order: rows of the table, for which all numbers are
 * looked at */
static void items_scatter(const struct call *call, int64_t from, int64_t to)
{
    const int32_t *index = call->data[AT_scatter_index];
    int64_t rows = dim(call, AT_scatter_dtable, 1), width = dim(call, AT_scatter_dtable, 2),
            picks = dim(call, AT_scatter_index, 1);
    if (!call->op->attr.scatter.accumulate)
        fill_span(floats(call, AT_scatter_dtable) + from * width, 0, (to - from) * width);
    EACH_STRETCH(s, from, to, rows)
    for (int64_t m = s.row * picks; m < (s.row + 1) * picks; m++) {
        const int64_t row = (int64_t)index[m] - call->op->attr.scatter.from;
        if (row < s.place || row >= s.place + s.count)
            continue;
        const float *dy = floats(call, AT_scatter_dy) + m * width;
        float *sum = floats(call, AT_scatter_dtable) + (s.row * rows + row) * width;
        for (int64_t d = 0; d < width; d += VEC_LANES) {
            int64_t left = width - d;
            vec_store_part(
                sum + d, vec_add(vec_load_part(sum + d, left), vec_load_part(dy + d, left)), left);
        }
    }
}

/* The largest of rows that are `stride` apart, in their first `count` columns; of a NaN only the
 * first row's stays. */
static vec largest_rows(const float *x, int64_t rows, int64_t stride, int64_t count)
{
    vec best = vec_load_part(x, count);
    for (int64_t r = 1; r < rows; r++)
        best = vec_max(vec_load_part(x + r * stride, count), best);
    return best;
}

/* Where it is; of equals the first. */
static int64_t largest_place(const float *x, int64_t places, int64_t step)
{
    int64_t best = 0;
    for (int64_t k = 1; k < places; k++)
        if (x[k * step] > x[best * step])
            best = k;
    return best;
}

/* y[n,c] = Σ_k x[n,k,c], or their mean or largest: items are n */
static void items_reduce(const struct call *call, int64_t from, int64_t to)
{
    int64_t places = dim(call, AT_reduce_x, 1), inner = dim(call, AT_reduce_x, 2);
    int32_t reduction = call->op->attr.reduce.reduction;
    vec share = vec_set(reduction == REDUCTION_MEAN ? 1 / (float)places : 1);
    for (int64_t n = from; n < to; n++) {
        const float *x = floats(call, AT_reduce_x) + n * places * inner;
        float *y = floats(call, AT_reduce_y) + n * inner;
        if (inner == 1 && reduction == REDUCTION_MAX) {
            *y = x[largest_place(x, places, 1)];
            continue;
        }
        if (inner == 1) {
            vec_store_part(y, vec_mul(vec_set(sum_span(x, places)), share), 1);
            continue;
        }
        for (int64_t c = 0; c < inner; c += VEC_LANES) {
            vec sum = reduction == REDUCTION_MAX
                          ? largest_rows(x + c, places, inner, inner - c)
                          : vec_mul(sum_rows_at(x + c, places, inner, inner - c), share);
            vec_store_part(y + c, sum, inner - c);
        }
    }
}

/* dx[n,k,c] = dy[n,c], times its share in a mean */
static void items_spread(const struct call *call, int64_t from, int64_t to)
{
    int64_t places = dim(call, AT_reduce_grad_dx, 1), inner = dim(call, AT_reduce_grad_dx, 2);
    float share = call->op->attr.reduce_grad.reduction == REDUCTION_MEAN ? 1 / (float)places : 1;
    if (inner == 1) {
        EACH_STRETCH(s, from, to, places)
        fill_span(floats(call, AT_reduce_grad_dx) + s.at,
                  floats(call, AT_reduce_grad_dy)[s.row] * share, s.count);
        return;
    }
    EACH_STRETCH(s, from, to, inner)
    {
        const float *dy = floats(call, AT_reduce_grad_dy) + s.row / places * inner + s.place;
        float *dx = floats(call, AT_reduce_grad_dx) + s.at;
        for (int64_t i = 0; i < s.count; i += VEC_LANES)
            vec_store_part(dx + i, vec_mul(vec_load_part(dy + i, s.count - i), vec_set(share)),
                           s.count - i);
    }
}

/* dx[n,k,c] = dy[n,c] where x was the largest, else 0: items are n */
static void items_give_largest(const struct call *call, int64_t from, int64_t to)
{
    int64_t places = dim(call, AT_reduce_grad_dx, 1), inner = dim(call, AT_reduce_grad_dx, 2),
            block = places * inner;
    fill_span(floats(call, AT_reduce_grad_dx) + from * block, 0, (to - from) * block);
    for (int64_t n = from; n < to; n++)
        for (int64_t c = 0; c < inner; c++) {
            int64_t best =
                largest_place(floats(call, AT_reduce_grad_x) + n * block + c, places, inner);
            floats(call, AT_reduce_grad_dx)[n * block + best * inner + c] =
                floats(call, AT_reduce_grad_dy)[n * inner + c];
        }
}

static void items_fill(const struct call *call, int64_t from, int64_t to)
{
    fill_span(floats(call, AT_fill_y) + from, call->op->attr.fill.value, to - from);
}

/* dx = scale · (p - 1 where the label is): rows */
static void items_cross_entropy_grad(const struct call *call, int64_t from, int64_t to)
{
    const int32_t *label = call->data[AT_cross_entropy_grad_label];
    int64_t batch = dim(call, AT_cross_entropy_grad_p, 0),
            classes = dim(call, AT_cross_entropy_grad_p, 1);
    float scale = call->op->attr.cross_entropy_grad.scale / (float)batch;
    for (int64_t n = from; n < to; n++) {
        const float *p = floats(call, AT_cross_entropy_grad_p) + n * classes;
        float *dx = floats(call, AT_cross_entropy_grad_dx) + n * classes;
        for (int64_t k = 0; k < classes; k += VEC_LANES)
            vec_store_part(dx + k, vec_mul(vec_set(scale), vec_load_part(p + k, classes - k)),
                           classes - k);
        if (label[n] >= 0 && label[n] < classes)
            dx[label[n]] = scale * (p[label[n]] - 1);
    }
}

static void run_add_rows(const struct call *call)
{
    run_output(call, items_add_rows, 2);
}

static void run_mask(const struct call *call)
{
    run_output(call, items_mask, 2);
}

static void run_expand(const struct call *call)
{
    run_output(call, items_expand, 1);
}

static void run_transpose(const struct call *call)
{
    int64_t count = call->counts[0], inner = dim(call, AT_transpose_x, 3);
    if (inner > 1)
        run_items(call, items_transpose, count / inner, 1, 2 * count);
    else
        run_items(call, items_transpose_elements, count / dim(call, AT_transpose_x, 1), VEC_LANES,
                  2 * count);
}

static void run_concat(const struct call *call)
{
    run_output(call, items_concat, call->op->inputs);
}

static void run_slice(const struct call *call)
{
    run_output(call, items_slice, 1);
}

static void run_slice_grad(const struct call *call)
{
    run_output(call, items_slice_grad, 1);
}

static void run_gather(const struct call *call)
{
    run_items(call, items_gather, call->counts[1], 1, 2 * call->counts[2]);
}

static void run_scatter(const struct call *call)
{
    run_items(call, items_scatter,
              dim(call, AT_scatter_dtable, 0) * dim(call, AT_scatter_dtable, 1), 1,
              call->counts[2] + 3 * call->counts[1]);
}

static void run_reduce(const struct call *call)
{
    run_items(call, items_reduce, dim(call, AT_reduce_x, 0), 1, call->counts[0]);
}

static void run_reduce_grad(const struct call *call)
{
    if (call->op->attr.reduce_grad.reduction == REDUCTION_MAX)
        run_items(call, items_give_largest, dim(call, AT_reduce_grad_dx, 0), 1,
                  2 * call->counts[2]);
    else
        run_output(call, items_spread, 2);
}

static void run_fill(const struct call *call)
{
    run_output(call, items_fill, 0);
}

static void run_cross_entropy_grad(const struct call *call)
{
    run_items(call, items_cross_entropy_grad, dim(call, AT_cross_entropy_grad_p, 0), 1,
              2 * call->counts[0]);
}

static const struct kernel rows[] = {
    {ROW(add_rows)},
    {ROW(mask)},
    {ROW(expand)},
    {ROW(transpose)},
    {ROW(concat)},
    {ROW(slice)},
    {ROW(slice_grad)},
    {ROW(gather)},
    {ROW(scatter)},
    {ROW(reduce)},
    {ROW(reduce_grad)},
    {ROW(fill)},
    {ROW(cross_entropy_grad)},
};

const struct kernel_list ISA(shape_list) = KERNEL_LIST(rows);
