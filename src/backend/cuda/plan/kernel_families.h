/* kernel_families.h: what the rows of kernel_list.cu are made of: the launch, workspace and takes
 * functions of all kernel families. */
#ifndef PRONY_BACKEND_CUDA_KERNEL_FAMILIES_H
#define PRONY_BACKEND_CUDA_KERNEL_FAMILIES_H

#include "backend/cuda/plan/choice.h"

struct stack_kernel;
struct answer_kernel;

/* stack_choice.cu: whole steps of a stack of dense layers */
takes_function takes_stack_warp, takes_stack_four_warps, takes_stack_block, takes_stack_replicas;
takes_function takes_stack_grid;
extern const struct stack_kernel steps_by_warp, steps_by_four_warps, steps_by_block,
    steps_by_replicas, steps_by_grid;
/* answer_choice.cu: calls of it */
takes_function takes_answer_warp, takes_answer_block, takes_answer_grid, takes_answer_layers;
extern const struct answer_kernel calls_by_warp, calls_by_block, calls_by_grid, calls_by_layers;
/* stack_cores_plan.cu: both, in 8 or 16 bits */
takes_function takes_stack_cores;
extern const struct stack_kernel steps_by_cores;
extern const struct answer_kernel calls_by_cores;
/* data.cu; and the threads of a block that moves rows in so many pieces: beside what computes it is
 * one warp of at most 32 registers a thread (MOVING_BOUNDS), for which there is room on a
 * multiprocessor that a large product fills. */
launch_function launch_rows, launch_load, launch_store;
unsigned moving_threads(const struct queue *queue, int64_t pieces);
#define MOVING_BOUNDS __launch_bounds__(THREADS, 8)
/* dense.cu: without cuBLASLt, and small products */
launch_function launch_dense, launch_dense_t, launch_outer, launch_sum_rows, launch_dense_sgd;
launch_function launch_matmul, launch_matmul_nt, launch_matmul_tn;
workspace_function workspace_outer, workspace_sum_rows;
takes_function takes_small_gemm;
/* dense_blas.cu, dense_wgrad.cu: cuBLASLt, or in tf32 split-K products of ours */
launch_function launch_dense_blas, launch_dense_t_blas, launch_outer_blas, launch_dense_sgd_blas;
launch_function launch_layer_split_k, launch_dense_sgd_split_k;
workspace_function workspace_blas_f32, workspace_blas_tf32, workspace_blas_16bit;
workspace_function workspace_split_k;
takes_function takes_split_k, takes_blas, takes_blas_few_samples, takes_without_blas;
/* dense_skinny.cu: at most 32 samples */
launch_function launch_layer_skinny, launch_dense_sgd_skinny;
workspace_function workspace_skinny_16bit;
takes_function takes_skinny;
/* dense_few_features.cu: few outputs, or few inputs */
launch_function launch_dense_few_outputs, launch_dense_sgd_few_outputs;
launch_function launch_dense_few_inputs, launch_dense_sgd_few_inputs;
takes_function takes_few_outputs, takes_few_inputs;
/* dense_fp8.cu: at inference, in the precision fp8 */
launch_function launch_dense_fp8;
workspace_function workspace_dense_fp8;
takes_function takes_dense_fp8;
/* activation_grad.cu, activation_grad_plan.cu: it leaves sums for the update that follows */
launch_function launch_activation_grad;
takes_function takes_activation_grad, takes_few_outputs_activation_grad;
/* mixed_precision.cu: operands in 16 bits */
launch_function launch_load_16bit;
takes_function takes_16bit;
/* ranks.cu */
launch_function launch_all_reduce, launch_wait, launch_send, launch_receive;
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
launch_function launch_conv, launch_conv_tf32, launch_conv_direct; /* conv, conv_t, conv_fused */
launch_function launch_conv_dw, launch_conv_dw_tf32, launch_conv_dw_small, launch_sum_channels;
workspace_function workspace_conv, workspace_conv_dw, workspace_conv_dw_small, workspace_channels;
takes_function takes_conv_direct, takes_conv_wgrad_small;
/* conv_nhwc_ops.cu: on Hopper's tensor cores; launch_conv_nhwc is conv_t's, too */
launch_function launch_conv_nhwc, launch_conv_fused_nhwc, launch_conv_dw_nhwc;
workspace_function workspace_conv_nhwc;
takes_function takes_conv_nhwc, takes_conv_nhwc_16bit;
/* int8.cu, pool_int8.cu: numbers of 8 bits */
launch_function launch_quantise, launch_dequantise, launch_add_int8, launch_table_int8;
launch_function launch_concat_int8, launch_argmax;
launch_function launch_max_pool_int8, launch_average_pool_int8;
/* dense_int8.cu: few samples, many, any */
launch_function launch_dense_int8_few, launch_dense_int8_gemm, launch_dense_int8;
takes_function takes_dense_int8_few, takes_dense_int8_gemm;
/* dense_int8_blas.cu: large ones, by cuBLASLt */
launch_function launch_dense_int8_blas;
workspace_function workspace_dense_int8_blas;
takes_function takes_dense_int8_blas;
/* conv_int8.cu: without groups, any */
launch_function launch_conv_int8_gemm, launch_conv_int8;
workspace_function workspace_conv_int8;
takes_function takes_conv_int8_gemm;
/* cudnn.cu: the backend 'cudnn'; launch_conv_cudnn is conv_t's, too */
launch_function launch_conv_cudnn, launch_conv_fused_cudnn, launch_conv_dw_cudnn;
workspace_function workspace_cudnn;
takes_function takes_cudnn;
/* pool.cu */
launch_function launch_max_pool, launch_max_unpool, launch_max_unpool_grad;
launch_function launch_average_pool, launch_average_pool_grad;
launch_function launch_max_unpool_activate_grad;
takes_function takes_max_unpool_activate_grad;
/* batch_norm.cu */
launch_function launch_batch_norm, launch_batch_norm_fixed, launch_batch_norm_grad;
launch_function launch_batch_norm_relu, launch_batch_norm_add_relu;
takes_function takes_batch_norm_relu, takes_batch_norm_add_relu;
/* norm.cu */
launch_function launch_layer_norm, launch_layer_norm_grad, launch_lrn, launch_lrn_grad;
workspace_function workspace_layer_norm_grad;
/* lstm.cu */
launch_function launch_lstm, launch_lstm_grad, launch_lstm_persistent, launch_lstm_grad_persistent;
workspace_function workspace_lstm, workspace_lstm_grad;
/* rnn.cu */
launch_function launch_rnn, launch_rnn_grad, launch_rnn_persistent, launch_rnn_grad_persistent;
workspace_function workspace_rnn, workspace_rnn_grad;
/* gru.cu */
launch_function launch_gru, launch_gru_grad, launch_gru_persistent, launch_gru_grad_persistent;
workspace_function workspace_gru, workspace_gru_grad;
/* recurrent_choice.cu */
takes_function takes_lstm_persistent, takes_rnn_persistent, takes_gru_persistent;
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
/* multi_tensor.cu: the updates of many small parameters in one kernel */
enum { MULTI_TENSOR_MOST = 80 };
launch_function launch_multi_tensor;
takes_function takes_multi_tensor;

#endif
