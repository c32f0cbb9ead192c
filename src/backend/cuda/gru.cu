/* gru.cu: the gated recurrent unit over a whole sequence, and its gradient.
 *
 *     r = σ(x·Wx_r + bx_r + h·Wh_r + bh_r);   z likewise
 *     s = h·Wh_n + bh_n;   m = tanh(x·Wx_n + bx_n + r·s);   h' = (1 - z)·m + z·h
 *
 * Four values a unit are kept: r, z, m and s. The order of work is the lstm's (lstm.cu); the
 * gradients of the sums with x and with h differ in m's by the reset r.
 *
 * Up to WHOLE_MOST units one kernel goes through all steps (recurrent.h), after a product for the
 * sums with x of all of them, and one goes back. Bound: a step's chain of fmaf over the units, or
 * back over the sums, and two barriers. */
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

enum { WHOLE_MOST = 96, GATES = 3 }; /* their weights take 111 KB of shared memory */

/* What the steps need of the layer's forward. */
struct gru_forward {
    const float *wh, *bh, *h0; /* h0 may be NULL */
    struct gate_block sums;    /* with x */
    bool keep;                 /* they become r, z and m, and s behind them */
    float *y, *hn;
};

static __global__ void __launch_bounds__(THREADS)
    gru_steps(struct whole_layer layer, struct gru_forward gru)
{
    extern __shared__ float shared[];
    const struct sequence &sequence = layer.sequence;
    const struct whole_seat seat(layer, shared, gru.wh);
    const int64_t hidden = sequence.hidden, stride = layer.stride();
    float *to = gru.y + (seat.sample * sequence.steps * hidden + seat.unit);
    float h = seat.lives && gru.h0 ? gru.h0[seat.cell] : 0.0f, bias[GATES];
    for (int which = 0; which < GATES; which++)
        bias[which] = seat.lives ? gru.bh[which * hidden + seat.unit] : 0.0f;

    for (int64_t step = 0; step < sequence.steps; step++, to += hidden) {
        const bool active = seat.lives && sequence.active(seat.sample, step);
        float *gate = gru.sums.of(seat.sample, step, seat.unit);
        float with_x[GATES], with_h[GATES] = {};
        if (seat.lives)
            seat.own[seat.unit] = h;
        for (int which = 0; which < GATES; which++)
            with_x[which] = active ? gate[which * hidden] : 0.0f;
        __syncthreads();
        if (active) {
            const float *column = seat.weights + seat.unit;
#pragma unroll 4
            for (int64_t k = 0; k < hidden; k++, column += stride)
                for (int which = 0; which < GATES; which++)
                    with_h[which] = fmaf(seat.own[k], column[which * hidden], with_h[which]);
            const float r = sigmoid(with_x[0] + (with_h[0] + bias[0]));
            const float z = sigmoid(with_x[1] + (with_h[1] + bias[1]));
            const float s = with_h[2] + bias[2], m = tanhf(with_x[2] + r * s);
            h = (1.0f - z) * m + z * h;
            if (gru.keep)
                gate[0] = r, gate[hidden] = z, gate[2 * hidden] = m, gate[3 * hidden] = s;
        }
        if (seat.lives)
            *to = active ? h : 0.0f;
        __syncthreads();
    }
    if (seat.lives)
        gru.hn[seat.cell] = h;
}

/* Operands, as ops.def numbers them. */
enum { GRU_X, GRU_WX, GRU_WH, GRU_BX, GRU_BH, GRU_H0, GRU_LENGTHS };
enum { GRU_Y = 7, GRU_HN, GRU_SUMS, GRU_GATES };

/* Sums of all steps, where nobody keeps them. */
uint64_t workspace_gru(const struct program *program, const struct op *op)
{
    const struct shape *x = &program->tensors[op_input(program, op, GRU_X)].shape;
    const struct shape *wh = &program->tensors[op_input(program, op, GRU_WH)].shape;
    const bool keep = program->operands[op->first + GRU_GATES] >= 0;
    return wh->dim[0] <= WHOLE_MOST && !keep
               ? (uint64_t)(x->dim[0] * x->dim[1] * wh->dim[1]) * sizeof(float)
               : 0;
}

static void launch_gru_whole(const struct call *call, struct queue *queue,
                             const struct sequence &sequence)
{
    const int64_t in = call_dim(call, GRU_X, 2), all = GATES * sequence.hidden;
    const bool keep = call_has(call, GRU_GATES);
    const int64_t kept = keep ? all + sequence.hidden : all;
    const struct gate_block sums = {keep ? call_reals(call, GRU_GATES) : (float *)call->workspace,
                                    sequence.steps * kept, kept};
    const struct gru_forward gru = {
        call_reals(call, GRU_WH), call_reals(call, GRU_BH), call_reals(call, GRU_H0), sums, keep,
        call_reals(call, GRU_Y),  call_reals(call, GRU_HN)};
    const struct whole_layer layer = lay_out(sequence, GATES);
    gemm(queue, sequence.n * sequence.steps, all, in, by_row{call_reals(call, GRU_X), in},
         by_column{call_reals(call, GRU_WX), all},
         to_layer{sums.data, kept, call_reals(call, GRU_BX), ACTIVATION_NONE});
    enqueue_large(queue, gru_steps, dim3(layer.blocks()), dim3(THREADS), layer.bytes(), layer, gru);
}

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

    if (hidden <= WHOLE_MOST) {
        launch_gru_whole(call, queue, sequence);
        return;
    }
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

