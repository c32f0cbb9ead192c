/* test_cuda_choice.c: what the CUDA backend decides before it touches a GPU: which kernels run a
 * program, in how many launches, and the memory it takes. On paper (device_options.paper), by the
 * code that decides on a GPU, so that it is tested where there is none. */
#include "core/pass/fuse.h"
#include "nn/network.h"
#include "rig.h"

struct asked {
    const char *network;
    int32_t batch;
    enum program_use use;
    const char *precision;
    enum answering answering;
    const char *optimiser; /* NULL: the network's */
    enum loss_kind loss;
};

/* A plan on paper, with all that it needs. */
struct paper {
    const struct backend *cuda;
    struct device *device;
    struct network *network;
    struct params params; /* bare */
    struct program *program, *fused;
    struct instance *instance;
    struct plan *plan;
    struct arena arena;
    struct explanation explanation;
};

static enum status paper_fill(struct paper *paper, const struct asked *asked)
{
    const struct device_options options = {.paper = true, .precision = asked->precision};
    const struct compile_options compile = {.batch = asked->batch,
                                            .use = asked->use,
                                            .optimiser = asked->optimiser,
                                            .loss = asked->loss};
    const struct plan_options plan = {.dry = true, .answering = asked->answering};
    params_init(&paper->params, DTYPE_F32);
    paper->params.bare = true;
    TRY(paper->cuda->open(&options, &paper->device));
    TRY(network_open(asked->network, &paper->network));
    TRY(network_compile(paper->network, &paper->params, &compile, &paper->program));
    TRY(fuse(paper->program, paper->cuda, paper->device, &paper->fused));
    TRY(paper->cuda->attach(paper->device, &paper->params, &paper->instance));
    TRY(paper->cuda->prepare(paper->instance, paper->fused, &plan, &paper->plan));
    return paper->cuda->explain(paper->plan, &paper->arena, &paper->explanation);
}

/* False: the test is skipped. */
static bool paper_open(struct paper *paper, const struct asked *asked, enum status *status)
{
    *paper = (struct paper){0};
    if (registry_find(rig_registry(), "cuda", &paper->cuda) != STATUS_OK) {
        check_skip("no CUDA plugin in this build: %s", status_message());
        return false;
    }
    *status = paper_fill(paper, asked);
    return true;
}

static void paper_close(struct paper *paper)
{
    if (paper->plan)
        paper->cuda->release(paper->plan);
    if (paper->instance)
        paper->cuda->detach(paper->instance);
    program_free(paper->fused);
    program_free(paper->program);
    params_free(&paper->params);
    network_free(paper->network);
    if (paper->device)
        paper->cuda->close(paper->device);
    arena_free(&paper->arena);
}

static const struct kernel_use *find_kernel(const struct paper *paper, const char *name)
{
    for (int32_t i = 0; i < paper->explanation.kernel_count; i++)
        if (strcmp(paper->explanation.kernels[i].kernel, name) == 0)
            return &paper->explanation.kernels[i];
    return NULL;
}

static int32_t count_launches(const struct paper *paper)
{
    int32_t launches = 0;
    for (int32_t i = 0; i < paper->explanation.kernel_count; i++)
        launches += paper->explanation.kernels[i].launches;
    return launches;
}

/* This kernel is among those that run. */
static void expect_kernel(const struct asked *asked, const char *kernel)
{
    struct paper paper;
    enum status status;
    if (!paper_open(&paper, asked, &status))
        return;
    if (!CHECK_OK(status) || !CHECK(find_kernel(&paper, kernel)))
        printf("    %s, batch %d, %s: %s does not run\n", asked->network, asked->batch,
               asked->precision, kernel);
    paper_close(&paper);
}

/* Kernels of one name, which say why, run everything in so many launches a call. */
static void expect_calls(const struct asked *asked, const char *kernel, int32_t launches)
{
    struct paper paper;
    enum status status;
    if (!paper_open(&paper, asked, &status))
        return;
    if (CHECK_OK(status)) {
        for (int32_t i = 0; i < paper.explanation.kernel_count; i++) {
            CHECK_EQUAL_TEXT(paper.explanation.kernels[i].kernel, kernel);
            CHECK(paper.explanation.kernels[i].why);
        }
        CHECK_EQUAL_INT(paper.explanation.kernel_count, paper.fused->op_count);
        CHECK_EQUAL_INT(count_launches(&paper), launches);
    }
    paper_close(&paper);
}

