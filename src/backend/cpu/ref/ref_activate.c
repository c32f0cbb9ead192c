/* ref_activate.c: elementwise functions and their derivatives, and bounds; softmax by itself. */
#include "backend/cpu/real.h"

/* Every function; fused ops have those of real.h. */
static real activate_alpha(int32_t function, real alpha, real x)
{
    switch (function) {
    case ACTIVATION_LEAKY_RELU: return x > 0 ? x : alpha * x;
    case ACTIVATION_ELU: return x > 0 ? x : alpha * real_expm1(x);
    case ACTIVATION_ERF: return real_erf(x);
    case ACTIVATION_SQRT: return real_sqrt(x);
    case ACTIVATION_RECIPROCAL: return 1 / x;
    case ACTIVATION_EXP: return real_exp(x);
    case ACTIVATION_LOG: return real_log(x);
    default: return activate(function, x);
    }
}

KERNEL(activate)
{
    const real *x = reals(call, AT_activate_x);
    real *y = reals(call, AT_activate_y), alpha = (real)call->op->attr.activate.alpha;
    for (int64_t i = 0, n = count(call, AT_activate_y); i < n; i++)
        y[i] = activate_alpha(call->op->attr.activate.function, alpha, x[i]);
}

/* The derivative at a point, from the function's value there; gelu's, erf's and log's from the
 * point: Φ(x) + x·φ(x), 2/√π·e^-x². */
static real derivative(int32_t function, real alpha, real saved)
{
    const real density_at_0 = (real)0.39894228040143267794; /* 1/√(2π) */
    switch (function) {
    case ACTIVATION_SIGMOID: return saved * (1 - saved);
    case ACTIVATION_TANH: return 1 - saved * saved;
    case ACTIVATION_RELU: return saved > 0 ? 1 : 0;
    case ACTIVATION_GELU:
        return normal_share(saved) + saved * density_at_0 * real_exp(-saved * saved / 2);
    case ACTIVATION_SOFTPLUS: return -real_expm1(-saved);
    case ACTIVATION_LEAKY_RELU: return saved > 0 ? 1 : alpha;
    case ACTIVATION_ELU: return saved > 0 ? 1 : saved + alpha;
    case ACTIVATION_ERF: return (real)1.12837916709551257390 * real_exp(-saved * saved);
    case ACTIVATION_SQRT: return (real)0.5 / saved;
    case ACTIVATION_RECIPROCAL: return -saved * saved;
    case ACTIVATION_EXP: return saved;
    case ACTIVATION_LOG: return 1 / saved;
    default: return 1;
    }
}

KERNEL(activate_grad)
{
    const real *saved = reals(call, AT_activate_grad_saved), *dy = reals(call, AT_activate_grad_dy);
    real *dx = reals(call, AT_activate_grad_dx), alpha = (real)call->op->attr.activate_grad.alpha;
    for (int64_t i = 0, n = count(call, AT_activate_grad_dx); i < n; i++)
        dx[i] = dy[i] * derivative(call->op->attr.activate_grad.function, alpha, saved[i]);
}

KERNEL(bound)
{
    const real *x = reals(call, AT_bound_x);
    real *y = reals(call, AT_bound_y);
    for (int64_t i = 0, n = count(call, AT_bound_y); i < n; i++)
        y[i] = bounded(x[i], (real)call->op->attr.bound.low, (real)call->op->attr.bound.high);
}

KERNEL(bound_grad)
{
    const real *y = reals(call, AT_bound_grad_y), *dy = reals(call, AT_bound_grad_dy);
    real low = (real)call->op->attr.bound_grad.low, high = (real)call->op->attr.bound_grad.high;
    real *dx = reals(call, AT_bound_grad_dx);
    for (int64_t i = 0, n = count(call, AT_bound_grad_dx); i < n; i++)
        dx[i] = y[i] > low && y[i] < high ? dy[i] : 0;
}
