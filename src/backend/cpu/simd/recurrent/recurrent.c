/* recurrent.c: layers over time: the loops over steps and samples, and the threads that share the
 * samples, which do not need each other until the gradients of the weights. What an ISA does
 * differently is in its gemm_kernels and recurrent_kernels.
 *
 * Forward, the sums of a step are one product: [x_t | h] times [wx; wh], packed once per run, and
 * gates are computed while a panel of sums is in L1. Backward, dh += dz·whᵀ step by step; the
 * products over all steps, dz·wxᵀ, xᵀ·dz and hᵀ·dz, follow as one each. The bound is FMA. */
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/recurrent/recurrent_shared.h"
#include "backend/cpu/team.h"

#include <string.h>

enum { SUMS = 4 }; /* the most rows of `hidden` sums that a step has */

/* x [batch, time, in], wx [in, gates], wh [hidden, gates] */
struct sizes {
    int64_t batch, time, in, hidden, gates;
};

static struct sizes sizes_of(const struct shape *x, const struct shape *wh)
{
    return (struct sizes){x->dim[0], x->dim[1], x->dim[2], wh->dim[0], wh->dim[1]};
}

static int64_t length_of(const int32_t *lengths, int64_t n, int64_t time)
{
    return !lengths || lengths[n] > time ? time : lengths[n];
}

static float *row_of(const float *rows, int64_t n, int64_t width)
{
    return rows ? (float *)rows + n * width : NULL;
}

/* to [width] = row n of from, or 0 where there is none */
static void begin_row(float *to, const float *from, int64_t n, int64_t width)
{
    if (from)
        memcpy(to, from + n * width, (size_t)width * sizeof *to);
    else
        memset(to, 0, (size_t)width * sizeof *to);
}

static int64_t up(int64_t count, int64_t multiple)
{
    return (count + multiple - 1) / multiple * multiple;
}

/* What the sums of one gate are made of: columns of wx or wh or both. */
struct gate {
    int64_t column; /* in wx and wh */
    bool x, h;
};

struct job_forward {
    const struct gemm_kernels *gemm;
    recurrent_forward *step;
    struct sizes s;
    int sums;
    struct gate made_of[SUMS];
    int32_t function;
    const float *x, *wx, *wh, *bx, *bh, *h0, *c0;
    const int32_t *lengths;
    float *y, *hn, *cn, *cells;
    float *gates; /* where they are kept for the way back, or NULL … */
    int64_t kept; /* … so many a sample and step */
    /* workspace: packed weights, biases, packed rows, and the sums of a panel's units of each row:
     * rows of gates lie so far apart that they get in each other's way in the caches */
    float *panels, *start, *a, *z;
};

static const struct gate both = {0, true, true};

/* Divides the workspace, if there is one yet; returns how many floats it must have. */
static int64_t lay_out_forward(struct job_forward *job, float *workspace)
{
    const struct sizes *s = &job->s;
    int64_t panels = gemm_b_floats(job->gemm, s->in + s->hidden, s->hidden) * job->sums;
    int64_t start = up(s->hidden, job->gemm->columns) * job->sums;
    int64_t a = up(s->batch * (s->in + s->hidden), 16);
    if (workspace) {
        job->panels = workspace;
        job->start = workspace + panels;
        job->a = job->start + start;
        job->z = job->a + a;
    }
    return panels + start + a + s->batch * job->sums * job->gemm->columns;
}

