/* tiny_simd.h: the steps of tiny.h, compiled once per ISA.
 *
 * Weights and gradients are padded with zeros that stay 0: lanes beyond a layer's outputs, rows
 * beyond its inputs. An output's padding is what the activation makes of 0. */
#include "backend/cpu/simd/activate_simd.h"
#include "backend/cpu/simd/tiny.h"

/* From memory a lane's number is broadcast by one instruction. */
static const int32_t lane_numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* d · f′, from y = f */
static inline vec slope(enum activation activation, vec y, vec d)
{
    return vec_mul(d, vec_slope((int32_t)activation, y, 0));
}

static inline int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- one sample, every layer within one vector ---- */

/* sums[q] + Σ x[q][i]·w[i] for `samples` samples, as two chains of additions each. A row more than
 * n may be read: it is 0. */
static inline __attribute__((always_inline)) void
narrow_product(int samples, const vec *x, int32_t n, const float *w, vec start, vec *sums)
{
    vec other[2];
    for (int q = 0; q < samples; q++) {
        sums[q] = vec_fma(vec_lane(x[q], 0), vec_load(w), start);
        other[q] = vec_mul(vec_lane(x[q], 1), vec_load(w + VEC_LANES));
    }
#define PAIR(i)                                                                                    \
    for (int q = 0; n > (i) && q < samples; q++) {                                                 \
        sums[q] = vec_fma(vec_lane(x[q], i), vec_load(w + (i)*VEC_LANES), sums[q]);                \
        other[q] =                                                                                 \
            vec_fma(vec_lane(x[q], (i) + 1), vec_load(w + ((i) + 1) * VEC_LANES), other[q]);       \
    }
    PAIR(2)
    if (n > 4) {
        PAIR(4)
        PAIR(6)
    }
#if defined(__AVX512F__)
    if (n > 8) {
        PAIR(8)
        PAIR(10)
        PAIR(12)
        PAIR(14)
    }
#endif
#undef PAIR
    for (int q = 0; q < samples; q++)
        sums[q] = vec_add(sums[q], other[q]);
}

/* Updates a layer, given the gradient d of what its activation was given; returns that of x. */
static inline vec narrow_back(const struct tiny_layer *layer, vec x, vec d, vec rate, bool first)
{
    vec down = vec_zero(), step = vec_mul(d, rate);
    if (!first)
        narrow_product(1, &d, layer->out, layer->back, vec_zero(), &down);
    if (layer->kept_b)
        vec_store(layer->b, vec_sub(vec_load(layer->b), step));
    for (int32_t i = 0; i < layer->in; i++) {
        float *w = layer->w + i * VEC_LANES; /* [VEC_LANES] */
        vec_store(w, vec_fnma(vec_lane(x, lane_numbers[i]), step, vec_load(w)));
    }
    x = vec_first(x, layer->in);
    for (int32_t o = 0; !first && o < layer->out; o++) {
        float *back = layer->back + o * VEC_LANES; /* [VEC_LANES] */
        vec_store(back, vec_fnma(vec_lane(step, lane_numbers[o]), x, vec_load(back)));
    }
    return down;
}

/* Stores the loss; returns its gradient by y. */
static inline vec narrow_loss(struct tiny *tiny, vec y, int32_t row, vec scale)
{
    const struct tiny_layer *last = &tiny->layer[tiny->layers - 1];
    if (tiny->right != OP_COUNT || tiny->loss == OP_cross_entropy)
        vec_store(last->y, y);
    if (tiny->right != OP_COUNT)
        tiny_store(tiny->bound_right, tiny_right(tiny, last->y, 1, row));
    if (tiny->loss == OP_cross_entropy) {
        tiny_store(tiny->bound_loss, tiny_cross_entropy(tiny, last->y, 1, row, last->d));
        return vec_load(last->d);
    }
    vec target = vec_load_part(tiny_row(tiny->bound_target, row, last->out), last->out);
    vec error = vec_first(vec_sub(y, target), last->out);
    tiny_store(tiny->bound_loss, vec_sum(vec_mul(error, error)) / (float)last->out);
    return vec_mul(error, scale);
}

