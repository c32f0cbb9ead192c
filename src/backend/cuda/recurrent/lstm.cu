/* lstm.cu: the lstm over a whole sequence, and its gradient. x·Wx + bx is one product over all
 * steps, and so are the gradients of the weights; what goes from step to step is one kernel
 * (lstm_persistent.cu) for layers of up to 256 units.
 *
 * For wider ones it is two kernels a step: forward h·Wh (recurrent_step.h), which is added to the
 * sums, and the cell advances, hn and cn serving as the running state; backward the gates'
 * gradients, then dh = dgates·Whᵀ, with dh0 and dc0 as the running state. */
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/recurrent/lstm_persistent.h"
#include "backend/cuda/recurrent/recurrent_step.h"

/* `with_h` is h·Wh, [n, gates], to which `bias` belongs. */
static __global__ void lstm_cell(struct sequence sequence, int64_t step, struct pieces with_h,
                                 const float *bias, struct gate_block gates, float *h, float *c,
                                 float *y, float *cells)
{
    const int64_t hidden = sequence.hidden;
    allow_next();
    await_last();
    FOR_EACH(index, sequence.n * hidden)
    {
        uint32_t unit;
        const int64_t sample = split_number(index, (uint32_t)hidden, &unit);
        const int64_t place = (sample * sequence.steps + step) * hidden + unit;
        float *gate = gates.of(sample, step, unit), sum[4];
        if (!sequence.active(sample, step)) {
            y[place] = 0.0f;
            continue;
        }
#pragma unroll
        for (int which = 0; which < 4; which++) {
            const int64_t column = which * hidden + unit;
            sum[which] =
                gate[which * hidden] + (with_h.at(sample * 4 * hidden + column) + bias[column]);
        }
        float i = sigmoid(sum[0]), f = sigmoid(sum[1]);
        float g = tanhf(sum[2]), o = sigmoid(sum[3]);
        gate[0] = i, gate[hidden] = f, gate[2 * hidden] = g, gate[3 * hidden] = o;
        c[index] = f * c[index] + i * g;
        h[index] = o * tanhf(c[index]);
        y[place] = h[index];
        if (cells)
            cells[place] = c[index];
    }
}

/* Workspace: the sums of all steps where the gates are not kept, then, one after the other, what
 * the product that makes them needs, and the exchanged words or the pieces of a step's product. */
static uint64_t sums_bytes(const struct program *program, const struct op *op)
{
    const struct shape *x = &program->tensors[op_input(program, op, AT_lstm_x)].shape;
    const struct shape *wh = &program->tensors[op_input(program, op, AT_lstm_wh)].shape;
    const bool kept = op_output(program, op, AT_lstm_gates - AT_lstm_y) >= 0;
    return kept ? 0 : padded((uint64_t)(x->dim[0] * x->dim[1] * wh->dim[1]) * sizeof(float));
}

uint64_t workspace_lstm(const struct program *program, const struct op *op)
{
    const int64_t n = program->tensors[op_input(program, op, AT_lstm_x)].shape.dim[0];
    const struct shape *wh = &program->tensors[op_input(program, op, AT_lstm_wh)].shape;
    return sums_bytes(program, op) +
           max(workspace_inputs(program, op),
               max(lstm_words_bytes(n, false), step_bytes(n, wh->dim[1], wh->dim[0])));
}

/* Sums lie in `gates`, by sample. */
static void step_by_step(const struct call *call, struct queue *queue,
                         const struct sequence &sequence, const struct gate_block &gates,
                         float *room)
{
    const int64_t n = sequence.n, hidden = sequence.hidden, all = 4 * hidden;
    float *h = call_reals(call, AT_lstm_hn), *c = call_reals(call, AT_lstm_cn);
    begin_state(queue, n * hidden, call_reals(call, AT_lstm_h0), h);
    begin_state(queue, n * hidden, call_reals(call, AT_lstm_c0), c);
    for (int64_t step = 0; step < sequence.steps; step++) {
        const struct pieces with_h = step_product<false>(queue, n, all, hidden, h, hidden,
                                                         call_reals(call, AT_lstm_wh), room);
        enqueue_early(queue, lstm_cell, dim3(blocks_striding(n * hidden)), dim3(THREADS), 0,
                      sequence, step, with_h, (const float *)call_reals(call, AT_lstm_bh), gates, h,
                      c, call_reals(call, AT_lstm_y), call_reals(call, AT_lstm_cells));
    }
}

