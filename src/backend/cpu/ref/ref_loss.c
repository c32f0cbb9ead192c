/* ref_loss.c: losses, where gradients start, and counts of right answers. Losses are summed in
 * double: of millions of samples a float would lose what each adds. */
#include "backend/cpu/real.h"
#include "backend/cpu/ref/ref_softmax.h"

/* mean of (y - target)² over all elements */
KERNEL(mse)
{
    const real *y = reals(call, AT_mse_y), *target = reals(call, AT_mse_target);
    real *loss = reals(call, AT_mse_loss);
    double sum = 0;
    int64_t n = count(call, AT_mse_y);
    for (int64_t i = 0; i < n; i++)
        sum += (double)((y[i] - target[i]) * (y[i] - target[i]));
    *loss = (real)(sum / (double)n);
}

KERNEL(mse_grad)
{
    const real *y = reals(call, AT_mse_grad_y), *target = reals(call, AT_mse_grad_target);
    real *dy = reals(call, AT_mse_grad_dy);
    int64_t n = count(call, AT_mse_grad_y);
    real scale = (real)call->op->attr.mse_grad.scale * 2 / (real)n;
    for (int64_t i = 0; i < n; i++)
        dy[i] = scale * (y[i] - target[i]);
}

/* loss = mean of -ln p[label] */
KERNEL(cross_entropy)
{
    const real *x = reals(call, AT_cross_entropy_x);
    const int32_t *label = integers(call, AT_cross_entropy_label);
    real *loss = reals(call, AT_cross_entropy_loss), *p = reals(call, AT_cross_entropy_p);
    double sum = 0;
    int64_t batch = dim(call, AT_cross_entropy_x, 0), classes = dim(call, AT_cross_entropy_x, 1);
    for (int64_t n = 0; n < batch; n++)
        sum += (double)(softmax_row(x + n * classes, p + n * classes, classes) -
                        x[n * classes + label[n]]);
    *loss = (real)(sum / (double)batch);
}

KERNEL(cross_entropy_grad)
{
    const real *p = reals(call, AT_cross_entropy_grad_p);
    const int32_t *label = integers(call, AT_cross_entropy_grad_label);
    real *dx = reals(call, AT_cross_entropy_grad_dx);
    int64_t batch = dim(call, AT_cross_entropy_grad_p, 0),
            classes = dim(call, AT_cross_entropy_grad_p, 1);
    real scale = (real)call->op->attr.cross_entropy_grad.scale / (real)batch;
    for (int64_t n = 0; n < batch; n++)
        for (int64_t k = 0; k < classes; k++)
            dx[n * classes + k] = scale * (p[n * classes + k] - (k == label[n] ? 1 : 0));
}

/* On logits: mean of max(x,0) - x·t + ln(1 + e^-|x|), which never overflows. */
KERNEL(binary_cross_entropy)
{
    const real *x = reals(call, AT_binary_cross_entropy_x),
               *target = reals(call, AT_binary_cross_entropy_target);
    real *loss = reals(call, AT_binary_cross_entropy_loss);
    double sum = 0;
    int64_t n = count(call, AT_binary_cross_entropy_x);
    for (int64_t i = 0; i < n; i++)
        sum += (double)((x[i] > 0 ? x[i] : 0) - x[i] * target[i] +
                        real_log1p(real_exp(-real_fabs(x[i]))));
    *loss = (real)(sum / (double)n);
}

KERNEL(binary_cross_entropy_grad)
{
    const real *x = reals(call, AT_binary_cross_entropy_grad_x),
               *target = reals(call, AT_binary_cross_entropy_grad_target);
    real *dx = reals(call, AT_binary_cross_entropy_grad_dx);
    int64_t n = count(call, AT_binary_cross_entropy_grad_x);
    real scale = (real)call->op->attr.binary_cross_entropy_grad.scale / (real)n;
    for (int64_t i = 0; i < n; i++)
        dx[i] = scale * (sigmoid(x[i]) - target[i]);
}

/* How often the largest of the row is the label's; of equals the first counts. */
KERNEL(right_class)
{
    const real *x = reals(call, AT_right_class_x);
    const int32_t *label = integers(call, AT_right_class_label);
    real *right = reals(call, AT_right_class_right);
    int64_t batch = dim(call, AT_right_class_x, 0), classes = dim(call, AT_right_class_x, 1),
            hits = 0;
    for (int64_t n = 0; n < batch; n++) {
        int64_t best = 0;
        for (int64_t k = 1; k < classes; k++)
            if (x[n * classes + k] > x[n * classes + best])
                best = k;
        hits += best == label[n];
    }
    *right = (real)hits;
}

/* How often y is nearer to its target than half the distance between two levels. */
KERNEL(right_level)
{
    const real *y = reals(call, AT_right_level_y), *target = reals(call, AT_right_level_target);
    real *right = reals(call, AT_right_level_right),
         half = (real)0.5 / (real)(call->op->attr.right_level.classes - 1);
    int64_t hits = 0;
    for (int64_t n = 0; n < dim(call, AT_right_level_y, 0); n++)
        hits += real_fabs(y[n] - target[n]) < half;
    *right = (real)hits;
}
