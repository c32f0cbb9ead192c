/* grad_recurrent.c: layers over time: one op forward, one backward. */
#include "nn/grad_rules.h"

grad_rule grad_lstm;

void grad_lstm(struct grad *grad, const struct op *op)
{
    struct draft *draft = grad->draft;
    if (draft->status != STATUS_OK)
        return;
    enum { X, WX, WH, BX, BH, H0, C0, LENGTHS };
    enum { Y, HN, CN, SUMS, GATES, CELLS };
    int32_t in[8], out[6];
    for (int32_t i = 0; i < 8; i++)
        in[i] = grad_input(grad, op, i);
    for (int32_t i = 0; i < 6; i++)
        out[i] = grad_output(grad, op, i);
    bool accumulate = false;
    int32_t dx = grad_needs(grad, in[X]) ? grad_fresh(grad, in[X]) : -1;
    int32_t dwx = grad_weight(grad, in[WX], &accumulate);
    int32_t dwh = grad_weight(grad, in[WH], &accumulate);
    int32_t dbx = grad_weight(grad, in[BX], &accumulate);
    int32_t dbh = grad_weight(grad, in[BH], &accumulate);
    int32_t dh0 = grad_fresh(grad, out[HN]), dc0 = grad_fresh(grad, out[CN]);
    int32_t dgates = grad_fresh(grad, out[GATES]);
    draft_op(draft, OP_lstm_grad,
             IN(in[X], in[WX], in[WH], out[Y], out[GATES], out[CELLS], in[H0], in[C0], in[LENGTHS],
                grad_flows(grad, out[Y]), grad_flows(grad, out[HN]), grad_flows(grad, out[CN])),
             OUT(dx, dwx, dwh, dbx, dbh, dh0, dc0, dgates))
        ->attr.lstm_grad.accumulate = accumulate;
    if (dx >= 0)
        grad_give(grad, in[X], dx);
    if (grad_needs(grad, in[H0]))
        grad_give(grad, in[H0], dh0);
    if (grad_needs(grad, in[C0]))
        grad_give(grad, in[C0], dc0);
}