static void run_lstm(const struct call *call, struct queue *queue, bool persistent)
{
    const int64_t n = call_dim(call, AT_lstm_x, 0), steps = call_dim(call, AT_lstm_x, 1);
    const int64_t hidden = call_dim(call, AT_lstm_wh, 0), all = 4 * hidden;
    const struct sequence sequence = {n, steps, hidden, call_integers(call, AT_lstm_lengths)};
    const bool kept = call_has(call, AT_lstm_gates);
    float *sums = kept ? call_reals(call, AT_lstm_gates) : (float *)call->workspace;
    void *room = (char *)call->workspace + sums_bytes(call->program, call->op);

    sums_of_inputs(call, queue, sums, all, room);
    if (!persistent) {
        step_by_step(call, queue, sequence, gate_block{sums, steps * all, all}, (float *)room);
        return;
    }
    const struct lstm_forward lstm = {call_reals(call, AT_lstm_wh),
                                      call_reals(call, AT_lstm_bh),
                                      call_reals(call, AT_lstm_h0),
                                      call_reals(call, AT_lstm_c0),
                                      sums,
                                      call_reals(call, AT_lstm_y),
                                      call_reals(call, AT_lstm_hn),
                                      call_reals(call, AT_lstm_cn),
                                      call_reals(call, AT_lstm_gates),
                                      call_reals(call, AT_lstm_cells),
                                      room};
    lstm_persistent(queue, sequence, lstm);
}

void launch_lstm(const struct call *call, struct queue *queue)
{
    run_lstm(call, queue, false);
}

void launch_lstm_persistent(const struct call *call, struct queue *queue)
{
    run_lstm(call, queue, true);
}

struct lstm_saved {
    struct gate_block gates;
    const float *cells, *c0, *dy; /* c0 and dy may be NULL */
};

/* dh and dc come in as the gradients from later steps, dh in pieces unless this is the last step;
 * dc goes out as the one of this step's start. */
static __global__ void lstm_cell_grad(struct sequence sequence, int64_t step,
                                      struct lstm_saved saved, struct pieces pieces, float *dh,
                                      float *dc, struct gate_block dgates)
{
    const int64_t hidden = sequence.hidden;
    allow_next();
    await_last();
    FOR_EACH(index, sequence.n * hidden)
    {
        uint32_t unit;
        const int64_t sample = split_number(index, (uint32_t)hidden, &unit);
        if (pieces.count > 0 && sequence.active(sample, step + 1))
            dh[index] = pieces.at(index);
        const int64_t place = (sample * sequence.steps + step) * hidden + unit;
        const float *gate = saved.gates.of(sample, step, unit);
        float *out = dgates.of(sample, step, unit);
        if (!sequence.active(sample, step)) {
            for (int which = 0; which < 4; which++)
                out[which * hidden] = 0.0f;
            continue;
        }
        const float i = gate[0], f = gate[hidden], g = gate[2 * hidden], o = gate[3 * hidden];
        const float before = step > 0   ? saved.cells[place - hidden]
                             : saved.c0 ? saved.c0[index]
                                        : 0.0f;
        const float bent = tanhf(saved.cells[place]);
        const float dy = saved.dy ? dh[index] + saved.dy[place] : dh[index];
        const float dcell = dc[index] + dy * o * (1.0f - bent * bent);
        out[0] = dcell * g * i * (1.0f - i);
        out[hidden] = dcell * before * f * (1.0f - f);
        out[2 * hidden] = dcell * i * (1.0f - g * g);
        out[3 * hidden] = dy * bent * o * (1.0f - o);
        dc[index] = dcell * f;
    }
}

