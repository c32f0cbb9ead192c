/* ref_attention.c: what attention is made of: batched products, softmax, layer-norm. */
#include "backend/cpu/ref/ref_softmax.h"

/* One of n matrices side by side: element [row, column] is at row·down + column·right. */
struct side {
    const real *data;
    int64_t down, right;
};

/* y[i,j] = scale · Σ_k a[i,k]·b[k,j] */
static void product(struct side a, struct side b, real *y, int64_t rows, int64_t inner,
                    int64_t columns, real scale)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            real sum = 0;
            for (int64_t k = 0; k < inner; k++)
                sum += a.data[i * a.down + k * a.right] * b.data[k * b.down + j * b.right];
            y[i * columns + j] = scale * sum;
        }
}

/* Every matrix of the batch; the sides say how one matrix lies, transposed or not. */
static void products(const struct call *call, bool a_transposed, bool b_transposed, real scale)
{
    int64_t rows = dim(call, AT_matmul_y, 1), columns = dim(call, AT_matmul_y, 2);
    int64_t inner = count(call, AT_matmul_a) / (dim(call, AT_matmul_a, 0) * rows);
    for (int64_t n = 0; n < dim(call, AT_matmul_a, 0); n++) {
        struct side a = {reals(call, AT_matmul_a) + n * rows * inner, inner, 1};
        struct side b = {reals(call, AT_matmul_b) + n * inner * columns, columns, 1};
        if (a_transposed)
            a = (struct side){a.data, 1, rows};
        if (b_transposed)
            b = (struct side){b.data, 1, inner};
        product(a, b, reals(call, AT_matmul_y) + n * rows * columns, rows, inner, columns, scale);
    }
}

KERNEL(matmul)
{
    products(call, false, false, (real)call->op->attr.matmul.scale);
}

KERNEL(matmul_nt)
{
    products(call, false, true, (real)call->op->attr.matmul_nt.scale);
}

KERNEL(matmul_tn)
{
    products(call, true, false, (real)call->op->attr.matmul_tn.scale);
}

KERNEL(softmax)
{
    int64_t batch = dim(call, AT_softmax_x, 0), classes = dim(call, AT_softmax_x, 1);
    for (int64_t n = 0; n < batch; n++)
        softmax_row(reals(call, AT_softmax_x) + n * classes,
                    reals(call, AT_softmax_y) + n * classes, classes);
}

/* Query t sees the keys 0 to t. */
KERNEL(softmax_causal)
{
    int64_t time = dim(call, AT_softmax_causal_x, 1),
            rows = dim(call, AT_softmax_causal_x, 0) * time;
    for (int64_t r = 0; r < rows; r++) {
        real *y = reals(call, AT_softmax_causal_y) + r * time;
        int64_t seen = r % time + 1;
        softmax_row(reals(call, AT_softmax_causal_x) + r * time, y, seen);
        for (int64_t k = seen; k < time; k++)
            y[k] = 0;
    }
}

KERNEL(softmax_grad)
{
    int64_t classes = dim(call, AT_softmax_grad_y, 1);
    for (int64_t n = 0; n < dim(call, AT_softmax_grad_y, 0); n++) {
        const real *y = reals(call, AT_softmax_grad_y) + n * classes,
                   *dy = reals(call, AT_softmax_grad_dy) + n * classes;
        real *dx = reals(call, AT_softmax_grad_dx) + n * classes, sum = 0;
        for (int64_t k = 0; k < classes; k++)
            sum += dy[k] * y[k];
        for (int64_t k = 0; k < classes; k++)
            dx[k] = y[k] * (dy[k] - sum);
    }
}

KERNEL(layer_norm)
{
    const real *gamma = reals(call, AT_layer_norm_gamma), *beta = reals(call, AT_layer_norm_beta);
    real epsilon = (real)call->op->attr.layer_norm.epsilon;
    int64_t width = dim(call, AT_layer_norm_x, 1);
    for (int64_t n = 0; n < dim(call, AT_layer_norm_x, 0); n++) {
        const real *x = reals(call, AT_layer_norm_x) + n * width;
        real *y = reals(call, AT_layer_norm_y) + n * width, sum = 0, squares = 0;
        for (int64_t k = 0; k < width; k++)
            sum += x[k];
        real mean = sum / (real)width;
        for (int64_t k = 0; k < width; k++)
            squares += (x[k] - mean) * (x[k] - mean);
        real scale = 1 / real_sqrt(squares / (real)width + epsilon);
        for (int64_t k = 0; k < width; k++)
            y[k] = (x[k] - mean) * scale * gamma[k] + beta[k];
        reals(call, AT_layer_norm_saved_mean)[n] = mean;
        reals(call, AT_layer_norm_saved_scale)[n] = scale;
    }
}

/* With z = (x - mean)·scale and g = dy·gamma, over the row's k elements:
 * dx = scale · (g - Σg/k - z·Σ(g·z)/k); over the rows: dgamma = Σ dy·z, dbeta = Σ dy. */
KERNEL(layer_norm_grad)
{
    const real *gamma = reals(call, AT_layer_norm_grad_gamma),
               *mean = reals(call, AT_layer_norm_grad_saved_mean),
               *scale = reals(call, AT_layer_norm_grad_saved_scale);
    real *dgamma = reals(call, AT_layer_norm_grad_dgamma),
         *dbeta = reals(call, AT_layer_norm_grad_dbeta);
    int64_t width = dim(call, AT_layer_norm_grad_x, 1);
    for (int64_t k = 0; !call->op->attr.layer_norm_grad.accumulate && k < width; k++)
        dgamma[k] = dbeta[k] = 0;
    for (int64_t n = 0; n < dim(call, AT_layer_norm_grad_x, 0); n++) {
        const real *x = reals(call, AT_layer_norm_grad_x) + n * width,
                   *dy = reals(call, AT_layer_norm_grad_dy) + n * width;
        real *dx = reals(call, AT_layer_norm_grad_dx), sum = 0, sum_z = 0;
        for (int64_t k = 0; k < width; k++) {
            real z = (x[k] - mean[n]) * scale[n];
            sum += dy[k] * gamma[k];
            sum_z += dy[k] * gamma[k] * z;
            dgamma[k] += dy[k] * z;
            dbeta[k] += dy[k];
        }
        for (int64_t k = 0; dx && k < width; k++) {
            real z = (x[k] - mean[n]) * scale[n];
            dx[n * width + k] = scale[n] * (dy[k] * gamma[k] - (sum + z * sum_z) / (real)width);
        }
    }
}
