/* kernel_families.h: the launch functions of all kernel families: the rows of kernel_table.cu. */
#ifndef PRONY_BACKEND_CUDA_KERNEL_FAMILIES_H
#define PRONY_BACKEND_CUDA_KERNEL_FAMILIES_H

#include "backend/cuda/device/launch.h"

typedef void launch_function(const struct call *call, struct queue *queue);
typedef uint64_t workspace_function(const struct program *program, const struct op *op);

/* data.cu; and the threads of a block that moves rows in so many pieces: beside what computes it is
 * one warp of at most 32 registers a thread (MOVING_BOUNDS), for which there is room on a
 * multiprocessor that a large product fills. */
launch_function launch_rows, launch_load, launch_store;
unsigned moving_threads(const struct queue *queue, int64_t pieces);
#define MOVING_BOUNDS __launch_bounds__(THREADS, 8)
/* dense.cu */
launch_function launch_dense, launch_dense_t, launch_outer, launch_sum_rows, launch_dense_sgd;
launch_function launch_matmul, launch_matmul_nt, launch_matmul_tn;
workspace_function workspace_outer, workspace_sum_rows;
bool dense_is_small(const struct program *program,
                    const struct op *op); /* a product of small_gemm.h? */
/* elementwise.cu */
launch_function launch_activate, launch_activate_grad, launch_add, launch_fill;
launch_function launch_multiply, launch_divide, launch_divide_grad, launch_add_rows;
launch_function launch_bound, launch_bound_grad, launch_mask;
launch_function launch_dropout, launch_bernoulli, launch_random;
/* gaussian.cu */
launch_function launch_draw_normal, launch_draw_normal_grad;
launch_function launch_divergence, launch_divergence_grad;
/* shape.cu */
launch_function launch_expand, launch_transpose, launch_concat, launch_slice, launch_slice_grad;
launch_function launch_gather, launch_scatter, launch_reduce, launch_reduce_grad;
/* conv.cu */
launch_function launch_conv, launch_conv_t, launch_conv_fused, launch_conv_dw, launch_sum_channels;
workspace_function workspace_conv, workspace_channels;
/* pool.cu */
launch_function launch_max_pool, launch_max_unpool, launch_max_unpool_grad;
launch_function launch_average_pool, launch_average_pool_grad;
/* batch_norm.cu */
launch_function launch_batch_norm, launch_batch_norm_fixed, launch_batch_norm_grad;
/* norm.cu */
launch_function launch_layer_norm, launch_layer_norm_grad, launch_lrn, launch_lrn_grad;
workspace_function workspace_layer_norm_grad;
/* lstm.cu */
launch_function launch_lstm, launch_lstm_grad;
workspace_function workspace_lstm, workspace_lstm_grad;
/* rnn.cu */
launch_function launch_rnn, launch_rnn_grad;
workspace_function workspace_rnn, workspace_rnn_grad;
/* gru.cu */
launch_function launch_gru, launch_gru_grad;
workspace_function workspace_gru, workspace_gru_grad;
/* loss.cu */
launch_function launch_softmax, launch_softmax_causal, launch_softmax_grad;
launch_function launch_mse, launch_mse_grad;
launch_function launch_cross_entropy, launch_cross_entropy_grad;
launch_function launch_binary_cross_entropy, launch_binary_cross_entropy_grad;
launch_function launch_right_class, launch_right_level;
workspace_function workspace_loss, workspace_cross_entropy;
/* schedule.cu */
launch_function launch_schedule, launch_clip, launch_tick;
workspace_function workspace_clip;
/* optimiser.cu */
launch_function launch_sgd, launch_momentum, launch_adagrad, launch_rmsprop, launch_adam;
launch_function launch_rprop;
workspace_function workspace_adam;

#endif
