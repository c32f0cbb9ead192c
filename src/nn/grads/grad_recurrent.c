/* grad_recurrent.c: layers over time: one op forward, one backward. */
#include "nn/grad_rules.h"

grad_rule grad_rnn, grad_gru, grad_lstm;

/* All take x, wx, wh, bx, bh first, as an rnn does; the gradients of the five come first. */
struct sources {
    int32_t dx, dwx, dwh, dbx, dbh, dh0;
    bool accumulate;
};

static struct sources begin(struct grad *grad, const struct op *op, int32_t hn)
{
    struct sources to = {.dx = -1};
    int32_t x = grad_operand(grad, op, AT_rnn_x);
    if (grad_needs(grad, x))
        to.dx = grad_fresh(grad, x);
    to.dwx = grad_weight(grad, grad_operand(grad, op, AT_rnn_wx), &to.accumulate);
    to.dwh = grad_weight(grad, grad_operand(grad, op, AT_rnn_wh), &to.accumulate);
    to.dbx = grad_weight(grad, grad_operand(grad, op, AT_rnn_bx), &to.accumulate);
    to.dbh = grad_weight(grad, grad_operand(grad, op, AT_rnn_bh), &to.accumulate);
    to.dh0 = grad_fresh(grad, hn);
    return to;
}

/* What flows on: to x and to the first state. */
static void end(struct grad *grad, const struct op *op, const struct sources *to, int32_t h0)
{
    if (to->dx >= 0)
        grad_give(grad, grad_operand(grad, op, AT_rnn_x), to->dx);
    if (grad_needs(grad, h0))
        grad_give(grad, h0, to->dh0);
}

void grad_rnn(struct grad *grad, const struct op *op)
{
    struct draft *draft = grad->draft;
    int32_t y = grad_operand(grad, op, AT_rnn_y), h0 = grad_operand(grad, op, AT_rnn_h0);
    int32_t hn = grad_operand(grad, op, AT_rnn_hn);
    struct sources to = begin(grad, op, hn);
    int32_t dgates = grad_fresh(grad, y);
    struct op *back = draft_op(
        draft, OP_rnn_grad,
        IN(grad_operand(grad, op, AT_rnn_x), grad_operand(grad, op, AT_rnn_wx),
           grad_operand(grad, op, AT_rnn_wh), y, h0, grad_operand(grad, op, AT_rnn_lengths),
           grad_flows(grad, y), grad_flows(grad, hn)),
        OUT(to.dx, to.dwx, to.dwh, to.dbx, to.dbh, to.dh0, dgates));
    back->attr.rnn_grad.function = op->attr.rnn.function;
    back->attr.rnn_grad.accumulate = to.accumulate;
    end(grad, op, &to, h0);
}

void grad_gru(struct grad *grad, const struct op *op)
{
    struct draft *draft = grad->draft;
    int32_t y = grad_operand(grad, op, AT_gru_y), h0 = grad_operand(grad, op, AT_gru_h0);
    int32_t hn = grad_operand(grad, op, AT_gru_hn);
    struct sources to = begin(grad, op, hn);
    const struct shape *shape = draft_shape(draft, y);
    struct shape gates = SHAPE(shape->dim[0], shape->dim[1], 3 * shape->dim[2]);
    int32_t dgates = draft_real(draft, "d(gates)", gates);
    int32_t dsums = draft_real(draft, "d(sums)", gates);
    draft_op(draft, OP_gru_grad,
             IN(grad_operand(grad, op, AT_gru_x), grad_operand(grad, op, AT_gru_wx),
                grad_operand(grad, op, AT_gru_wh), y, grad_operand(grad, op, AT_gru_gates), h0,
                grad_operand(grad, op, AT_gru_lengths), grad_flows(grad, y), grad_flows(grad, hn)),
             OUT(to.dx, to.dwx, to.dwh, to.dbx, to.dbh, to.dh0, dgates, dsums))
        ->attr.gru_grad.accumulate = to.accumulate;
    end(grad, op, &to, h0);
}

void grad_lstm(struct grad *grad, const struct op *op)
{
    struct draft *draft = grad->draft;
    int32_t y = grad_operand(grad, op, AT_lstm_y), h0 = grad_operand(grad, op, AT_lstm_h0);
    int32_t c0 = grad_operand(grad, op, AT_lstm_c0), gates = grad_operand(grad, op, AT_lstm_gates);
    int32_t cn = grad_operand(grad, op, AT_lstm_cn);
    int32_t hn = grad_operand(grad, op, AT_lstm_hn);
    struct sources to = begin(grad, op, hn);
    int32_t dc0 = grad_fresh(grad, cn), dgates = grad_fresh(grad, gates);
    draft_op(draft, OP_lstm_grad,
             IN(grad_operand(grad, op, AT_lstm_x), grad_operand(grad, op, AT_lstm_wx),
                grad_operand(grad, op, AT_lstm_wh), y, gates, grad_operand(grad, op, AT_lstm_cells),
                h0, c0, grad_operand(grad, op, AT_lstm_lengths), grad_flows(grad, y),
                grad_flows(grad, hn), grad_flows(grad, cn)),
             OUT(to.dx, to.dwx, to.dwh, to.dbx, to.dbh, to.dh0, dc0, dgates))
        ->attr.lstm_grad.accumulate = to.accumulate;
    end(grad, op, &to, h0);
    if (grad_needs(grad, c0))
        grad_give(grad, c0, dc0);
}
