/* test_onnx_known.c: what is known of a model when it is read: attributes, numbers worked out of
 * others, how samples are counted, and what of it the output needs. */
#include "onnx.pb-c.h"

#include "onnx_gives.h"

/* An attribute of the last node that is 0, as writers of proto3 leave it out: its type alone. */
static void hand_zero(struct hand *hand, const char *name, int32_t type)
{
    Onnx__AttributeProto *attribute = hand_attribute(hand, hand->node_count - 1, name);
    attribute->has_type = true;
    attribute->type = type;
}

static double at_least_0(double x, int place)
{
    (void)place;
    return fmax(x, 0);
}

static double half_or_less(double x, int place)
{
    (void)place;
    return fmin(fmax(x * (double)0.2f, 0), 1);
}

static double added_places(double x, int place)
{
    return x + place;
}

ON_BACKENDS(attributes_that_are_left_out_because_they_are_0_are_0)
{
    static const struct {
        const char *op, *name;
        double (*gives)(double x, int place);
    } cases[] = {{"LeakyRelu", "alpha", at_least_0}, {"HardSigmoid", "beta", half_or_less}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hand hand;
        hand_features(&hand);
        hand_node(&hand, cases[i].op, "x", NULL, "y");
        hand_zero(&hand, cases[i].name, 1);
        check_gives(rig, &hand, cases[i].gives);
    }
    struct hand hand;
    hand_features(&hand);
    hand_row(&hand, "a", (const float[]){0, 1}, 2);
    hand_row(&hand, "b", (const float[]){2}, 1);
    hand_node(&hand, "Concat", "a", "b", "row");
    hand_zero(&hand, "axis", 2);
    hand_node(&hand, "Add", "x", "row", "y");
    check_gives(rig, &hand, added_places);
}

static double softmax_of_slope(double x, int place)
{
    (void)x;
    return exp(1 - place) / (exp(1) + 1 + exp(-1));
}

/* A softmax of "q", behind which another line stood: only its shape is asked for. */
ON_BACKENDS(a_softmax_at_the_end_is_that_of_its_own_input)
{
    static const float slope[] = {1, 0, -1};
    struct hand hand;
    struct network *network;
    hand_features(&hand);
    hand_row(&hand, "slope", slope, 3);
    hand_number(&hand, "zero", 0);
    hand_node(&hand, "Mul", "x", "zero", "none");
    hand_node(&hand, "Add", "none", "slope", "q");
    hand_node(&hand, "Add", "x", "slope", "k");
    hand_node(&hand, "Sigmoid", "k", NULL, "s");
    hand_node(&hand, "Shape", "s", NULL, "sizes");
    hand_node(&hand, "Reshape", "q", "sizes", "seen");
    hand_node(&hand, "Softmax", "seen", NULL, "y");
    if (CHECK_OK(hand_read(&hand, "s.onnx", NULL, &network))) {
        CHECK(!strstr(network->text, "sigmoid"));
        CHECK(strstr(network->text, "loss cross_entropy"));
        CHECK_EQUAL_INT(network->given_count, 2); /* the slope and the zero, once each */
    }
    network_free(network);
    check_gives(rig, &hand, softmax_of_slope);
}

/* Begins a model with "sizes", the shape of x: as many samples as there are, and three. */
static void hand_sizes(struct hand *hand)
{
    static const int64_t first[] = {0};
    *hand = (struct hand){0};
    hand_dim(hand, 0, "N");
    hand_dim(hand, 3, NULL);
    hand_node(hand, "Shape", "x", NULL, "sizes");
    hand_node(hand, "Constant", "", NULL, "first");
    hand->nodes[1].n_input = 0;
    hand_ints(hand, 1, "value_ints", first, 1);
    hand_node(hand, "Gather", "sizes", "first", "samples");
}

