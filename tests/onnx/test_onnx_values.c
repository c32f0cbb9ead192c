/* test_onnx_values.c: what single operators give, number by number: where they choose, bound,
 * divide and are asked for infinities and for what is no number. */
#include "onnx.pb-c.h"

#include "onnx_gives.h"

static double same(double x, int place)
{
    (void)place;
    return x;
}

static double clipped(double x, int place)
{
    (void)place;
    return fmin(fmax(x, (double)-0.25f), (double)0.3f);
}

static double at_most(double x, int place)
{
    (void)place;
    return fmin(x, (double)0.3f);
}

static double high(double x, int place)
{
    (void)x;
    (void)place;
    return (double)-0.25f;
}

ON_BACKENDS(bounds_lose_nothing)
{
    static const struct {
        float low, high;
        double (*gives)(double x, int place);
    } cases[] = {{-1e10f, 1e10f, same},
                 {-65504, 65504, same},
                 {-0.25f, 0.3f, clipped},
                 {-HUGE_VALF, 0.3f, at_most},
                 {0.3f, -0.25f, high}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hand hand;
        hand_features(&hand);
        hand_number(&hand, "low", cases[i].low);
        hand_number(&hand, "high", cases[i].high);
        hand_node(&hand, "Clip", "x", "low", "y");
        hand.inputs[2][2] = "high";
        hand.nodes[2].n_input = 3;
        check_gives(rig, &hand, cases[i].gives);
    }
}

static double absolute(double x, int place)
{
    (void)place;
    return fabs(x);
}

static double sloped(double x, int place)
{
    (void)place;
    return x < 0 ? x * (double)-0.25f : x;
}

static double hard_sigmoid(double x, int place)
{
    (void)place;
    return fmin(fmax(x * (double)0.2f + 0.5, 0), 1);
}

static double hard_swish(double x, int place)
{
    (void)place;
    return x * fmin(fmax(x / 6 + 0.5, 0), 1);
}

static double at_least(double x, int place)
{
    (void)place;
    return fmax(x, (double)-0.25f);
}

static double larger(double x, int place)
{
    (void)place;
    return fmax(x, x * (double)-0.25f);
}

static double smaller(double x, int place)
{
    (void)place;
    return fmin(x, x * (double)-0.25f);
}

/* -0.25 is the number "n", and "m" is x times it. */
ON_BACKENDS(functions_of_a_few_layers_are_those_of_onnx)
{
    static const struct {
        const char *op, *other;
        double (*gives)(double x, int place);
    } cases[] = {{"Abs", NULL, absolute},
                 {"PRelu", "n", sloped},
                 {"HardSigmoid", NULL, hard_sigmoid},
                 {"HardSwish", NULL, hard_swish},
                 {"Max", "n", at_least},
                 {"Max", "m", larger},
                 {"Min", "m", smaller}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hand hand;
        hand_features(&hand);
        hand_number(&hand, "n", -0.25f);
        hand_node(&hand, "Mul", "x", "n", "m");
        hand_node(&hand, cases[i].op, "x", cases[i].other, "y");
        check_gives(rig, &hand, cases[i].gives);
    }
}

static double none_but_first(double x, int place)
{
    (void)x;
    return place ? -1000 * place : 0;
}

/* Of 0, -1000 and -2000 no float holds all the probabilities, but their logarithms. */
ON_BACKENDS(logarithms_of_a_softmax_are_there_where_it_is_0)
{
    static const float numbers[] = {0, -1000, -2000};
    struct hand hand;
    hand_features(&hand);
    hand_tensor(&hand, 3, NULL);
    hand.tensor.raw_data = (ProtobufCBinaryData){sizeof numbers, (uint8_t *)(uintptr_t)numbers};
    hand_number(&hand, "zero", 0);
    hand_node(&hand, "Mul", "x", "zero", "none");
    hand_node(&hand, "Add", "none", "w", "sums");
    hand_node(&hand, "LogSoftmax", "sums", NULL, "y");
    check_gives(rig, &hand, none_but_first);
}

static double no_number(double x, int place)
{
    (void)x;
    (void)place;
    return (double)NAN;
}

/* Also behind a convolution, which takes the bounds along. */
ON_BACKENDS(what_is_no_number_stays_so_between_bounds)
{
    for (int folded = 0; folded < 2; folded++) {
        struct hand hand = {0};
        static const float numbers[] = {1};
        hand_dim(&hand, 2, NULL);
        for (int i = 0; i < 3; i++)
            hand_dim(&hand, i == 2 ? 3 : 1, NULL);
        hand_tensor(&hand, 1, NULL);
        hand.tensor.raw_data = (ProtobufCBinaryData){sizeof numbers, (uint8_t *)(uintptr_t)numbers};
        for (int i = 1; i < 4; i++)
            hand.tensor_dims[i] = 1;
        hand.tensor.n_dims = 4;
        hand_number(&hand, "nan", NAN);
        hand_number(&hand, "low", 0);
        hand_number(&hand, "high", 6);
        hand_node(&hand, "Mul", "x", "nan", "none");
        if (folded)
            hand_node(&hand, "Conv", "none", "w", "sums");
        hand_node(&hand, "Clip", folded ? "sums" : "none", "low", "y");
        hand.inputs[hand.node_count - 1][2] = "high";
        hand.nodes[hand.node_count - 1].n_input = 3;
        check_gives(rig, &hand, no_number);
    }
}

static double to_the_17th(double x, int place)
{
    (void)place;
    return pow(x, 17);
}

static double to_powers_below(double x, int place)
{
    return pow(x, -place);
}

static double one(double x, int place)
{
    (void)x;
    (void)place;
    return 1;
}

