/* test_simd.c: what the simd backend's kernels promise beyond the conformance cases: weights in
 * blocks and back, the accuracy of its functions, and the same results at every ISA and number of
 * threads. */
#include "backend/cpu/blocked.h"
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/dense/dense_shared.h"
#include "backend/cpu/simd/simd_isas.h"
#include "base/machine/cpu.h"
#include "check.h"
#include "core/program.h"

#include <math.h>
#include <stdlib.h>

TEST(blocks_hold_every_element_once)
{
    static const int64_t sizes[][2] = {{1, 1}, {7, 5}, {16, 8}, {17, 9}, {255, 33}, {1001, 13}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct shape shape = SHAPE(sizes[i][0], sizes[i][1]);
        size_t count = (size_t)shape_count(&shape), padded = blocked_bytes(&shape) / sizeof(float);
        float *in = calloc(count, sizeof *in), *out = calloc(count, sizeof *out);
        float *blocked = calloc(padded, sizeof *blocked);
        double sum = 0, found = 0;
        for (size_t k = 0; k < count; k++)
            sum += (double)(in[k] = (float)(k + 1));
        blocked_pack(&shape, in, blocked, 0, 1);
        blocked_pack(&shape, in, blocked, 1, blocked_groups(&shape));
        for (size_t k = 0; k < padded; k++)
            found += (double)blocked[k]; /* padding is zero */
        CHECK(found == sum);
        blocked_unpack(&shape, blocked, out, 0, blocked_groups(&shape));
        CHECK(!memcmp(in, out, count * sizeof *in));
        free(in);
        free(out);
        free(blocked);
    }
}

/* The distance in units of the last place of the right answer. */
static double ulps(float found, double right)
{
    float rounded = (float)right;
    double ulp = (double)nextafterf(fabsf(rounded), INFINITY) - (double)fabsf(rounded);
    return fabs((double)found - right) / ulp;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double softplus(double x)
{
    return log1p(exp(-fabs(x))) + (x > 0 ? x : 0);
}

static double gelu(double x)
{
    return x * erfc(-x / sqrt(2)) / 2;
}

/* Over floats of every size within ±80, a stride through their bits; not where results, or what
 * they are made of, are too small to be normal numbers. */
static void check_function(const struct dense_kernels *kernels, enum activation function,
                           double (*right)(double), double limit)
{
    enum { COUNT = 4099 };
    static float x[COUNT], y[COUNT];
    double worst = 0;
    for (uint32_t bits = 0; bits < 0x42A00000u; bits += COUNT * 61) {
        for (uint32_t k = 0; k < COUNT; k++) {
            uint32_t word = (bits + 61 * k) | (k & 1) << 31;
            memcpy(&x[k], &word, sizeof word);
        }
        kernels->activate((int32_t)function, x, y, COUNT);
        for (int k = 0; k < COUNT; k++)
            if (fabsf(x[k]) < 80 && fabs(right((double)x[k])) > 1e-35)
                worst = fmax(worst, ulps(y[k], right((double)x[k])));
    }
    if (!CHECK(worst <= limit))
        printf("    %s: %.2f ulp\n", activation_name(function), worst);
}

/* What is infinite, huge or no number. */
static void check_edges(const struct dense_kernels *kernels)
{
    static const struct {
        enum activation function;
        float x, right;
    } edges[] = {
        {ACTIVATION_GELU, INFINITY, INFINITY}, {ACTIVATION_GELU, 1e20f, 1e20f},
        {ACTIVATION_GELU, -1e20f, 0},          {ACTIVATION_GELU, NAN, NAN},
        {ACTIVATION_RELU, NAN, NAN},           {ACTIVATION_RELU, INFINITY, INFINITY},
        {ACTIVATION_RELU, -INFINITY, 0},       {ACTIVATION_SIGMOID, INFINITY, 1},
        {ACTIVATION_TANH, -INFINITY, -1},      {ACTIVATION_SIGMOID, NAN, NAN},
        {ACTIVATION_TANH, NAN, NAN},           {ACTIVATION_SOFTPLUS, INFINITY, INFINITY},
    };
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        float x[17], y[17];
        for (int k = 0; k < 17; k++)
            x[k] = edges[i].x;
        kernels->activate((int32_t)edges[i].function, x, y, 17);
        for (int k = 0; k < 17; k += 16) {
            bool right = isfinite(edges[i].right) ? fabsf(y[k] - edges[i].right) <=
                                                        1e-6f * fabsf(edges[i].right) + 1e-15f
                         : isnan(edges[i].right) ? isnan(y[k])
                                                 : y[k] == edges[i].right;
            if (!CHECK(right))
                printf("    %s of %g is %g, expected %g\n", activation_name(edges[i].function),
                       (double)edges[i].x, (double)y[k], (double)edges[i].right);
        }
    }
}

static void check_isa(enum isa isa)
{
    struct cpu cpu;
    cpu_detect(&cpu);
    if (!cpu_has(&cpu, isa))
        SKIP("this CPU has no %s", isa_name(isa));
    const struct dense_kernels *kernels = simd_isa_of(isa)->dense;
    check_function(kernels, ACTIVATION_SIGMOID, sigmoid, 4);
    check_function(kernels, ACTIVATION_TANH, tanh, 4);
    check_function(kernels, ACTIVATION_SOFTPLUS, softplus, 4);
    check_function(kernels, ACTIVATION_GELU, gelu, 4);
    check_function(kernels, ACTIVATION_ERF, erf, 3);
    check_function(kernels, ACTIVATION_EXP, exp, 4);
    check_function(kernels, ACTIVATION_LOG, log, 3);
    check_edges(kernels);
}

TEST(neon_functions_are_accurate)
{
    check_isa(ISA_NEON);
}

TEST(avx2_functions_are_accurate)
{
    check_isa(ISA_AVX2);
}

TEST(avx512_functions_are_accurate)
{
    check_isa(ISA_AVX512);
}

/* What a batch of products [i, k] · [k, j] wants as workspace. */
static uint64_t matmul_wants(const struct kernel_table *table, int64_t i, int64_t k, int64_t j)
{
    struct tensor tensors[] = {
        {.shape = SHAPE(9, i, k)}, {.shape = SHAPE(9, k, j)}, {.shape = SHAPE(9, i, j)}};
    int32_t operands[] = {0, 1, 2};
    struct op op = {.kind = OP_matmul, .inputs = 2, .outputs = 1, .attr.matmul.scale = 1};
    struct program program = {.tensors = tensors, .operands = operands};
    const struct kernel *row = kernel_of(table, &program, &op);
    return row->workspace ? row->workspace(&program, &op, 1) : 0;
}

/* Packing takes longer than such a product. */
TEST(small_products_are_not_packed)
{
    struct kernel_table table = {0};
    struct cpu cpu;
    cpu_detect(&cpu);
    if (!simd_isa_of(cpu.isa))
        SKIP("this CPU has no vectors that there are kernels for");
    simd_add(&table, cpu.isa, &cpu);
    CHECK(matmul_wants(&table, 1, 2, 1) == 0);
    CHECK(matmul_wants(&table, 7, 5, 2) == 0);
    CHECK(matmul_wants(&table, 200, 300, 400) > 0);
}

CHECK_MAIN