/* The weights of one gate, x's rows above h's, in panels; and its biases. */
static void pack_gate(const struct job_forward *job, int p)
{
    const struct sizes *s = &job->s;
    const struct gate *gate = &job->made_of[p];
    int64_t width = job->gemm->columns, whole = s->in + s->hidden;
    float *panel = job->panels + p * gemm_b_floats(job->gemm, whole, s->hidden);
    float *start = job->start + p * up(s->hidden, width);
    for (int64_t j = 0; j < s->hidden; j += width, panel += whole * width) {
        int64_t columns = s->hidden - j < width ? s->hidden - j : width;
        const float *wx = job->wx + gate->column + j, *wh = job->wh + gate->column + j;
        if (gate->x)
            gemm_pack_b(job->gemm, (struct gemm_side){wx, s->gates, 1}, s->in, columns, panel);
        if (gate->h)
            gemm_pack_b(job->gemm, (struct gemm_side){wh, s->gates, 1}, s->hidden, columns,
                        panel + s->in * width);
        for (int64_t i = 0; i < columns; i++)
            start[j + i] = (gate->x ? job->bx[gate->column + j + i] : 0) +
                           (gate->h ? job->bh[gate->column + j + i] : 0);
    }
}

static void pack_member(void *context, int member, int members)
{
    const struct job_forward *job = context;
    for (int p = member; p < job->sums; p += members)
        pack_gate(job, p);
}

/* The sums of a panel's units from j on, for all rows: z[row][gate][unit]. */
static void sum_units(const struct job_forward *job, const float *a, float *z, int64_t rows,
                      int64_t j)
{
    const struct sizes *s = &job->s;
    int64_t width = job->gemm->columns, whole = s->in + s->hidden;
    int64_t apart = gemm_b_floats(job->gemm, whole, s->hidden); /* of two gates */
    int64_t units = up(s->hidden - j, job->gemm->lanes);        /* as vectors read them */
    for (int p = 0; p < job->sums; p++) {
        const struct gate *gate = &job->made_of[p];
        const float *panel = job->panels + p * apart + j * whole;
        const float *next = p + 1 < job->sums ? panel + apart : job->panels + (j + width) * whole;
        int64_t first = gate->x ? 0 : s->in, last = gate->h ? whole : s->in;
        gemm_times_panel(job->gemm, a, rows, whole, first,
                         (struct gemm_tile){
                             .inner = last - first,
                             .b = panel + first * width,
                             .fetch = next + first * width,
                             .c = z + p * width,
                             .stride = job->sums * width,
                             .columns = units < width ? units : width,
                             .scale = 1,
                             .start = job->start + p * up(s->hidden, width) + j,
                         });
    }
}

/* What a step makes of the sums z of a sample's units from j on. */
static void step_units(const struct job_forward *job, int64_t n, int64_t t, int64_t j,
                       const float *z)
{
    const struct sizes *s = &job->s;
    int64_t at = n * s->time + t, width = job->gemm->columns;
    int64_t units = s->hidden - j < width ? s->hidden - j : width;
    if (t >= length_of(job->lengths, n, s->time))
        return;
    job->step(&(struct recurrent_step){
        .units = units,
        .function = job->function,
        .z = z,
        .apart = width,
        .gates = job->gates ? job->gates + at * job->kept + j : NULL,
        .hidden = s->hidden,
        .h = job->hn + n * s->hidden + j,
        .c = job->cn ? job->cn + n * s->hidden + j : NULL,
    });
}

/* A sample's state after a step. Whole rows: samples lie so far apart that vectors of each in turn
 * would get in each other's way in the caches. */
static void keep_state(const struct job_forward *job, int64_t n, int64_t t)
{
    const struct sizes *s = &job->s;
    int64_t at = n * s->time + t;
    size_t bytes = (size_t)s->hidden * sizeof(float);
    if (t >= length_of(job->lengths, n, s->time)) {
        memset(job->y + at * s->hidden, 0, bytes);
        return;
    }
    memcpy(job->y + at * s->hidden, job->hn + n * s->hidden, bytes);
    if (job->cells)
        memcpy(job->cells + at * s->hidden, job->cn + n * s->hidden, bytes);
}

