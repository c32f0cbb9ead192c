/* ref_code.c: codes that are drawn from a normal distribution, and how far that is from the
 * standard one. The random numbers are those of ref_random.c. */
#include "backend/cpu/real.h"
#include "base/rng.h"

/* z = mean + σ·ε, σ² = e^(log variance) */
KERNEL(draw_normal)
{
    const real *moments = reals(call, AT_draw_normal_moments);
    const int32_t *rows = integers(call, AT_draw_normal_rows);
    real *z = reals(call, AT_draw_normal_z);
    struct rng_key key = {.seed = call->control->seed,
                          .stream = (uint32_t)call->op->attr.draw_normal.stream,
                          .step = call->control->step};
    int64_t batch = dim(call, AT_draw_normal_z, 0), width = dim(call, AT_draw_normal_z, 1);
    for (int64_t n = 0; n < batch; n++)
        for (int64_t i = 0; i < width; i++) {
            real mean = moments[2 * n * width + i], log = moments[(2 * n + 1) * width + i];
            z[n * width + i] =
                mean + real_exp(log / 2) * (real)rng_normal(key, (uint32_t)rows[n], (uint32_t)i);
        }
}

/* dz/dmean = 1, dz/d(log variance) = σ·ε / 2 = (z - mean) / 2 */
KERNEL(draw_normal_grad)
{
    const real *moments = reals(call, AT_draw_normal_grad_moments),
               *z = reals(call, AT_draw_normal_grad_z), *dz = reals(call, AT_draw_normal_grad_dz);
    real *dmoments = reals(call, AT_draw_normal_grad_dmoments);
    int64_t batch = dim(call, AT_draw_normal_grad_z, 0),
            width = dim(call, AT_draw_normal_grad_z, 1);
    for (int64_t n = 0; n < batch; n++)
        for (int64_t i = 0; i < width; i++) {
            int64_t mean = 2 * n * width + i, at = n * width + i;
            dmoments[mean] = dz[at];
            dmoments[mean + width] = dz[at] * (z[at] - moments[mean]) / 2;
        }
}

/* mean over the batch of ½·Σ(mean² + σ² - 1 - ln σ²) */
KERNEL(divergence)
{
    const real *moments = reals(call, AT_divergence_moments);
    real *loss = reals(call, AT_divergence_loss), sum = 0;
    int64_t batch = dim(call, AT_divergence_moments, 0),
            width = dim(call, AT_divergence_moments, 2);
    for (int64_t n = 0; n < batch; n++)
        for (int64_t i = 0; i < width; i++) {
            real mean = moments[2 * n * width + i], log = moments[(2 * n + 1) * width + i];
            sum += mean * mean + real_exp(log) - 1 - log;
        }
    *loss = sum / (2 * (real)batch);
}

KERNEL(divergence_grad)
{
    const real *moments = reals(call, AT_divergence_grad_moments);
    real *dmoments = reals(call, AT_divergence_grad_dmoments);
    int64_t batch = dim(call, AT_divergence_grad_moments, 0),
            width = dim(call, AT_divergence_grad_moments, 2);
    real scale = (real)call->op->attr.divergence_grad.scale / (real)batch;
    for (int64_t n = 0; n < batch; n++)
        for (int64_t i = 0; i < width; i++) {
            int64_t mean = 2 * n * width + i;
            dmoments[mean] = scale * moments[mean];
            dmoments[mean + width] = scale * (real_exp(moments[mean + width]) - 1) / 2;
        }
}