/* … without a launch a step. */
static void expect_whole(const struct asked *asked, const char *kernel)
{
    expect_calls(asked, kernel, 0);
}

static void expect_refused(const struct asked *asked, const char *message)
{
    struct paper paper;
    enum status status;
    if (!paper_open(&paper, asked, &status))
        return;
    CHECK_EQUAL_INT(status, STATUS_UNSUPPORTED);
    CHECK_MESSAGE(message);
    paper_close(&paper);
}

/* No kernel runs it whole, and this is said of it. */
static void expect_op_by_op(const struct asked *asked, const char *why)
{
    struct paper paper;
    enum status status;
    if (!paper_open(&paper, asked, &status))
        return;
    if (CHECK_OK(status) && CHECK(!paper.fused->whole) && CHECK(paper.fused->op_by_op) &&
        !CHECK(strstr(paper.fused->op_by_op, why)))
        printf("    found \"%s\", expected \"%s\"\n", paper.fused->op_by_op, why);
    paper_close(&paper);
}

#define TRAIN(network, batch, precision)                                                           \
    (&(const struct asked){network, batch, USE_TRAINING, precision, ANSWER_STEPS, NULL, LOSS_AUTO})
#define TRAIN_BY(optimiser, network, batch)                                                        \
    (&(const struct asked){network, batch, USE_TRAINING, "fp32", ANSWER_STEPS, optimiser,          \
                           LOSS_AUTO})
#define INFER(network, batch, precision)                                                           \
    (&(const struct asked){network, batch, USE_INFERENCE, precision, ANSWER_STEPS, NULL, LOSS_AUTO})
#define CLASSIFY(loss, use, network, batch)                                                        \
    (&(const struct asked){network, batch, use, "fp32", ANSWER_STEPS, NULL, loss})
#define CALLS(network, batch, answering)                                                           \
    (&(const struct asked){network, batch, USE_INFERENCE, "fp32", answering, NULL, LOSS_AUTO})

TEST(small_batches_of_dense_layers_run_whole)
{
    expect_whole(TRAIN("small", 1, "fp32"), "stack_warp_f32_cuda");
    expect_whole(TRAIN("small", 2, "fp32"), "stack_four_warps_f32_cuda");
    expect_whole(TRAIN("small", 12, "fp32"), "stack_four_warps_f32_cuda");
    expect_whole(TRAIN("small", 13, "fp32"), "stack_block_f32_cuda");
    expect_whole(TRAIN("small", 64, "fp32"), "stack_block_f32_cuda");
    expect_whole(TRAIN("small", 65, "fp32"), "stack_replicas_f32_cuda");
    expect_whole(TRAIN("mlp:4-3", 1, "fp32"), "stack_block_f32_cuda");
    expect_whole(TRAIN("mlp:4-3-3-3-3-1", 1, "fp32"), "stack_block_f32_cuda");
    expect_whole(TRAIN("mlp:4-9-1", 1, "fp32"), "stack_block_f32_cuda");
    expect_whole(INFER("mlp:4-8-2:gelu", 1, "fp32"), "stack_block_f32_cuda");
    expect_whole(TRAIN("mlp:4-33-1", 10, "fp32"), "stack_grid_f32_cuda");
    expect_whole(TRAIN("mlp:4-32-32-2:sigmoid", 5, "fp32"), "stack_block_f32_cuda");
    expect_whole(TRAIN("small", 150, "fp32"), "stack_replicas_f32_cuda");
    expect_whole(TRAIN("small", 1000000, "fp32"), "stack_replicas_f32_cuda");
    expect_whole(INFER("mlp:13-16-16-4", 1000, "fp32"), "stack_replicas_f32_cuda");
    expect_whole(TRAIN("large", 3, "fp32"), "stack_grid_f32_cuda");
    expect_whole(TRAIN("large", 4, "fp32"), "stack_grid_f32_cuda");
    expect_whole(TRAIN("large", 10, "fp32"), "stack_grid_f32_cuda");
    expect_whole(TRAIN("large", 16, "fp32"), "stack_grid_f32_cuda");
    expect_whole(INFER("large", 1, "fp32"), "stack_grid_f32_cuda");
    expect_whole(INFER("large", 1, "bf16"), "stack_cores_bf16_cuda");
    expect_whole(INFER("large", 16, "fp16"), "stack_cores_f16_cuda");
    expect_whole(INFER("fcn", 16, "bf16"), "stack_cores_bf16_cuda");
}