static void forward_member(void *context, int member, int members)
{
    const struct job_forward *job = context;
    const struct sizes *s = &job->s;
    int64_t whole = s->in + s->hidden, width = job->gemm->columns, row = job->sums * width;
    long first, last;
    pool_share(s->batch, 1, member, members, &first, &last);
    float *a = job->a + first * whole, *z = job->z + first * row;
    for (int64_t n = first; n < last; n++) {
        begin_row(row_of(job->hn, n, s->hidden), job->h0, n, s->hidden);
        if (job->cn)
            begin_row(row_of(job->cn, n, s->hidden), job->c0, n, s->hidden);
    }
    for (int64_t t = 0; t < s->time; t++) {
        const float *x = job->x + (first * s->time + t) * s->in;
        gemm_pack_a(job->gemm, (struct gemm_side){x, s->time * s->in, 1}, last - first, s->in, a,
                    whole, 0);
        gemm_pack_a(job->gemm, (struct gemm_side){job->hn + first * s->hidden, s->hidden, 1},
                    last - first, s->hidden, a, whole, s->in);
        for (int64_t j = 0; j < s->hidden; j += width) {
            sum_units(job, a, z, last - first, j);
            for (int64_t n = first; n < last; n++)
                step_units(job, n, t, j, z + (n - first) * row);
        }
        for (int64_t n = first; n < last; n++)
            keep_state(job, n, t);
    }
}

static void run_forward(const struct call *call, struct job_forward *job)
{
    const struct sizes *s = &job->s;
    int64_t flop = 2 * s->batch * s->time * s->gates * (s->in + s->hidden);
    lay_out_forward(job, call->workspace);
    pool_run(call->pool, team_for_bytes(call->pool, s->gates * (s->in + s->hidden) * 4, job->sums),
             pack_member, job);
    pool_run(call->pool, team_for_flop(call->pool, flop, s->batch), forward_member, job);
}

/* What all kinds have in common: operands 0 to 4, and where h0 and lengths are. */
static struct job_forward forward_of(const struct call *call, const struct gemm_kernels *gemm,
                                     int sums)
{
    return (struct job_forward){
        .gemm = gemm,
        .s = sizes_of(&call->tensors[AT_rnn_x]->shape, &call->tensors[AT_rnn_wh]->shape),
        .sums = sums,
        .x = call->data[AT_rnn_x],
        .wx = call->data[AT_rnn_wx],
        .wh = call->data[AT_rnn_wh],
        .bx = call->data[AT_rnn_bx],
        .bh = call->data[AT_rnn_bh],
        .h0 = call->data[AT_rnn_h0],
    };
}

void recurrent_lstm(const struct call *call, const struct gemm_kernels *gemm,
                    const struct recurrent_kernels *kernels)
{
    struct job_forward job = forward_of(call, gemm, 4);
    job.step = kernels->lstm;
    job.c0 = call->data[AT_lstm_c0];
    job.lengths = call->data[AT_lstm_lengths];
    job.y = call->data[AT_lstm_y];
    job.hn = call->data[AT_lstm_hn];
    job.cn = call->data[AT_lstm_cn];
    job.cells = call->data[AT_lstm_cells];
    job.gates = call->data[AT_lstm_gates];
    job.kept = job.s.gates;
    for (int p = 0; p < 4; p++)
        job.made_of[p] = (struct gate){p * job.s.hidden, true, true};
    run_forward(call, &job);
}

void recurrent_gru(const struct call *call, const struct gemm_kernels *gemm,
                   const struct recurrent_kernels *kernels)
{
    struct job_forward job = forward_of(call, gemm, 4);
    job.step = kernels->gru;
    job.lengths = call->data[AT_gru_lengths];
    job.y = call->data[AT_gru_y];
    job.hn = call->data[AT_gru_hn];
    job.gates = call->data[AT_gru_gates];
    job.kept = 4 * job.s.hidden;
    job.made_of[0] = both;
    job.made_of[1] = (struct gate){job.s.hidden, true, true};
    job.made_of[2] = (struct gate){2 * job.s.hidden, true, false};
    job.made_of[3] = (struct gate){2 * job.s.hidden, false, true};
    run_forward(call, &job);
}