enum { GRAD_X, GRAD_WX, GRAD_WH, GRAD_Y, GRAD_GATES, GRAD_CELLS, GRAD_H0, GRAD_C0 };
enum { GRAD_LENGTHS = 8, GRAD_DY, GRAD_DHN, GRAD_DCN };
enum { GRAD_DH0 = 17, GRAD_DC0, GRAD_DGATES };

/* Workspace: the exchanged words or the pieces of a step's product, and when they are spent, parts
 * of the weights' gradients. */
uint64_t workspace_lstm_grad(const struct program *program, const struct op *op)
{
    const int64_t n = program->tensors[op_input(program, op, GRAD_X)].shape.dim[0];
    const struct shape *wh = &program->tensors[op_input(program, op, GRAD_WH)].shape;
    return max(workspace_sums_grad(program, op),
               max(lstm_words_bytes(n, true), step_bytes(n, wh->dim[0], wh->dim[1])));
}

static void step_by_step_back(const struct call *call, struct queue *queue,
                              const struct sequence &sequence, const struct lstm_saved &saved,
                              const struct gate_block &dgates)
{
    const int64_t n = sequence.n, hidden = sequence.hidden, all = 4 * hidden;
    float *dh = call_reals(call, GRAD_DH0), *dc = call_reals(call, GRAD_DC0);
    struct pieces pieces = {};
    begin_state(queue, n * hidden, call_reals(call, GRAD_DHN), dh);
    begin_state(queue, n * hidden, call_reals(call, GRAD_DCN), dc);
    for (int64_t step = sequence.steps - 1; step >= 0; step--) {
        enqueue_early(queue, lstm_cell_grad, dim3(blocks_striding(n * hidden)), dim3(THREADS), 0,
                      sequence, step, saved, pieces, dh, dc, dgates);
        pieces = step_product<true>(queue, n, hidden, all, dgates.data + step * all,
                                    sequence.steps * all, call_reals(call, GRAD_WH),
                                    (float *)call->workspace);
    }
    step_finish_product(queue, hidden, pieces, to_state{dh, sequence, 0, false});
}

static void run_lstm_grad(const struct call *call, struct queue *queue, bool persistent)
{
    const int64_t n = call_dim(call, GRAD_X, 0), steps = call_dim(call, GRAD_X, 1);
    const int64_t hidden = call_dim(call, GRAD_WH, 0), all = 4 * hidden;
    const struct sequence sequence = {n, steps, hidden, call_integers(call, GRAD_LENGTHS)};
    const struct lstm_saved saved = {{call_reals(call, GRAD_GATES), steps * all, all},
                                     call_reals(call, GRAD_CELLS),
                                     call_reals(call, GRAD_C0),
                                     call_reals(call, GRAD_DY)};
    const struct gate_block dgates = {call_reals(call, GRAD_DGATES), steps * all, all};
    const struct lstm_backward lstm = {call_reals(call, GRAD_WH),
                                       saved.gates.data,
                                       saved.cells,
                                       saved.c0,
                                       saved.dy,
                                       call_reals(call, GRAD_DHN),
                                       call_reals(call, GRAD_DCN),
                                       call_reals(call, GRAD_DH0),
                                       call_reals(call, GRAD_DC0),
                                       dgates.data,
                                       call->workspace};
    if (persistent)
        lstm_persistent_back(queue, sequence, lstm);
    else
        step_by_step_back(call, queue, sequence, saved, dgates);
    sums_grad(call, queue, call_reals(call, GRAD_H0), dgates.data, dgates.data,
              call->op->attr.lstm_grad.accumulate != 0);
}

void launch_lstm_grad(const struct call *call, struct queue *queue)
{
    run_lstm_grad(call, queue, false);
}

void launch_lstm_grad_persistent(const struct call *call, struct queue *queue)
{
    run_lstm_grad(call, queue, true);
}
