/* dense_stack_batch_isa.c: the steps of dense_stack.h for a batch, compiled once per ISA: in a
 * quarter of a vector, four outputs of one sample. */
#include "backend/cpu/simd/stack/dense_stack_vec.h"
#include "backend/cpu/simd/vec_activate.h"

enum { QUAD = STACK_SQUARE, SQUARE = QUAD * QUAD, TILE = 4 };

/* A bound view's rows [width] to quarters [square][sample][4]: whole squares first, then column by
 * column, so that the inner loops run along the samples. */
static void batch_copy(const struct stack *stack, const struct bound *bound, const int32_t *rows,
                       int32_t width, float *to)
{
    const int64_t batch = stack->batch, plane = stack->plane;
    const float *from = stack_row(bound, 0, width);
    int32_t i = 0;
    for (; i + QUAD <= width; i += QUAD, from += QUAD, to += plane)
        for (int64_t n = 0; n < batch; n++)
            quad_store(to + n * QUAD, quad_load_any(from + (int64_t)rows[n] * width));
    for (; i < width; i++, from++, to++)
        for (int64_t n = 0; n < batch; n++)
            to[n * QUAD] = from[(int64_t)rows[n] * width];
}

/* The outputs, the same way back. */
static void batch_store(const struct stack *stack)
{
    const struct stack_layer *last = &stack->layer[stack->layers - 1];
    const int64_t batch = stack->batch, plane = stack->plane, width = last->out;
    const float *from = last->y;
    const int32_t *rows = stack->rows;
    float *to = stack_row(stack->bound_y, 0, last->out);
    int32_t o = 0;
    for (; o + QUAD <= width; o += QUAD, from += plane, to += QUAD)
        for (int64_t n = 0; n < batch; n++)
            quad_store_any(to + rows[n] * width, quad_load(from + n * QUAD));
    for (; o < width; o++, from++, to++)
        for (int64_t n = 0; n < batch; n++)
            to[rows[n] * width] = from[n * QUAD];
}

/* Sample n's outputs, one behind the other; up to a quad more is written. */
static void batch_row(const struct stack *stack, int32_t n, float *y)
{
    const struct stack_layer *last = &stack->layer[stack->layers - 1];
    for (int32_t o = 0; o < last->out; o += QUAD)
        quad_store_any(y + o, quad_load(last->y + o / QUAD * stack->plane + n * QUAD));
}

/* The softmax of the outputs. */
static void batch_store_softmax(const struct stack *stack)
{
    const int32_t out = stack->layer[stack->layers - 1].out;
    float y[STACK_WIDTH];
    for (int32_t n = 0; n < stack->batch; n++) {
        batch_row(stack, n, y);
        softmax_row(y, stack_row(stack->bound_y, stack->rows[n], out), out);
    }
}

/* The samples of the next step: those of this one are being used, and what has just been stored in
 * pieces cannot be loaded as vectors yet. */
static void batch_gather(struct stack *stack, struct stack_walk *walk)
{
    for (int32_t n = 0; n < stack->batch; n++)
        stack->next_rows[n] = stack_next(walk);
    batch_copy(stack, stack->bound_x, stack->next_rows, stack->layer[0].in, stack->next_x);
    if (stack->loss == OP_mse)
        batch_copy(stack, stack->bound_target, stack->next_rows,
                   stack->layer[stack->layers - 1].out, stack->next_target);
}

static void swap_floats(float **a, float **b)
{
    float *other = *a;
    *a = *b;
    *b = other;
}

static void batch_take(struct stack *stack)
{
    int32_t *rows = stack->rows;
    swap_floats(&stack->x, &stack->next_x);
    swap_floats(&stack->target, &stack->next_target);
    stack->rows = stack->next_rows;
    stack->next_rows = rows;
}

/* y = f(start + x·w), or a tile of it: squares of w side by side, and vectors of x. On the way back
 * y = (x·w)·f′. */
struct product {
    const float *x;     /* [square of rows][sample][4] */
    const float *w;     /* [square of rows][square][4 rows][4] */
    const float *start; /* [square][4], or NULL: 0 */
    const float *value; /* as y: f's, on the way back, or NULL */
    float *y;           /* [square][sample][4] */
    int64_t plane;      /* floats from a square of x or y to the next … */
    int64_t down;       /* … and from a row of squares of w */
    int32_t rows;
    enum activation function;
    bool single; /* the last square has one output, and this is the way forward */
};

/* Lane j of each quarter; j is known where the loop around it is unrolled. */
static inline __attribute__((always_inline)) vec quarter_lane(vec v, int j)
{
    switch (j) {
    case 0: return vec_quarter_lane(v, 0);
    case 1: return vec_quarter_lane(v, 1);
    case 2: return vec_quarter_lane(v, 2);
    default: return vec_quarter_lane(v, 3);
    }
}