void recurrent_rnn(const struct call *call, const struct gemm_kernels *gemm,
                   const struct recurrent_kernels *kernels)
{
    struct job_forward job = forward_of(call, gemm, 1);
    job.step = kernels->rnn;
    job.function = call->op->attr.rnn.function;
    job.lengths = call->data[AT_rnn_lengths];
    job.y = call->data[AT_rnn_y];
    job.hn = call->data[AT_rnn_hn];
    job.made_of[0] = both;
    run_forward(call, &job);
}

struct job_backward {
    const struct gemm_kernels *gemm;
    recurrent_backward *step;
    struct sizes s;
    int32_t function;
    const float *x, *wx, *wh, *y, *gates, *cells, *h0, *c0, *dy, *dhn, *dcn;
    const int32_t *lengths;
    float *dx, *dwx, *dwh, *dbx, *dbh, *dh, *dc, *dzx, *dzh; /* dzh NULL: as dzx */
    int64_t kept;                                            /* gates kept per step */
    bool accumulate;
    /* workspace: whᵀ packed, rows of dz side by side and packed, the states before all steps, and
     * per thread its sums of dzx and dzh and what a product needs */
    float *panels, *flow, *a, *before, *members;
    int64_t member_floats;
};

static int64_t lay_out_backward(struct job_backward *job, int threads, float *workspace)
{
    const struct sizes *s = &job->s;
    int64_t panels = gemm_b_floats(job->gemm, s->gates, s->hidden);
    int64_t a = up(s->batch * s->gates, 16), before = up(s->batch * s->time * s->hidden, 16);
    job->member_floats = up(2 * s->gates, 16) + gemm_floats();
    if (workspace) {
        job->panels = workspace;
        job->flow = workspace + panels;
        job->a = job->flow + a;
        job->before = job->a + a;
        job->members = job->before + before;
    }
    return panels + 2 * a + before + threads * job->member_floats;
}

/* One step of one sample back; beyond its length nothing flows. */
static void back_row(const struct job_backward *job, int64_t n, int64_t t, float *sums)
{
    const struct sizes *s = &job->s;
    int64_t at = n * s->time + t;
    size_t bytes = (size_t)s->gates * sizeof(float);
    float *dzx = job->dzx + at * s->gates, *dzh = row_of(job->dzh, at, s->gates);
    float *flow = job->flow + n * s->gates;
    if (t >= length_of(job->lengths, n, s->time)) {
        memset(flow, 0, bytes);
        memset(dzx, 0, bytes);
        if (dzh)
            memset(dzh, 0, bytes);
        return;
    }
    const float *cells_before =
        t ? row_of(job->cells, at - 1, s->hidden) : row_of(job->c0, n, s->hidden);
    job->step(&(struct recurrent_back){
        .hidden = s->hidden,
        .function = job->function,
        .gates = row_of(job->gates, at, job->kept),
        .y = job->y + at * s->hidden,
        .cells = row_of(job->cells, at, s->hidden),
        .before = job->cells ? cells_before : job->before + at * s->hidden,
        .dy = row_of(job->dy, at, s->hidden),
        .dh = job->dh + n * s->hidden,
        .dc = row_of(job->dc, n, s->hidden),
        .dzx = dzx,
        .dzh = dzh,
        .flow = flow,
        .sum_x = sums,
        .sum_h = sums + s->gates,
    });
}

/* The state before every step of a sample: h0, then the outputs but the last. */
static void list_states(const struct job_backward *job, int64_t n)
{
    const struct sizes *s = &job->s;
    float *before = job->before + n * s->time * s->hidden;
    begin_row(before, job->h0, n, s->hidden);
    memcpy(before + s->hidden, job->y + n * s->time * s->hidden,
           (size_t)((s->time - 1) * s->hidden) * sizeof *before);
}

/* dh += dz·whᵀ for the rows of one step. */
static void back_state(const struct job_backward *job, int64_t first, int64_t rows)
{
    const struct sizes *s = &job->s;
    int64_t width = job->gemm->columns;
    float *a = job->a + first * s->gates;
    gemm_pack_a(job->gemm, (struct gemm_side){job->flow + first * s->gates, s->gates, 1}, rows,
                s->gates, a, s->gates, 0);
    for (int64_t j = 0; j < s->hidden; j += width)
        gemm_times_panel(job->gemm, a, rows, s->gates, 0,
                         (struct gemm_tile){
                             .inner = s->gates,
                             .b = job->panels + j * s->gates,
                             .c = job->dh + first * s->hidden + j,
                             .stride = s->hidden,
                             .columns = s->hidden - j < width ? s->hidden - j : width,
                             .scale = 1,
                             .add = true,
                         });
}

