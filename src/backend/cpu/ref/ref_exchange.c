/* ref_exchange.c: what ranks have in common. A bucket of gradients lies in one piece (cpu_plan.c),
 * so that it is one message; what lies apart is several, on every rank the same ones. */
#include "backend/cpu/real.h"
#include "core/comm/exchange.h"
#include "core/params.h"

#ifdef PRONY_F64
#define DTYPE DTYPE_F64
#else
#define DTYPE DTYPE_F32
#endif

/* What a rank has of no samples is not looked at: it may be no number. */
static void scale_by_share(const struct call *call, int operand)
{
    const int32_t samples = call->op->attr.all_reduce.samples, of = call->op->attr.all_reduce.of;
    const real share = (real)((double)samples / (double)of);
    real *x = reals(call, operand);
    for (int64_t i = 0, n = count(call, operand); samples != of && i < n; i++)
        x[i] = samples ? x[i] * share : 0;
}

/* Where the operand behind it would lie, if they lay in one piece. */
static real *end_of(const struct call *call, int operand)
{
    const uint64_t bytes = (uint64_t)count(call, operand) * sizeof(real);
    return (real *)((char *)call->data[operand] +
                    (bytes + PARAMS_ALIGN - 1) / PARAMS_ALIGN * PARAMS_ALIGN);
}

/* Where activations lie follows from the batch, which is not the same on all ranks. */
static bool lies_alike(const struct call *call, int operand)
{
    const enum role role = call->tensors[operand]->role;
    return role == ROLE_GRAD || role_is_kept(role);
}

/* The last operand that lies in one piece with this one. */
static int piece_end(const struct call *call, int operand)
{
    while (operand + 1 < call->op->inputs && lies_alike(call, operand) &&
           call->data[operand + 1] == end_of(call, operand))
        operand++;
    return operand;
}

KERNEL(all_reduce)
{
    for (int x = 0; x < call->op->inputs; x++)
        scale_by_share(call, x);
    for (int x = 0, last; x < call->op->inputs; x = last + 1) {
        last = piece_end(call, x);
        (call->op->attr.all_reduce.across ? exchange_start_across : exchange_start)(
            call->exchange, call->data[x],
            (size_t)(reals(call, last) + count(call, last) - reals(call, x)), DTYPE);
    }
}

KERNEL(wait)
{
    for (int x = 0; x < call->op->inputs; x = piece_end(call, x) + 1)
        exchange_wait(call->exchange, call->data[x]);
}
