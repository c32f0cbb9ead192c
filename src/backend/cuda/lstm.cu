/* lstm.cu: the lstm over a whole sequence, and its gradient. x·Wx + bx is one product over all
 * steps, and so are the gradients of the weights; what goes from step to step is one kernel
 * (lstm_resident.cu) for layers of up to 256 units.
 *
 * For wider ones it is two kernels a step: forward h·Wh is added to the sums and the cell advances,
 * hn and cn serving as the running state; backward the gates' gradients, then dh = dgates·Whᵀ, with
 * dh0 and dc0 as the running state. */
#include "backend/cuda/families.h"
#include "backend/cuda/gemm.h"
#include "backend/cuda/lstm_resident.h"

/* gates += sum + bh */
struct to_gates {
    float *gates; /* of the step */
    int64_t stride;
    const float *bias;
    __device__ void put(int64_t row, int64_t col, float sum) const
    {
        gates[row * stride + col] += sum + bias[col];
    }
};

static __global__ void lstm_cell(struct sequence sequence, int64_t step, struct gate_block gates,
                                 float *h, float *c, float *y, float *cells)
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
        float i = sigmoid(gate[0]), f = sigmoid(gate[hidden]);
        float g = tanhf(gate[2 * hidden]), o = sigmoid(gate[3 * hidden]);
        gate[0] = i, gate[hidden] = f, gate[2 * hidden] = g, gate[3 * hidden] = o;
        c[index] = f * c[index] + i * g;
        h[index] = o * tanhf(c[index]);
        y[place] = h[index];
        if (cells)
            cells[place] = c[index];
    }
}

/* Operands, as ops.def numbers them. */
enum { LSTM_X, LSTM_WX, LSTM_WH, LSTM_BX, LSTM_BH, LSTM_H0, LSTM_C0, LSTM_LENGTHS };
enum { LSTM_Y = 8, LSTM_HN, LSTM_CN, LSTM_SUMS, LSTM_GATES, LSTM_CELLS };

/* Workspace: the sums of all steps where the gates are not kept, then the exchanged words. */
static uint64_t sums_bytes(const struct program *program, const struct op *op)
{
    const struct shape *x = &program->tensors[op_input(program, op, LSTM_X)].shape;
    const struct shape *wh = &program->tensors[op_input(program, op, LSTM_WH)].shape;
    const bool kept = op_output(program, op, LSTM_GATES - LSTM_Y) >= 0;
    return kept ? 0 : (uint64_t)(x->dim[0] * x->dim[1] * wh->dim[1]) * sizeof(float);
}

uint64_t workspace_lstm(const struct program *program, const struct op *op)
{
    const int64_t n = program->tensors[op_input(program, op, LSTM_X)].shape.dim[0];
    return sums_bytes(program, op) + lstm_words_bytes(n, false);
}

/* Sums lie in `gates`, by sample. */
static void step_by_step(const struct call *call, struct queue *queue,
                         const struct sequence &sequence, const struct gate_block &gates)
{
    const int64_t n = sequence.n, hidden = sequence.hidden, all = 4 * hidden;
    float *h = call_reals(call, LSTM_HN), *c = call_reals(call, LSTM_CN);
    begin_state(queue, n * hidden, call_reals(call, LSTM_H0), h);
    begin_state(queue, n * hidden, call_reals(call, LSTM_C0), c);
    for (int64_t step = 0; step < sequence.steps; step++) {
        gemm(queue, n, all, hidden, by_row{h, hidden}, by_column{call_reals(call, LSTM_WH), all},
             to_gates{gates.data + step * all, gates.sample_stride, call_reals(call, LSTM_BH)});
        enqueue(queue, lstm_cell, dim3(blocks_striding(n * hidden)), dim3(THREADS), sequence, step,
                gates, h, c, call_reals(call, LSTM_Y), call_reals(call, LSTM_CELLS));
    }
}