/* A square that has one output: those of up to four vectors are finished as one. */
static inline __attribute__((always_inline)) void
batch_finish_single(const enum activation function, const int vectors, const vec *sums, float *y)
{
    vec all = sums[0];
    if (vectors > 1)
        all = vec_quarter_put(all, sums[1], 1);
    if (vectors > 2)
        all = vec_quarter_put(all, sums[2], 2);
    if (vectors > 3)
        all = vec_quarter_put(all, sums[3], 3);
    all = vec_activate((int32_t)function, all);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        vec_store(y + v * VEC_LANES, quarter_lane(all, v));
}

/* The function is known here, so that all sums are finished side by side. */
static inline __attribute__((always_inline)) void batch_finish(const struct product *p,
                                                               const enum activation function,
                                                               const int squares, const int vectors,
                                                               const vec *sums)
{
    const bool single = p->single && vectors > 1;
    const int count = (single ? squares - 1 : squares) * vectors;
    if (single)
        batch_finish_single(function, vectors, sums + count, p->y + (squares - 1) * p->plane);
#pragma GCC unroll 8
    for (int k = 0; k < count; k++) {
        int64_t at = k / vectors * p->plane + k % vectors * VEC_LANES;
        vec_store(p->y + at, p->value ? activate_grad(function, vec_load(p->value + at), sums[k])
                                      : vec_activate((int32_t)function, sums[k]));
    }
}

/* Even and odd rows have sums of their own where registers allow: half as long a chain. */
static inline __attribute__((always_inline)) void batch_tile(const struct product *p,
                                                             const int squares, const int vectors)
{
    const int count = squares * vectors, other = count <= TILE ? count : 0;
    const float *x = p->x, *w = p->w;
    vec sums[2 * TILE];
#pragma GCC unroll 8
    for (int k = 0; k < count; k++)
        sums[k] = p->start ? vec_repeat(p->start + k / vectors * QUAD) : vec_zero();
#pragma GCC unroll 4
    for (int k = 0; k < other; k++)
        sums[count + k] = vec_zero();
    for (int32_t i = 0; i < p->rows; i += QUAD, w += p->down, x += p->plane)
#pragma GCC unroll 4
        for (int r = 0; r < QUAD; r++) {
            if (i + r >= p->rows)
                break;
            vec weight[2], *to = sums + r % 2 * other;
#pragma GCC unroll 2
            for (int q = 0; q < squares; q++)
                weight[q] = vec_repeat(w + q * SQUARE + r * QUAD);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) {
                vec value = quarter_lane(vec_load(x + v * VEC_LANES), r);
#pragma GCC unroll 2
                for (int q = 0; q < squares; q++)
                    to[q * vectors + v] = vec_fma(value, weight[q], to[q * vectors + v]);
            }
        }
#pragma GCC unroll 4
    for (int k = 0; k < other; k++)
        sums[k] = vec_add(sums[k], sums[count + k]);
    switch (p->function) {
    case ACTIVATION_SIGMOID: batch_finish(p, ACTIVATION_SIGMOID, squares, vectors, sums); break;
    case ACTIVATION_TANH: batch_finish(p, ACTIVATION_TANH, squares, vectors, sums); break;
    case ACTIVATION_RELU: batch_finish(p, ACTIVATION_RELU, squares, vectors, sums); break;
    default: batch_finish(p, ACTIVATION_NONE, squares, vectors, sums);
    }
}

/* One or two squares of outputs. Loops over `vectors` are unrolled where it is known. */
static inline __attribute__((always_inline)) void batch_squares(const struct product *p,
                                                                int32_t out, const int vectors)
{
    if (out > QUAD)
        batch_tile(p, 2, vectors);
    else
        batch_tile(p, 1, vectors);
}

/* Tiles of one or two squares and up to TILE vectors; `vectors`: of all samples, or 0 where there
 * are more. */
static inline __attribute__((always_inline)) void batch_product(const struct product *whole,
                                                                int32_t out, const int vectors)
{
    for (int32_t o = 0; o < out; o += 2 * QUAD) {
        struct product p = *whole;
        p.w += o * QUAD;
        p.start += p.start ? o : 0;
        p.value += p.value ? o / QUAD * p.plane : 0;
        p.y += o / QUAD * p.plane;
        p.single = !p.value && (out - o == 1 || out - o == QUAD + 1);
        if (vectors) {
            batch_squares(&p, out - o, vectors);
            continue;
        }
        for (int64_t left = p.plane / VEC_LANES; left > 0; left -= TILE) {
            switch (left) {
            case 1: batch_squares(&p, out - o, 1); break;
            case 2: batch_squares(&p, out - o, 2); break;
            case 3: batch_squares(&p, out - o, 3); break;
            default: batch_squares(&p, out - o, 4);
            }
            p.x += TILE * VEC_LANES;
            p.value += p.value ? TILE * VEC_LANES : 0;
            p.y += TILE * VEC_LANES;
        }
    }
}

