/* elementwise_int8_isa.c: sums, pooling and conversions of 8 bits, with the reference's bits
 * (docs/quantisation.md). Loops are plain: the compiler has vectors of each ISA for them. Spans of
 * elements, or planes of images, are shared between threads. */
#include "backend/cpu/ref/ref_window.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/team.h"

#include <math.h>
#include <string.h>

enum { SPAN = 4096, WIDTH_MOST = 4096 };

/* What one thread does of `many` elements or planes. */
typedef void span_run(const struct call *call, int64_t from, int64_t many);

struct spans {
    const struct call *call;
    span_run *run;
    int64_t count, each; /* all, and as many as are taken at once */
};

static void span_member(void *context, int member, int members)
{
    const struct spans *spans = context;
    const int64_t parts = (spans->count + spans->each - 1) / spans->each;
    const int64_t from = parts * member / members * spans->each;
    int64_t to = parts * (member + 1) / members * spans->each;
    to = to < spans->count ? to : spans->count;
    if (from < to)
        spans->run(spans->call, from, to - from);
}

static void run_spans(const struct call *call, span_run *run, int64_t all, int64_t each,
                      int64_t bytes)
{
    struct spans spans = {call, run, all, each};
    pool_run(call->pool, team_for_bytes(call->pool, bytes, (all + each - 1) / each), span_member,
             &spans);
}

static void add_span(const struct call *call, int64_t from, int64_t many)
{
    const uint8_t *restrict a = (const uint8_t *)call->data[AT_add_int8_a] + from;
    const uint8_t *restrict b = (const uint8_t *)call->data[AT_add_int8_b] + from;
    uint8_t *restrict y = (uint8_t *)call->data[AT_add_int8_y] + from;
    const union attributes *attr = &call->op->attr;
    const int32_t times_a = attr->add_int8.multiplier_a, times_b = attr->add_int8.multiplier_b;
    const int32_t shift = attr->add_int8.shift, zero = attr->add_int8.zero;
    const int32_t low = attr->add_int8.low, high = attr->add_int8.high;
    const int32_t zero_a = attr->add_int8.zero_a, zero_b = attr->add_int8.zero_b;
    const int32_t half = 1 << (shift - 1);
    for (int64_t i = 0; i < many; i++) {
        int32_t sum = (a[i] - zero_a) * times_a + (b[i] - zero_b) * times_b + half;
        int32_t level = (sum >> shift) + zero;
        level = level < low ? low : level;
        y[i] = (uint8_t)(level > high ? high : level);
    }
}

static void run_add(const struct call *call)
{
    const int64_t all = count(call, AT_add_int8_y);
    run_spans(call, add_span, all, SPAN, 3 * all);
}

static void quantise_span(const struct call *call, int64_t from, int64_t many)
{
    const float *restrict x = (const float *)call->data[AT_quantise_x] + from;
    uint8_t *restrict y = (uint8_t *)call->data[AT_quantise_y] + from;
    const union attributes *attr = &call->op->attr;
    const int32_t zero = attr->quantise.zero;
    const float scale = attr->quantise.scale, low = (float)(attr->quantise.low - zero);
    const float high = (float)(attr->quantise.high - zero);
    for (int64_t i = 0; i < many; i++) {
        float steps = x[i] / scale;
        steps = steps == steps ? steps : 0; /* NaN */
        steps = steps < low ? low : steps;
        steps = steps > high ? high : steps;
        y[i] = (uint8_t)(zero + (int32_t)rintf(steps));
    }
}

static void run_quantise(const struct call *call)
{
    const int64_t all = count(call, AT_quantise_y);
    run_spans(call, quantise_span, all, SPAN, 5 * all);
}

static bool is_on_one_scale(const struct program *program, const struct op *op)
{
    const struct tensor *x = &program->tensors[op_input(program, op, AT_dequantise_x)];
    return x->dtype == DTYPE_U8 && op_input(program, op, AT_dequantise_scale) < 0;
}

static void dequantise_span(const struct call *call, int64_t from, int64_t many)
{
    const uint8_t *restrict x = (const uint8_t *)call->data[AT_dequantise_x] + from;
    float *restrict y = (float *)call->data[AT_dequantise_y] + from;
    const int32_t zero = call->op->attr.dequantise.zero;
    const float scale = call->op->attr.dequantise.scale;
    for (int64_t i = 0; i < many; i++)
        y[i] = (float)(x[i] - zero) * scale;
}

static void run_dequantise(const struct call *call)
{
    const int64_t all = count(call, AT_dequantise_y);
    run_spans(call, dequantise_span, all, SPAN, 5 * all);
}

