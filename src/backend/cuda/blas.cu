/* blas.cu: the GEMM family through cuBLASLt: bias and relu in the product's epilogue, and the
 * update of dense_sgd as a product that adds to the weights. Its library is loaded at run time.
 *
 * cuBLASLt counts by columns: our y[n, o] = x[n, i]·W[i, o] is its yᵀ = Wᵀ·xᵀ, the same bytes. */
#include "backend/cuda/activation.h"
#include "backend/cuda/blas.h"
#include "backend/cuda/families.h"
#include "backend/cuda/reduce.h"
#include "backend/cuda/update.h"

#include <cublasLt.h>
#include <dlfcn.h>

extern "C" {
#include "base/memory.h"
}

#define BLAS_FUNCTIONS(DO)                                                                         \
    DO(Create)                                                                                     \
    DO(Destroy)                                                                                    \
    DO(Matmul)                                                                                     \
    DO(MatmulAlgoGetHeuristic)                                                                     \
    DO(MatmulDescCreate)                                                                           \
    DO(MatmulDescDestroy)                                                                          \
    DO(MatmulDescSetAttribute)                                                                     \
    DO(MatmulPreferenceCreate)                                                                     \
    DO(MatmulPreferenceDestroy)                                                                    \
    DO(MatmulPreferenceSetAttribute)                                                               \
    DO(MatrixLayoutCreate)                                                                         \
    DO(MatrixLayoutDestroy)

struct blas {
    void *library;
    cublasLtHandle_t handle;
    bool tf32;
#define DO(name) decltype(&cublasLt##name) name;
    BLAS_FUNCTIONS(DO)
#undef DO
};

static void *library_open(void)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                        "/usr/local/cuda/lib64/libcublasLt.so.13",
                                        "/usr/local/cuda/lib64/libcublasLt.so.12"};
    for (const char *name : names) {
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    return NULL;
}

