/* test_onnx_layers.c: operators that are made of several layers, beside what the ONNX project's own
 * tests have of them (test_onnx_nodes.c): infinities, other attributes, two values of the data. */
#include "onnx.pb-c.h"

#include "onnx_answer.h"
#include "onnx_hand.h"

enum { MOST = 40 };

/* What the model gives of BATCH samples, which are x. */
static void check_rows(struct rig *rig, struct hand *hand, const float *x, const float *expected,
                       int64_t each)
{
    struct network *network;
    struct answer found = {0};
    if (CHECK_OK(hand_read(hand, "layers.onnx", NULL, &network)) &&
        answer_of(rig, network, true, x, &found) && CHECK_EQUAL_INT(found.count, BATCH * each))
        for (int64_t i = 0; i < BATCH * each; i++) {
            double off = (double)found.y[i] - (double)expected[i];
            if (!CHECK(found.y[i] == expected[i] ||
                       fabs(off) <= 1e-6 + 1e-5 * fabs((double)expected[i]) ||
                       (isnan(found.y[i]) && isnan(expected[i]))))
                printf("    %lld is %g, expected %g\n%s", (long long)i, (double)found.y[i],
                       (double)expected[i], network->text);
        }
    answer_free(&found);
    network_free(network);
}

static void set_real(struct hand *hand, const char *name, float value)
{
    Onnx__AttributeProto *attribute = hand_attribute(hand, hand->node_count - 1, name);
    attribute->has_f = true;
    attribute->f = value;
}

static void set_int(struct hand *hand, const char *name, int64_t value)
{
    Onnx__AttributeProto *attribute = hand_attribute(hand, hand->node_count - 1, name);
    attribute->has_i = true;
    attribute->i = value;
}

/* A Constant of whole numbers, which the last input of the node that follows may be. */
static void hand_wholes(struct hand *hand, const char *name, const int64_t *numbers, size_t count)
{
    hand_node(hand, "Constant", "", NULL, name);
    hand->nodes[hand->node_count - 1].n_input = 0;
    hand_ints(hand, hand->node_count - 1, "value_ints", numbers, count);
}

/* Three numbers a sample. */
static const float odd[BATCH * 3] = {-HUGE_VALF, -1e-45f, 0, 1e-45f, HUGE_VALF, 0.5f, -0.5f, 2, -3};

