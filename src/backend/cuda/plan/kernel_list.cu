/* kernel_list.cu: all kernels, in the order in which they are asked (kernel_row.h): rows over
 * whole programs, then over several ops, then those for some shapes, then those that take every op
 * of their kind. A new kernel is a file and a row here, before the row that it beats. Each limit
 * was set where one kernel overtook the other on the device (docs/gpu.md). */
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/plan/kernel_row.h"

#define ONE(kind) 1, {OP_##kind}, 0, 0

/* An op by itself. */
#define ROW(kind, name, precisions, traits, takes, launch, workspace, why)                         \
    {                                                                                              \
        name, why, precisions, traits, ONE(kind), takes, launch, workspace, NULL, 0                \
    }

/* dense_sgd: dx, and on the side stream the update. */
#define SGD_ROW(name, precisions, traits, takes, launch, workspace, side_bytes, why)               \
    {                                                                                              \
        name, why, precisions, traits, ONE(dense_sgd), takes, launch, workspace, side_bytes,       \
            SIDE_DENSE_SGD                                                                         \
    }

/* So many ops that follow each other; `home`: which of them it is called with. */
#define FUSED(name, traits, takes, launch, workspace, side, why, home, count, ...)                 \
    {                                                                                              \
        name, why, IN_ALL, traits, count, {__VA_ARGS__}, home, 0, takes, launch, workspace, NULL,  \
            side                                                                                   \
    }

/* A whole program: many steps in a launch; calls of it. */
#define STEPS(name, takes, kernel, why)                                                            \
    {                                                                                              \
        name, why, IN_32BIT, 0, 0, {}, 0, 0, takes, NULL, NULL, NULL, 0, &kernel                   \
    }
#define CALLS(name, takes, kernel, why)                                                            \
    {                                                                                              \
        name, why, IN_32BIT, 0, 0, {}, 0, 0, takes, NULL, NULL, NULL, 0, NULL, &kernel             \
    }

/* The same in 8 or 16 bits, by tensor cores. */
#define CORES(type, precisions, bits)                                                              \
    {"stack_cores_" type "_cuda",                                                                  \
     WHY_CORES(bits),                                                                              \
     precisions,                                                                                   \
     KERNEL_FINDS,                                                                                 \
     0,                                                                                            \
     {},                                                                                           \
     0,                                                                                            \
     0,                                                                                            \
     takes_stack_cores,                                                                            \
     NULL,                                                                                         \
     NULL,                                                                                         \
     NULL,                                                                                         \
     0,                                                                                            \
     &steps_by_cores},                                                                             \
    {                                                                                              \
        "stack_cores_" type "_cuda", WHY_CORES(bits), precisions, KERNEL_FINDS, 0, {}, 0, 0,       \
            takes_stack_cores, NULL, NULL, NULL, 0, NULL, &calls_by_cores                          \
    }
#define WHY_CORES(bits)                                                                            \
    "few samples of dense layers in " bits " bits: each multiprocessor keeps the weights of its "  \
    "outputs, and steps need no launch"