static bool library_read(struct blas *blas)
{
#define DO(name)                                                                                   \
    blas->name = (decltype(&cublasLt##name))dlsym(blas->library, "cublasLt" #name);                \
    if (!blas->name)                                                                               \
        return false;
    BLAS_FUNCTIONS(DO)
#undef DO
    return blas->Create(&blas->handle) == CUBLAS_STATUS_SUCCESS;
}

struct blas *blas_open(bool tf32)
{
    void *library = library_open();
    struct blas *blas = library ? (struct blas *)mem_alloc(sizeof *blas) : NULL;
    if (!blas)
        return NULL;
    blas->library = library;
    blas->tf32 = tf32;
    if (library_read(blas))
        return blas;
    dlclose(library);
    mem_free(blas);
    return NULL;
}

void blas_close(struct blas *blas)
{
    if (!blas)
        return;
    blas->Destroy(blas->handle);
    dlclose(blas->library);
    mem_free(blas);
}

/* A plan's workspace as these kernels use it: two factors, then what cuBLASLt may take. */
enum { FACTORS_BYTES = 256, PRODUCT_BYTES = 32 << 20 };

static uint64_t workspace_blas(const struct program *, const struct op *)
{
    return FACTORS_BYTES + PRODUCT_BYTES;
}

/* One product by columns: d[m, n] = alpha·a·b + beta·d, a being [m, k] and b [k, n], or turned. */
struct product {
    int64_t m, n, k;
    bool a_turned, b_turned;
    const float *a, *b;
    float *d;
    const float *factors; /* device: alpha and beta; NULL: 1 and 0 */
    const float *bias;    /* [m], or NULL */
    bool relu;
};

/* What cuBLASLt wants to know, and how it would do it. */
struct recipe {
    cublasLtMatmulDesc_t what;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulPreference_t wish;
    cublasLtMatmulHeuristicResult_t how;
};

static bool recipe_describe(const struct blas *blas, const struct product *product,
                            struct recipe *recipe)
{
    const cublasOperation_t a = product->a_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t b = product->b_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtPointerMode_t mode =
        product->factors ? CUBLASLT_POINTER_MODE_DEVICE : CUBLASLT_POINTER_MODE_HOST;
    const cublasLtEpilogue_t end = product->bias && product->relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                   : product->bias                ? CUBLASLT_EPILOGUE_BIAS
                                   : product->relu                ? CUBLASLT_EPILOGUE_RELU
                                                                  : CUBLASLT_EPILOGUE_DEFAULT;
    const auto set = [&](cublasLtMatmulDescAttributes_t name, const void *value, size_t size) {
        return blas->MatmulDescSetAttribute(recipe->what, name, value, size) ==
               CUBLAS_STATUS_SUCCESS;
    };
    const cublasComputeType_t compute =
        blas->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    return blas->MatmulDescCreate(&recipe->what, compute, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
           set(CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a) &&
           set(CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b) &&
           set(CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode) &&
           set(CUBLASLT_MATMUL_DESC_EPILOGUE, &end, sizeof end) &&
           (!product->bias ||
            set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &product->bias, sizeof(const float *)));
}

static bool recipe_find(const struct blas *blas, const struct product *product,
                        struct recipe *recipe)
{
    const uint64_t m = (uint64_t)product->m, n = (uint64_t)product->n, k = (uint64_t)product->k;
    const auto layout = [&](cublasLtMatrixLayout_t *out, bool turned, uint64_t rows,
                            uint64_t columns) {
        const uint64_t tall = turned ? columns : rows;
        return blas->MatrixLayoutCreate(out, CUDA_R_32F, tall, turned ? rows : columns,
                                        (int64_t)tall) == CUBLAS_STATUS_SUCCESS;
    };
    const size_t room = PRODUCT_BYTES;
    int found = 0;
    return recipe_describe(blas, product, recipe) && layout(&recipe->a, product->a_turned, m, k) &&
           layout(&recipe->b, product->b_turned, k, n) && layout(&recipe->d, false, m, n) &&
           blas->MatmulPreferenceCreate(&recipe->wish) == CUBLAS_STATUS_SUCCESS &&
           blas->MatmulPreferenceSetAttribute(recipe->wish,
                                              CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room,
                                              sizeof room) == CUBLAS_STATUS_SUCCESS &&
           blas->MatmulAlgoGetHeuristic(blas->handle, recipe->what, recipe->a, recipe->b, recipe->d,
                                        recipe->d, recipe->wish, 1, &recipe->how,
                                        &found) == CUBLAS_STATUS_SUCCESS &&
           found > 0;
}

static void recipe_drop(const struct blas *blas, struct recipe *recipe)
{
    blas->MatmulPreferenceDestroy(recipe->wish);
    blas->MatrixLayoutDestroy(recipe->a);
    blas->MatrixLayoutDestroy(recipe->b);
    blas->MatrixLayoutDestroy(recipe->d);
    blas->MatmulDescDestroy(recipe->what);
}

static void multiply(const struct call *call, struct queue *queue, const struct product *product)
{
    static const float one_and_zero[2] = {1.0f, 0.0f};
    const float *factors = product->factors ? product->factors : one_and_zero;
    const struct blas *blas = queue->blas;
    struct recipe recipe = {};
    queue->launches++;
    if (queue->counting || queue->error != cudaSuccess)
        return;
    bool ok = recipe_find(blas, product, &recipe) &&
              blas->Matmul(blas->handle, recipe.what, factors, product->a, recipe.a, product->b,
                           recipe.b, factors + 1, product->d, recipe.d, product->d, recipe.d,
                           &recipe.how.algo, (char *)call->workspace + FACTORS_BYTES, PRODUCT_BYTES,
                           queue->stream) == CUBLAS_STATUS_SUCCESS;
    recipe_drop(blas, &recipe);
    if (!ok)
        queue->error = cudaErrorNotSupported;
}

static __global__ void activate_each(int64_t count, enum activation function, float *y)
{
    FOR_EACH(index, count)
    y[index] = activation_value(function, y[index]);
}

static void activate(const struct call *call, struct queue *queue, int32_t operand,
                     enum activation function)
{
    const int64_t count = call_count(call, operand);
    if (function != ACTIVATION_NONE && function != ACTIVATION_RELU)
        enqueue(queue, activate_each, dim3(blocks_striding(count)), dim3(THREADS), count, function,
                call_reals(call, operand));
}

static void launch_dense_blas(const struct call *call, struct queue *queue)
{
    const enum activation function = (enum activation)call->op->attr.dense.activation;
    struct product product = {};
    product.m = call_dim(call, 1, 1);
    product.n = call_dim(call, 0, 0);
    product.k = call_dim(call, 1, 0);
    product.a = call_reals(call, 1);
    product.b = call_reals(call, 0);
    product.d = call_reals(call, 3);
    product.bias = call_reals(call, 2);
    product.relu = function == ACTIVATION_RELU;
    multiply(call, queue, &product);
    activate(call, queue, 3, function);
}

/* y[n, i] = x[n, o]·Wᵀ, the gradient of a layer's input among them */
static struct product product_turned(const float *x, const float *w, float *y, int64_t n, int64_t i,
                                     int64_t o)
{
    struct product product = {};
    product.m = i;
    product.n = n;
    product.k = o;
    product.a_turned = true;
    product.a = w;
    product.b = x;
    product.d = y;
    return product;
}

static void launch_dense_t_blas(const struct call *call, struct queue *queue)
{
    const enum activation function = (enum activation)call->op->attr.dense_t.activation;
    struct product product =
        product_turned(call_reals(call, 0), call_reals(call, 1), call_reals(call, 3),
                       call_dim(call, 0, 0), call_dim(call, 1, 0), call_dim(call, 1, 1));
    product.bias = call_reals(call, 2);
    product.relu = function == ACTIVATION_RELU;
    multiply(call, queue, &product);
    activate(call, queue, 3, function);
}

/* dw[i, o] from x[n, i] and dy[n, o] */
static struct product product_outer(const float *x, const float *dy, float *dw, int64_t n,
                                    int64_t i, int64_t o)
{
    struct product product = {};
    product.m = o;
    product.n = i;
    product.k = n;
    product.b_turned = true;
    product.a = dy;
    product.b = x;
    product.d = dw;
    return product;
}

static __global__ void factors_set(float alpha, const float *rate, float beta, float *factors)
{
    factors[0] = rate ? -*rate : alpha;
    factors[1] = beta;
}

static void set_factors(const struct call *call, struct queue *queue, float alpha,
                        const float *rate, float beta)
{
    enqueue(queue, factors_set, dim3(1), dim3(1), alpha, rate, beta, (float *)call->workspace);
}

static void launch_outer_blas(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.outer;
    struct product product =
        product_outer(call_reals(call, 0), call_reals(call, 1), call_reals(call, 2),
                      call_dim(call, 0, 0), call_dim(call, 0, 1), call_dim(call, 1, 1));
    if (attr.scale != 1.0f || attr.accumulate) {
        set_factors(call, queue, attr.scale, NULL, attr.accumulate ? 1.0f : 0.0f);
        product.factors = (const float *)call->workspace;
    }
    multiply(call, queue, &product);
}

/* b -= rate · Σ dy; whoever has the first column also writes the factors of the update. */
struct to_bias {
    float *b;
    const float *rate;
    float *factors;
    __device__ void put(int64_t, int64_t col, float sum) const
    {
        b[col] = update_sgd(b[col], sum, *rate);
        if (col == 0) {
            factors[0] = -*rate;
            factors[1] = 1.0f;
        }
    }
};

/* dx comes first: it is made with the weights as they were. */
static void launch_dense_sgd_blas(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, 0, 0), i = call_dim(call, 2, 0), o = call_dim(call, 2, 1);
    const float *x = call_reals(call, 0), *dy = call_reals(call, 1), *rate = call_reals(call, 4);
    float *factors = (float *)call->workspace;
    if (call_has(call, 7)) {
        const struct product down =
            product_turned(dy, call_reals(call, 5), call_reals(call, 7), n, i, o);
        multiply(call, queue, &down);
    }
    if (call_has(call, 6))
        sum_rows(queue, n, o, reduce_value{dy}, to_bias{call_reals(call, 6), rate, factors});
    else
        set_factors(call, queue, 0.0f, rate, 1.0f);
    struct product update = product_outer(x, dy, call_reals(call, 5), n, i, o);
    update.factors = factors;
    multiply(call, queue, &update);
}

#define ROW(kind, type)                                                                            \
    {                                                                                              \
        OP_##kind, #kind "_" type "_cublaslt", launch_##kind##_blas, workspace_blas                \
    }

static const struct kernel kernels_f32[] = {ROW(dense, "f32"), ROW(dense_t, "f32"),
                                            ROW(outer, "f32"), ROW(dense_sgd, "f32")};
static const struct kernel kernels_tf32[] = {ROW(dense, "tf32"), ROW(dense_t, "tf32"),
                                             ROW(outer, "tf32"), ROW(dense_sgd, "tf32")};

const struct kernel *blas_kernel(const struct blas *blas, const struct program *program,
                                 const struct op *op)
{
    enum { SAMPLES_LEAST = 13, WEIGHTS_LEAST = 1024 }; /* below, tiles of ours are as fast */
    const bool is_outer = op->kind == OP_outer;
    for (const struct kernel &kernel : blas && blas->tf32 ? kernels_tf32 : kernels_f32) {
        if (!blas || kernel.kind != op->kind)
            continue;
        const struct shape *x = &program->tensors[op_input(program, op, 0)].shape;
        const int32_t matrix = is_outer ? op_output(program, op, 0)
                                        : op_input(program, op, op->kind == OP_dense_sgd ? 2 : 1);
        const struct shape *w = &program->tensors[matrix].shape;
        if (x->dim[0] >= SAMPLES_LEAST && w->dim[0] * w->dim[1] >= WEIGHTS_LEAST)
            return &kernel;
    }
    return NULL;
}
