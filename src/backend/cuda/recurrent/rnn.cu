/* rnn.cu: the plain recurrent layer over a whole sequence, h' = f(x·Wx + bx + h·Wh + bh), and its
 * gradient.
 *
 * Forward: y holds x·Wx + bx of all steps, from one product; then for each step h·Wh is added and f
 * taken. Up to 128 units one kernel goes through all steps (recurrent.h). Wider layers
 * take a product a step (recurrent_step.h), in whose ending f is taken. Backward alike, and then as
 * for the lstm (lstm.cu).
 *
 * Each sum is a chain of fmaf in the order of depth; the second way adds up pieces. Bound of the
 * first: a step's chain, about 10 cycles a unit, and two barriers. */
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/recurrent/recurrent.h"
#include "backend/cuda/recurrent/recurrent_step.h"

/* y = h = f(y + sum + bh); beyond the sample's length y is 0 and h stands still. */
struct to_next_state {
    struct sequence sequence;
    int64_t step;
    const float *bias;
    float *y, *h;
    enum activation function;
    __device__ void put(int64_t row, int64_t col, float sum) const
    {
        float *to = &y[(row * sequence.steps + step) * sequence.hidden + col];
        if (!sequence.active(row, step)) {
            *to = 0.0f;
            return;
        }
        *to = activation_value(function, *to + (sum + bias[col]));
        h[row * sequence.hidden + col] = *to;
    }
};

static __global__ void __launch_bounds__(THREADS)
    rnn_steps(struct persistent_layer layer, enum activation function, const float *wh,
              const float *bh, const float *h0, float *y, float *hn)
{
    extern __shared__ float shared[];
    const struct sequence &sequence = layer.sequence;
    const struct persistent_seat seat(layer, shared, wh);
    const int64_t hidden = sequence.hidden, stride = layer.stride();
    float *to = y + (seat.sample * sequence.steps * hidden + seat.unit);
    float h = seat.lives && h0 ? h0[seat.cell] : 0.0f, next = seat.lives ? *to : 0.0f;
    const float bias = seat.lives ? bh[seat.unit] : 0.0f;

    for (int64_t step = 0; step < sequence.steps; step++, to += hidden) {
        const float x = next;
        if (seat.lives) {
            seat.own[seat.unit] = h;
            next = step + 1 < sequence.steps ? to[hidden] : 0.0f;
        }
        __syncthreads();
        if (seat.lives && sequence.active(seat.sample, step)) {
            const float *before = seat.own, *column = seat.weights + seat.unit;
            float sum = 0.0f;
#pragma unroll 8
            for (int64_t k = 0; k < hidden; k++)
                sum = fmaf(before[k], column[k * stride], sum);
            *to = h = activation_value(function, x + (sum + bias));
        } else if (seat.lives)
            *to = 0.0f;
        __syncthreads();
    }
    if (seat.lives)
        hn[seat.cell] = h;
}

/* dy and dhn may be NULL. */
static __global__ void __launch_bounds__(THREADS)
    rnn_steps_back(struct persistent_layer layer, enum activation function, const float *wh,
                   const float *y, const float *dy, const float *dhn, float *dh0, float *dgates)
{
    extern __shared__ float shared[];
    const struct sequence &sequence = layer.sequence;
    const struct persistent_seat seat(layer, shared, wh);
    const int64_t hidden = sequence.hidden;
    float dh = seat.lives && dhn ? dhn[seat.cell] : 0.0f;

    for (int64_t step = sequence.steps - 1; step >= 0; step--) {
        const int64_t place = (seat.sample * sequence.steps + step) * hidden + seat.unit;
        const bool active = seat.lives && sequence.active(seat.sample, step);
        if (seat.lives) {
            const float both = dy ? dh + dy[place] : dh;
            const float slope = activation_derivative(function, 0.0f, y[place]);
            const float gradient = active ? both * slope : 0.0f;
            seat.own[seat.unit] = dgates[place] = gradient;
        }
        __syncthreads();
        if (active) {
            const float *gradients = seat.own;
            const float *row = seat.weights + seat.unit * layer.stride();
            float sum = 0.0f;
#pragma unroll 8
            for (int64_t k = 0; k < hidden; k++)
                sum = fmaf(gradients[k], row[k], sum);
            dh = sum;
        }
        __syncthreads();
    }
    if (seat.lives)
        dh0[seat.cell] = dh;
}

/* What the products need, one after the other: the one over all steps, and one of a step. */
uint64_t workspace_rnn(const struct program *program, const struct op *op)
{
    const int64_t n = program->tensors[op_input(program, op, 0)].shape.dim[0];
    const int64_t hidden = program->tensors[op_input(program, op, 2)].shape.dim[0];
    return max(workspace_inputs(program, op), step_bytes(n, hidden, hidden));
}

uint64_t workspace_rnn_grad(const struct program *program, const struct op *op)
{
    return max(workspace_sums_grad(program, op), workspace_rnn(program, op));
}

