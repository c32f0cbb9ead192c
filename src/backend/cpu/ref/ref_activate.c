/* ref_activate.c: elementwise functions and their slopes. */
#include "backend/cpu/ref/real.h"

KERNEL(activate)
{
    const real *x = reals(call, 0);
    real *y = reals(call, 1);
    for (int64_t i = 0, n = count(call, 1); i < n; i++)
        y[i] = activate(call->op->attr.activate.function, x[i]);
}

/* The slope at a point, from the function's value there. */
static real slope(int32_t function, real y)
{
    switch (function) {
    case ACTIVATION_SIGMOID: return y * (1 - y);
    case ACTIVATION_TANH: return 1 - y * y;
    case ACTIVATION_RELU: return y > 0 ? 1 : 0;
    default: return 1;
    }
}

KERNEL(activate_grad)
{
    const real *saved = reals(call, 0), *dy = reals(call, 1);
    real *dx = reals(call, 2);
    for (int64_t i = 0, n = count(call, 2); i < n; i++)
        dx[i] = dy[i] * slope(call->op->attr.activate_grad.function, saved[i]);
}