/* A unit's gradients of one step. */
struct gru_slopes {
    float with_x[GATES], with_h[GATES]; /* of the sums */
    float dh; /* what reaches the state before the step other than through the sums */
};

/* `dh` is the gradient from later steps. */
static __device__ struct gru_slopes gru_slopes_of(const struct sequence &sequence, int64_t sample,
                                                  int64_t step, int64_t unit,
                                                  const struct gru_saved &saved, float dh)
{
    const int64_t hidden = sequence.hidden;
    const int64_t place = (sample * sequence.steps + step) * hidden + unit;
    const float *gate = saved.gates.of(sample, step, unit);
    const float r = gate[0], z = gate[hidden], m = gate[2 * hidden], s = gate[3 * hidden];
    const float before = step > 0   ? saved.y[place - hidden]
                         : saved.h0 ? saved.h0[sample * hidden + unit]
                                    : 0.0f;
    const float dy = saved.dy ? dh + saved.dy[place] : dh;
    const float dm = dy * (1.0f - z) * (1.0f - m * m);
    const float dr = dm * s * r * (1.0f - r), dz = dy * (before - m) * z * (1.0f - z);
    return {{dr, dz, dm}, {dr, dz, dm * r}, dy * z};
}

static __global__ void __launch_bounds__(THREADS)
    gru_steps_back(struct whole_layer layer, const float *wh, struct gru_saved saved,
                   const float *dhn, float *dh0, struct gate_block dgates, struct gate_block dsums)
{
    extern __shared__ float shared[];
    const struct sequence &sequence = layer.sequence;
    const struct whole_seat seat(layer, shared, wh);
    const int64_t hidden = sequence.hidden;
    float dh = seat.lives && dhn ? dhn[seat.cell] : 0.0f;

    for (int64_t step = sequence.steps - 1; step >= 0; step--) {
        const bool active = seat.lives && sequence.active(seat.sample, step);
        struct gru_slopes slopes = {};
        if (active)
            slopes = gru_slopes_of(sequence, seat.sample, step, seat.unit, saved, dh);
        for (int which = 0; seat.lives && which < GATES; which++) {
            const int64_t at = which * hidden;
            dgates.of(seat.sample, step, seat.unit)[at] = slopes.with_x[which];
            dsums.of(seat.sample, step, seat.unit)[at] = slopes.with_h[which];
            seat.own[at + seat.unit] = slopes.with_h[which];
        }
        __syncthreads();
        if (active) {
            const float *row = seat.weights + seat.unit * layer.stride();
            float sum = 0.0f;
#pragma unroll 8
            for (int64_t k = 0; k < GATES * hidden; k++)
                sum = fmaf(seat.own[k], row[k], sum);
            dh = slopes.dh + sum;
        }
        __syncthreads();
    }
    if (seat.lives)
        dh0[seat.cell] = dh;
}

/* dh comes in as the gradient from later steps and goes out as what reaches the state before the
 * step other than through the sums. */
static __global__ void gru_cell_grad(struct sequence sequence, int64_t step, struct gru_saved saved,
                                     float *dh, struct gate_block dgates, struct gate_block dsums)
{
    const int64_t hidden = sequence.hidden;
    FOR_EACH(index, sequence.n * hidden)
    {
        const int64_t sample = index / hidden, unit = index % hidden;
        struct gru_slopes slopes = {};
        if (sequence.active(sample, step)) {
            slopes = gru_slopes_of(sequence, sample, step, unit, saved, dh[index]);
            dh[index] = slopes.dh;
        }
        for (int which = 0; which < GATES; which++) {
            dgates.of(sample, step, unit)[which * hidden] = slopes.with_x[which];
            dsums.of(sample, step, unit)[which * hidden] = slopes.with_h[which];
        }
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

    if (hidden <= WHOLE_MOST) {
        const struct whole_layer layer = lay_out(sequence, GATES);
        enqueue_large(queue, gru_steps_back, dim3(layer.blocks()), dim3(THREADS), layer.bytes(),
                      layer, (const float *)call_reals(call, GRAD_WH), saved,
                      (const float *)call_reals(call, GRAD_DHN), dh, dgates, dsums);
    } else {
        begin_state(queue, n * hidden, call_reals(call, GRAD_DHN), dh);
        for (int64_t step = steps - 1; step >= 0; step--) {
            enqueue(queue, gru_cell_grad, dim3(blocks_striding(n * hidden)), dim3(THREADS),
                    sequence, step, saved, dh, dgates, dsums);
            gemm(queue, n, hidden, all, by_row{dsums.data + step * all, steps * all},
                 by_row{call_reals(call, GRAD_WH), all}, to_state{dh, sequence, step, true});
        }
    }
    sums_grad(call, queue, saved.h0, dgates.data, dsums.data,
              call->op->attr.gru_grad.accumulate != 0);
}