static void run_rnn(const struct call *call, struct queue *queue, bool persistent)
{
    const int64_t n = call_dim(call, AT_rnn_x, 0), steps = call_dim(call, AT_rnn_x, 1);
    const int64_t hidden = call_dim(call, AT_rnn_wh, 0);
    const struct sequence sequence = {n, steps, hidden, call_integers(call, AT_rnn_lengths)};
    const enum activation function = (enum activation)call->op->attr.rnn.function;
    float *y = call_reals(call, AT_rnn_y), *h = call_reals(call, AT_rnn_hn);

    sums_of_inputs(call, queue, y, hidden, call->workspace);
    if (persistent) {
        const struct persistent_layer layer = lay_out(sequence, 1);
        enqueue_large(queue, rnn_steps, dim3(layer.blocks()), dim3(THREADS), layer.bytes(), layer,
                      function, (const float *)call_reals(call, AT_rnn_wh),
                      (const float *)call_reals(call, AT_rnn_bh),
                      (const float *)call_reals(call, AT_rnn_h0), y, h);
        return;
    }
    begin_state(queue, n * hidden, call_reals(call, AT_rnn_h0), h);
    for (int64_t step = 0; step < steps; step++) {
        const struct pieces with_h =
            step_product<false>(queue, n, hidden, hidden, h, hidden, call_reals(call, AT_rnn_wh),
                                (float *)call->workspace);
        step_finish_product(
            queue, hidden, with_h,
            to_next_state{sequence, step, call_reals(call, AT_rnn_bh), y, h, function});
    }
}

void launch_rnn(const struct call *call, struct queue *queue)
{
    run_rnn(call, queue, false);
}

void launch_rnn_persistent(const struct call *call, struct queue *queue)
{
    run_rnn(call, queue, true);
}

/* The gradient of a step's sums from those of its state and its output (dy may be NULL). */
static __global__ void rnn_cell_grad(struct sequence sequence, int64_t step,
                                     enum activation function, const float *y, const float *dy,
                                     const float *dh, float *dgates)
{
    const int64_t hidden = sequence.hidden;
    FOR_EACH(index, sequence.n * hidden)
    {
        const int64_t sample = index / hidden, unit = index % hidden;
        const int64_t place = (sample * sequence.steps + step) * hidden + unit;
        const float slope = activation_derivative(function, 0.0f, y[place]);
        const float both = dy ? dh[index] + dy[place] : dh[index];
        dgates[place] = sequence.active(sample, step) ? both * slope : 0.0f;
    }
}

enum { GRAD_X, GRAD_WX, GRAD_WH, GRAD_Y, GRAD_H0, GRAD_LENGTHS, GRAD_DY, GRAD_DHN };
enum { GRAD_DH0 = 13, GRAD_DGATES };

static void step_by_step_back(const struct call *call, struct queue *queue,
                              const struct sequence &sequence, enum activation function)
{
    const int64_t n = sequence.n, steps = sequence.steps, hidden = sequence.hidden;
    float *dh = call_reals(call, GRAD_DH0), *dgates = call_reals(call, GRAD_DGATES);
    begin_state(queue, n * hidden, call_reals(call, GRAD_DHN), dh);
    for (int64_t step = steps - 1; step >= 0; step--) {
        enqueue(queue, rnn_cell_grad, dim3(blocks_striding(n * hidden)), dim3(THREADS), sequence,
                step, function, (const float *)call_reals(call, GRAD_Y),
                (const float *)call_reals(call, GRAD_DY), (const float *)dh, dgates);
        const struct pieces below =
            step_product<true>(queue, n, hidden, hidden, dgates + step * hidden, steps * hidden,
                               call_reals(call, GRAD_WH), (float *)call->workspace);
        step_finish_product(queue, hidden, below, to_state{dh, sequence, step, false});
    }
}

static void run_rnn_grad(const struct call *call, struct queue *queue, bool persistent)
{
    const int64_t n = call_dim(call, GRAD_X, 0), steps = call_dim(call, GRAD_X, 1);
    const int64_t hidden = call_dim(call, GRAD_WH, 0);
    const struct sequence sequence = {n, steps, hidden, call_integers(call, GRAD_LENGTHS)};
    const enum activation function = (enum activation)call->op->attr.rnn_grad.function;
    float *dgates = call_reals(call, GRAD_DGATES);

    if (persistent) {
        const struct persistent_layer layer = lay_out(sequence, 1);
        enqueue_large(
            queue, rnn_steps_back, dim3(layer.blocks()), dim3(THREADS), layer.bytes(), layer,
            function, (const float *)call_reals(call, GRAD_WH),
            (const float *)call_reals(call, GRAD_Y), (const float *)call_reals(call, GRAD_DY),
            (const float *)call_reals(call, GRAD_DHN), call_reals(call, GRAD_DH0), dgates);
    } else
        step_by_step_back(call, queue, sequence, function);
    sums_grad(call, queue, call_reals(call, GRAD_H0), dgates, dgates,
              call->op->attr.rnn_grad.accumulate != 0);
}

void launch_rnn_grad(const struct call *call, struct queue *queue)
{
    run_rnn_grad(call, queue, false);
}

void launch_rnn_grad_persistent(const struct call *call, struct queue *queue)
{
    run_rnn_grad(call, queue, true);
}
