/* gru.cu: the gated recurrent unit over a whole sequence, and its gradient.
 *
 *     r = σ(x·Wx_r + bx_r + h·Wh_r + bh_r);   z likewise
 *     s = h·Wh_n + bh_n;   m = tanh(x·Wx_n + bx_n + r·s);   h' = (1 - z)·m + z·h
 *
 * Four values a unit are kept: r, z, m and s. The order of work is the lstm's (lstm.cu); the
 * gradients of the sums with x and with h differ in m's by the reset r. */
#include "backend/cuda/families.h"
#include "backend/cuda/gemm.h"
#include "backend/cuda/recurrent.h"

/* What h adds to the sums of a step: to r's and z's, while s has a place of its own. */
struct to_gru_sums {
    float *sums; /* of the step: [r, z, m, s] */
    int64_t stride, hidden;
    const float *bias;
    __device__ void put(int64_t row, int64_t col, float sum) const
    {
        float *to = &sums[row * stride + col];
        if (col < 2 * hidden)
            *to += sum + bias[col];
        else
            to[hidden] = sum + bias[col];
    }
};

/* Sums become r, z, m and s; the state h moves on. */
static __global__ void gru_cell(struct sequence sequence, int64_t step, struct gate_block gates,
                                float *h, float *y)
{
    const int64_t hidden = sequence.hidden;
    FOR_EACH(index, sequence.n * hidden)
    {
        const int64_t sample = index / hidden, unit = index % hidden;
        const int64_t place = (sample * sequence.steps + step) * hidden + unit;
        float *gate = gates.of(sample, step, unit);
        if (!sequence.active(sample, step)) {
            y[place] = 0.0f;
            continue;
        }
        const float r = sigmoid(gate[0]), z = sigmoid(gate[hidden]);
        const float m = tanhf(gate[2 * hidden] + r * gate[3 * hidden]);
        gate[0] = r, gate[hidden] = z, gate[2 * hidden] = m;
        h[index] = (1.0f - z) * m + z * h[index];
        y[place] = h[index];
    }
}

/* Operands, as ops.def numbers them. */
enum { GRU_X, GRU_WX, GRU_WH, GRU_BX, GRU_BH, GRU_H0, GRU_LENGTHS };
enum { GRU_Y = 7, GRU_HN, GRU_SUMS, GRU_GATES };

void launch_gru(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, GRU_X, 0), steps = call_dim(call, GRU_X, 1);
    const int64_t in = call_dim(call, GRU_X, 2), hidden = call_dim(call, GRU_WH, 0);
    const int64_t all = 3 * hidden, kept = 4 * hidden;
    const struct sequence sequence = {n, steps, hidden, call_integers(call, GRU_LENGTHS)};
    const float *x = call_reals(call, GRU_X), *bx = call_reals(call, GRU_BX);
    const by_column wx = {call_reals(call, GRU_WX), all}, wh = {call_reals(call, GRU_WH), all};
    float *h = call_reals(call, GRU_HN);
    const bool keep = call_has(call, GRU_GATES);
    const struct gate_block gates =
        keep ? gate_block{call_reals(call, GRU_GATES), steps * kept, kept}
             : gate_block{call_reals(call, GRU_SUMS), kept, 0};

    begin_state(queue, n * hidden, call_reals(call, GRU_H0), h);
    if (keep)
        gemm(queue, n * steps, all, in, by_row{x, in}, wx,
             to_layer{gates.data, kept, bx, ACTIVATION_NONE});
    for (int64_t step = 0; step < steps; step++) {
        float *sums = gates.data + step * gates.step_stride;
        if (!keep)
            gemm(queue, n, all, in, by_row{x + step * in, steps * in}, wx,
                 to_layer{sums, kept, bx, ACTIVATION_NONE});
        gemm(queue, n, all, hidden, by_row{h, hidden}, wh,
             to_gru_sums{sums, gates.sample_stride, hidden, call_reals(call, GRU_BH)});
        enqueue(queue, gru_cell, dim3(blocks_striding(n * hidden)), dim3(THREADS), sequence, step,
                gates, h, call_reals(call, GRU_Y));
    }
}

struct gru_saved {
    struct gate_block gates;
    const float *y, *h0, *dy; /* h0 and dy may be NULL */
};

/* dh comes in as the gradient from later steps and goes out as what reaches the state before the
 * step other than through the sums. */
static __global__ void gru_cell_grad(struct sequence sequence, int64_t step, struct gru_saved saved,
                                     float *dh, struct gate_block dgates, struct gate_block dsums)
{
    const int64_t hidden = sequence.hidden;
    FOR_EACH(index, sequence.n * hidden)
    {
        const int64_t sample = index / hidden, unit = index % hidden;
        const int64_t place = (sample * sequence.steps + step) * hidden + unit;
        const float *gate = saved.gates.of(sample, step, unit);
        float *with_x = dgates.of(sample, step, unit), *with_h = dsums.of(sample, step, unit);
        if (!sequence.active(sample, step)) {
            for (int which = 0; which < 3; which++)
                with_x[which * hidden] = with_h[which * hidden] = 0.0f;
            continue;
        }
        const float r = gate[0], z = gate[hidden], m = gate[2 * hidden], s = gate[3 * hidden];
        const float before = step > 0 ? saved.y[place - hidden] : saved.h0 ? saved.h0[index] : 0.0f;
        const float dy = saved.dy ? dh[index] + saved.dy[place] : dh[index];
        const float dm = dy * (1.0f - z) * (1.0f - m * m);
        with_x[0] = with_h[0] = dm * s * r * (1.0f - r);
        with_x[hidden] = with_h[hidden] = dy * (before - m) * z * (1.0f - z);
        with_x[2 * hidden] = dm;
        with_h[2 * hidden] = dm * r;
        dh[index] = dy * z;
    }
}

enum { GRAD_X, GRAD_WX, GRAD_WH, GRAD_Y, GRAD_GATES, GRAD_H0, GRAD_LENGTHS, GRAD_DY, GRAD_DHN };
enum { GRAD_DH0 = 14, GRAD_DGATES, GRAD_DSUMS };

void launch_gru_grad(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, GRAD_X, 0), steps = call_dim(call, GRAD_X, 1);
    const int64_t hidden = call_dim(call, GRAD_WH, 0), all = 3 * hidden, kept = 4 * hidden;
    const struct sequence sequence = {n, steps, hidden, call_integers(call, GRAD_LENGTHS)};
    const struct gru_saved saved = {{call_reals(call, GRAD_GATES), steps * kept, kept},
                                    call_reals(call, GRAD_Y),
                                    call_reals(call, GRAD_H0),
                                    call_reals(call, GRAD_DY)};
    const struct gate_block dgates = {call_reals(call, GRAD_DGATES), steps * all, all};
    const struct gate_block dsums = {call_reals(call, GRAD_DSUMS), steps * all, all};
    float *dh = call_reals(call, GRAD_DH0);

    begin_state(queue, n * hidden, call_reals(call, GRAD_DHN), dh);
    for (int64_t step = steps - 1; step >= 0; step--) {
        enqueue(queue, gru_cell_grad, dim3(blocks_striding(n * hidden)), dim3(THREADS), sequence,
                step, saved, dh, dgates, dsums);
        gemm(queue, n, hidden, all, by_row{dsums.data + step * all, steps * all},
             by_row{call_reals(call, GRAD_WH), all}, to_state{dh, sequence, step, true});
    }
    sums_grad(call, queue, saved.h0, dgates.data, dsums.data,
              call->op->attr.gru_grad.accumulate != 0);
}