static void backward_member(void *context, int member, int members)
{
    const struct job_backward *job = context;
    const struct sizes *s = &job->s;
    float *sums = job->members + member * job->member_floats;
    long first, last;
    pool_share(s->batch, 1, member, members, &first, &last);
    memset(sums, 0, (size_t)(2 * s->gates) * sizeof *sums);
    for (int64_t n = first; n < last; n++) {
        begin_row(row_of(job->dh, n, s->hidden), job->dhn, n, s->hidden);
        if (job->dc)
            begin_row(row_of(job->dc, n, s->hidden), job->dcn, n, s->hidden);
        list_states(job, n);
    }
    for (int64_t t = s->time - 1; t >= 0; t--) {
        for (int64_t n = first; n < last; n++)
            back_row(job, n, t, sums);
        back_state(job, first, last - first);
    }
    if (job->dx && first < last)
        gemm_multiply(job->gemm,
                      &(struct gemm){
                          .rows = (last - first) * s->time,
                          .inner = s->gates,
                          .columns = s->in,
                          .a = {job->dzx + first * s->time * s->gates, s->gates, 1},
                          .b = {job->wx, 1, s->gates},
                          .c = job->dx + first * s->time * s->in,
                          .stride = s->in,
                          .scale = 1,
                      },
                      sums + up(2 * s->gates, 16));
}

/* dw = rowsᵀ·dz over all samples and steps. */
static struct gemm wgrad_product(const struct job_backward *job, const float *rows, int64_t width,
                                 const float *dz, float *dw)
{
    const struct sizes *s = &job->s;
    return (struct gemm){
        .rows = width,
        .inner = s->batch * s->time,
        .columns = s->gates,
        .a = {rows, 1, width},
        .b = {dz, s->gates, 1},
        .c = dw,
        .stride = s->gates,
        .scale = 1,
        .add = job->accumulate,
    };
}

/* The gradients of wx and wh; where they share dz it is packed once. */
static void wgrad(const struct job_backward *job, struct pool *pool)
{
    struct gemm h =
        wgrad_product(job, job->before, job->s.hidden, job->dzh ? job->dzh : job->dzx, job->dwh);
    struct gemm x = wgrad_product(job, job->x, job->s.in, job->dzx, job->dwx);
    if (job->dzh)
        gemm_run(job->gemm, &h, pool, job->members);
    else
        x.next = &h;
    gemm_run(job->gemm, &x, pool, job->members);
}

static void run_backward(const struct call *call, struct job_backward *job)
{
    const struct sizes *s = &job->s;
    int64_t flop = 2 * s->batch * s->time * s->gates * s->hidden;
    lay_out_backward(job, pool_at_once(call->pool), call->workspace);
    gemm_pack_b(job->gemm, (struct gemm_side){job->wh, 1, s->gates}, s->gates, s->hidden,
                job->panels);
    int members = team_for_flop(call->pool, flop, s->batch);
    pool_run(call->pool, members, backward_member, job);
    for (int64_t k = 0; k < s->gates; k++) {
        float x = 0, h = 0;
        for (int m = 0; m < members; m++) {
            x += job->members[m * job->member_floats + k];
            h += job->members[m * job->member_floats + s->gates + k];
        }
        h = job->dzh ? h : x;
        job->dbx[k] = job->accumulate ? job->dbx[k] + x : x;
        job->dbh[k] = job->accumulate ? job->dbh[k] + h : h;
    }
    wgrad(job, call->pool);
}

