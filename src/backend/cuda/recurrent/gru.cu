/* gru.cu: the gated recurrent unit over a whole sequence, and its gradient.
 *
 *     r = σ(x·Wx_r + bx_r + h·Wh_r + bh_r);   z likewise
 *     s = h·Wh_n + bh_n;   m = tanh(x·Wx_n + bx_n + r·s);   h' = (1 - z)·m + z·h
 *
 * Four values a unit are kept: r, z, m and s. The order of work is the lstm's (lstm.cu); the
 * gradients of the sums with x and with h differ in m's by the reset r.
 *
 * Where takes_gru_persistent (recurrent_choice.cu) one kernel goes through all steps (recurrent.h),
 * after a product for the sums with x of all of them, and one goes back. Bound: a step's chain of
 * fmaf over the units, or back over the sums, and two barriers. */
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/recurrent/recurrent.h"
#include "backend/cuda/recurrent/recurrent_step.h"

enum { GATES = 3 };

/* Sums with x become r, z, m and s; the state h moves on. `with_h` is h·Wh, [n, gates], to which
 * `bias` belongs. */
static __global__ void gru_cell(struct sequence sequence, int64_t step, struct pieces with_h,
                                const float *bias, struct gate_block gates, float *h, float *y)
{
    const int64_t hidden = sequence.hidden;
    allow_next();
    await_last();
    FOR_EACH(index, sequence.n * hidden)
    {
        uint32_t unit;
        const int64_t sample = split_number(index, (uint32_t)hidden, &unit);
        const int64_t place = (sample * sequence.steps + step) * hidden + unit;
        float *gate = gates.of(sample, step, unit), sum[GATES];
        if (!sequence.active(sample, step)) {
            y[place] = 0.0f;
            continue;
        }
#pragma unroll
        for (int which = 0; which < GATES; which++) {
            const int64_t column = which * hidden + unit;
            sum[which] = with_h.at(sample * GATES * hidden + column) + bias[column];
        }
        const float r = sigmoid(gate[0] + sum[0]), z = sigmoid(gate[hidden] + sum[1]);
        const float s = sum[2], m = tanhf(gate[2 * hidden] + r * s);
        gate[0] = r, gate[hidden] = z, gate[2 * hidden] = m, gate[3 * hidden] = s;
        h[index] = (1.0f - z) * m + z * h[index];
        y[place] = h[index];
    }
}

/* What the steps need of the layer's forward. */
struct gru_forward {
    const float *wh, *bh, *h0; /* h0 may be NULL */
    struct gate_block sums;    /* with x */
    bool keep;                 /* they become r, z and m, and s behind them */
    float *y, *hn;
};

