/* kernel_table.cu: what this backend can run: one row an op kind. An op without a row is refused by
 * `supports`; a faster kernel replaces a row and gets a name of its own. */
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/plan/side_stream.h"

#define FULL_ROW(kind, workspace_bytes, rounds)                                                    \
    {                                                                                              \
        OP_##kind, #kind "_f32_cuda", launch_##kind, workspace_bytes, NULL, 0, rounds              \
    }
#define ROW(kind, workspace_bytes) FULL_ROW(kind, workspace_bytes, false)
#define OPTIMISER(kind, workspace_bytes) FULL_ROW(kind, workspace_bytes, true)

static const struct kernel kernels[] = {
    ROW(rows, NULL),
    ROW(load, NULL),
    ROW(store, NULL),

    ROW(dense, NULL),
    ROW(dense_t, NULL),
    ROW(outer, workspace_outer),
    ROW(sum_rows, workspace_sum_rows),
    {OP_dense_sgd, "dense_sgd_f32_cuda", launch_dense_sgd, workspace_outer, workspace_outer,
     SIDE_DENSE_SGD, false},
    ROW(matmul, NULL),
    ROW(matmul_nt, NULL),
    ROW(matmul_tn, NULL),

    ROW(activate, NULL),
    ROW(activate_grad, NULL),
    ROW(add, NULL),
    ROW(bound, NULL),
    ROW(bound_grad, NULL),
    ROW(multiply, NULL),
    ROW(divide, NULL),
    ROW(divide_grad, NULL),
    ROW(mask, NULL),
    ROW(add_rows, NULL),
    ROW(fill, NULL),
    ROW(dropout, NULL),
    ROW(bernoulli, NULL),
    ROW(random, NULL),
    ROW(draw_normal, NULL),
    ROW(draw_normal_grad, NULL),
    ROW(divergence, workspace_loss),
    ROW(divergence_grad, NULL),

    ROW(expand, NULL),
    ROW(transpose, NULL),
    ROW(concat, NULL),
    ROW(slice, NULL),
    ROW(slice_grad, NULL),
    ROW(gather, NULL),
    ROW(scatter, NULL),
    ROW(reduce, NULL),
    ROW(reduce_grad, NULL),

    ROW(conv, workspace_conv),
    ROW(conv_t, workspace_conv),
    ROW(conv_fused, workspace_conv),
    ROW(conv_dw, workspace_conv),
    ROW(sum_channels, workspace_channels),
    ROW(max_pool, NULL),
    ROW(max_unpool, NULL),
    ROW(max_unpool_grad, NULL),
    ROW(average_pool, NULL),
    ROW(average_pool_grad, NULL),

    ROW(batch_norm, workspace_channels),
    ROW(batch_norm_fixed, NULL),
    ROW(batch_norm_grad, workspace_channels),
    ROW(layer_norm, NULL),
    ROW(layer_norm_grad, workspace_layer_norm_grad),
    ROW(lrn, NULL),
    ROW(lrn_grad, NULL),

    ROW(lstm, workspace_lstm),
    ROW(lstm_grad, workspace_lstm_grad),
    ROW(rnn, workspace_rnn),
    ROW(rnn_grad, workspace_rnn_grad),
    ROW(gru, workspace_gru),
    ROW(gru_grad, workspace_gru_grad),

    ROW(softmax, NULL),
    ROW(softmax_causal, NULL),
    ROW(softmax_grad, NULL),
    ROW(mse, workspace_loss),
    ROW(mse_grad, NULL),
    ROW(cross_entropy, workspace_cross_entropy),
    ROW(cross_entropy_grad, NULL),
    ROW(binary_cross_entropy, workspace_loss),
    ROW(binary_cross_entropy_grad, NULL),
    ROW(right_class, workspace_cross_entropy),
    ROW(right_level, workspace_loss),

    ROW(schedule, NULL),
    ROW(clip, workspace_clip),
    ROW(tick, NULL),

    OPTIMISER(sgd, NULL),
    OPTIMISER(momentum, NULL),
    OPTIMISER(adagrad, NULL),
    OPTIMISER(rmsprop, NULL),
    OPTIMISER(adam, workspace_adam),
    OPTIMISER(rprop, NULL),
};

const struct kernel *kernel_of(enum op_kind kind)
{
    return kernel_in(kernels, kind);
}