/* `samples` steps of inference, side by side: one alone waits most of the time. ys gets the input
 * and every layer's output, each for all samples. */
static inline __attribute__((always_inline)) void
narrow_forward(const struct tiny *tiny, int samples, const int32_t *rows, vec (*ys)[2])
{
    const int32_t in = tiny->layer[0].in, out = tiny->layer[tiny->layers - 1].out;
    vec y[2];
    for (int q = 0; q < samples; q++)
        ys[0][q] = y[q] = vec_load_part(tiny_row(tiny->bound_x, rows[q], in), in);
    for (int32_t l = 0; l < tiny->layers; l++) {
        const struct tiny_layer *layer = &tiny->layer[l];
        vec sums[2];
        narrow_product(samples, y, layer->in, layer->w, vec_load(layer->b), sums);
        for (int q = 0; q < samples; q++)
            ys[l + 1][q] = y[q] = vec_activate((int32_t)layer->activation, sums[q]);
    }
    if (tiny->bound_y && tiny->bound_y->data)
        for (int q = 0; q < samples; q++)
            vec_store_part(tiny_row(tiny->bound_y, rows[q], out), y[q], out);
}

static void steps_narrow(struct tiny *tiny, int64_t steps)
{
    const int32_t layers = tiny->layers;
    const vec scale = vec_set(tiny->loss_scale * 2 / (float)tiny->layer[layers - 1].out);
    struct tiny_walk walk = tiny_begin(tiny, steps);
    vec ys[CHAIN_MOST + 1][2];
    for (int64_t s = 0; s < steps; s++) {
        int32_t rows[2] = {tiny_next(&walk), 0};
        if (tiny->loss == OP_COUNT && s + 1 < steps) {
            rows[1] = tiny_next(&walk);
            narrow_forward(tiny, 2, rows, ys);
            s++;
            continue;
        }
        narrow_forward(tiny, 1, rows, ys);
        if (tiny->loss == OP_COUNT)
            continue;
        vec d = narrow_loss(tiny, ys[layers][0], rows[0], scale);
        if (!tiny->trains)
            continue;
        vec rate = vec_set(tiny_rate(tiny));
        for (int32_t l = layers - 1; l >= 0; l--) {
            const struct tiny_layer *layer = &tiny->layer[l];
            d = slope(layer->activation, ys[l + 1][0], d);
            d = narrow_back(layer, ys[l][0], d, rate, l == 0);
        }
        ++*tiny->count;
        tiny->control->step++;
    }
}

/* ---- one sample, layers of several vectors ---- */

/* sums = start + Σ x[i]·w[i]; start NULL: 0 */
static inline void wide_product(const float *x, int32_t n, const float *w, int64_t stride,
                                const float *start, float *sums)
{
    for (int64_t v = 0; v < stride; v += VEC_LANES) {
        vec sum = start ? vec_load(start + v) : vec_zero(), other = vec_zero();
        int32_t i = 0;
        for (; i + 1 < n; i += 2) {
            const float *rows = w + i * stride + v; /* two of them */
            sum = vec_fma(vec_set(x[i]), vec_load(rows), sum);
            other = vec_fma(vec_set(x[i + 1]), vec_load(rows + stride), other);
        }
        if (i < n)
            sum = vec_fma(vec_set(x[i]), vec_load(w + i * stride + v), sum);
        vec_store(sums + v, vec_add(sum, other));
    }
}

static void wide_forward(struct tiny *tiny, int32_t row)
{
    const float *x = tiny->x;
    memcpy(tiny->x, tiny_row(tiny->bound_x, row, tiny->layer[0].in),
           (size_t)tiny->layer[0].in * sizeof *x);
    for (int32_t l = 0; l < tiny->layers; l++) {
        const struct tiny_layer *layer = &tiny->layer[l];
        wide_product(x, layer->in, layer->w, layer->stride, layer->b, layer->y);
        for (int64_t v = 0; v < layer->stride; v += VEC_LANES) {
            vec y = vec_activate((int32_t)layer->activation, vec_load(layer->y + v));
            vec_store(layer->y + v, vec_first(y, at_most(layer->out - v, VEC_LANES)));
        }
        x = layer->y;
    }
}