/* Known numbers that are repeated for each sample are as many as these also to those who ask. */
ON_BACKENDS(the_number_of_samples_is_never_one_because_they_are_alike)
{
    static const char *const makers[] = {"ConstantOfShape", "Expand"};
    struct hand hand;
    for (int i = 0; i < 2; i++) {
        hand_sizes(&hand);
        hand_row(&hand, "row", (const float[]){0, 1, 2}, 3);
        hand_node(&hand, makers[i], i ? "row" : "sizes", i ? "sizes" : NULL, "many");
        hand_node(&hand, "Shape", "many", NULL, "again");
        hand_node(&hand, "Cast", "again", NULL, "real");
        Onnx__AttributeProto *to = hand_attribute(&hand, 6, "to");
        to->has_i = true;
        to->i = 1;
        hand_node(&hand, "Mul", "x", "real", "y");
        check_refused(&hand, "n.onnx", NULL,
                      "(Cast): it makes a real number of the number of samples");
    }
    hand_sizes(&hand);
    hand_row(&hand, "row", (const float[]){0, 1, 2}, 3);
    hand_node(&hand, "Expand", "row", "sizes", "many");
    hand_node(&hand, "Add", "x", "many", "y");
    check_gives(rig, &hand, added_places);
}

/* Zeros of as many rows as the file says there are samples, asked to be as many as there are. */
TEST(a_state_of_a_fixed_number_of_samples_is_taken)
{
    static const int64_t sizes[] = {2, 3};
    static const float zeros[6] = {0};
    struct hand hand;
    struct network *network;
    hand_features(&hand);
    hand_row(&hand, "row", zeros, 6);
    hand_node(&hand, "Constant", "", NULL, "sizes");
    hand.nodes[1].n_input = 0;
    hand_ints(&hand, 1, "value_ints", sizes, 2);
    hand_node(&hand, "Reshape", "row", "sizes", "zeros");
    hand_node(&hand, "Shape", "x", NULL, "own");
    hand_node(&hand, "Expand", "zeros", "own", "many");
    hand_node(&hand, "Shape", "many", NULL, "rows");
    hand_node(&hand, "Reshape", "x", "rows", "y");
    if (CHECK_OK(hand_read(&hand, "f.onnx", NULL, &network)))
        CHECK_EQUAL_INT(shape_count(&network->input), 3);
    network_free(network);
}

TEST(what_depends_on_the_number_of_samples_is_refused)
{
    struct hand hand;
    hand_sizes(&hand);
    hand_node(&hand, "Concat", "samples", "samples", "both");
    hand_zero(&hand, "axis", 2);
    hand_node(&hand, "ConstantOfShape", "both", NULL, "square");
    hand_node(&hand, "Add", "x", "square", "y");
    check_refused(&hand, "n.onnx", NULL, "dimensions 0 and 1 are both as large as the number of");
    hand_sizes(&hand);
    hand_node(&hand, "Slice", "x", "samples", "y");
    hand.inputs[3][2] = "samples";
    hand.nodes[3].n_input = 3;
    check_refused(&hand, "n.onnx", NULL,
                  "where it begins or ends depends on the number of samples");
    hand_sizes(&hand);
    hand_node(&hand, "Gather", "x", "samples", "y");
    Onnx__AttributeProto *axis = hand_attribute(&hand, 3, "axis");
    axis->has_i = true;
    axis->i = 1;
    check_refused(&hand, "n.onnx", NULL, "its input 2 has the number of samples in it");
    hand_sizes(&hand); /* a matrix of three rows, and as many columns as there are samples */
    hand_node(&hand, "ConstantOfShape", "sizes", NULL, "many");
    hand_node(&hand, "Transpose", "many", NULL, "turned");
    hand_node(&hand, "MatMul", "x", "turned", "y");
    check_refused(&hand, "n.onnx", NULL, "no product over samples");
}

TEST(what_many_nodes_read_is_there_once)
{
    struct hand hand = {0};
    struct network *network;
    hand_dim(&hand, 0, "N");
    hand_dim(&hand, 2, NULL);
    hand_tensor(&hand, 2, NULL);
    hand_node(&hand, "Add", "x", "w", "a");
    hand_node(&hand, "Mul", "a", "w", "b");
    hand_node(&hand, "Add", "b", "w", "y");
    if (CHECK_OK(hand_read(&hand, "t.onnx", NULL, &network)))
        CHECK_EQUAL_INT(network->given_count, 1);
    network_free(network);
}

static double tanh_added(double x, int place)
{
    static const double small[] = {-2, 1, 3};
    return x + tanh(small[place]);
}

