/* blas.cu: products through cuBLASLt, whose library is loaded at run time. Of the algorithms that
 * it proposes the first is taken: the choice depends on shapes only, and so do the bits. */
#include "backend/cuda/blas.h"

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
    enum precision precision;
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

struct blas *blas_open(enum precision precision)
{
    void *library = library_open();
    struct blas *blas = library ? (struct blas *)mem_alloc(sizeof *blas) : NULL;
    if (!blas)
        return NULL;
    blas->library = library;
    blas->precision = precision;
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

bool blas_is_tf32(const struct blas *blas)
{
    return blas->precision == PRECISION_TF32;
}

/* What cuBLASLt wants to know, and how it would do it. */
struct recipe {
    cublasLtMatmulDesc_t what;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulPreference_t wish;
    cublasLtMatmulHeuristicResult_t how;
};

static cudaDataType_t type_of(enum precision precision)
{
    return precision == PRECISION_BF16   ? CUDA_R_16BF
           : precision == PRECISION_FP16 ? CUDA_R_16F
                                         : CUDA_R_32F;
}

static cublasLtEpilogue_t ending_of(const struct product *product)
{
    if (product->bias)
        return product->relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
    return product->relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
}

static bool recipe_describe(const struct blas *blas, const struct product *product,
                            struct recipe *recipe)
{
    const cublasOperation_t a = product->a_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t b = product->b_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtPointerMode_t mode =
        product->factors ? CUBLASLT_POINTER_MODE_DEVICE : CUBLASLT_POINTER_MODE_HOST;
    const cublasLtEpilogue_t end = ending_of(product);
    const auto set = [&](cublasLtMatmulDescAttributes_t name, const void *value, size_t size) {
        return blas->MatmulDescSetAttribute(recipe->what, name, value, size) ==
               CUBLAS_STATUS_SUCCESS;
    };
    const bool tf32 = blas_is_tf32(blas) && !precision_is_narrow(product->in);
    const cublasComputeType_t compute = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    return blas->MatmulDescCreate(&recipe->what, compute, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
           set(CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a) &&
           set(CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b) &&
           set(CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode) &&
           set(CUBLASLT_MATMUL_DESC_EPILOGUE, &end, sizeof end) &&
           (!product->bias ||
            set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &product->bias, sizeof product->bias));
}

/* Of an address, in bytes, as far as it can matter. */
static uint32_t alignment_of(const void *address)
{
    const uintptr_t bits = (uintptr_t)address | 256;
    return (uint32_t)(bits & (~bits + 1));
}

static bool recipe_wish(const struct blas *blas, const struct product *product,
                        struct recipe *recipe)
{
    const size_t room = PRODUCT_BYTES;
    const uint32_t a = alignment_of(product->a), b = alignment_of(product->b);
    const uint32_t d = alignment_of(product->d);
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t name, const void *value,
                         size_t size) {
        return blas->MatmulPreferenceSetAttribute(recipe->wish, name, value, size) ==
               CUBLAS_STATUS_SUCCESS;
    };
    return blas->MatmulPreferenceCreate(&recipe->wish) == CUBLAS_STATUS_SUCCESS &&
           set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room) &&
           set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &a, sizeof a) &&
           set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &b, sizeof b) &&
           set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &d, sizeof d) &&
           set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &d, sizeof d);
}

static bool recipe_find(const struct blas *blas, const struct product *product,
                        struct recipe *recipe)
{
    const uint64_t m = (uint64_t)product->m, n = (uint64_t)product->n, k = (uint64_t)product->k;
    const auto layout = [&](cublasLtMatrixLayout_t *out, enum precision type, bool turned,
                            uint64_t rows, uint64_t columns, int64_t step) {
        const uint64_t tall = turned ? columns : rows;
        return blas->MatrixLayoutCreate(out, type_of(type), tall, turned ? rows : columns,
                                        step ? step : (int64_t)tall) == CUBLAS_STATUS_SUCCESS;
    };
    int found = 0;
    return recipe_describe(blas, product, recipe) &&
           layout(&recipe->a, product->in, product->a_turned, m, k, product->a_step) &&
           layout(&recipe->b, product->in, product->b_turned, k, n, product->b_step) &&
           layout(&recipe->d, product->out, false, m, n, 0) && recipe_wish(blas, product, recipe) &&
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

void blas_multiply(struct queue *queue, const struct product *product, void *room)
{
    static const float one_and_zero[2] = {1.0f, 0.0f};
    const float *factors = product->factors ? product->factors : one_and_zero;
    const struct blas *blas = queue->blas;
    struct recipe recipe = {};
    queue->launches++;
    if (queue->counting || queue->error != cudaSuccess)
        return;
    bool ok =
        recipe_find(blas, product, &recipe) &&
        blas->Matmul(blas->handle, recipe.what, factors, product->a, recipe.a, product->b, recipe.b,
                     factors + 1, product->d, recipe.d, product->d, recipe.d, &recipe.how.algo,
                     room, PRODUCT_BYTES, queue->stream) == CUBLAS_STATUS_SUCCESS;
    recipe_drop(blas, &recipe);
    if (!ok)
        queue->error = cudaErrorNotSupported;
}