/* Neither right answers that are counted on probabilities nor, in one block, outputs that become
 * such are in the way. */
TEST(classifiers_run_whole)
{
    static const enum program_use uses[] = {USE_TRAINING, USE_EVALUATION, USE_INFERENCE};
    for (size_t u = 0; u < sizeof uses / sizeof *uses; u++)
        for (int loss = LOSS_CROSS_ENTROPY; loss <= LOSS_BINARY_CROSS_ENTROPY; loss++) {
            const bool softmax = loss == LOSS_CROSS_ENTROPY && uses[u] != USE_TRAINING;
            expect_whole(CLASSIFY(loss, uses[u], "mlp:4-8-1:relu", 1),
                         softmax ? "stack_block_f32_cuda" : "stack_warp_f32_cuda");
            expect_whole(CLASSIFY(loss, uses[u], "mlp:4-8-1:relu", 10),
                         softmax ? "stack_block_f32_cuda" : "stack_four_warps_f32_cuda");
            expect_whole(CLASSIFY(loss, uses[u], "mlp:4-8-1:relu", 64), "stack_block_f32_cuda");
            if (softmax)
                expect_op_by_op(CLASSIFY(loss, uses[u], "mlp:5-136-36-1:tanh", 10),
                                "it stores probabilities");
            else
                expect_whole(CLASSIFY(loss, uses[u], "mlp:5-136-36-2:tanh", 10),
                             "stack_grid_f32_cuda");
        }
    expect_op_by_op(CLASSIFY(LOSS_BINARY_CROSS_ENTROPY, USE_TRAINING, "mlp:5-136-36-1:tanh", 10),
                    "its right answers are counted on probabilities");
    /* a call of theirs is a graph */
    expect_kernel(&(const struct asked){"mlp:4-8-3:relu", 1, USE_INFERENCE, "fp32", ANSWER_CALLS,
                                        NULL, LOSS_CROSS_ENTROPY},
                  "softmax_f32_cuda");
    expect_refused(&(const struct asked){"mlp:4-8-3:relu", 1, USE_INFERENCE, "fp32",
                                         ANSWER_RESIDENT, NULL, LOSS_CROSS_ENTROPY},
                   "it stores probabilities");
}

/* By any optimiser where one block holds what it keeps; clipping needs all gradients at once. */
TEST(any_optimiser_trains_narrow_layers_whole)
{
    static const char *const optimisers[] = {"sgd:decay=0.1", "momentum", "nesterov", "adagrad",
                                             "rmsprop",       "adam",     "adamw",    "rprop"};
    for (size_t o = 0; o < sizeof optimisers / sizeof *optimisers; o++) {
        expect_whole(TRAIN_BY(optimisers[o], "small", 1), "stack_four_warps_f32_cuda");
        expect_whole(TRAIN_BY(optimisers[o], "small", 10), "stack_four_warps_f32_cuda");
        expect_whole(TRAIN_BY(optimisers[o], "small", 64), "stack_block_f32_cuda");
        expect_whole(TRAIN_BY(optimisers[o], "small", 65), "stack_replicas_f32_cuda");
        expect_whole(TRAIN_BY(optimisers[o], "mlp:8-32-32-4", 5), "stack_block_f32_cuda");
    }
    expect_kernel(TRAIN_BY("adam:clip=1", "small", 10), "clip_f32_cuda");
    expect_kernel(TRAIN_BY("adam", "large", 3), "adam_f32_cuda");
}

/* To see what a row buys: the next one that takes it runs. */
TEST(rows_can_be_left_out)
{
    CHECK(setenv("PRONY_CUDA_WITHOUT", "stack_warp_f32_cuda,answer_warp_f32_cuda", 1) == 0);
    expect_whole(TRAIN("small", 1, "fp32"), "stack_four_warps_f32_cuda");
    expect_calls(CALLS("mlp:8-32-32-4", 1, ANSWER_CALLS), "answer_block_f32_cuda", 1);
    CHECK(setenv("PRONY_CUDA_WITHOUT", "stack_warp", 1) == 0); /* no row's name */
    expect_whole(TRAIN("small", 1, "fp32"), "stack_warp_f32_cuda");
    unsetenv("PRONY_CUDA_WITHOUT");
}