/* Sums, [sample][channel][pixel], each channel on its scale. */
static bool is_of_sums(const struct program *program, const struct op *op)
{
    const struct tensor *x = &program->tensors[op_input(program, op, AT_dequantise_x)];
    return x->dtype == DTYPE_I32 && op_input(program, op, AT_dequantise_scale) >= 0;
}

/* A span is samples where a channel is one element, else planes. */
static int64_t plane_of(const struct call *call)
{
    return count(call, AT_dequantise_y) /
           (dim(call, AT_dequantise_x, 0) * dim(call, AT_dequantise_x, 1));
}

static void sums_span(const struct call *call, int64_t from, int64_t many)
{
    const int64_t channels = dim(call, AT_dequantise_x, 1), plane = plane_of(call);
    const int64_t span = plane > 1 ? plane : channels;
    const int32_t *restrict x = (const int32_t *)call->data[AT_dequantise_x] + from * span;
    const int32_t zero = call->op->attr.dequantise.zero;
    const float *restrict scales = call->data[AT_dequantise_scale];
    float *restrict y = (float *)call->data[AT_dequantise_y] + from * span;
    for (int64_t k = from; k < from + many; k++, x += span, y += span) {
        const float scale = scales[k % channels];
        for (int64_t i = 0; i < span && plane > 1; i++)
            y[i] = (float)(x[i] - zero) * scale;
        for (int64_t c = 0; c < channels && plane == 1; c++)
            y[c] = (float)(x[c] - zero) * scales[c];
    }
}

static void run_dequantise_sums(const struct call *call)
{
    const int64_t samples = dim(call, AT_dequantise_x, 0);
    run_spans(call, sums_span,
              plane_of(call) > 1 ? samples * dim(call, AT_dequantise_x, 1) : samples, 1,
              8 * count(call, AT_dequantise_y));
}

static void table_span(const struct call *call, int64_t from, int64_t many)
{
    const uint8_t *restrict x = (const uint8_t *)call->data[AT_table_int8_x] + from;
    const uint8_t *restrict table = call->data[AT_table_int8_table];
    uint8_t *restrict y = (uint8_t *)call->data[AT_table_int8_y] + from;
    for (int64_t i = 0; i < many; i++)
        y[i] = table[x[i]];
}

static void run_table(const struct call *call)
{
    const int64_t all = count(call, AT_table_int8_y);
    run_spans(call, table_span, all, SPAN, 2 * all);
}

/* A padded row: as far as the last window reaches, and the image. */
static int64_t row_bytes(const struct pooling *pooling)
{
    const int64_t reach = (pooling->columns - 1) * pooling->stride_w + pooling->window_w;
    const int64_t image = pooling->pad_w + pooling->width;
    return reach > image ? reach : image;
}

static bool takes_width(const struct program *program, const struct op *op)
{
    const struct shape *x = &program->tensors[op_input(program, op, AT_max_pool_int8_x)].shape;
    const struct shape *y = &program->tensors[op_output(program, op, 0)].shape;
    const struct pooling pooling = {.width = x->dim[3],
                                    .columns = y->dim[3],
                                    .window_w = op->attr.max_pool_int8.window_w,
                                    .stride_w = op->attr.max_pool_int8.stride_w,
                                    .pad_w = op->attr.max_pool_int8.pad_w};
    return row_bytes(&pooling) <= WIDTH_MOST;
}

/* The largest of each window of a row, whose first begins at most[0]. */
static inline void pool_along(const uint8_t *restrict most, int64_t window, int64_t stride,
                              int64_t columns, uint8_t *restrict y)
{
    memset(y, 0, (size_t)columns);
    for (int64_t k = 0; k < window; k++)
        for (int64_t q = 0; q < columns; q++) {
            const uint8_t next = most[q * stride + k];
            y[q] = y[q] > next ? y[q] : next;
        }
}

/* Down each column of the window's rows first, then along them. The pad is 0, which is no larger
 * than any. */
static void pool_row(const struct pooling *pooling, const uint8_t *plane, struct patch patch,
                     uint8_t *y)
{
    uint8_t most[WIDTH_MOST];
    const int64_t width = pooling->width, columns = pooling->columns, window = pooling->window_w;
    memset(most, 0, (size_t)row_bytes(pooling));
    for (int64_t row = patch.top; row < patch.bottom; row++) {
        const uint8_t *restrict line = plane + row * width;
        uint8_t *restrict to = most + pooling->pad_w;
        for (int64_t i = 0; i < width; i++)
            to[i] = to[i] > line[i] ? to[i] : line[i];
    }
    if (pooling->stride_w == 1)
        pool_along(most, window, 1, columns, y);
    else if (pooling->stride_w == 2)
        pool_along(most, window, 2, columns, y);
    else
        pool_along(most, window, pooling->stride_w, columns, y);
}

