/* test_quantise.c: what pass/quantise makes of programs, and the numbers it works with. */
#include "core/pass/quantise.h"
#include "core/requantise.h"
#include "nn/formats/saved.h"
#include "nn/network.h"
#include "rig.h"

#include <string.h>

TEST(scales_have_a_level_for_zero)
{
    static const struct range ranges[] = {{0, 1}, {-1, 1}, {-3, 0.5f}, {2, 5}, {-5, -2}, {0, 0}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        for (int plain = 0; plain < 2; plain++) {
            struct scale scale = scale_of(&ranges[i], plain);
            int exponent;
            CHECK_EQUAL_INT(scale_level(&scale, 0), scale.zero);
            CHECK(scale.zero >= 0 && scale.zero <= scale.most);
            CHECK_EQUAL_INT(scale.most, plain ? 127 : 255);
            double reach = (double)scale.scale * (scale.most - scale.zero);
            CHECK(reach >= (double)ranges[i].high - 0.51 * (double)scale.scale);
            CHECK((double)-scale.scale * scale.zero <=
                  (double)ranges[i].low + 0.51 * (double)scale.scale);
            if (plain)
                CHECK(frexp((double)scale.scale, &exponent) == 0.5);
        }
}

/* multiplier / 2^shift is the ratio, to 30 bits; a power of two is REQUANTISE_ONE. */
TEST(ratios_are_split)
{
    int32_t multiplier, shift, other;
    for (double ratio = 0.999; ratio > 1e-9; ratio *= 0.37) {
        CHECK(ratio_split(ratio, &multiplier, &shift));
        CHECK(shift >= REQUANTISE_SHIFT_LEAST && shift <= REQUANTISE_SHIFT_MOST);
        CHECK(fabs(ldexp(multiplier, -shift) - ratio) <= ratio * 0x1p-29);
    }
    CHECK(ratio_split(0.125, &multiplier, &shift));
    CHECK_EQUAL_INT(multiplier, REQUANTISE_ONE);
    CHECK_EQUAL_INT(shift, 33);
    CHECK(ratio_split(0, &multiplier, &shift) && multiplier == 0);
    CHECK(!ratio_split(1, &multiplier, &shift));
    CHECK(!ratio_split(NAN, &multiplier, &shift));
    CHECK(ratio_split_pair(0.5, 1.75, &multiplier, &other, &shift));
    CHECK(other <= INT8_ADD_MULTIPLIER_MOST && shift >= 1 && shift <= INT8_ADD_SHIFT_MOST);
    CHECK(fabs(ldexp(other, -shift) - 1.75) < 1e-5 && fabs(ldexp(multiplier, -shift) - 0.5) < 1e-5);
}

TEST(weights_have_so_many_levels)
{
    CHECK_EQUAL_INT(weight_level(1, weight_step(1, 0, 1, 8, false), 8), 127);
    CHECK_EQUAL_INT(weight_level(-1, weight_step(1, 0, 1, 4, false), 4), -7);
    CHECK_EQUAL_INT(weight_level(-0.4, weight_step(1, 0, 1, 2, false), 2), 0);
    CHECK_EQUAL_INT(weight_level(-0.6, weight_step(1, 0, 1, 2, false), 2), -1);
    CHECK(weight_step(0.9, 0, 1, 8, true) == 0x1p-7);
    /* a bias that would not fit makes the step wider */
    CHECK(1e6 / weight_step(1e-6, 1e6, 1, 8, false) <= INT8_BIAS_MOST);
}

/* A network with all that has a form in 8 bits: its program of that batch, its ranges ±4. */
static const char text[] = "input 2x8x8\n"
                           "conv 6 3x3 pad=1 bias=0\n"
                           "batch_norm\n"
                           "first = relu\n"
                           "deep = conv 6 3x3 pad=1 groups=6\n"
                           "sum = add < deep, first\n"
                           "relu\n"
                           "max_pool 2\n"
                           "left = conv 4 1x1\n"
                           "right = tanh < left\n"
                           "concat < left, right\n"
                           "average_pool 2\n"
                           "flatten\n"
                           "dense 10\n"
                           "sigmoid\n"
                           "last = dense 3\n"
                           "loss cross_entropy\n";

struct made {
    struct network *network;
    struct params reals, small;
    struct program *program, *quantised;
    struct quantised *map;
    struct quantisation how;
    struct range *ranges;
};

static bool make(struct made *made, int32_t batch, bool plain, const char **keep,
                 int32_t keep_count)
{
    const struct compile_options options = {.batch = batch, .use = USE_INFERENCE};
    *made = (struct made){0};
    params_init(&made->reals, DTYPE_F32);
    params_init(&made->small, DTYPE_F32);
    if (!CHECK_OK(network_parse("all", text, strlen(text), &made->network)) ||
        !CHECK_OK(network_compile(made->network, &made->reals, &options, &made->program)) ||
        !CHECK_OK(params_fill(&made->reals, 3)))
        return false;
    made->ranges = calloc((size_t)made->program->tensor_count, sizeof *made->ranges);
    made->map = calloc((size_t)made->program->tensor_count, sizeof *made->map);
    for (int32_t t = 0; t < made->program->tensor_count; t++)
        made->ranges[t] = (struct range){-4, 4};
    made->how = (struct quantisation){.plain = plain,
                                      .weight_bits = 8,
                                      .count = made->program->tensor_count,
                                      .ranges = made->ranges,
                                      .keep = keep,
                                      .keep_count = keep_count};
    const struct quantise_source source = {.params = &made->reals};
    return CHECK_OK(
        quantise(made->program, &made->how, &source, &made->small, made->map, &made->quantised));
}

static void unmake(struct made *made)
{
    program_free(made->program);
    program_free(made->quantised);
    params_free(&made->reals);
    params_free(&made->small);
    network_free(made->network);
    free(made->ranges);
    free(made->map);
}

static int count_ops(const struct program *program, enum op_kind kind)
{
    int count = 0;
    for (int32_t o = 0; o < program->op_count; o++)
        count += program->ops[o].kind == kind;
    return count;
}

/* All of it but the softmax is in integers, and reals are left and entered once. */
TEST(a_network_becomes_integers)
{
    static const struct {
        enum op_kind kind;
        int count;
    } expected[] = {{OP_conv_int8, 3},
                    {OP_dense_int8, 2},
                    {OP_add_int8, 1},
                    {OP_max_pool_int8, 1},
                    {OP_average_pool_int8, 1},
                    {OP_concat_int8, 1},
                    {OP_quantise, 1},
                    {OP_dequantise, 1},
                    {OP_softmax, 1},
                    {OP_conv, 0},
                    {OP_dense, 0},
                    {OP_activate, 0},
                    {OP_table_int8, 1},
                    {OP_batch_norm_fixed, 0}};
    struct made made;
    if (make(&made, 2, false, NULL, 0))
        for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
            if (!CHECK_EQUAL_INT(count_ops(made.quantised, expected[i].kind), expected[i].count))
                printf("    %s\n", op_name(expected[i].kind));
    unmake(&made);
}

/* Plain: shifts only, one an op, and no level beyond 127. */
TEST(a_plain_network_shifts_only)
{
    struct made made;
    if (make(&made, 2, true, NULL, 0))
        for (int32_t e = 0; e < made.small.count; e++) {
            const struct entry *entry = &made.small.entries[e];
            const int32_t *values = params_data(&made.small, e);
            for (int64_t i = 0; i < shape_count(&entry->shape); i++)
                if (text_ends(entry->name, ".multiplier"))
                    CHECK_EQUAL_INT(values[i], REQUANTISE_ONE);
                else if (text_ends(entry->name, ".shift") && entry->dtype == DTYPE_I32)
                    CHECK(values[i] == values[0] && values[i] > 30);
                else if (entry->dtype == DTYPE_U8)
                    CHECK(((const uint8_t *)values)[i] <= 127);
        }
    unmake(&made);
}

/* A layer that is kept is computed in reals, between dequantise and quantise. */
TEST(kept_layers_stay_real)
{
    const char *keep[] = {"deep"};
    struct made made;
    if (make(&made, 2, false, keep, 1)) {
        CHECK_EQUAL_INT(count_ops(made.quantised, OP_conv), 1);
        CHECK_EQUAL_INT(count_ops(made.quantised, OP_conv_int8), 2);
        CHECK(params_find(&made.small, "deep.weight") >= 0);
        CHECK_EQUAL_INT(made.small.entries[params_find(&made.small, "deep.weight")].dtype,
                        DTYPE_F32);
    }
    unmake(&made);
}

/* The same parameters serve a program of any batch, made without values. */
TEST(another_batch_has_the_same_parameters)
{
    const struct compile_options options = {.batch = 5, .use = USE_INFERENCE};
    struct made made;
    struct program *wide = NULL, *small = NULL;
    struct params bare;
    params_init(&bare, DTYPE_F32);
    bare.bare = true;
    if (make(&made, 2, false, NULL, 0) &&
        CHECK_OK(network_compile(made.network, &bare, &options, &wide))) {
        int32_t count = made.small.count;
        CHECK_OK(quantise(wide, &made.how, NULL, &made.small, NULL, &small));
        CHECK_EQUAL_INT(made.small.count, count);
    }
    program_free(wide);
    program_free(small);
    params_free(&bare);
    unmake(&made);
}

/* The ops of a text that become what is counted: in 8 bits, with ranges of ±4. */
static void check_counts(const char *lines, int32_t tables, int32_t multiplies)
{
    const struct compile_options options = {.batch = 2, .use = USE_INFERENCE};
    struct quantisation how = {.weight_bits = 8};
    struct params reals, small;
    struct network *network = NULL;
    struct program *program = NULL, *quantised = NULL;
    const struct quantise_source source = {.params = &reals};
    params_init(&reals, DTYPE_F32);
    params_init(&small, DTYPE_F32);
    if (CHECK_OK(network_parse("text", lines, strlen(lines), &network)) &&
        CHECK_OK(network_compile(network, &reals, &options, &program)) &&
        CHECK_OK(params_fill(&reals, 3))) {
        how.count = program->tensor_count;
        how.ranges = calloc((size_t)how.count, sizeof *how.ranges);
        for (int32_t t = 0; how.ranges && t < how.count; t++)
            how.ranges[t] = (struct range){-4, 4};
        if (CHECK_OK(quantise(program, &how, &source, &small, NULL, &quantised)))
            CHECK(CHECK_EQUAL_INT(count_ops(quantised, OP_table_int8), tables) &&
                  CHECK_EQUAL_INT(count_ops(quantised, OP_multiply), multiplies));
    }
    free(how.ranges);
    program_free(program);
    program_free(quantised);
    params_free(&reals);
    params_free(&small);
    network_free(network);
}

/* Hard-swish is x·clip(x·s + h, 0, 1). Squares that are added up stay real. */
TEST(a_function_of_several_ops_is_a_table)
{
    check_counts("input 2x4x4\nq = conv 3 3x3\ns = parameter 1x1x1\nm = multiply < q, s\n"
                 "h = parameter 1x1x1\nadd < m, h\nc = clip high=1\nmultiply < q, c\n"
                 "flatten\ndense 4\n",
                 1, 0);
    check_counts("input 8\nq = dense 6\nmultiply < q, q\nreduce\ndense 4\n", 0, 1);
}

/* What is saved of it reads back the same. */
TEST(quantisation_reads_back)
{
    struct made made;
    struct arena arena = {0};
    struct quantisation *read = NULL;
    struct text note = {0};
    const char *keep[] = {"deep", "a \"b\""};
    if (make(&made, 2, true, NULL, 0)) {
        made.how.keep = keep;
        made.how.keep_count = 2;
        made.ranges[0] = (struct range){1, -1};
        quantisation_write(&made.how, &note);
        if (CHECK_OK(quantisation_read("note", text_of(&note), &arena, &read))) {
            CHECK(read->plain && read->weight_bits == 8 && read->count == made.how.count);
            CHECK_EQUAL_INT(read->keep_count, 2);
            CHECK_EQUAL_TEXT(read->keep[1], keep[1]);
            CHECK(!memcmp(read->ranges, made.ranges, sizeof *read->ranges * (size_t)read->count));
        }
    }
    CHECK(quantisation_read("note", "{\"weight_bits\":8,\"tensors\":2,\"ranges\":[[2,0,1]]}",
                            &arena, &read) == STATUS_INPUT);
    CHECK(quantisation_read("note", "{\"weight_bits\":3,\"tensors\":2,\"ranges\":[]}", &arena,
                            &read) == STATUS_INPUT);
    text_free(&note);
    arena_free(&arena);
    unmake(&made);
}

CHECK_MAIN