static __global__ void __launch_bounds__(THREADS)
    gru_steps(struct persistent_layer layer, struct gru_forward gru)
{
    extern __shared__ float shared[];
    const struct sequence &sequence = layer.sequence;
    const struct persistent_seat seat(layer, shared, gru.wh);
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

/* Workspace: the sums of all steps, where nobody keeps them; then, one after the other, what the
 * product that makes them needs, and the pieces of a step's product. */
static uint64_t sums_bytes(const struct program *program, const struct op *op)
{
    const struct shape *x = &program->tensors[op_input(program, op, AT_gru_x)].shape;
    const int64_t hidden = program->tensors[op_input(program, op, AT_gru_wh)].shape.dim[0];
    const bool keep = program->operands[op->first + AT_gru_gates] >= 0;
    return keep ? 0 : padded((uint64_t)(x->dim[0] * x->dim[1] * 4 * hidden) * sizeof(float));
}

uint64_t workspace_gru(const struct program *program, const struct op *op)
{
    const int64_t n = program->tensors[op_input(program, op, AT_gru_x)].shape.dim[0];
    const struct shape *wh = &program->tensors[op_input(program, op, AT_gru_wh)].shape;
    return sums_bytes(program, op) +
           max(workspace_inputs(program, op), step_bytes(n, wh->dim[1], wh->dim[0]));
}

static void run_gru(const struct call *call, struct queue *queue, bool persistent)
{
    const int64_t n = call_dim(call, AT_gru_x, 0), steps = call_dim(call, AT_gru_x, 1);
    const int64_t hidden = call_dim(call, AT_gru_wh, 0), kept = 4 * hidden;
    const struct sequence sequence = {n, steps, hidden, call_integers(call, AT_gru_lengths)};
    const struct persistent_layer layer = lay_out(sequence, GATES);
    const bool keep = call_has(call, AT_gru_gates);
    float *h = call_reals(call, AT_gru_hn), *y = call_reals(call, AT_gru_y);
    const float *wh = call_reals(call, AT_gru_wh), *bh = call_reals(call, AT_gru_bh);
    const struct gate_block gates = {
        keep ? call_reals(call, AT_gru_gates) : (float *)call->workspace, steps * kept, kept};
    char *room = (char *)call->workspace + sums_bytes(call->program, call->op);

    sums_of_inputs(call, queue, gates.data, kept, room);
    if (persistent) {
        const struct gru_forward gru = {wh, bh, call_reals(call, AT_gru_h0), gates, keep, y, h};
        enqueue_large(queue, gru_steps, dim3(layer.blocks()), dim3(THREADS), layer.bytes(), layer,
                      gru);
        return;
    }
    begin_state(queue, n * hidden, call_reals(call, AT_gru_h0), h);
    for (int64_t step = 0; step < steps; step++) {
        const struct pieces with_h =
            step_product<false>(queue, n, GATES * hidden, hidden, h, hidden, wh, (float *)room);
        enqueue_early(queue, gru_cell, dim3(blocks_striding(n * hidden)), dim3(THREADS), 0,
                      sequence, step, with_h, bh, gates, h, y);
    }
}

void launch_gru(const struct call *call, struct queue *queue)
{
    run_gru(call, queue, false);
}

void launch_gru_persistent(const struct call *call, struct queue *queue)
{
    run_gru(call, queue, true);
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
    gru_steps_back(struct persistent_layer layer, const float *wh, struct gru_saved saved,
                   const float *dhn, float *dh0, struct gate_block dgates, struct gate_block dsums)
{
    extern __shared__ float shared[];
    const struct sequence &sequence = layer.sequence;
    const struct persistent_seat seat(layer, shared, wh);
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

/* dh comes in as the gradient from later steps, what came through the sums in pieces unless this is
 * the last one, and goes out as what reaches the state before the step other than through the sums.
 */
static __global__ void gru_cell_grad(struct sequence sequence, int64_t step, struct gru_saved saved,
                                     struct pieces pieces, float *dh, struct gate_block dgates,
                                     struct gate_block dsums)
{
    const int64_t hidden = sequence.hidden;
    allow_next();
    await_last();
    FOR_EACH(index, sequence.n * hidden)
    {
        uint32_t unit;
        const int64_t sample = split_number(index, (uint32_t)hidden, &unit);
        if (pieces.count > 0 && sequence.active(sample, step + 1))
            dh[index] += pieces.at(index);
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

/* One after the other: the pieces of a step's product, and what sums_grad needs. */
uint64_t workspace_gru_grad(const struct program *program, const struct op *op)
{
    const int64_t n = program->tensors[op_input(program, op, GRAD_X)].shape.dim[0];
    const struct shape *wh = &program->tensors[op_input(program, op, GRAD_WH)].shape;
    return max(workspace_sums_grad(program, op), step_bytes(n, wh->dim[0], wh->dim[1]));
}

static void run_gru_grad(const struct call *call, struct queue *queue, bool persistent)
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
    const struct persistent_layer layer = lay_out(sequence, GATES);

    if (persistent) {
        enqueue_large(queue, gru_steps_back, dim3(layer.blocks()), dim3(THREADS), layer.bytes(),
                      layer, (const float *)call_reals(call, GRAD_WH), saved,
                      (const float *)call_reals(call, GRAD_DHN), dh, dgates, dsums);
    } else {
        struct pieces pieces = {};
        begin_state(queue, n * hidden, call_reals(call, GRAD_DHN), dh);
        for (int64_t step = steps - 1; step >= 0; step--) {
            enqueue_early(queue, gru_cell_grad, dim3(blocks_striding(n * hidden)), dim3(THREADS), 0,
                          sequence, step, saved, pieces, dh, dgates, dsums);
            pieces = step_product<true>(queue, n, hidden, all, dsums.data + step * all, steps * all,
                                        call_reals(call, GRAD_WH), (float *)call->workspace);
        }
        step_finish_product(queue, hidden, pieces, to_state{dh, sequence, 0, true});
    }
    sums_grad(call, queue, saved.h0, dgates.data, dsums.data,
              call->op->attr.gru_grad.accumulate != 0);
}

void launch_gru_grad(const struct call *call, struct queue *queue)
{
    run_gru_grad(call, queue, false);
}

void launch_gru_grad_persistent(const struct call *call, struct queue *queue)
{
    run_gru_grad(call, queue, true);
}