TEST(calls_have_kernels_of_their_own)
{
    expect_calls(CALLS("small", 1, ANSWER_CALLS), "answer_block_f32_cuda", 1);
    expect_calls(CALLS("small", 1, ANSWER_QUEUED), "answer_block_f32_cuda", 1);
    expect_calls(CALLS("mlp:8-32-32-4", 1, ANSWER_CALLS), "answer_warp_f32_cuda", 1);
    expect_calls(CALLS("small", 1, ANSWER_RESIDENT), "answer_warp_f32_cuda", 0);
    expect_calls(CALLS("mlp:8-32-32-4", 10, ANSWER_CALLS), "answer_block_f32_cuda", 1);
    expect_kernel(CALLS("small", 65, ANSWER_CALLS), "dense_f32_small"); /* a graph of its ops */
    expect_kernel(CALLS("mlp:8-32-32-4", 17, ANSWER_QUEUED), "dense_f32_small");
    expect_refused(CALLS("small", 65, ANSWER_RESIDENT), "more than the 512 threads of a block");
    expect_calls(CALLS("large", 4, ANSWER_CALLS), "answer_layers_f32_cuda", 5);
    expect_calls(CALLS("large", 5, ANSWER_CALLS), "stack_grid_f32_cuda", 0);
    expect_calls(CALLS("large", 10, ANSWER_CALLS), "stack_grid_f32_cuda", 0);
    expect_calls(CALLS("large", 1, ANSWER_CALLS), "answer_layers_f32_cuda", 5);
    expect_calls(CALLS("mlp:500-500-10", 1, ANSWER_CALLS), "answer_layers_f32_cuda", 3);
    expect_calls(CALLS("large", 1, ANSWER_QUEUED), "stack_grid_f32_cuda", 0);
    expect_calls(CALLS("large", 10, ANSWER_RESIDENT), "stack_grid_f32_cuda", 0);
    expect_refused(CALLS("lenet", 1, ANSWER_RESIDENT), "no kernel that waits for calls of 'lenet'");
    expect_refused(CALLS("large", 13, ANSWER_RESIDENT), "its batch is more than 12 samples");
    expect_calls(CALLS("mlp:500-500-10", 1, ANSWER_RESIDENT), "stack_grid_f32_cuda", 0);
    expect_refused(CALLS("mlp:500-500-10", 2, ANSWER_RESIDENT), "512 numbers at most");
    expect_refused(CALLS("mlp:784-500-10", 1, ANSWER_RESIDENT), "512 numbers at most");
}

TEST(what_runs_op_by_op_says_why)
{
    expect_op_by_op(TRAIN_BY("adam", "large", 3), "by plain sgd alone");
    expect_op_by_op(TRAIN_BY("adam", "mlp:32-32-32-32-32-32-32-32-32-32-32-32", 1),
                    "does not fit a block's shared memory");
    expect_op_by_op(TRAIN_BY("adam:clip=1", "small", 10), "not a plain stack");
    expect_op_by_op(TRAIN("large", 17, "fp32"), "its batch is more than 16 samples");
    expect_op_by_op(INFER("large", 13, "fp32"), "its batch is more than 12 samples");
    expect_op_by_op(TRAIN("mlp:4-8-2:gelu", 1, "fp32"), "not a plain stack");
    expect_op_by_op(INFER("mlp:784-500-784", 1, "fp32"), "more than 32 outputs");
    expect_op_by_op(INFER("large", 17, "bf16"), "its batch is more than 16 samples");
    expect_op_by_op(INFER("mlp:784-500-784", 1, "bf16"), "more than 32 outputs");
    expect_op_by_op(TRAIN("large", 1, "bf16"), "for inference");
    expect_op_by_op(INFER("wide", 64, "fp8"), "whole steps are not computed in fp8");
    expect_op_by_op(INFER("lenet", 1, "fp32"), "not a plain stack of dense layers");
}

