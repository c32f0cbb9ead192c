/* grad_recurrent.c: layers over time: one op forward, one backward. */
#include "nn/grad_rules.h"

grad_rule grad_rnn, grad_gru, grad_lstm;

/* All take x, wx, wh, bx, bh first and give y and hn first; the gradients of the five come first.
 */
enum { X, WX, WH, BX, BH };
enum { Y, HN };

struct sources {
    int32_t dx, dwx, dwh, dbx, dbh, dh0;
    bool accumulate;
};

static struct sources begin(struct grad *grad, const struct op *op)
{
    struct sources to = {.dx = -1};
    int32_t x = grad_input(grad, op, X);
    if (grad_needs(grad, x))
        to.dx = grad_fresh(grad, x);
    to.dwx = grad_weight(grad, grad_input(grad, op, WX), &to.accumulate);
    to.dwh = grad_weight(grad, grad_input(grad, op, WH), &to.accumulate);
    to.dbx = grad_weight(grad, grad_input(grad, op, BX), &to.accumulate);
    to.dbh = grad_weight(grad, grad_input(grad, op, BH), &to.accumulate);
    to.dh0 = grad_fresh(grad, grad_output(grad, op, HN));
    return to;
}

/* What flows on: to x and to the first state. */
static void end(struct grad *grad, const struct op *op, const struct sources *to, int32_t h0)
{
    if (to->dx >= 0)
        grad_give(grad, grad_input(grad, op, X), to->dx);
    if (grad_needs(grad, h0))
        grad_give(grad, h0, to->dh0);
}

void grad_rnn(struct grad *grad, const struct op *op)
{
    enum { H0 = 5, LENGTHS };
    struct draft *draft = grad->draft;
    int32_t y = grad_output(grad, op, Y), h0 = grad_input(grad, op, H0);
    struct sources to = begin(grad, op);
    int32_t dgates = grad_fresh(grad, y);
    struct op *back = draft_op(draft, OP_rnn_grad,
                               IN(grad_input(grad, op, X), grad_input(grad, op, WX),
                                  grad_input(grad, op, WH), y, h0, grad_input(grad, op, LENGTHS),
                                  grad_flows(grad, y), grad_flows(grad, grad_output(grad, op, HN))),
                               OUT(to.dx, to.dwx, to.dwh, to.dbx, to.dbh, to.dh0, dgates));
    back->attr.rnn_grad.function = op->attr.rnn.function;
    back->attr.rnn_grad.accumulate = to.accumulate;
    end(grad, op, &to, h0);
}

void grad_gru(struct grad *grad, const struct op *op)
{
    enum { H0 = 5, LENGTHS };
    enum { GATES = 3 };
    struct draft *draft = grad->draft;
    int32_t y = grad_output(grad, op, Y), h0 = grad_input(grad, op, H0);
    struct sources to = begin(grad, op);
    const struct shape *shape = draft_shape(draft, y);
    struct shape gates = SHAPE(shape->dim[0], shape->dim[1], 3 * shape->dim[2]);
    int32_t dgates = draft_real(draft, "d(gates)", gates);
    int32_t dsums = draft_real(draft, "d(sums)", gates);
    draft_op(draft, OP_gru_grad,
             IN(grad_input(grad, op, X), grad_input(grad, op, WX), grad_input(grad, op, WH), y,
                grad_output(grad, op, GATES), h0, grad_input(grad, op, LENGTHS),
                grad_flows(grad, y), grad_flows(grad, grad_output(grad, op, HN))),
             OUT(to.dx, to.dwx, to.dwh, to.dbx, to.dbh, to.dh0, dgates, dsums))
        ->attr.gru_grad.accumulate = to.accumulate;
    end(grad, op, &to, h0);
}

void grad_lstm(struct grad *grad, const struct op *op)
{
    enum { H0 = 5, C0, LENGTHS };
    enum { CN = 2, SUMS, GATES, CELLS };
    struct draft *draft = grad->draft;
    int32_t y = grad_output(grad, op, Y), h0 = grad_input(grad, op, H0);
    int32_t c0 = grad_input(grad, op, C0), gates = grad_output(grad, op, GATES);
    int32_t cn = grad_output(grad, op, CN);
    struct sources to = begin(grad, op);
    int32_t dc0 = grad_fresh(grad, cn), dgates = grad_fresh(grad, gates);
    draft_op(draft, OP_lstm_grad,
             IN(grad_input(grad, op, X), grad_input(grad, op, WX), grad_input(grad, op, WH), y,
                gates, grad_output(grad, op, CELLS), h0, c0, grad_input(grad, op, LENGTHS),
                grad_flows(grad, y), grad_flows(grad, grad_output(grad, op, HN)),
                grad_flows(grad, cn)),
             OUT(to.dx, to.dwx, to.dwh, to.dbx, to.dbh, to.dh0, dc0, dgates))
        ->attr.lstm_grad.accumulate = to.accumulate;
    end(grad, op, &to, h0);
    if (grad_needs(grad, c0))
        grad_give(grad, c0, dc0);
}
