/* real.h: the reference kernels are compiled twice, for f32 and for f64 (PRONY_F64), and named
 * accordingly. They are the oracle, written to be read and believed: one loop per idea, sums in
 * index order, and only those fused multiply-adds that are written. */
#ifndef PRONY_BACKEND_CPU_REAL_H
#define PRONY_BACKEND_CPU_REAL_H

#include "backend/cpu/kernel.h"

#include <math.h>

#ifdef PRONY_F64
typedef double real;
#define CALL(op) ref_##op##_f64
#define real_exp exp
#define real_log1p log1p
#define real_log log
#define real_tanh tanh
#define real_sqrt sqrt
#define real_pow pow
#define real_fabs fabs
#define real_expm1 expm1
#define real_erf erf
#define real_rint rint
#else
typedef float real;
#define CALL(op) ref_##op##_f32
#define real_exp expf
#define real_log1p log1pf
#define real_log logf
#define real_tanh tanhf
#define real_sqrt sqrtf
#define real_pow powf
#define real_fabs fabsf
#define real_expm1 expm1f
#define real_erf erff
#define real_rint rintf
#endif

#define KERNEL(op) void CALL(op)(const struct call *call)

/* Declarations of all kernels of this element type. */
#define OP(kind, inputs, outputs, flop, attributes) KERNEL(kind);
#include "core/ops.def"
#undef OP

static inline real *reals(const struct call *call, int operand)
{
    return call->data[operand];
}

static inline const int32_t *integers(const struct call *call, int operand)
{
    return call->data[operand];
}

static inline int64_t dim(const struct call *call, int operand, int axis)
{
    return call->tensors[operand]->shape.dim[axis];
}

static inline int64_t count(const struct call *call, int operand)
{
    return call->counts[operand];
}

static inline real sigmoid(real x)
{
    return 1 / (1 + real_exp(-x));
}

/* ln(1 + e^x) without overflow */
static inline real softplus(real x)
{
    return (x > 0 ? x : 0) + real_log1p(real_exp(-real_fabs(x)));
}

/* Φ: the share of a standard normal below x */
static inline real normal_share(real x)
{
    return (real)0.5 * (1 + real_erf(x * (real)0.70710678118654752440));
}

/* The functions without an alpha, which fused ops have too. */
static inline real activate(int32_t function, real x)
{
    switch (function) {
    case ACTIVATION_SIGMOID: return sigmoid(x);
    case ACTIVATION_TANH: return real_tanh(x);
    case ACTIVATION_RELU: return x < 0 ? 0 : x; /* NaN stays NaN */
    case ACTIVATION_GELU: return x * normal_share(x);
    case ACTIVATION_SOFTPLUS: return softplus(x);
    default: return x;
    }
}

/* NaN is neither below nor above: it stays NaN. */
static inline real bounded(real x, real low, real high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

#endif