/* The updates of many small parameters, by one optimiser. */
#define GROUP(name, kind, workspace)                                                               \
    {                                                                                              \
        name, NULL, IN_32BIT, 0, 1, {OP_##kind}, 0, MULTI_TENSOR_MOST, takes_multi_tensor,         \
            launch_multi_tensor, workspace, NULL, 0                                                \
    }

/* Takes every op of its kind. */
#define PLAIN(kind, workspace)                                                                     \
    ROW(kind, #kind "_f32_cuda", IN_ALL, 0, NULL, launch_##kind, workspace, NULL)
#define INT8(kind) ROW(kind, #kind "_cuda", IN_ALL, 0, NULL, launch_##kind, NULL, NULL)
#define OPTIMISER(kind, workspace)                                                                 \
    ROW(kind, #kind "_f32_cuda", IN_ALL, KERNEL_ROUNDS, NULL, launch_##kind, workspace, NULL)

/* All steps of a recurrent layer in one kernel. */
#define PERSISTENT(kind, takes)                                                                    \
    ROW(kind, #kind "_f32_persistent", IN_ALL, 0, takes, launch_##kind##_persistent,               \
        workspace_##kind, WHY_PERSISTENT)

/* --- Why: for `explain`, with what a row buys: the time of a step, or a call, without it, at the
 * median over random networks that it takes (docs/notebook/gpu-worth.md). */
#define BUYS(times) "; random networks take " times " × as long without it"
#define WHY_FEW_OUTPUTS "few outputs: cuBLASLt's tiles would be nearly empty" BUYS("1.2")
#define WHY_FEW_INPUTS                                                                             \
    "few inputs: hardly anything is multiplied, only outputs are written or read" BUYS("1.2")
#define WHY_SKINNY                                                                                 \
    "few samples: a product bound by reading its weights; it loads the first of them before the "  \
    "layer below is done" BUYS("1.2")
#define WHY_SPLIT_K                                                                                \
    "few samples: cuBLASLt's tiles would leave multiprocessors idle, so the depth is cut "         \
    "among them"
#define WHY_BLAS_FEW                                                                               \
    "too large for our kernels of small products: cuBLASLt is quicker, though so few "             \
    "samples do not fill its tiles"
#define WHY_BLAS "a large product: cuBLASLt's tiles fill the GPU"
#define WHY_BLAS_FEW_16BIT                                                                         \
    "few samples in 16 bits: more weights than our kernels read as quickly, odd row "              \
    "lengths, or factors that are no weights"
#define WHY_BLAS_16BIT "a product in 16 bits of more than a handful of samples"
#define WHY_FP8                                                                                    \
    "a product in fp8 of more than 32 samples: its factors have half of the bytes of bf16"
#define WHY_SMALL_GEMM                                                                             \
    "a small product: many threads cut its depth, and are done before cuBLASLt's first "           \
    "tile would be"
#define WHY_NO_BLAS "cuBLASLt is not there: tiles of our own"
#define WHY_GEMM "few weights beside many samples: cuBLASLt's tiles would be nearly empty"
#define WHY_CUDNN "the quickest of the engines that cuDNN proposes for this shape"
#define WHY_NHWC "a convolution for tensor cores: images lie channels last, as these read them"
#define WHY_DIRECT                                                                                 \
    "few channels of the result: a thread has a pixel, all its channels in registers" BUYS("1.3")
#define WHY_PERSISTENT "narrow enough for one kernel that goes through all steps" BUYS("1.8")
#define WHY_WGRAD_SMALL "few weights of small images: whole images lie in shared memory" BUYS("1.4")

#define WHY_INT8_FEW                                                                               \
    "few samples in 8 bits: a product bound by reading its weights; it loads the first of them "   \
    "before the layer below is done"
#define WHY_INT8_BLAS                                                                              \
    "a large product in 8 bits: cuBLASLt's tiles make up for transposing the weights"
#define WHY_INT8_GEMM "many samples in 8 bits: tiles for tensor cores"
#define WHY_INT8_EACH "rows of weights that are no whole words: a warp has a result"
#define WHY_INT8_CONV "a convolution for tensor cores: images lie channels last, as these read them"
#define WHY_INT8_GROUPS "channels in groups: a thread has a result"

/* --- Families, in one precision. */
#define SKINNY_ROWS(type, precisions, workspace)                                                   \
    ROW(dense, "dense_" type "_skinny", precisions, KERNEL_PRODUCT, takes_skinny,                  \
        launch_layer_skinny, workspace, WHY_SKINNY),                                               \
        ROW(dense_t, "dense_t_" type "_skinny", precisions, KERNEL_PRODUCT, takes_skinny,          \
            launch_layer_skinny, workspace, WHY_SKINNY),                                           \
        SGD_ROW("dense_sgd_" type "_skinny", precisions, KERNEL_PRODUCT | KERNEL_ROUNDS,           \
                takes_skinny, launch_dense_sgd_skinny, workspace, NULL, WHY_SKINNY)

#define BLAS_ROWS(type, precisions, takes, workspace, why)                                         \
    ROW(dense, "dense_" type "_cublaslt", precisions, KERNEL_PRODUCT, takes, launch_dense_blas,    \
        workspace, why),                                                                           \
        ROW(dense_t, "dense_t_" type "_cublaslt", precisions, KERNEL_PRODUCT, takes,               \
            launch_dense_t_blas, workspace, why),                                                  \
        ROW(outer, "outer_" type "_cublaslt", precisions, KERNEL_PRODUCT, takes,                   \
            launch_outer_blas, workspace, why),                                                    \
        SGD_ROW("dense_sgd_" type "_cublaslt", precisions, KERNEL_PRODUCT | KERNEL_ROUNDS, takes,  \
                launch_dense_sgd_blas, workspace, workspace, why)

#define DENSE_ROWS(type, takes, why)                                                               \
    ROW(dense, "dense_" type, IN_ALL, 0, takes, launch_dense, NULL, why),                          \
        ROW(dense_t, "dense_t_" type, IN_ALL, 0, takes, launch_dense_t, NULL, why),                \
        ROW(outer, "outer_" type, IN_ALL, 0, takes, launch_outer, workspace_outer, why),           \
        SGD_ROW("dense_sgd_" type, IN_ALL, 0, takes, launch_dense_sgd, workspace_outer,            \
                workspace_outer, why)

/* Convolutions of one implementation: y from x, x from y, fused; w from both (dw). */
#define CONV_ROWS(type, precisions, traits, takes, launch, fused, workspace, dw, dw_workspace,     \
                  why)                                                                             \
    ROW(conv, "conv_" type, precisions, traits, takes, launch, workspace, why),                    \
        ROW(conv_t, "conv_t_" type, precisions, traits, takes, launch, workspace, why),            \
        ROW(conv_fused, "conv_fused_" type, precisions, traits, takes, fused, workspace, why),     \
        ROW(conv_dw, "conv_dw_" type, precisions, traits, takes, dw, dw_workspace, why)

enum : unsigned { IN_32BIT = IN_FP32 | IN_TF32, NOT_IN_FP32 = IN_ALL & ~IN_FP32 };

static const struct kernel kernels[] = {
    /* --- Whole programs: stacks of dense layers. */
    STEPS("stack_warp_f32_cuda", takes_stack_warp, steps_by_warp,
          "one sample of narrow layers: a warp keeps all weights in registers" BUYS("1.2")),
    STEPS("stack_four_warps_f32_cuda", takes_stack_four_warps, steps_by_four_warps,
          "few samples of narrow layers: each weight is kept by a thread of its own" BUYS("3")),
    STEPS("stack_block_f32_cuda", takes_stack_block, steps_by_block,
          "narrow layers: a block keeps the network in shared memory" BUYS("3.5")),
    STEPS("stack_replicas_f32_cuda", takes_stack_replicas, steps_by_replicas,
          "many samples of narrow layers: each block keeps the network in shared memory and has a "
          "share of the samples" BUYS("6")),
    STEPS("stack_grid_f32_cuda", takes_stack_grid, steps_by_grid,
          "few samples of wide dense layers: each multiprocessor keeps its tile of every layer's "
          "weights, and steps need no launch" BUYS("2.9")),
    CORES("int8", IN_FP32, "8"),
    CORES("bf16", IN_BF16, "16"),
    CORES("f16", IN_FP16, "16"),
    CALLS("answer_warp_f32_cuda", takes_answer_warp, calls_by_warp,
          "calls of narrow layers: one warp answers"),
    CALLS("answer_block_f32_cuda", takes_answer_block, calls_by_block,
          "calls of narrow layers: one block answers" BUYS("1.7")),
    CALLS("stack_grid_f32_cuda", takes_answer_grid, calls_by_grid,
          "calls of wide layers that follow each other: one launch answers them all, and each "
          "multiprocessor keeps its tile of every layer's weights"),
    CALLS("answer_layers_f32_cuda", takes_answer_layers, calls_by_layers,
          "calls of few samples of wide layers: a kernel a layer, its weights on their way before "
          "the one below is done" BUYS("1.6")),

    /* --- Rows over several ops. */
    FUSED("batch_norm_add_relu_f32_cuda", 0, takes_batch_norm_add_relu, launch_batch_norm_add_relu,
          workspace_channels, 0, NULL, 2, 3, OP_batch_norm, OP_add, OP_activate),
    FUSED("batch_norm_relu_f32_cuda", 0, takes_batch_norm_relu, launch_batch_norm_relu,
          workspace_channels, 0, NULL, 1, 2, OP_batch_norm, OP_activate),
    FUSED("max_unpool_activate_grad_f32_cuda", 0, takes_max_unpool_activate_grad,
          launch_max_unpool_activate_grad, NULL, 0, NULL, 1, 2, OP_max_unpool, OP_activate_grad),
    FUSED("dense_sgd_f32_few_outputs", KERNEL_PRODUCT | KERNEL_ROUNDS | KERNEL_SUMS,
          takes_few_outputs_activation_grad, launch_dense_sgd_few_outputs, NULL, SIDE_DENSE_SGD,
          WHY_FEW_OUTPUTS, 0, 2, OP_dense_sgd, OP_activate_grad),
    GROUP("sgd_multi_tensor_f32_cuda", sgd, NULL),
    GROUP("adam_multi_tensor_f32_cuda", adam, workspace_adam),

    /* --- Products by weights. */
    ROW(dense, "dense_f32_few_outputs", IN_ALL, KERNEL_PRODUCT, takes_few_outputs,
        launch_dense_few_outputs, NULL, WHY_FEW_OUTPUTS),
    SGD_ROW("dense_sgd_f32_few_outputs", IN_ALL, KERNEL_PRODUCT | KERNEL_ROUNDS, takes_few_outputs,
            launch_dense_sgd_few_outputs, NULL, NULL, WHY_FEW_OUTPUTS),
    ROW(dense, "dense_f32_few_inputs", IN_32BIT, KERNEL_PRODUCT, takes_few_inputs,
        launch_dense_few_inputs, NULL, WHY_FEW_INPUTS),
    ROW(dense_sgd, "dense_sgd_f32_few_inputs", IN_32BIT, KERNEL_PRODUCT, takes_few_inputs,
        launch_dense_sgd_few_inputs, NULL, WHY_FEW_INPUTS),
    SKINNY_ROWS("f32", IN_FP32, NULL),
    ROW(dense, "dense_fp8_cublaslt", IN_BF16, KERNEL_PRODUCT | KERNEL_FP8, takes_dense_fp8,
        launch_dense_fp8, workspace_dense_fp8, WHY_FP8),
    SKINNY_ROWS("bf16", IN_BF16, workspace_skinny_16bit),
    SKINNY_ROWS("f16", IN_FP16, workspace_skinny_16bit),
    ROW(dense, "dense_tf32_split_k", IN_TF32, KERNEL_PRODUCT, takes_split_k, launch_layer_split_k,
        workspace_split_k, WHY_SPLIT_K),
    ROW(dense_t, "dense_t_tf32_split_k", IN_TF32, KERNEL_PRODUCT, takes_split_k,
        launch_layer_split_k, workspace_split_k, WHY_SPLIT_K),
    SGD_ROW("dense_sgd_tf32_split_k", IN_TF32, KERNEL_PRODUCT | KERNEL_ROUNDS, takes_split_k,
            launch_dense_sgd_split_k, workspace_split_k, workspace_split_k, WHY_SPLIT_K),
    BLAS_ROWS("f32", IN_FP32, takes_blas_few_samples, workspace_blas_f32, WHY_BLAS_FEW),
    BLAS_ROWS("f32", IN_FP32, takes_blas, workspace_blas_f32, WHY_BLAS),
    BLAS_ROWS("tf32", IN_TF32, takes_blas_few_samples, workspace_blas_tf32, WHY_BLAS_FEW),
    BLAS_ROWS("tf32", IN_TF32, takes_blas, workspace_blas_tf32, WHY_BLAS),
    BLAS_ROWS("bf16", IN_BF16, takes_blas_few_samples, workspace_blas_16bit, WHY_BLAS_FEW_16BIT),
    BLAS_ROWS("bf16", IN_BF16, takes_blas, workspace_blas_16bit, WHY_BLAS_16BIT),
    BLAS_ROWS("f16", IN_FP16, takes_blas_few_samples, workspace_blas_16bit, WHY_BLAS_FEW_16BIT),
    BLAS_ROWS("f16", IN_FP16, takes_blas, workspace_blas_16bit, WHY_BLAS_16BIT),
    DENSE_ROWS("f32_small", takes_small_gemm, WHY_SMALL_GEMM),
    DENSE_ROWS("f32_cuda", takes_without_blas, WHY_NO_BLAS),
    DENSE_ROWS("f32_cuda", NULL, WHY_GEMM),

    /* --- Convolutions. */
    CONV_ROWS("f32_cudnn", IN_FP32, 0, takes_cudnn, launch_conv_cudnn, launch_conv_fused_cudnn,
              workspace_cudnn, launch_conv_dw_cudnn, workspace_cudnn, WHY_CUDNN),
    CONV_ROWS("tf32_cudnn", NOT_IN_FP32, KERNEL_NHWC, takes_cudnn, launch_conv_cudnn,
              launch_conv_fused_cudnn, workspace_cudnn, launch_conv_dw_cudnn, workspace_cudnn,
              WHY_CUDNN),
    CONV_ROWS("16bit_nhwc", IN_16BIT, KERNEL_NHWC | KERNEL_16BIT, takes_conv_nhwc_16bit,
              launch_conv_nhwc, launch_conv_fused_nhwc, workspace_conv_nhwc, launch_conv_dw_nhwc,
              workspace_conv_nhwc, WHY_NHWC),
    CONV_ROWS("tf32_nhwc", NOT_IN_FP32, KERNEL_NHWC, takes_conv_nhwc, launch_conv_nhwc,
              launch_conv_fused_nhwc, workspace_conv_nhwc, launch_conv_dw_nhwc, workspace_conv_nhwc,
              WHY_NHWC),
    ROW(conv, "conv_f32_direct", IN_ALL, 0, takes_conv_direct, launch_conv_direct, NULL,
        WHY_DIRECT),
    ROW(conv_t, "conv_t_f32_direct", IN_ALL, 0, takes_conv_direct, launch_conv_direct, NULL,
        WHY_DIRECT),
    ROW(conv_fused, "conv_fused_f32_direct", IN_ALL, 0, takes_conv_direct, launch_conv_direct, NULL,
        WHY_DIRECT),
    ROW(conv_dw, "conv_dw_f32_small", IN_ALL, 0, takes_conv_wgrad_small, launch_conv_dw_small,
        workspace_conv_dw_small, WHY_WGRAD_SMALL),
    CONV_ROWS("tf32_cuda", NOT_IN_FP32, 0, NULL, launch_conv_tf32, launch_conv_tf32, workspace_conv,
              launch_conv_dw_tf32, workspace_conv_dw, NULL),
    CONV_ROWS("f32_cuda", IN_FP32, 0, NULL, launch_conv, launch_conv, workspace_conv,
              launch_conv_dw, workspace_conv_dw, NULL),

    /* --- Numbers of 8 bits. */
    ROW(dense_int8, "dense_int8_few_samples", IN_ALL, 0, takes_dense_int8_few,
        launch_dense_int8_few, NULL, WHY_INT8_FEW),
    ROW(dense_int8, "dense_int8_cublaslt", IN_ALL, 0, takes_dense_int8_blas, launch_dense_int8_blas,
        workspace_dense_int8_blas, WHY_INT8_BLAS),
    ROW(dense_int8, "dense_int8_gemm", IN_ALL, 0, takes_dense_int8_gemm, launch_dense_int8_gemm,
        NULL, WHY_INT8_GEMM),
    ROW(dense_int8, "dense_int8_cuda", IN_ALL, 0, NULL, launch_dense_int8, NULL, WHY_INT8_EACH),
    ROW(conv_int8, "conv_int8_gemm", IN_ALL, KERNEL_NHWC, takes_conv_int8_gemm,
        launch_conv_int8_gemm, workspace_conv_int8, WHY_INT8_CONV),
    ROW(conv_int8, "conv_int8_cuda", IN_ALL, KERNEL_NHWC, NULL, launch_conv_int8, NULL,
        WHY_INT8_GROUPS),
    INT8(quantise),
    INT8(dequantise),
    INT8(add_int8),
    INT8(table_int8),
    INT8(concat_int8),
    INT8(argmax),
    INT8(max_pool_int8),
    INT8(average_pool_int8),

    /* --- Recurrent layers. */
    PERSISTENT(lstm, takes_lstm_persistent),
    PERSISTENT(lstm_grad, takes_lstm_persistent),
    PERSISTENT(rnn, takes_rnn_persistent),
    PERSISTENT(rnn_grad, takes_rnn_persistent),
    PERSISTENT(gru, takes_gru_persistent),
    PERSISTENT(gru_grad, takes_gru_persistent),

    /* --- What leaves sums, or has operands in 16 bits. */
    ROW(activate_grad, "activate_grad_sums_cuda", IN_ALL, KERNEL_SUMS, takes_activation_grad,
        launch_activation_grad, NULL, NULL),
    ROW(load, "load_16bit_cuda", IN_16BIT, 0, takes_16bit, launch_load_16bit, NULL, NULL),
    ROW(activate, "activate_16bit_cuda", IN_16BIT, 0, takes_16bit, launch_activate, NULL, NULL),
    ROW(activate_grad, "activate_grad_16bit_cuda", IN_16BIT, 0, takes_16bit, launch_activate_grad,
        NULL, NULL),
    ROW(sum_rows, "sum_rows_16bit_cuda", IN_16BIT, 0, takes_16bit, launch_sum_rows,
        workspace_sum_rows, NULL),

    /* --- Every op of its kind. */
    PLAIN(rows, NULL),
    PLAIN(load, NULL),
    PLAIN(store, NULL),

    PLAIN(sum_rows, workspace_sum_rows),
    PLAIN(matmul, NULL),
    PLAIN(matmul_nt, NULL),
    PLAIN(matmul_tn, NULL),

    PLAIN(activate, NULL),
    PLAIN(activate_grad, NULL),
    PLAIN(add, NULL),
    PLAIN(bound, NULL),
    PLAIN(bound_grad, NULL),
    PLAIN(multiply, NULL),
    PLAIN(divide, NULL),
    PLAIN(divide_grad, NULL),
    PLAIN(mask, NULL),
    PLAIN(add_rows, NULL),
    PLAIN(fill, NULL),
    PLAIN(dropout, NULL),
    PLAIN(bernoulli, NULL),
    PLAIN(random, NULL),
    PLAIN(draw_normal, NULL),
    PLAIN(draw_normal_grad, NULL),
    PLAIN(divergence, workspace_loss),
    PLAIN(divergence_grad, NULL),

    PLAIN(expand, NULL),
    PLAIN(transpose, NULL),
    PLAIN(concat, NULL),
    PLAIN(slice, NULL),
    PLAIN(slice_grad, NULL),
    PLAIN(gather, NULL),
    PLAIN(scatter, NULL),
    PLAIN(reduce, NULL),
    PLAIN(reduce_grad, NULL),

    PLAIN(sum_channels, workspace_channels),
    PLAIN(max_pool, NULL),
    PLAIN(max_unpool, NULL),
    PLAIN(max_unpool_grad, NULL),
    PLAIN(average_pool, NULL),
    PLAIN(average_pool_grad, NULL),

    PLAIN(batch_norm, workspace_channels),
    PLAIN(batch_norm_fixed, NULL),
    PLAIN(batch_norm_grad, workspace_channels),
    PLAIN(layer_norm, NULL),
    PLAIN(layer_norm_grad, workspace_layer_norm_grad),
    PLAIN(lrn, NULL),
    PLAIN(lrn_grad, NULL),

    PLAIN(lstm, workspace_lstm),
    PLAIN(lstm_grad, workspace_lstm_grad),
    PLAIN(rnn, workspace_rnn),
    PLAIN(rnn_grad, workspace_rnn_grad),
    PLAIN(gru, workspace_gru),
    PLAIN(gru_grad, workspace_gru_grad),

    PLAIN(softmax, NULL),
    PLAIN(softmax_causal, NULL),
    PLAIN(softmax_grad, NULL),
    PLAIN(mse, workspace_loss),
    PLAIN(mse_grad, NULL),
    PLAIN(cross_entropy, workspace_cross_entropy),
    PLAIN(cross_entropy_grad, NULL),
    PLAIN(binary_cross_entropy, workspace_loss),
    PLAIN(binary_cross_entropy_grad, NULL),
    PLAIN(right_class, workspace_cross_entropy),
    PLAIN(right_level, workspace_loss),

    PLAIN(schedule, NULL),
    PLAIN(clip, workspace_clip),
    PLAIN(tick, NULL),
    PLAIN(all_reduce, NULL),
    PLAIN(wait, NULL),
    PLAIN(send, NULL),
    PLAIN(receive, NULL),

    OPTIMISER(sgd, NULL),
    OPTIMISER(momentum, NULL),
    OPTIMISER(adagrad, NULL),
    OPTIMISER(rmsprop, NULL),
    OPTIMISER(adam, workspace_adam),
    OPTIMISER(rprop, NULL),
};

/* Is the row among those that must not be taken, so that others can be compared with it? Names
 * with commas between (tests/gpu/kernel_worth.c). */
static bool row_is_left_out(const struct kernel *row)
{
    const char *names = getenv("PRONY_CUDA_WITHOUT");
    const size_t length = strlen(row->name);
    for (; names && *names; names += strcspn(names, ","), names += *names == ',')
        if (strcspn(names, ",") == length && strncmp(names, row->name, length) == 0)
            return true;
    return false;
}

/* Do the row's ops follow each other here, in one part? */
static bool row_fits(const struct kernel *row, const struct choice *choice)
{
    const struct program *program = choice->program;
    if (!row->op_count || choice->op + row->op_count > program->ops + program->op_count)
        return false;
    for (int32_t i = 0; i < row->op_count; i++)
        if (choice->op[i].kind != row->ops[i] || choice->op[i].part != choice->op->part)
            return false;
    return true;
}

static bool row_takes(const struct kernel *row, const struct choice *choice)
{
    const enum precision precision = choice->device ? choice->device->precision : PRECISION_FP32;
    return (row->precisions >> precision & 1) && (!row->takes || row->takes(choice)) &&
           !row_is_left_out(row);
}

const struct kernel *kernel_find(const struct choice *choice, bool fuses)
{
    for (const struct kernel &row : kernels)
        if (row_fits(&row, choice) && (fuses || (row.op_count == 1 && !row.group)) &&
            row_takes(&row, choice))
            return &row;
    return NULL;
}

/* Is there what the row needs of a whole program? */
static bool row_reads(const struct kernel *row, const struct choice *choice)
{
    return choice->program->stack || (row->traits & KERNEL_FINDS);
}

const struct kernel *kernel_find_steps(const struct choice *choice)
{
    for (const struct kernel &row : kernels)
        if (row.steps && row_reads(&row, choice) && row_takes(&row, choice))
            return &row;
    return NULL;
}

const struct kernel *kernel_find_calls(const struct choice *choice)
{
    for (const struct kernel &row : kernels)
        if (row.calls && row_reads(&row, choice) && row_takes(&row, choice))
            return &row;
    return NULL;
}

bool kernel_has(enum op_kind kind)
{
    for (const struct kernel &row : kernels)
        if (row.op_count == 1 && row.ops[0] == kind && !row.takes)
            return true;
    return false;
}