/* The loss of the last layer's y, and its gradient in d. */
static void wide_loss(struct tiny *tiny, int32_t row)
{
    const struct tiny_layer *last = &tiny->layer[tiny->layers - 1];
    if (tiny->right != OP_COUNT)
        tiny_store(tiny->bound_right, tiny_right(tiny, last->y, 1, row));
    if (tiny->loss == OP_cross_entropy) {
        tiny_store(tiny->bound_loss, tiny_cross_entropy(tiny, last->y, 1, row, last->d));
        return;
    }
    const float *target = tiny_row(tiny->bound_target, row, last->out);
    vec sum = vec_zero(), scale = vec_set(tiny->loss_scale * 2 / (float)last->out);
    for (int64_t v = 0; v < last->stride; v += VEC_LANES) {
        vec wanted = vec_load_part(target + v, last->out - v);
        vec error = vec_sub(vec_load(last->y + v), wanted);
        sum = vec_fma(error, error, sum);
        vec_store(last->d + v, vec_mul(error, scale));
    }
    tiny_store(tiny->bound_loss, vec_sum(sum) / (float)last->out);
}

static void wide_backward(struct tiny *tiny)
{
    vec rate = vec_set(tiny_rate(tiny));
    for (int32_t l = tiny->layers - 1; l >= 0; l--) {
        const struct tiny_layer *layer = &tiny->layer[l];
        const float *x = l ? tiny->layer[l - 1].y : tiny->x; /* [stride_back] */
        float *d = layer->d;                                 /* [stride] */
        for (int64_t v = 0; v < layer->stride; v += VEC_LANES)
            vec_store(d + v, slope(layer->activation, vec_load(layer->y + v), vec_load(d + v)));
        if (l)
            wide_product(d, layer->out, layer->back, layer->stride_back, NULL,
                         tiny->layer[l - 1].d);
        for (int64_t v = 0; v < layer->stride; v += VEC_LANES) {
            vec step = vec_mul(vec_load(d + v), rate);
            vec_store(d + v, step);
            if (layer->kept_b)
                vec_store(layer->b + v, vec_sub(vec_load(layer->b + v), step));
            for (int32_t i = 0; i < layer->in; i++) {
                float *w = layer->w + i * layer->stride + v; /* [VEC_LANES] */
                vec_store(w, vec_fnma(vec_set(x[i]), step, vec_load(w)));
            }
        }
        for (int64_t v = 0; l && v < layer->stride_back; v += VEC_LANES)
            for (int32_t o = 0; o < layer->out; o++) {
                float *back = layer->back + o * layer->stride_back + v; /* [VEC_LANES] */
                vec_store(back, vec_fnma(vec_set(d[o]), vec_load(x + v), vec_load(back)));
            }
    }
    ++*tiny->count;
    tiny->control->step++;
}

static void steps_wide(struct tiny *tiny, int64_t steps)
{
    const struct tiny_layer *last = &tiny->layer[tiny->layers - 1];
    struct tiny_walk walk = tiny_begin(tiny, steps);
    for (int64_t s = 0; s < steps; s++) {
        int32_t row = tiny_next(&walk);
        wide_forward(tiny, row);
        if (tiny->bound_y && tiny->bound_y->data)
            memcpy(tiny_row(tiny->bound_y, row, last->out), last->y,
                   (size_t)last->out * sizeof *last->y);
        if (tiny->loss != OP_COUNT)
            wide_loss(tiny, row);
        if (tiny->trains)
            wide_backward(tiny);
    }
}

/* ---- a batch: samples in lanes, a tile of them being one vector of each row ---- */

enum { ROW = VEC_LANES, SQUARE = TINY_SQUARE * TINY_SQUARE };