void launch_lstm(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, LSTM_X, 0), steps = call_dim(call, LSTM_X, 1);
    const int64_t in = call_dim(call, LSTM_X, 2), hidden = call_dim(call, LSTM_WH, 0);
    const int64_t all = 4 * hidden;
    const struct sequence sequence = {n, steps, hidden, call_integers(call, LSTM_LENGTHS)};
    const bool kept = call_has(call, LSTM_GATES);
    float *sums = kept ? call_reals(call, LSTM_GATES) : (float *)call->workspace;

    gemm(queue, n * steps, all, in, by_row{call_reals(call, LSTM_X), in},
         by_column{call_reals(call, LSTM_WX), all},
         to_layer{sums, all, call_reals(call, LSTM_BX), ACTIVATION_NONE});
    if (!lstm_is_resident(hidden)) {
        step_by_step(call, queue, sequence, gate_block{sums, steps * all, all});
        return;
    }
    const struct lstm_forward lstm = {call_reals(call, LSTM_WH),
                                      call_reals(call, LSTM_BH),
                                      call_reals(call, LSTM_H0),
                                      call_reals(call, LSTM_C0),
                                      sums,
                                      call_reals(call, LSTM_Y),
                                      call_reals(call, LSTM_HN),
                                      call_reals(call, LSTM_CN),
                                      call_reals(call, LSTM_GATES),
                                      call_reals(call, LSTM_CELLS),
                                      (char *)call->workspace +
                                          sums_bytes(call->program, call->op)};
    lstm_resident(queue, sequence, lstm);
}

struct lstm_saved {
    struct gate_block gates;
    const float *cells, *c0, *dy; /* c0 and dy may be NULL */
};

/* dh and dc come in as the gradients from later steps; dc goes out as the one of this step's
 * start. */
static __global__ void lstm_cell_grad(struct sequence sequence, int64_t step,
                                      struct lstm_saved saved, const float *dh, float *dc,
                                      struct gate_block dgates)
{
    const int64_t hidden = sequence.hidden;
    FOR_EACH(index, sequence.n * hidden)
    {
        const int64_t sample = index / hidden, unit = index % hidden;
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

/* Workspace: the exchanged words, and when they are spent, parts of the weights' gradients. */
uint64_t workspace_lstm_grad(const struct program *program, const struct op *op)
{
    const int64_t n = program->tensors[op_input(program, op, GRAD_X)].shape.dim[0];
    const uint64_t words = lstm_words_bytes(n, true), parts = workspace_sums_grad(program, op);
    return words > parts ? words : parts;
}

static void step_by_step_back(const struct call *call, struct queue *queue,
                              const struct sequence &sequence, const struct lstm_saved &saved,
                              const struct gate_block &dgates)
{
    const int64_t n = sequence.n, hidden = sequence.hidden, all = 4 * hidden;
    float *dh = call_reals(call, GRAD_DH0), *dc = call_reals(call, GRAD_DC0);
    begin_state(queue, n * hidden, call_reals(call, GRAD_DHN), dh);
    begin_state(queue, n * hidden, call_reals(call, GRAD_DCN), dc);
    for (int64_t step = sequence.steps - 1; step >= 0; step--) {
        enqueue(queue, lstm_cell_grad, dim3(blocks_striding(n * hidden)), dim3(THREADS), sequence,
                step, saved, (const float *)dh, dc, dgates);
        gemm(queue, n, hidden, all, by_row{dgates.data + step * all, sequence.steps * all},
             by_row{call_reals(call, GRAD_WH), all}, to_state{dh, sequence, step, false});
    }
}

void launch_lstm_grad(const struct call *call, struct queue *queue)
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
    if (lstm_is_resident(hidden))
        lstm_resident_back(queue, sequence, lstm);
    else
        step_by_step_back(call, queue, sequence, saved, dgates);
    sums_grad(call, queue, call_reals(call, GRAD_H0), dgates.data, dgates.data,
              call->op->attr.lstm_grad.accumulate != 0);
}