TEST(products_are_chosen_by_their_size)
{
    expect_kernel(TRAIN("large", 1024, "tf32"), "dense_tf32_cublaslt");
    expect_kernel(TRAIN("large", 1024, "tf32"), "dense_sgd_f32_few_outputs");
    expect_kernel(TRAIN("large", 150, "tf32"), "dense_tf32_split_k");
    expect_kernel(TRAIN("large", 64, "tf32"), "dense_sgd_tf32_split_k");
    expect_kernel(TRAIN("fcn", 64, "fp32"), "dense_f32_cublaslt");
    expect_kernel(TRAIN("fcn", 16384, "bf16"), "dense_sgd_bf16_cublaslt");
    expect_kernel(TRAIN("fcn", 16384, "bf16"), "load_16bit_cuda");
    expect_kernel(TRAIN("fcn", 64, "fp16"), "outer_f16_cublaslt"); /* and sgd apart: it is scaled */
    expect_kernel(INFER("wide", 64, "bf16"), "dense_bf16_cublaslt");
    expect_kernel(INFER("wide", 1, "fp32"), "dense_f32_cublaslt"); /* few samples, many weights */
    expect_kernel(INFER("mlp:100000-64-10", 1, "fp32"), "dense_f32_cublaslt");
    expect_kernel(INFER("mlp:512-512", 12, "fp32"), "dense_f32_small");
    expect_kernel(TRAIN("mlp:1048576-24-10", 16, "fp32"), "dense_sgd_f32_cublaslt"); /* too wide */
    expect_kernel(INFER("large", 17, "bf16"), "dense_bf16_skinny");
    expect_kernel(INFER("large", 17, "bf16"), "dense_f32_few_outputs");
    expect_kernel(INFER("large", 32, "fp16"), "dense_f16_skinny");
    expect_kernel(INFER("large", 33, "bf16"), "dense_bf16_cublaslt");
    expect_kernel(INFER("wide", 1, "bf16"), "dense_bf16_cublaslt"); /* more than L2 holds */
    expect_kernel(TRAIN("large", 10, "bf16"), "dense_sgd_bf16_skinny");
    expect_kernel(TRAIN("large", 17, "fp32"), "dense_sgd_f32_skinny");
    expect_kernel(TRAIN("large", 33, "fp32"), "dense_sgd_f32_cublaslt");
    expect_kernel(INFER("mlp:1600-2600-40", 12, "fp32"), "dense_f32_cublaslt"); /* no grid */
    expect_kernel(INFER("mlp:1600-2600-40", 13, "fp32"), "dense_f32_skinny");
    expect_kernel(TRAIN("lenet", 64, "fp32"), "dense_f32_small");
    expect_refused(TRAIN("small", 10, "bf16"), "would be computed in 16 bits");
    expect_kernel(INFER("wide", 64, "fp8"), "dense_fp8_cublaslt");
    expect_kernel(INFER("large", 33, "fp8"), "dense_bf16_cublaslt"); /* 2,500 outputs */
    expect_refused(INFER("wide", 32, "fp8"), "nothing of 'wide' would be computed in fp8");
    expect_refused(TRAIN("wide", 64, "fp8"), "fp8 is for inference");
}

TEST(convolutions_are_chosen_by_precision_and_size)
{
    expect_kernel(TRAIN("lenet", 64, "tf32"), "conv_fused_f32_direct");
    expect_kernel(TRAIN("lenet", 64, "fp32"), "conv_dw_f32_small");
    expect_kernel(INFER("resnet18", 8, "fp32"), "conv_fused_f32_cuda");
    expect_kernel(INFER("resnet18", 8, "tf32"), "conv_fused_tf32_nhwc");
    expect_kernel(INFER("resnet18", 8, "bf16"), "conv_fused_16bit_nhwc");
    expect_kernel(TRAIN("resnet18", 8, "tf32"), "batch_norm_add_relu_f32_cuda");
    expect_kernel(TRAIN("lenet", 64, "fp32"), "sgd_multi_tensor_f32_cuda");
    expect_kernel(TRAIN("gru", 64, "fp32"), "adam_multi_tensor_f32_cuda");
}