/* rows[n][width] → to[tile][width][ROW], four samples at a time: a few rows are to spare. */
static void batch_turn(const struct tiny *tiny, const struct bound *bound, const int32_t *rows,
                       int32_t width, float *to)
{
    for (int32_t n = 0; n < tiny->batch; n += TINY_SQUARE) {
        const float *from[TINY_SQUARE];
        float *out = to + n / ROW * tiny_tile(width, ROW) + n % ROW; /* [width][ROW] */
        int32_t i = 0;
        for (int q = 0; q < TINY_SQUARE; q++)
            from[q] = tiny_row(bound, rows[n + q], width);
        for (; i + TINY_SQUARE <= width; i += TINY_SQUARE, out += TINY_SQUARE * ROW) {
            __m128 a = _mm_loadu_ps(from[0] + i), b = _mm_loadu_ps(from[1] + i);
            __m128 c = _mm_loadu_ps(from[2] + i), d = _mm_loadu_ps(from[3] + i);
            _MM_TRANSPOSE4_PS(a, b, c, d);
            _mm_store_ps(out, a);
            _mm_store_ps(out + ROW, b);
            _mm_store_ps(out + 2 * ROW, c);
            _mm_store_ps(out + 3 * ROW, d);
        }
        for (; i < width; i++, out += ROW)
            for (int q = 0; q < TINY_SQUARE; q++)
                out[q] = from[q][i];
    }
}

/* The samples of the next step: those of this one are being used, and what has just been stored in
 * pieces cannot be loaded as vectors yet. Spare samples are copies of the last. */
static void batch_gather(struct tiny *tiny, struct tiny_walk *walk)
{
    int32_t n = 0;
    for (; n < tiny->batch; n++)
        tiny->next_rows[n] = tiny_next(walk);
    for (; n % TINY_SQUARE; n++)
        tiny->next_rows[n] = tiny->next_rows[n - 1];
    batch_turn(tiny, tiny->bound_x, tiny->next_rows, tiny->layer[0].in, tiny->next_x);
    if (tiny->loss == OP_mse)
        batch_turn(tiny, tiny->bound_target, tiny->next_rows, tiny->layer[tiny->layers - 1].out,
                   tiny->next_target);
}

static void swap_floats(float **a, float **b)
{
    float *other = *a;
    *a = *b;
    *b = other;
}

static void batch_take(struct tiny *tiny)
{
    int32_t *rows = tiny->rows;
    swap_floats(&tiny->x, &tiny->next_x);
    swap_floats(&tiny->target, &tiny->next_target);
    tiny->rows = tiny->next_rows;
    tiny->next_rows = rows;
}

/* `width` outputs: y[q] = f(Σ w[i][q]·x[i]), the rows of w being in squares `down` apart. */
static inline __attribute__((always_inline)) void
batch_outputs(int width, const float *x, int32_t rows, const float *w, int64_t down,
              enum activation activation, float *y)
{
    vec sums[TINY_SQUARE];
    for (int q = 0; q < width; q++)
        sums[q] = vec_zero();
    for (int32_t i = 0; i < rows; i += TINY_SQUARE, w += down, x += TINY_SQUARE * ROW)
#pragma GCC unroll 4
        for (int r = 0; r < TINY_SQUARE; r++) {
            if (i + r >= rows)
                break;
            vec xs = vec_load(x + r * ROW);
            for (int q = 0; q < width; q++)
                sums[q] = vec_fma(vec_set(w[r * TINY_SQUARE + q]), xs, sums[q]);
        }
    for (int q = 0; q < width; q++)
        vec_store(y + q * ROW, vec_activate((int32_t)activation, sums[q]));
}