/* int8, bytes or a list, cast, and a function of it that is no sample's. */
ON_BACKENDS(functions_of_small_whole_numbers_are_worked_out)
{
    static const uint8_t bytes[] = {254, 1, 3};
    static const int32_t list[] = {-2, 1, 3};
    for (int listed = 0; listed < 2; listed++) {
        struct hand hand;
        hand_features(&hand);
        hand_tensor(&hand, 3, NULL);
        hand.tensor.data_type = 3;
        hand.tensor.has_raw_data = !listed;
        hand.tensor.raw_data = (ProtobufCBinaryData){sizeof bytes, (uint8_t *)(uintptr_t)bytes};
        hand.tensor.int32_data = (int32_t *)(uintptr_t)list;
        hand.tensor.n_int32_data = listed ? 3 : 0;
        hand_node(&hand, "Cast", "w", NULL, "real");
        Onnx__AttributeProto *to = hand_attribute(&hand, 0, "to");
        to->has_i = true;
        to->i = 1;
        hand_node(&hand, "Tanh", "real", NULL, "t");
        hand_node(&hand, "Add", "x", "t", "y");
        check_gives(rig, &hand, tanh_added);
    }
}

static double plus_rounded(double x, int place)
{
    static const double halves[] = {46.125, HUGE_VAL, 0x1p-24};
    return x + halves[place];
}

ON_BACKENDS(a_cast_to_16_bits_rounds_or_is_refused)
{
    struct hand hand;
    hand_features(&hand);
    hand_row(&hand, "row", (const float[]){46.135f, 65520, 0x1.01p-25f}, 3);
    hand_node(&hand, "Cast", "row", NULL, "half");
    hand_node(&hand, "Cast", "half", NULL, "back");
    hand_node(&hand, "Add", "x", "back", "y");
    for (size_t n = 1; n < 3; n++) {
        Onnx__AttributeProto *to = hand_attribute(&hand, n, "to");
        to->has_i = true;
        to->i = n == 1 ? 10 : 1;
    }
    check_gives(rig, &hand, plus_rounded);
    hand.inputs[1][0] = "x";
    check_refused(&hand, "h.onnx", NULL, "node 'half' (Cast): it rounds to 16 bits");
}

TEST(a_dimension_without_a_name_is_called_after_its_input)
{
    struct hand hand = {0};
    struct network *network;
    hand_dim(&hand, 0, "N");
    hand_dim(&hand, 0, NULL);
    hand.dims[1].has_dim_value = false;
    hand_node(&hand, "Relu", "x", NULL, "y");
    check_refused(&hand, "u.onnx", NULL, "its size is left open, expected --shape x.1=N");
    if (CHECK_OK(hand_read(&hand, "u.onnx:x.1=4", "x.1=4", &network)))
        CHECK_EQUAL_INT(network->input.dim[0], 4);
    network_free(network);
}

TEST(sequences_of_time_and_samples_are_refused_for_what_they_are)
{
    struct hand hand = {0};
    hand_dim(&hand, 3, NULL);
    hand_dim(&hand, 0, "N");
    hand_dim(&hand, 2, NULL);
    hand_tensor(&hand, 1, NULL);
    hand.tensor_dims[1] = 1;
    hand.tensor_dims[2] = 2;
    hand.tensor.n_dims = 3;
    hand_number(&hand, "one", 1);
    static const int64_t ones[] = {1, 1, 1};
    hand_node(&hand, "Constant", "", NULL, "sizes");
    hand.nodes[1].n_input = 0;
    hand_ints(&hand, 1, "value_ints", ones, 3);
    hand_node(&hand, "Reshape", "one", "sizes", "r");
    hand_node(&hand, "RNN", "x", "w", "y");
    hand.inputs[3][2] = "r";
    hand.nodes[3].n_input = 3;
    Onnx__AttributeProto *clip = hand_attribute(&hand, 3, "clip");
    clip->has_f = true;
    clip->f = 1;
    check_refused(&hand, "r.onnx", NULL, "node 'y' (RNN): it has clip or input_forget");
    check_refused(&hand, "r.onnx:N=5", "N=5", "node 'y' (RNN): it has clip or input_forget");
}

static double second_part(double x, int place)
{
    return x + 3 + place;
}

ON_BACKENDS(known_numbers_are_split)
{
    struct hand hand;
    hand_features(&hand);
    hand_row(&hand, "row", (const float[]){0, 1, 2, 3, 4, 5}, 6);
    hand_node(&hand, "Split", "row", NULL, "a");
    hand.outputs[1][1] = "b";
    hand.nodes[1].n_output = 2;
    hand_node(&hand, "Add", "x", "b", "y");
    check_gives(rig, &hand, second_part);
}

CHECK_MAIN
