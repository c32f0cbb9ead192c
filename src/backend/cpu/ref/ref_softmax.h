/* ref_softmax.h: one row of a softmax, for the op and for cross-entropy. */
#ifndef PRONY_BACKEND_CPU_REF_REF_SOFTMAX_H
#define PRONY_BACKEND_CPU_REF_REF_SOFTMAX_H

#include "backend/cpu/real.h"

/* p = softmax of one row, its maximum taken out first so that nothing overflows. Returns
 * ln Σ e^x, from which -ln p[k] is that minus x[k]. */
static inline real softmax_row(const real *x, real *p, int64_t classes)
{
    real most = x[0], total = 0;
    for (int64_t k = 1; k < classes; k++)
        most = x[k] > most ? x[k] : most;
    for (int64_t k = 0; k < classes; k++)
        total += p[k] = real_exp(x[k] - most);
    for (int64_t k = 0; k < classes; k++)
        p[k] /= total;
    return real_log(total) + most;
}

#endif