static void pool_span(const struct call *call, int64_t from, int64_t many)
{
    const struct pooling pooling = pooling_of(call, AT_max_pool_int8_x, AT_max_pool_int8_y);
    const int64_t image = pooling.height * pooling.width;
    uint8_t *y = (uint8_t *)call->data[AT_max_pool_int8_y] + from * pooling.rows * pooling.columns;
    for (int64_t plane = from; plane < from + many; plane++)
        for (int64_t p = 0; p < pooling.rows; p++, y += pooling.columns)
            pool_row(&pooling, (const uint8_t *)call->data[AT_max_pool_int8_x] + plane * image,
                     patch_at(&pooling, p, 0), y);
}

static void run_max_pool(const struct call *call)
{
    const struct pooling pooling = pooling_of(call, AT_max_pool_int8_x, AT_max_pool_int8_y);
    run_spans(call, pool_span, pooling.planes, 1, count(call, AT_max_pool_int8_x));
}

/* Windows of so many elements have sums that, doubled, fit 32 bits. */
enum { WINDOW_MOST = 1 << 20 };

static bool takes_windows(const struct program *program, const struct op *op)
{
    const struct shape *x = &program->tensors[op_input(program, op, AT_average_pool_int8_x)].shape;
    const int64_t window =
        (int64_t)op->attr.average_pool_int8.window_h * op->attr.average_pool_int8.window_w;
    return x->dim[3] <= WIDTH_MOST && window <= WINDOW_MOST;
}

/* Sums down each column of the window's rows first, then along them. */
static void mean_row(const struct call *call, const struct pooling *pooling, const uint8_t *plane,
                     int64_t p, uint8_t *y)
{
    uint32_t sums[WIDTH_MOST];
    const int64_t width = pooling->width;
    const struct patch first = patch_at(pooling, p, 0);
    memset(sums, 0, (size_t)width * sizeof *sums);
    for (int64_t row = first.top; row < first.bottom; row++)
        for (int64_t i = 0; i < width; i++)
            sums[i] += plane[row * width + i];
    for (int64_t q = 0; q < pooling->columns; q++) {
        const struct patch patch = patch_at(pooling, p, q);
        const uint32_t inside = (uint32_t)((patch.bottom - patch.top) * (patch.right - patch.left));
        const uint32_t elements =
            call->op->attr.average_pool_int8.include_pad ? (uint32_t)patch.padded : inside;
        uint32_t sum = (elements - inside) * (uint32_t)call->op->attr.average_pool_int8.zero;
        for (int64_t i = patch.left; i < patch.right; i++)
            sum += sums[i];
        y[q] = (uint8_t)((2 * sum + elements) / (2 * elements));
    }
}

static void mean_span(const struct call *call, int64_t from, int64_t many)
{
    const struct pooling pooling = pooling_of(call, AT_average_pool_int8_x, AT_average_pool_int8_y);
    const int64_t image = pooling.height * pooling.width;
    const uint8_t *x = call->data[AT_average_pool_int8_x];
    uint8_t *y =
        (uint8_t *)call->data[AT_average_pool_int8_y] + from * pooling.rows * pooling.columns;
    for (int64_t plane = from; plane < from + many; plane++)
        for (int64_t p = 0; p < pooling.rows; p++, y += pooling.columns)
            mean_row(call, &pooling, x + plane * image, p, y);
}

static void run_average_pool(const struct call *call)
{
    const struct pooling pooling = pooling_of(call, AT_average_pool_int8_x, AT_average_pool_int8_y);
    run_spans(call, mean_span, pooling.planes, 1, count(call, AT_average_pool_int8_x));
}

static const struct kernel rows[] = {
    {.op = OP_add_int8, .name = "add_int8_" ISA_NAME, .run = run_add},
    {.op = OP_quantise, .name = "quantise_int8_" ISA_NAME, .run = run_quantise},
    {.op = OP_dequantise,
     .name = "dequantise_int8_" ISA_NAME,
     .takes = is_on_one_scale,
     .run = run_dequantise},
    {.op = OP_dequantise,
     .name = "dequantise_sums_" ISA_NAME,
     .takes = is_of_sums,
     .run = run_dequantise_sums},
    {.op = OP_table_int8, .name = "table_int8_" ISA_NAME, .run = run_table},
    {.op = OP_max_pool_int8,
     .name = "max_pool_int8_" ISA_NAME,
     .takes = takes_width,
     .run = run_max_pool},
    {.op = OP_average_pool_int8,
     .name = "average_pool_int8_" ISA_NAME,
     .takes = takes_windows,
     .run = run_average_pool},
};

const struct kernel_list ISA(elementwise_int8_list) = KERNEL_LIST(rows);