ON_BACKENDS(steps_are_exact)
{
    static const struct {
        const char *op, *first, *second;
        float one, two, expected[BATCH * 3];
    } cases[] = {
        {"Sign", NULL, NULL, 0, 0, {-1, -1, 0, 1, 1, 1, -1, 1, -1}},
        {"ThresholdedRelu", "alpha", NULL, 0.5f, 0, {0, 0, 0, 0, HUGE_VALF, 0, 0, 2, 0}},
        {"ThresholdedRelu", "alpha", NULL, -1, 0, {0, 0, 0, 0, HUGE_VALF, 0.5f, -0.5f, 2, 0}},
        {"Shrink", "lambd", "bias", 0.5f, 1, {-HUGE_VALF, 0, 0, 0, HUGE_VALF, 0, 0, 1, -2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hand hand;
        hand_features(&hand);
        hand_node(&hand, cases[i].op, "x", NULL, "y");
        if (cases[i].first)
            set_real(&hand, cases[i].first, cases[i].one);
        if (cases[i].second)
            set_real(&hand, cases[i].second, cases[i].two);
        check_rows(rig, &hand, odd, cases[i].expected, 3);
    }
}

ON_BACKENDS(the_first_of_the_largest_is_the_hard_maximum)
{
    static const float x[BATCH * 3] = {1, 1, 1, 0, 2, 2, -3, -4, -3};
    static const float y[BATCH * 3] = {1, 0, 0, 0, 1, 0, 1, 0, 0};
    struct hand hand;
    hand_features(&hand);
    hand_node(&hand, "Hardmax", "x", NULL, "y");
    check_rows(rig, &hand, x, y, 3);
}

ON_BACKENDS(a_slope_below_0_is_one_too)
{
    static const float x[BATCH * 3] = {-1, 0, 1, -2, 2, -0.5f, 3, -3, 0.25f};
    static const struct {
        const char *op;
        float alpha;
    } cases[] = {{"LeakyRelu", -0.5f}, {"Elu", -2}, {"Celu", -2}, {"Celu", 2}, {"Selu", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hand hand;
        float y[BATCH * 3];
        double alpha = (double)cases[i].alpha, gamma = i == 4 ? 3 : 1;
        for (int k = 0; k < BATCH * 3; k++) {
            double at = (double)x[k], below = alpha * (exp(i == 2 || i == 3 ? at / alpha : at) - 1);
            y[k] = (float)(gamma * (at > 0 ? at : i == 0 ? alpha * at : below));
        }
        hand_features(&hand);
        hand_node(&hand, cases[i].op, "x", NULL, "y");
        set_real(&hand, "alpha", cases[i].alpha);
        if (i == 4)
            set_real(&hand, "gamma", 3);
        check_rows(rig, &hand, x, y, 3);
    }
}

/* Where e^x alone would be infinite, and where a sum loses what is small. */
ON_BACKENDS(hyperbolic_functions_are_there_for_all_that_a_float_holds)
{
    static const float x[BATCH * 3] = {-89, -1e-4f, 0, 1e-4f, 89, 0.5f, -0.5f, 2, -3};
    static const struct {
        const char *op;
        double (*function)(double);
    } cases[] = {{"Sinh", sinh}, {"Cosh", cosh}, {"Asinh", asinh}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hand hand;
        float y[BATCH * 3];
        for (int k = 0; k < BATCH * 3; k++)
            y[k] = (float)cases[i].function((double)x[k]);
        hand_features(&hand);
        hand_node(&hand, cases[i].op, "x", NULL, "y");
        check_rows(rig, &hand, x, y, 3);
    }
}

/* Samples of [2, 3], and a row of the same data. */
static const float grids[BATCH * 6] = {1, 5, 3, 4, 2, 6, -1, -5, -3, -4, -2, -6, 0, 1, 0, 1, 0, 1};

static void hand_grids(struct hand *hand)
{
    *hand = (struct hand){0};
    hand_dim(hand, 1, NULL);
    hand_dim(hand, 2, NULL);
    hand_dim(hand, 3, NULL);
}

/* The larger of each element and the largest of its column, or of the smallest of its row. */
ON_BACKENDS(the_larger_of_two_values_repeats_the_smaller_shape)
{
    for (int way = 0; way < 2; way++) {
        static const int64_t axes[] = {1}, last[] = {2};
        struct hand hand;
        float y[BATCH * 6];
        for (int i = 0; i < BATCH * 6; i++) {
            const float *sample = grids + i / 6 * 6, *row = sample + i % 6 / 3 * 3;
            float most = fmaxf(sample[i % 3], sample[i % 3 + 3]);
            float least = fminf(fminf(row[0], row[1]), row[2]);
            y[i] = way ? fminf(grids[i], least) : fmaxf(grids[i], most);
        }
        hand_grids(&hand);
        hand_node(&hand, way ? "ReduceMin" : "ReduceMax", "x", NULL, "r");
        hand_ints(&hand, 0, "axes", way ? last : axes, 1);
        hand_node(&hand, way ? "Min" : "Max", way ? "r" : "x", way ? "x" : "r", "y");
        check_rows(rig, &hand, grids, y, 6);
    }
}

/* [2, 3] padded to [2, 6], by one before and two behind; or by one less and one more. */
ON_BACKENDS(pads_may_be_of_the_image_itself)
{
    static const int64_t wide[] = {0, 0, 1, 0, 0, 2}, less[] = {0, 0, -1, 0, 0, 1};
    static const struct {
        const char *mode;
        int size, places[6]; /* -1: 0 */
    } cases[] = {{"reflect", 6, {1, 0, 1, 2, 1, 0}},
                 {"edge", 6, {0, 0, 1, 2, 2, 2}},
                 {"wrap", 6, {2, 0, 1, 2, 0, 1}},
                 {"constant", 3, {1, 2, -1}},
                 {"edge", 3, {1, 2, 2}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hand hand;
        int size = cases[i].size;
        float y[BATCH * 12];
        for (int k = 0; k < BATCH * 2 * size; k++) {
            int place = cases[i].places[k % size];
            y[k] = place < 0 ? 0 : grids[k / size * 3 + place];
        }
        hand_grids(&hand);
        hand_wholes(&hand, "pads", size == 3 ? less : wide, 6);
        hand_node(&hand, "Pad", "x", "pads", "y");
        hand_text(&hand, 1, "mode", cases[i].mode);
        check_rows(rig, &hand, grids, y, 2 * size);
    }
}

/* x [2, 3] times a vector; a vector times x; x times itself turned, with a dimension more. */
ON_BACKENDS(products_take_vectors_and_repeat_matrices)
{
    static const float vector[] = {1, -2, 3};
    static const int64_t first[] = {1}, order[] = {0, 1, 3, 2};
    float y[BATCH * MOST];
    struct hand hand;
    for (int i = 0; i < BATCH * 2; i++)
        y[i] = grids[3 * i] - 2 * grids[3 * i + 1] + 3 * grids[3 * i + 2];
    hand_grids(&hand);
    hand_row(&hand, "v", vector, 3);
    hand_node(&hand, "MatMul", "x", "v", "y");
    check_rows(rig, &hand, grids, y, 2);
    for (int i = 0; i < BATCH * 3; i++)
        y[i] = grids[i / 3 * 6 + i % 3] - 2 * grids[i / 3 * 6 + i % 3 + 3];
    hand_grids(&hand);
    hand_row(&hand, "v", vector, 2);
    hand_node(&hand, "MatMul", "v", "x", "y");
    check_rows(rig, &hand, grids, y, 3);
    /* [1, 2, 3] times [2, 3, 1]: each row of x, as a column, for both */
    for (int i = 0; i < BATCH * 4; i++) {
        const float *sample = grids + i / 4 * 6, *a = sample + i % 2 * 3,
                    *b = sample + i / 2 % 2 * 3;
        y[i] = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    }
    hand_grids(&hand);
    hand_wholes(&hand, "first", first, 1);
    hand_wholes(&hand, "second", (const int64_t[]){2}, 1);
    hand_node(&hand, "Unsqueeze", "x", "first", "a");
    hand_node(&hand, "Unsqueeze", "x", "second", "b");
    hand_node(&hand, "Transpose", "b", NULL, "c");
    hand_ints(&hand, 4, "perm", order, 4);
    hand_node(&hand, "MatMul", "a", "c", "y");
    check_rows(rig, &hand, grids, y, 4);
}

/* Rows of 0 stay 0; as a pool, the norm of each row, which is a channel then. */
ON_BACKENDS(rows_are_divided_by_their_norm)
{
    static const float x[BATCH * 6] = {3, 0, 4, 0, 0, 0, -1, 2, -2, 1, 1, 1, 0, -5, 12, 2, 3, 6};
    for (int way = 0; way < 4; way++) {
        int64_t power = 1 + way % 2;
        bool pool = way >= 2;
        float y[BATCH * 6];
        struct hand hand;
        for (int i = 0; i < BATCH * 6; i++) {
            const float *row = x + i / 3 * 3;
            float one = fabsf(row[0]) + fabsf(row[1]) + fabsf(row[2]);
            float two = sqrtf(row[0] * row[0] + row[1] * row[1] + row[2] * row[2]);
            float norm = power == 1 ? one : two;
            y[pool ? i / 3 : i] = pool ? norm : norm == 0 ? 0 : x[i] / norm;
        }
        hand_grids(&hand);
        hand_node(&hand, pool ? "GlobalLpPool" : "LpNormalization", "x", NULL, "y");
        set_int(&hand, "p", power);
        check_rows(rig, &hand, x, y, pool ? 2 : 6);
    }
}

/* What lies below the diagonal of a sample becomes 0. */
ON_BACKENDS(a_triangle_of_each_sample_is_kept)
{
    float y[BATCH * 6];
    struct hand hand;
    for (int i = 0; i < BATCH * 6; i++)
        y[i] = i % 6 == 3 ? 0 : grids[i];
    hand_grids(&hand);
    hand_node(&hand, "Trilu", "x", NULL, "y");
    check_rows(rig, &hand, grids, y, 6);
}

/* The last of the first row comes to its first place, the first of the second row to its second. */
ON_BACKENDS(elements_of_each_sample_go_to_known_places)
{
    static const int64_t from[] = {2, 0}, to[] = {0, 1}, sizes[] = {1, 2, 1};
    float y[BATCH * 6];
    struct hand hand;
    for (int i = 0; i < BATCH * 6; i++)
        y[i] = grids[i % 6 == 0 ? i + 2 : i % 6 == 4 ? i - 1 : i];
    hand_grids(&hand);
    hand_wholes(&hand, "sizes", sizes, 3);
    hand_wholes(&hand, "a", from, 2);
    hand_wholes(&hand, "b", to, 2);
    hand_node(&hand, "Reshape", "a", "sizes", "from");
    hand_node(&hand, "Reshape", "b", "sizes", "to");
    hand_node(&hand, "GatherElements", "x", "from", "taken");
    set_int(&hand, "axis", 2);
    hand_node(&hand, "ScatterElements", "x", "to", "y");
    set_int(&hand, "axis", 2);
    hand.inputs[6][2] = "taken";
    hand.nodes[6].n_input = 3;
    check_rows(rig, &hand, grids, y, 6);
}

/* A scale for each row of what is normalised together, and no shift. */
ON_BACKENDS(a_scale_of_a_layer_norm_is_repeated)
{
    static const float scale[] = {2, -1};
    static const int64_t axes[] = {1};
    float y[BATCH * 6];
    struct hand hand;
    for (int i = 0; i < BATCH; i++) {
        double mean = 0, variance = 0;
        for (int k = 0; k < 6; k++)
            mean += (double)grids[6 * i + k] / 6;
        for (int k = 0; k < 6; k++)
            variance += pow((double)grids[6 * i + k] - mean, 2) / 6;
        for (int k = 0; k < 6; k++)
            y[6 * i + k] = (float)(((double)grids[6 * i + k] - mean) / sqrt(variance + 1e-5) *
                                   (double)scale[k / 3]);
    }
    hand_grids(&hand);
    hand_row(&hand, "row", scale, 2);
    hand_wholes(&hand, "axes", axes, 1);
    hand_node(&hand, "Unsqueeze", "row", "axes", "scale");
    hand_node(&hand, "LayerNormalization", "x", "scale", "y");
    set_int(&hand, "axis", 1);
    check_rows(rig, &hand, grids, y, 6);
}

/* Rows of 3 become 5 by what lies between, at the ends and halfway. */
ON_BACKENDS(an_image_is_resized)
{
    static const float between[] = {0, 0.5f, 1, 1.5f, 2}, scales[] = {1, 1, 5.0f / 3};
    float y[BATCH * 10];
    struct hand hand;
    for (int i = 0; i < BATCH * 10; i++) {
        const float *row = grids + i / 5 * 3;
        int at = (int)between[i % 5];
        float share = between[i % 5] - (float)at;
        y[i] = (1 - share) * row[at] + (share > 0 ? share * row[at + 1] : 0);
    }
    hand_grids(&hand);
    hand_row(&hand, "scales", scales, 3);
    hand_node(&hand, "Resize", "x", "", "y");
    hand.inputs[1][2] = "scales";
    hand.nodes[1].n_input = 3;
    hand_text(&hand, 1, "mode", "linear");
    hand_text(&hand, 1, "coordinate_transformation_mode", "align_corners");
    check_rows(rig, &hand, grids, y, 10);
    set_int(&hand, "antialias", 1);
    check_refused(&hand, "r.onnx", NULL, "r.onnx: node 'y' (Resize): it has antialias");
}

CHECK_MAIN