static void batch_forward(const struct tiny *tiny, int64_t tile)
{
    const float *x = tiny->x + tile * tiny_tile(tiny->layer[0].in, ROW); /* [in + 1][ROW] */
    for (int32_t l = 0; l < tiny->layers; l++) {
        const struct tiny_layer *layer = &tiny->layer[l];
        const int64_t down = tiny_across(layer) * SQUARE;
        const int32_t rows = layer->in + 1;
        const enum activation f = layer->activation;
        const float *w = layer->w;
        float *first = layer->y + tile * tiny_tile(layer->out, ROW), *y = first; /* [out][ROW] */
        for (int32_t o = 0; o < layer->out; o += TINY_SQUARE, w += SQUARE, y += TINY_SQUARE * ROW)
            switch (layer->out - o) {
            case 1: batch_outputs(1, x, rows, w, down, f, y); break;
            case 2: batch_outputs(2, x, rows, w, down, f, y); break;
            case 3: batch_outputs(3, x, rows, w, down, f, y); break;
            default: batch_outputs(4, x, rows, w, down, f, y);
            }
        x = first;
    }
}

/* Output o of sample n. */
static float *batch_at(const struct tiny_layer *last, float *of, int32_t n)
{
    return of + n / ROW * tiny_tile(last->out, ROW) + n % ROW;
}

static void batch_store(const struct tiny *tiny)
{
    const struct tiny_layer *last = &tiny->layer[tiny->layers - 1];
    for (int32_t n = 0; n < tiny->batch; n++) {
        const float *from = batch_at(last, last->y, n);
        float *y = tiny_row(tiny->bound_y, tiny->rows[n], last->out);
        for (int32_t o = 0; o < last->out; o++)
            y[o] = from[o * ROW];
    }
}

static float batch_mse(const struct tiny *tiny)
{
    const struct tiny_layer *last = &tiny->layer[tiny->layers - 1];
    float size = (float)(tiny->batch * last->out);
    vec sum = vec_zero(), scale = vec_set(tiny->loss_scale * 2 / size);
    for (int32_t n = 0; n < tiny->batch; n += ROW) {
        int64_t at = n / ROW * tiny_tile(last->out, ROW);
        for (int32_t o = 0; o < last->out; o++, at += ROW) {
            vec error = vec_sub(vec_load(last->y + at), vec_load(tiny->target + at));
            error = vec_first(error, at_most(tiny->batch - n, ROW));
            sum = vec_fma(error, error, sum);
            vec_store(last->d + at, vec_mul(error, scale));
        }
    }
    return vec_sum(sum) / size;
}

static void batch_loss(const struct tiny *tiny)
{
    const struct tiny_layer *last = &tiny->layer[tiny->layers - 1];
    float loss = 0, right = 0;
    if (tiny->loss == OP_mse)
        loss = batch_mse(tiny);
    for (int32_t n = 0; tiny->loss == OP_cross_entropy && n < tiny->batch; n++)
        loss += tiny_cross_entropy(tiny, batch_at(last, last->y, n), ROW, tiny->rows[n],
                                   batch_at(last, last->d, n)) /
                (float)tiny->batch;
    for (int32_t n = 0; tiny->right != OP_COUNT && n < tiny->batch; n++)
        right += tiny_right(tiny, batch_at(last, last->y, n), ROW, tiny->rows[n]);
    tiny_store(tiny->bound_loss, loss);
    tiny_store(tiny->bound_right, right);
}

/* d becomes the gradient of what the activation was given; its squares are also kept turned. */
static inline void batch_slope(const struct tiny_layer *layer, const float *y, float *d,
                               float *turned)
{
    for (int32_t o = 0; o < layer->out; o += TINY_SQUARE) {
        vec rows[TINY_SQUARE];
        for (int q = 0; q < TINY_SQUARE; q++, y += ROW, d += ROW) {
            rows[q] = vec_zero();
            if (o + q < layer->out)
                vec_store(d, rows[q] = slope(layer->activation, vec_load(y), vec_load(d)));
        }
        vec_turn_squares(rows);
        for (int q = 0; q < TINY_SQUARE; q++, turned += ROW)
            vec_store(turned, rows[q]);
    }
}