static inline __attribute__((always_inline)) void
batch_forward(struct stack *stack, const int vectors, const bool watched)
{
    const float *x = stack->x;
    for (int32_t l = 0; l < stack->layers; l++) {
        const struct stack_layer *layer = &stack->layer[l];
        batch_product(
            &(struct product){
                .x = x,
                .w = layer->w,
                .start = layer->b,
                .y = layer->y,
                .plane = stack->plane,
                .down = stack_squares(layer->out) * SQUARE,
                .rows = layer->in,
                .function = layer->activation,
            },
            layer->out, vectors);
        x = layer->y;
        if (watched)
            stack_mark(stack, watched, stack->dense->layer[l].dense);
    }
}

static void batch_mse(struct stack *stack)
{
    const struct stack_layer *last = &stack->layer[stack->layers - 1];
    float size = (float)(stack->batch * last->out);
    vec sum = vec_zero(), right = vec_zero(), scale = vec_set(stack->loss_scale * 2 / size);
    for (int64_t at = 0; at < stack_squares(last->out) * stack->plane; at += VEC_LANES) {
        vec real = vec_load(stack->real + at), y = vec_load(last->y + at);
        vec error = vec_sub(y, vec_load(stack->target + at));
        error = vec_choose_positive(real, error, vec_zero());
        sum = vec_fma(error, error, sum);
        right = vec_add(right, vec_where_small(error, stack->half, real, vec_zero()));
        vec_store(last->d + at, activate_grad(last->activation, y, vec_mul(error, scale)));
    }
    stack_store(stack->bound_loss, vec_sum(sum) / size);
    if (stack->right != OP_COUNT)
        stack_store(stack->bound_right, vec_sum(right));
}

static void batch_classes(struct stack *stack)
{
    const struct stack_layer *last = &stack->layer[stack->layers - 1];
    const int64_t plane = stack->plane;
    float loss = 0, right = 0, y[STACK_WIDTH], d[STACK_WIDTH];
    for (int32_t n = 0; n < stack->batch; n++) {
        batch_row(stack, n, y);
        loss += stack_cross_entropy(stack, y, stack->rows[n], d) / (float)stack->batch;
        for (int32_t o = 0; o < last->out; o++)
            last->d[o / QUAD * plane + n * QUAD + o % QUAD] = d[o];
        if (stack->right != OP_COUNT)
            right += stack_right(stack, y, stack->rows[n]);
    }
    activate_grad_span((int32_t)last->activation, 0, last->y, last->d, last->d,
                       stack_squares(last->out) * plane);
    stack_store(stack->bound_loss, loss);
    if (stack->right != OP_COUNT)
        stack_store(stack->bound_right, right);
}

/* `rows` rows of a square: w -= rate·xᵀ·d, a sum over the samples; w is the weight, or what takes
 * its gradient. */
static inline __attribute__((always_inline)) void batch_square(const int rows, const int vectors,
                                                               const float *x, const float *d,
                                                               int64_t plane, vec rate, float *w,
                                                               float *back)
{
    const int64_t end = vectors ? vectors * VEC_LANES : plane;
    vec sums[QUAD] = {vec_zero(), vec_zero(), vec_zero(), vec_zero()};
#pragma GCC unroll 4
    for (int64_t at = 0; at < end; at += VEC_LANES) {
        vec value = vec_load(x + at), gradients = vec_load(d + at);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
            sums[r] = vec_fma(quarter_lane(value, r), gradients, sums[r]);
    }
    vec_fold_step(sums, rate, w, back);
}

static inline __attribute__((always_inline)) void
batch_bias(const struct stack *stack, const struct stack_layer *layer, quad rate, const int vectors)
{
    const int64_t plane = vectors ? vectors * VEC_LANES : stack->plane;
    const float *d = layer->d;
    for (int32_t o = 0; o < layer->out; o += QUAD) {
        vec sum = vec_zero();
#pragma GCC unroll 4
        for (int64_t at = 0; at < plane; at += VEC_LANES, d += VEC_LANES)
            sum = vec_add(sum, vec_load(d));
        float *b = layer->b + stack->into + o; /* [4] */
        quad_store(b, quad_sub(quad_load(b), quad_mul(vec_fold(sum), rate)));
    }
}