static void expect_reason(const struct asked *asked, const char *kernel, const char *part)
{
    struct paper paper;
    enum status status;
    if (!paper_open(&paper, asked, &status))
        return;
    const struct kernel_use *use = CHECK_OK(status) ? find_kernel(&paper, kernel) : NULL;
    if (CHECK(use && use->why) && !CHECK(strstr(use->why, part)))
        printf("    %s, batch %d: \"%s\"\n", asked->network, asked->batch, use->why);
    paper_close(&paper);
}

/* The same kernel, for another reason. */
TEST(reasons_are_true_at_every_size)
{
    expect_reason(TRAIN("large", 33, "fp32"), "dense_f32_cublaslt", "do not fill");
    expect_reason(TRAIN("large", 1024, "fp32"), "dense_f32_cublaslt", "tiles fill the GPU");
    expect_reason(TRAIN("mlp:33-33-9", 100, "fp32"), "dense_sgd_f32_small", "a small product");
    expect_reason(TRAIN("mlp:33-20-33", 1000000, "fp32"), "dense_sgd_f32_cuda", "many samples");
    expect_reason(INFER("wide", 8, "bf16"), "dense_bf16_cublaslt", "more weights");
    expect_reason(TRAIN("large", 64, "bf16"), "dense_bf16_cublaslt", "in 16 bits");
    expect_reason(TRAIN("large", 8, "bf16"), "dense_bf16_skinny", "few samples");
}

/* What the kernels need beside the program's tensors is known, and grows with the batch. */
TEST(memory_is_known_before_it_is_taken)
{
    const struct asked *const rows[] = {TRAIN("large", 150, "tf32"), TRAIN("large", 1024, "tf32"),
                                        TRAIN("lenet", 64, "fp32"), TRAIN("lenet", 512, "fp32")};
    uint64_t before = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct paper paper;
        enum status status;
        if (!paper_open(&paper, rows[i], &status))
            return;
        if (CHECK_OK(status)) {
            const uint64_t *bytes = paper.explanation.role_bytes;
            CHECK(bytes[ROLE_ACTIVATION] >= paper.fused->role_bytes[ROLE_ACTIVATION]);
            CHECK_EQUAL_INT(bytes[ROLE_GRAD], paper.fused->role_bytes[ROLE_GRAD]);
            CHECK(bytes[ROLE_SCRATCH] > 0);
            CHECK(i % 2 == 0 || bytes[ROLE_ACTIVATION] > before);
            before = bytes[ROLE_ACTIVATION];
        }
        paper_close(&paper);
    }
}

/* Every op's launches are counted; what was merged into a later op has none, and no kernel. */
TEST(launches_are_counted)
{
    struct paper paper;
    enum status status;
    if (!paper_open(&paper, TRAIN("resnet18", 2, "tf32"), &status))
        return;
    if (CHECK_OK(status)) {
        for (int32_t i = 0; i < paper.explanation.kernel_count; i++)
            CHECK(paper.explanation.kernels[i].launches > 0);
        CHECK(paper.explanation.kernel_count < paper.fused->op_count);
    }
    paper_close(&paper);
}

static void expect_launches(const struct asked *asked, const char *kernel, int32_t launches)
{
    struct paper paper;
    enum status status;
    if (!paper_open(&paper, asked, &status))
        return;
    const struct kernel_use *use = CHECK_OK(status) ? find_kernel(&paper, kernel) : NULL;
    if (CHECK(use))
        CHECK_EQUAL_INT(use->launches, launches);
    paper_close(&paper);
}

/* The inputs' product and all steps, or two kernels a step; before either the state is set. */
TEST(recurrent_layers_have_few_launches)
{
    expect_launches(INFER("lstm", 64, "fp32"), "lstm_f32_persistent", 3);
    expect_launches(INFER("ptb_lstm", 20, "fp32"), "lstm_f32_cuda", 3 + 2 * 35);
}

TEST(paper_is_for_dry_plans_only)
{
    struct paper paper;
    enum status status;
    if (!paper_open(&paper, TRAIN("small", 1, "fp32"), &status))
        return;
    if (CHECK_OK(status)) {
        struct plan *plan = NULL;
        CHECK_STATUS(STATUS_INPUT, paper.cuda->prepare(paper.instance, paper.fused,
                                                       &(struct plan_options){0}, &plan));
        CHECK_MESSAGE("can only be explained");
        CHECK(!plan);
    }
    paper_close(&paper);
}

CHECK_MAIN