/* Operands 0 to 3 and the first five outputs are the same for all kinds. */
static struct job_backward backward_of(const struct call *call, const struct gemm_kernels *gemm)
{
    void *const *out = call->data + call->op->inputs;
    return (struct job_backward){
        .gemm = gemm,
        .s = sizes_of(&call->tensors[AT_rnn_grad_x]->shape, &call->tensors[AT_rnn_grad_wh]->shape),
        .x = call->data[AT_rnn_grad_x],
        .wx = call->data[AT_rnn_grad_wx],
        .wh = call->data[AT_rnn_grad_wh],
        .y = call->data[AT_rnn_grad_y],
        .dx = out[0],
        .dwx = out[1],
        .dwh = out[2],
        .dbx = out[3],
        .dbh = out[4],
        .dh = out[5],
    };
}

void recurrent_lstm_grad(const struct call *call, const struct gemm_kernels *gemm,
                         const struct recurrent_kernels *kernels)
{
    struct job_backward job = backward_of(call, gemm);
    job.step = kernels->lstm_back;
    job.gates = call->data[AT_lstm_grad_gates];
    job.kept = job.s.gates;
    job.cells = call->data[AT_lstm_grad_cells];
    job.h0 = call->data[AT_lstm_grad_h0];
    job.c0 = call->data[AT_lstm_grad_c0];
    job.lengths = call->data[AT_lstm_grad_lengths];
    job.dy = call->data[AT_lstm_grad_dy];
    job.dhn = call->data[AT_lstm_grad_dhn];
    job.dcn = call->data[AT_lstm_grad_dcn];
    job.dc = call->data[AT_lstm_grad_dc0];
    job.dzx = call->data[AT_lstm_grad_dgates];
    job.accumulate = call->op->attr.lstm_grad.accumulate;
    run_backward(call, &job);
}

void recurrent_gru_grad(const struct call *call, const struct gemm_kernels *gemm,
                        const struct recurrent_kernels *kernels)
{
    struct job_backward job = backward_of(call, gemm);
    job.step = kernels->gru_back;
    job.gates = call->data[AT_gru_grad_gates];
    job.kept = 4 * job.s.hidden;
    job.h0 = call->data[AT_gru_grad_h0];
    job.lengths = call->data[AT_gru_grad_lengths];
    job.dy = call->data[AT_gru_grad_dy];
    job.dhn = call->data[AT_gru_grad_dhn];
    job.dzx = call->data[AT_gru_grad_dgates];
    job.dzh = call->data[AT_gru_grad_dsums];
    job.accumulate = call->op->attr.gru_grad.accumulate;
    run_backward(call, &job);
}

void recurrent_rnn_grad(const struct call *call, const struct gemm_kernels *gemm,
                        const struct recurrent_kernels *kernels)
{
    struct job_backward job = backward_of(call, gemm);
    job.step = kernels->rnn_back;
    job.function = call->op->attr.rnn_grad.function;
    job.h0 = call->data[AT_rnn_grad_h0];
    job.lengths = call->data[AT_rnn_grad_lengths];
    job.dy = call->data[AT_rnn_grad_dy];
    job.dhn = call->data[AT_rnn_grad_dhn];
    job.dzx = call->data[AT_rnn_grad_dgates];
    job.accumulate = call->op->attr.rnn_grad.accumulate;
    run_backward(call, &job);
}

uint64_t recurrent_workspace(const struct program *program, const struct op *op, int threads,
                             const struct gemm_kernels *gemm)
{
    struct sizes s = sizes_of(&program->tensors[op_input(program, op, 0)].shape,
                              &program->tensors[op_input(program, op, 2)].shape);
    bool forward = op->kind == OP_lstm || op->kind == OP_gru || op->kind == OP_rnn;
    struct job_forward ahead = {.gemm = gemm, .s = s, .sums = op->kind == OP_rnn ? 1 : 4};
    struct job_backward back = {.gemm = gemm, .s = s};
    int64_t floats =
        forward ? lay_out_forward(&ahead, NULL) : lay_out_backward(&back, threads, NULL);
    return (uint64_t)floats * sizeof(float);
}
