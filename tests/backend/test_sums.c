/* Sums that threads share: every element once, and the same bits whatever their number; and the
 * counts and losses made of them. */
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/simd_isas.h"
#include "backend/cpu/simd/sums.h"
#include "backend/cpu/team.h"
#include "base/machine/cpu.h"
#include "base/memory.h"
#include "check.h"

#include <math.h>

enum { SIZES = 4, TEAMS = 3 };
static const int teams[TEAMS] = {1, 2, 7};

static struct team_worth usual;

/* Threads for what is worth none. */
static void worth_little(void)
{
    usual = team_worth;
    team_worth = (struct team_worth){.flop = 1, .bytes = 1};
}

static void worth_as_usual(void)
{
    team_worth = usual;
}

static float add_piece(const void *context, int64_t from, int64_t to)
{
    const float *x = context;
    float sum = 0;
    for (int64_t i = from; i < to; i++)
        sum += x[i];
    return sum;
}

TEST(every_element_counts_once_and_bits_do_not_go_by_threads)
{
    static const int64_t counts[SIZES] = {1, 1023, 70001, 200000};
    static float x[200000];
    worth_little();
    for (int s = 0; s < SIZES; s++) {
        double right = 0;
        float first = 0;
        for (int64_t i = 0; i < counts[s]; i++)
            right += (double)(x[i] = 1 / (float)(i + 1));
        for (int t = 0; t < TEAMS; t++) {
            struct pool *pool;
            if (!CHECK_OK(pool_open(teams[t], POOL_NONE, &pool)))
                break;
            float sum = sum_pieces(pool, add_piece, x, counts[s], 512, counts[s]);
            CHECK_NEAR(sum, right, 1e-5 * right);
            first = t == 0 ? sum : first;
            CHECK(memcmp(&sum, &first, sizeof sum) == 0);
            pool_close(pool);
        }
    }
    worth_as_usual();
}

/* One op of simd's table, or of the reference's, over [rows, classes] numbers. */
struct subject {
    enum op_kind kind;
    int64_t rows, classes;
    float *x, *other, *more; /* more: what cross_entropy writes its softmax to */
    int32_t *label;
};

static float run_subject(const struct subject *s, const struct kernel *kernel, int threads)
{
    struct tensor matrix = {.shape = SHAPE(s->rows, s->classes)};
    const struct tensor *tensors[] = {&matrix, &matrix, &matrix, &matrix};
    float result = NAN;
    struct op op = {.kind = s->kind, .inputs = 2, .outputs = 1};
    bool labelled = s->kind == OP_right_class || s->kind == OP_cross_entropy;
    void *data[] = {s->x, labelled ? (void *)s->label : s->other, &result, s->more};
    const int64_t count = s->rows * s->classes, counts[] = {count, count, 1, count};
    struct call call = {.op = &op, .tensors = tensors, .data = data, .counts = counts};
    if (!CHECK_OK(pool_open(threads, POOL_NONE, &call.pool)))
        return result;
    kernel->run(&call);
    pool_close(call.pool);
    return result;
}

/* Clips two gradients; returns an element of each, added. */
static float run_clipping(const struct subject *s, const struct kernel *kernel, int threads)
{
    int64_t count = s->rows * s->classes;
    for (int64_t i = 0; i < count; i++)
        s->x[i] = s->other[i] = sinf((float)i);
    struct op op = {.kind = OP_clip, .inputs = 2, .outputs = 2, .attr.clip.limit = 0.25f};
    void *data[] = {s->x, s->other, s->x, s->other};
    const int64_t counts[] = {count, count, count, count};
    struct call call = {.op = &op, .data = data, .counts = counts};
    if (!CHECK_OK(pool_open(threads, POOL_NONE, &call.pool)))
        return NAN;
    kernel->run(&call);
    pool_close(call.pool);
    return s->x[7] + s->other[count - 1];
}