ON_BACKENDS(powers_of_negative_numbers_are_numbers)
{
    static const float exponents[] = {0, -1, -2};
    struct hand hand;
    for (int i = 0; i < 2; i++) {
        hand_features(&hand);
        hand_number(&hand, "e", i ? 17 : 0);
        hand_node(&hand, "Pow", "x", "e", "y");
        check_gives(rig, &hand, i ? to_the_17th : one);
    }
    hand_features(&hand);
    hand_tensor(&hand, 3, NULL);
    hand.tensor.raw_data = (ProtobufCBinaryData){sizeof exponents, (uint8_t *)(uintptr_t)exponents};
    hand_node(&hand, "Pow", "x", "w", "y");
    check_gives(rig, &hand, to_powers_below);
}

static double infinite_second(double x, int place)
{
    return place == 1 ? x * HUGE_VAL : x;
}

static double seven_second(double x, int place)
{
    return place == 1 ? 7 : x * HUGE_VAL;
}

static double nan_second(double x, int place)
{
    return place == 1 ? (double)NAN : x;
}

static double seven_among_nan(double x, int place)
{
    (void)x;
    return place == 1 ? 7 : (double)NAN;
}

/* What is not chosen is infinite, or no number. */
ON_BACKENDS(what_is_not_chosen_does_not_matter)
{
    static const int64_t truth[] = {1, 0, 1};
    for (int way = 0; way < 4; way++) {
        struct hand hand;
        bool known = way % 2, number = way < 2;
        hand_features(&hand);
        hand_number(&hand, "inf", number ? HUGE_VALF : NAN);
        hand_number(&hand, "seven", 7);
        hand_node(&hand, "Mul", "x", "inf", "far");
        hand_node(&hand, "Constant", "", NULL, "truth");
        hand.nodes[3].n_input = 0;
        hand_ints(&hand, 3, "value_ints", truth, 3);
        hand_node(&hand, "Where", "truth", known ? "far" : "x", "y");
        hand.inputs[4][2] = known ? "seven" : "far";
        hand.nodes[4].n_input = 3;
        check_gives(rig, &hand,
                    number ? (known ? seven_second : infinite_second)
                           : (known ? seven_among_nan : nan_second));
    }
}

static double nothing(double x, int place)
{
    (void)x;
    (void)place;
    return 0;
}

static double beyond(double x, int place)
{
    (void)place;
    return x * HUGE_VAL;
}

/* Of a product of matrices, [1, 1] times [1, 3]. */
ON_BACKENDS(a_factor_of_0_or_infinity_stays)
{
    for (int i = 0; i < 3; i++) {
        struct hand hand = {0};
        hand_dim(&hand, 2, NULL);
        hand_dim(&hand, 1, NULL);
        hand_dim(&hand, 3, NULL);
        hand_tensor(&hand, 1, NULL);
        static const float numbers[] = {1};
        hand.tensor.raw_data = (ProtobufCBinaryData){sizeof numbers, (uint8_t *)(uintptr_t)numbers};
        hand.tensor_dims[1] = hand.tensor_dims[2] = 1;
        hand.tensor.n_dims = 3;
        hand_number(&hand, "factor", i == 1 ? HUGE_VALF : 0);
        hand_node(&hand, "MatMul", "w", "x", "product");
        hand_node(&hand, i == 2 ? "Div" : "Mul", "product", "factor", "y");
        check_gives(rig, &hand, i ? beyond : nothing);
    }
}

static double over_little(double x, int place)
{
    (void)place;
    return x * (double)1e-3f / (double)1e-39f;
}

/* By numbers whose reciprocal no float holds, known or not. */
ON_BACKENDS(a_quotient_is_there_where_the_reciprocal_is_not)
{
    for (int known = 0; known < 2; known++) {
        struct hand hand;
        hand_features(&hand);
        hand_number(&hand, "thousandth", 1e-3f);
        hand_number(&hand, "little", 1e-39f);
        hand_number(&hand, "zero", 0);
        hand_node(&hand, "Mul", "x", "thousandth", "a");
        hand_node(&hand, "Mul", "x", "zero", "none");
        hand_node(&hand, "Add", "none", "little", "b");
        hand_node(&hand, "Div", "a", known ? "little" : "b", "y");
        check_gives(rig, &hand, over_little);
    }
}

static double plus_wholes(double x, int place)
{
    static const double wholes[] = {1, 4294967295, 7};
    return x + wholes[place];
}

/* uint32 and uint64, whose list is the same. */
ON_BACKENDS(numbers_without_a_sign_are_read_from_their_list)
{
    static const uint64_t numbers[] = {1, 4294967295, 7}, large[] = {1, 1ull << 63, 7};
    for (int32_t type = 12; type <= 13; type++) {
        struct hand hand;
        hand_features(&hand);
        hand_tensor(&hand, 3, NULL);
        hand.tensor.has_raw_data = false;
        hand.tensor.data_type = type;
        hand.tensor.uint64_data = (uint64_t *)(uintptr_t)numbers;
        hand.tensor.n_uint64_data = 3;
        hand_node(&hand, "Cast", "w", NULL, "real");
        hand_node(&hand, "Add", "x", "real", "y");
        Onnx__AttributeProto *to = hand_attribute(&hand, 0, "to");
        to->has_i = true;
        to->i = 1;
        check_gives(rig, &hand, plus_wholes);
        hand.tensor.uint64_data = (uint64_t *)(uintptr_t)large;
        if (type == 13)
            check_refused(
                &hand, "u.onnx", NULL,
                "u.onnx: the tensor 'w' has 9223372036854775808, expected less than 2^63");
    }
}

CHECK_MAIN