/* below[i] = Σ w[i][o]·d[o], four rows at a time */
static inline void batch_down(const struct tiny_layer *layer, const float *d, float *below)
{
    const float *w = layer->w;
    for (int32_t i = 0; i < layer->in; i += TINY_SQUARE) {
        vec sums[TINY_SQUARE] = {vec_zero(), vec_zero(), vec_zero(), vec_zero()};
        const float *from = d;
        for (int32_t o = 0; o < layer->out; o += TINY_SQUARE, w += SQUARE)
#pragma GCC unroll 4
            for (int c = 0; c < TINY_SQUARE; c++, from += ROW) {
                if (o + c >= layer->out)
                    break;
                for (int q = 0; q < TINY_SQUARE; q++)
                    sums[q] = vec_fma(vec_set(w[q * TINY_SQUARE + c]), vec_load(from), sums[q]);
            }
        for (int q = 0; q < TINY_SQUARE && i + q < layer->in; q++, below += ROW)
            vec_store(below, sums[q]);
    }
}

/* W -= rate·xᵀ·d, square by square; each is a sum over samples, four at a time. */
static inline void batch_update(const struct tiny *tiny, const struct tiny_layer *layer,
                                const float *x, vec rate)
{
    const int64_t x_tile = tiny_tile(layer->in, ROW), d_tile = tiny_tile(layer->out, ROW);
    const int32_t rows = layer->in + (layer->kept_b != NULL);
    float *w = layer->w;
    for (int32_t i = 0; i < rows; i += TINY_SQUARE, x += TINY_SQUARE * ROW)
        for (int32_t o = 0; o < layer->out; o += TINY_SQUARE, w += SQUARE) {
            vec sums[TINY_SQUARE] = {vec_zero(), vec_zero(), vec_zero(), vec_zero()};
            for (int32_t tile = 0; tile < tiny->tiles; tile++) {
                const float *xs = x + tile * x_tile, *ds = layer->turned + tile * d_tile + o * ROW;
#pragma GCC unroll 4
                for (int r = 0; r < TINY_SQUARE; r++) {
                    if (i + r >= rows)
                        break;
                    vec v = vec_load(xs + r * ROW);
                    vec a = vec_mul(vec_quarter_lane(v, 1), vec_load(ds + ROW));
                    vec b = vec_mul(vec_quarter_lane(v, 3), vec_load(ds + 3 * ROW));
                    a = vec_fma(vec_quarter_lane(v, 0), vec_load(ds), a);
                    b = vec_fma(vec_quarter_lane(v, 2), vec_load(ds + 2 * ROW), b);
                    sums[r] = vec_add(sums[r], vec_add(a, b));
                }
            }
            vec_fold_step(sums, rate, w);
        }
}

static void batch_backward(struct tiny *tiny)
{
    vec rate = vec_set(tiny_rate(tiny));
    for (int32_t l = tiny->layers - 1; l >= 0; l--) {
        const struct tiny_layer *layer = &tiny->layer[l], *below = layer - 1;
        for (int32_t tile = 0; tile < tiny->tiles; tile++) {
            int64_t at = tile * tiny_tile(layer->out, ROW);
            batch_slope(layer, layer->y + at, layer->d + at, layer->turned + at);
            if (l)
                batch_down(layer, layer->d + at, below->d + tile * tiny_tile(below->out, ROW));
        }
        batch_update(tiny, layer, l ? below->y : tiny->x, rate);
    }
    ++*tiny->count;
    tiny->control->step++;
}

static void steps_batch(struct tiny *tiny, int64_t steps)
{
    struct tiny_walk walk = tiny_begin(tiny, steps);
    batch_gather(tiny, &walk);
    for (int64_t s = 0; s < steps; s++) {
        batch_take(tiny);
        if (s + 1 < steps)
            batch_gather(tiny, &walk);
        for (int32_t tile = 0; tile < tiny->tiles; tile++)
            batch_forward(tiny, tile);
        if (tiny->bound_y && tiny->bound_y->data)
            batch_store(tiny);
        if (tiny->loss != OP_COUNT)
            batch_loss(tiny);
        if (tiny->trains)
            batch_backward(tiny);
    }
}
