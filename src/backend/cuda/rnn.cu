/* rnn.cu: the plain recurrent layer over a whole sequence, h' = f(x·Wx + bx + h·Wh + bh), and its
 * gradient.
 *
 * Forward: y holds x·Wx + bx of all steps, from one product; then for each step h·Wh is added and f
 * taken in the product's ending. The state before a step is read from y, so that no block reads
 * what another writes. Backward: as for the lstm (lstm.cu). */
#include "backend/cuda/families.h"
#include "backend/cuda/gemm.h"
#include "backend/cuda/recurrent.h"

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

/* Operands, as ops.def numbers them. */
enum { RNN_X, RNN_WX, RNN_WH, RNN_BX, RNN_BH, RNN_H0, RNN_LENGTHS, RNN_Y, RNN_HN };

void launch_rnn(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, RNN_X, 0), steps = call_dim(call, RNN_X, 1);
    const int64_t in = call_dim(call, RNN_X, 2), hidden = call_dim(call, RNN_WH, 0);
    const struct sequence sequence = {n, steps, hidden, call_integers(call, RNN_LENGTHS)};
    const by_column wh = {call_reals(call, RNN_WH), hidden};
    float *y = call_reals(call, RNN_Y), *h = call_reals(call, RNN_HN);

    begin_state(queue, n * hidden, call_reals(call, RNN_H0), h);
    gemm(queue, n * steps, hidden, in, by_row{call_reals(call, RNN_X), in},
         by_column{call_reals(call, RNN_WX), hidden},
         to_layer{y, hidden, call_reals(call, RNN_BX), ACTIVATION_NONE});
    for (int64_t step = 0; step < steps; step++) {
        const by_row before = step > 0 ? by_row{y + (step - 1) * hidden, steps * hidden}
                                       : by_row{call_reals(call, RNN_H0), hidden};
        const bool zeros = step == 0 && !call_has(call, RNN_H0);
        const struct to_next_state finish = {
            sequence, step, call_reals(call, RNN_BH),
            y,        h,    (enum activation)call->op->attr.rnn.function};
        gemm(queue, n, hidden, zeros ? 0 : hidden, before, wh, finish);
    }
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
        const float slope = activation_slope(function, 0.0f, y[place]);
        const float both = dy ? dh[index] + dy[place] : dh[index];
        dgates[place] = sequence.active(sample, step) ? both * slope : 0.0f;
    }
}

enum { GRAD_X, GRAD_WX, GRAD_WH, GRAD_Y, GRAD_H0, GRAD_LENGTHS, GRAD_DY, GRAD_DHN };
enum { GRAD_DH0 = 13, GRAD_DGATES };

void launch_rnn_grad(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, GRAD_X, 0), steps = call_dim(call, GRAD_X, 1);
    const int64_t hidden = call_dim(call, GRAD_WH, 0);
    const struct sequence sequence = {n, steps, hidden, call_integers(call, GRAD_LENGTHS)};
    float *dh = call_reals(call, GRAD_DH0), *dgates = call_reals(call, GRAD_DGATES);

    begin_state(queue, n * hidden, call_reals(call, GRAD_DHN), dh);
    for (int64_t step = steps - 1; step >= 0; step--) {
        enqueue(queue, rnn_cell_grad, dim3(blocks_striding(n * hidden)), dim3(THREADS), sequence,
                step, (enum activation)call->op->attr.rnn_grad.function,
                (const float *)call_reals(call, GRAD_Y), (const float *)call_reals(call, GRAD_DY),
                (const float *)dh, dgates);
        gemm(queue, n, hidden, hidden, by_row{dgates + step * hidden, steps * hidden},
             by_row{call_reals(call, GRAD_WH), hidden}, to_state{dh, sequence, step, false});
    }
    sums_grad(call, queue, call_reals(call, GRAD_H0), dgates, dgates,
              call->op->attr.rnn_grad.accumulate != 0);
}