static void check_op(const struct subject *s, const struct kernel_table *simd,
                     const struct kernel_table *reference)
{
    const struct kernel *row = kernel_first(simd, DTYPE_F32, s->kind);
    const struct kernel *plain = kernel_first(reference, DTYPE_F32, s->kind);
    float (*run)(const struct subject *, const struct kernel *, int) =
        s->kind == OP_clip ? run_clipping : run_subject;
    float right = run(s, plain, 1), first = run(s, row, 1);
    CHECK(row->run != plain->run);
    CHECK_NEAR(first, right, 1e-4 * fabs((double)right));
    for (int t = 0; t < TEAMS; t++) {
        float found = run(s, row, teams[t]);
        if (!CHECK(memcmp(&found, &first, sizeof found) == 0))
            printf("    %s, %d threads: %.9g and %.9g\n", op_name(s->kind), teams[t], (double)found,
                   (double)first);
    }
}

TEST(losses_and_counts_are_the_references_in_any_number_of_threads)
{
    static const enum op_kind kinds[] = {OP_mse, OP_binary_cross_entropy, OP_cross_entropy,
                                         OP_right_class, OP_clip};
    static const int64_t sizes[][2] = {{1, 1}, {3, 5001}, {301, 33}, {2001, 7}};
    struct kernel_table simd = {0}, reference = {0};
    struct cpu cpu;
    cpu_detect(&cpu);
    if (!simd_isa_of(cpu.isa))
        SKIP("this CPU has no vectors that there are kernels for");
    simd_add(&simd, cpu.isa, &cpu);
    kernels_add(&reference, &ref_kernels);
    worth_little();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t rows = sizes[i][0], classes = sizes[i][1], count = rows * classes;
        struct subject s = {.rows = rows, .classes = classes};
        s.x = mem_array((size_t)count + 8, sizeof *s.x);
        s.other = mem_array((size_t)count + 8, sizeof *s.other);
        s.more = mem_array((size_t)count, sizeof *s.more);
        s.label = mem_array((size_t)rows, sizeof *s.label);
        for (int64_t k = 0; k < count; k++) {
            s.x[k] = (float)(k * 7919 % 1009) / 500 - 1;
            s.other[k] = (float)(k % 3) / 2;
        }
        for (int64_t n = 0; n < rows; n++) {
            s.label[n] = (int32_t)(n * 31 % classes);
            if (n % 2) /* every second is right, unless another is as large before it */
                s.x[n * classes + s.label[n]] = 1.017f;
        }
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            s.kind = kinds[k];
            if (s.kind != OP_clip || count > 8)
                check_op(&s, &simd, &reference);
        }
        mem_free(s.x);
        mem_free(s.other);
        mem_free(s.more);
        mem_free(s.label);
    }
    worth_as_usual();
}

/* Of equals the first; what is no number, or infinite, counts as it does for the reference. */
TEST(right_class_agrees_where_numbers_are_odd)
{
    static const float odd[] = {0, 1, -INFINITY, INFINITY, NAN, 2};
    enum { ODD = sizeof odd / sizeof *odd, CLASSES = 37 };
    struct kernel_table simd = {0}, reference = {0};
    struct cpu cpu;
    cpu_detect(&cpu);
    if (!simd_isa_of(cpu.isa))
        SKIP("this CPU has no vectors that there are kernels for");
    simd_add(&simd, cpu.isa, &cpu);
    kernels_add(&reference, &ref_kernels);
    float x[CLASSES];
    int32_t label;
    struct subject s = {
        .kind = OP_right_class, .rows = 1, .classes = CLASSES, .x = x, .label = &label};
    for (uint32_t seed = 0; seed < 400; seed++) {
        uint32_t state = seed * 2654435761u + 1;
        for (int k = 0; k < CLASSES; k++, state = state * 1664525u + 1013904223u)
            x[k] = odd[(state >> 16) % (seed % 2 ? ODD : 3)];
        label = (int32_t)((state >> 16) % (CLASSES + 1)); /* one that no row has, too */
        if (seed % 4 == 0)
            for (int k = 0; k < CLASSES; k++)
                x[k] = k == label ? 1 : x[k] > 0 ? 0 : x[k];
        float right = run_subject(&s, kernel_first(&reference, DTYPE_F32, OP_right_class), 1);
        CHECK_NEAR(run_subject(&s, kernel_first(&simd, DTYPE_F32, OP_right_class), 1), right, 0);
    }
}

CHECK_MAIN