/* W -= rate·xᵀ·d, square by square, and its other form the same. */
static inline __attribute__((always_inline)) void batch_update(const struct stack *stack,
                                                               const struct stack_layer *layer,
                                                               const float *x, float rate,
                                                               const int vectors)
{
    const int64_t plane = stack->plane, down = stack_squares(layer->in) * SQUARE;
    const vec rates = vec_set(rate);
    float *w = layer->w + stack->into;
    for (int32_t i = 0; i < layer->in; i += QUAD, x += plane) {
        const float *d = layer->d;
        float *back = layer->back && !stack->into ? layer->back + i * QUAD : NULL;
        for (int32_t o = 0; o < layer->out; o += QUAD, w += SQUARE, d += plane) {
            switch (layer->in - i) {
            case 1: batch_square(1, vectors, x, d, plane, rates, w, back); break;
            case 2: batch_square(2, vectors, x, d, plane, rates, w, back); break;
            case 3: batch_square(3, vectors, x, d, plane, rates, w, back); break;
            default: batch_square(4, vectors, x, d, plane, rates, w, back);
            }
            back += back ? down : 0;
        }
    }
    if (layer->kept_b[0])
        batch_bias(stack, layer, quad_set(rate), vectors);
}

/* A layer's d is the gradient of what its activation was given; the loss gave the last one's. */
static inline __attribute__((always_inline)) void
batch_backward(struct stack *stack, const int vectors, const bool watched)
{
    const float rate = stack_factor(stack);
    for (int32_t l = stack->layers - 1; l >= 0; l--) {
        const struct stack_layer *layer = &stack->layer[l], *below = layer - 1;
        if (l)
            batch_product(
                &(struct product){
                    .x = layer->d,
                    .w = layer->back,
                    .value = below->y,
                    .y = below->d,
                    .plane = stack->plane,
                    .down = stack_squares(layer->in) * SQUARE,
                    .rows = layer->out,
                    .function = below->activation,
                },
                layer->in, vectors);
        batch_update(stack, layer, l ? below->y : stack->x, rate, vectors);
        if (watched)
            stack_mark(stack, watched, stack->backward[l]);
    }
    stack_end_step(stack);
    if (watched)
        stack_mark_end(stack);
}

static inline __attribute__((always_inline)) void
steps_vectors(struct stack *stack, int64_t steps, const int vectors, const bool watched)
{
    struct stack_walk walk = stack_begin(stack, steps);
    batch_gather(stack, &walk);
    for (int64_t s = 0; s < steps; s++) {
        batch_take(stack);
        if (s + 1 < steps)
            batch_gather(stack, &walk);
        if (watched)
            stack_mark(stack, watched, stack->dense->load_x);
        batch_forward(stack, vectors, watched);
        if (stack->bound_y && stack->bound_y->data)
            (stack->probabilities ? batch_store_softmax : batch_store)(stack);
        if (watched && stack->bound_y)
            stack_mark(stack, watched, stack->dense->store_y);
        if (stack->loss == OP_mse)
            batch_mse(stack);
        else if (stack->loss == OP_cross_entropy)
            batch_classes(stack);
        if (watched && stack->loss != OP_COUNT)
            stack_mark(stack, watched, stack->dense->loss);
        if (stack->trains)
            batch_backward(stack, vectors, watched);
    }
}

/* A function for each number of vectors: with the address of everything checked, all in one take a
 * compiler a minute. */
#define BY_VECTORS(EACH) EACH(0) EACH(1) EACH(2) EACH(3) EACH(4)
#define DEFINE_STEPS(vectors)                                                                      \
    static __attribute__((noinline)) void steps_of_##vectors(struct stack *stack, int64_t steps)   \
    {                                                                                              \
        steps_vectors(stack, steps, vectors, false);                                               \
    }                                                                                              \
    static __attribute__((noinline)) void watched_of_##vectors(struct stack *stack, int64_t steps) \
    {                                                                                              \
        steps_vectors(stack, steps, vectors, true);                                                \
    }
BY_VECTORS(DEFINE_STEPS)

void ISA(stack_batch)(struct stack *stack, int64_t steps)
{
#define STEPS(vectors) steps_of_##vectors,
    static stack_steps *const by_vectors[] = {BY_VECTORS(STEPS)};
    const int64_t vectors = stack->plane / VEC_LANES;
    by_vectors[vectors <= TILE ? vectors : 0](stack, steps);
}

/* With marks: the same code, and the clock between its parts. */
void ISA(stack_batch_watched)(struct stack *stack, int64_t steps)
{
#define WATCHED(vectors) watched_of_##vectors,
    static stack_steps *const by_vectors[] = {BY_VECTORS(WATCHED)};
    const int64_t vectors = stack->plane / VEC_LANES;
    by_vectors[vectors <= TILE ? vectors : 0](stack, steps);
}
