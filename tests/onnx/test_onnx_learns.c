/* test_onnx_learns.c: what a training of an imported network learns: initializers as they stand in
 * the file, and nothing else; and what is refused because it would learn otherwise. */
#include "onnx.pb-c.h"

#include "folder.h"
#include "onnx_gives.h"

/* How many parameters a training of it learns; -1: it is refused, as a status has it. */
static int32_t learnt_by(struct hand *hand)
{
    const struct compile_options options = {.batch = 4, .use = USE_TRAINING};
    struct network *network;
    struct program *program;
    struct params params;
    int32_t count = -1;
    if (!CHECK_OK(hand_read(hand, "t.onnx", NULL, &network)))
        return -1;
    params_init(&params, DTYPE_F32);
    if (network_compile(network, &params, &options, &program) == STATUS_OK) {
        count = 0;
        for (int32_t t = 0; t < program->tensor_count; t++)
            count += program->tensors[t].role == ROLE_GRAD && program->tensors[t].view_of < 0;
        program_free(program);
    } else {
        CHECK(status_last()->code == STATUS_UNSUPPORTED);
    }
    params_free(&params);
    network_free(network);
    return count;
}

/* x [·, 2] times w [2, 1], an initializer or of a Constant. */
static void hand_product(struct hand *hand, const char *op, bool constant)
{
    *hand = (struct hand){0};
    hand_dim(hand, 1, NULL);
    hand_dim(hand, 2, NULL);
    hand_tensor(hand, 2, NULL);
    hand->tensor_dims[1] = 1;
    hand->tensor.n_dims = 2;
    if (constant) {
        hand_node(hand, "Constant", "", NULL, "w");
        hand->nodes[0].n_input = 0;
        hand_attribute(hand, 0, "value")->t = &hand->tensor;
        hand->has_tensor = false;
    }
    hand_node(hand, op, "x", "w", "y");
}

TEST(what_constant_nodes_hold_is_not_learnt)
{
    struct hand hand;
    hand_product(&hand, "MatMul", false);
    CHECK_EQUAL_INT(learnt_by(&hand), 1);
    hand_product(&hand, "MatMul", true);
    CHECK_EQUAL_INT(learnt_by(&hand), 0);
    hand_product(&hand, "Gemm", true);
    CHECK_EQUAL_INT(learnt_by(&hand), 0);
}

/* A node of three inputs and more, of which the first two are there. */
static void hand_more(struct hand *hand, const char *c, const char *d, const char *e)
{
    size_t n = hand->node_count - 1;
    const char *more[] = {c, d, e};
    for (int i = 0; i < 3 && more[i]; i++)
        hand->inputs[n][hand->nodes[n].n_input++] = more[i];
}

TEST(a_quotient_learns_what_it_divides_by)
{
    struct hand hand = {0};
    struct network *network;
    hand_dim(&hand, 1, NULL);
    hand_dim(&hand, 2, NULL);
    hand_tensor(&hand, 2, NULL);
    hand_node(&hand, "Div", "x", "w", "y");
    CHECK_EQUAL_INT(learnt_by(&hand), 1);
    if (CHECK_OK(hand_read(&hand, "t.onnx", NULL, &network)))
        CHECK(strstr(network->text, "= divide <"));
    network_free(network);
    hand.has_tensor = false;
    hand.node_count = 0;
    hand_row(&hand, "w", (const float[]){2, 4}, 2);
    hand_node(&hand, "Div", "x", "w", "y");
    CHECK_EQUAL_INT(learnt_by(&hand), 0);
    if (CHECK_OK(hand_read(&hand, "t.onnx", NULL, &network)))
        CHECK(strstr(network->text, "= multiply <"));
    network_free(network);
}

/* x [·, 1, 2, 2], and w for two channels: an initializer of so many dimensions. */
static void hand_image(struct hand *hand, size_t dims)
{
    *hand = (struct hand){0};
    for (int d = 0; d < 4; d++)
        hand_dim(hand, d < 2 ? 1 : 2, NULL);
    hand_tensor(hand, 2, NULL);
    for (size_t d = 1; d < 4; d++)
        hand->tensor_dims[d] = 1;
    hand->tensor.n_dims = dims;
}

TEST(a_convolution_learns_its_initializers_only)
{
    struct hand hand;
    hand_image(&hand, 4);
    hand_row(&hand, "b", (const float[]){1, 2}, 2);
    hand_node(&hand, "Conv", "x", "w", "y");
    hand_more(&hand, "b", NULL, NULL);
    CHECK_EQUAL_INT(learnt_by(&hand), 1);
}

/* A convolution, of two channels, by an initializer or not, and behind it a batch normalisation
 * whose scale is one or not. */
static void hand_normed(struct hand *hand, bool conv_learns)
{
    static const float numbers[] = {1, 2};
    static const int64_t sizes[] = {2, 1, 1, 1};
    hand_image(hand, conv_learns ? 4 : 1);
    hand_row(hand, "c", numbers, 2);
    hand_node(hand, "Constant", "", NULL, "sizes");
    hand->nodes[1].n_input = 0;
    hand_ints(hand, 1, "value_ints", sizes, 4);
    hand_node(hand, "Reshape", "c", "sizes", "kernel");
    hand_node(hand, "Conv", "x", conv_learns ? "w" : "kernel", "image");
    hand_node(hand, "BatchNormalization", "image", conv_learns ? "c" : "w", "y");
    hand_more(hand, "c", "c", "c");
}

TEST(what_learns_is_not_folded_into_what_stays)
{
    for (int conv_learns = 0; conv_learns < 2; conv_learns++) {
        struct hand hand;
        struct network *network;
        hand_normed(&hand, conv_learns);
        CHECK_EQUAL_INT(learnt_by(&hand), 1);
        if (CHECK_OK(hand_read(&hand, "t.onnx", NULL, &network)))
            CHECK(strstr(network->text, "= batch_norm "));
        network_free(network);
    }
}

TEST(a_recurrent_layer_learns_its_initializers_only)
{
    static const int64_t sizes[] = {1, 1, 1};
    struct hand hand = {0};
    hand_dim(&hand, 3, NULL);
    hand_dim(&hand, 1, NULL);
    hand_dim(&hand, 2, NULL);
    hand_tensor(&hand, 2, NULL);
    hand.tensor_dims[0] = hand.tensor_dims[1] = 1;
    hand.tensor_dims[2] = 2;
    hand.tensor.n_dims = 3;
    hand_row(&hand, "one", (const float[]){1}, 1);
    hand_node(&hand, "Constant", "", NULL, "sizes");
    hand.nodes[1].n_input = 0;
    hand_ints(&hand, 1, "value_ints", sizes, 3);
    hand_node(&hand, "Reshape", "one", "sizes", "r");
    hand_node(&hand, "RNN", "x", "w", "y");
    hand_more(&hand, "r", NULL, NULL);
    CHECK_EQUAL_INT(learnt_by(&hand), 1); /* it has no bias */
}

TEST(a_fused_layer_norm_learns_as_its_nodes_would)
{
    struct hand hand;
    hand_norm(&hand, WHOLE); /* its scale and its shift are one initializer */
    CHECK_EQUAL_INT(learnt_by(&hand), -1);
    CHECK_MESSAGE("t.onnx: it cannot be trained: the nodes 'scaled' (Mul) and 'y' (Add) have the "
                  "initializer 'w' in common");
    hand.inputs[10][1] = "known";
    CHECK_EQUAL_INT(learnt_by(&hand), 1);
    hand.inputs[11][1] = "known";
    CHECK_EQUAL_INT(learnt_by(&hand), 0);
}

/* Numbers that are added and multiplied with are one parameter; as weights of two layers they would
 * be two. */
TEST(what_nodes_have_in_common_is_not_trained_apart)
{
    struct hand hand = {0};
    hand_dim(&hand, 1, NULL);
    hand_dim(&hand, 2, NULL);
    hand_tensor(&hand, 2, NULL);
    hand_node(&hand, "Add", "x", "w", "y");
    CHECK_EQUAL_INT(learnt_by(&hand), 1);
    hand.node_count = 0;
    hand_node(&hand, "Add", "x", "w", "a");
    hand_node(&hand, "Identity", "w", NULL, "same");
    hand_node(&hand, "Mul", "a", "same", "y");
    CHECK_EQUAL_INT(learnt_by(&hand), 1);
    hand.nodes[0].op_type = (char *)(uintptr_t) "Sub"; /* which has them turned */
    CHECK_EQUAL_INT(learnt_by(&hand), -1);
    CHECK_MESSAGE("t.onnx: it cannot be trained: the nodes 'a' (Sub) and 'y' (Mul) have the "
                  "initializer 'w' in common");
}

TEST(a_factor_of_learnt_weights_is_not_trained_with_them)
{
    struct hand hand;
    for (int constant = 0; constant < 2; constant++) {
        hand_product(&hand, "Gemm", constant);
        Onnx__AttributeProto *alpha = hand_attribute(&hand, (size_t)constant, "alpha");
        alpha->has_f = true;
        alpha->f = 3;
        CHECK_EQUAL_INT(learnt_by(&hand), constant ? 0 : -1);
        if (!constant)
            CHECK_MESSAGE("t.onnx: it cannot be trained: alpha of the node 'y' (Gemm) is 3");
    }
}

TEST(what_is_worked_out_of_initializers_is_not_trained)
{
    struct hand hand;
    hand_product(&hand, "MatMul", false);
    hand.node_count = 0;
    hand_number(&hand, "two", 2);
    hand_node(&hand, "Mul", "w", "two", "twice");
    hand_node(&hand, "MatMul", "x", "twice", "y");
    CHECK_EQUAL_INT(learnt_by(&hand), -1);
    CHECK_MESSAGE("t.onnx: it cannot be trained: input 2 of the node 'y' (MatMul) is computed from "
                  "'w'");
}

TEST(parts_of_an_initializer_are_known_as_its_own)
{
    static const int64_t none[] = {0}, all[] = {2};
    for (int more = 0; more < 2; more++) {
        struct hand hand;
        hand_product(&hand, "MatMul", false);
        hand.node_count = 0;
        hand_node(&hand, "Slice", "w", NULL, "part");
        hand_ints(&hand, 0, "starts", none, 1);
        hand_ints(&hand, 0, "ends", all, 1);
        hand_node(&hand, "MatMul", "x", "part", more ? "a" : "y");
        if (more) {
            hand_node(&hand, "MatMul", "x", "w", "b");
            hand_node(&hand, "Add", "a", "b", "y");
        }
        CHECK_EQUAL_INT(learnt_by(&hand), more ? -1 : 1);
        if (more)
            CHECK_MESSAGE("t.onnx: it cannot be trained: the nodes 'a' (MatMul) and 'b' (MatMul) "
                          "have the initializer 'w' in common");
    }
}

/* One number for both columns of a Gemm is one parameter; what a Max repeats would be several. */
TEST(what_is_repeated_is_not_learnt_apart)
{
    struct hand hand = {0};
    struct network *network;
    hand_dim(&hand, 0, "N");
    hand_dim(&hand, 2, NULL);
    hand_dim(&hand, 2, NULL);
    hand_tensor(&hand, 2, NULL);
    hand_node(&hand, "Max", "x", "w", "y");
    CHECK_EQUAL_INT(learnt_by(&hand), -1);
    CHECK_MESSAGE("t.onnx: it cannot be trained: the node 'y' (Max) repeats learnt numbers");
    hand.node_count = 0;
    hand_node(&hand, "Concat", "w", "w", "twice");
    Onnx__AttributeProto *axis = hand_attribute(&hand, 0, "axis");
    axis->has_i = true;
    hand.dim_count = 1;
    hand_dim(&hand, 4, NULL);
    hand_node(&hand, "Mul", "x", "twice", "y");
    CHECK_EQUAL_INT(learnt_by(&hand), -1);
    CHECK_MESSAGE("t.onnx: it cannot be trained: input 2 of the node 'y' (Mul) is computed from");
    hand.node_count = 0;
    hand.dim_count = 1;
    hand_dim(&hand, 2, NULL);
    static const float numbers[] = {1, 2, 3, 4};
    static const int64_t sizes[] = {2, 2}, none[] = {0}, one[] = {1};
    hand_row(&hand, "row", numbers, 4);
    hand_node(&hand, "Constant", "", NULL, "sizes");
    hand.nodes[1].n_input = 0;
    hand_ints(&hand, 1, "value_ints", sizes, 2);
    hand_node(&hand, "Reshape", "row", "sizes", "matrix");
    hand_node(&hand, "Slice", "w", NULL, "single");
    hand_ints(&hand, 3, "starts", none, 1);
    hand_ints(&hand, 3, "ends", one, 1);
    hand_node(&hand, "Gemm", "x", "matrix", "y");
    hand.inputs[4][2] = "single";
    hand.nodes[4].n_input = 3;
    CHECK_EQUAL_INT(learnt_by(&hand), 1);
    if (CHECK_OK(hand_read(&hand, "t.onnx", NULL, &network)))
        CHECK(strstr(network->text, "parameter 1 learnt=1"));
    network_free(network);
}

/* How many ops of this kind a program of the network has. */
static int32_t ops_of(const struct network *network, enum program_use use, enum op_kind kind)
{
    const struct compile_options options = {.batch = 4, .use = use};
    struct program *program = NULL;
    struct params params;
    int32_t count = 0;
    params_init(&params, DTYPE_F32);
    if (CHECK_OK(network_compile(network, &params, &options, &program)))
        for (int32_t o = 0; o < program->op_count; o++)
            count += program->ops[o].kind == kind;
    program_free(program);
    params_free(&params);
    return count;
}

/* What is folded for inference is not for training. */
TEST(batch_norms_of_a_file_are_trained)
{
    static const char text[] = "input 2x4x4\nconv 3 3\nbatch_norm\nrelu\nconv_transpose 2 2\n"
                               "batch_norm\nflatten\ndense 5\nbatch_norm\ndense 2\n";
    struct network *network = NULL, *back = NULL;
    struct program *program = NULL;
    struct params params;
    const struct compile_options options = {.batch = 1};
    const struct onnx_ends ends = {.loss = LOSS_MSE};
    params_init(&params, DTYPE_F32);
    if (CHECK_OK(network_parse("test", text, strlen(text), &network)) &&
        CHECK_OK(network_compile(network, &params, &options, &program)) &&
        CHECK_OK(params_fill(&params, 7)) &&
        CHECK_OK(onnx_write(at("norms.onnx"), network, &params, &ends)) &&
        CHECK_OK(network_open(at("norms.onnx"), &back)) && CHECK(back->settled)) {
        CHECK_EQUAL_INT(ops_of(back, USE_TRAINING, OP_batch_norm), 3);
        CHECK_EQUAL_INT(ops_of(back, USE_INFERENCE, OP_batch_norm_fixed), 3);
        CHECK_EQUAL_INT(ops_of(back->settled, USE_INFERENCE, OP_batch_norm_fixed), 1); /* of conv */
        CHECK(back->settled->untrainable);
    }
    program_free(program);
    params_free(&params);
    network_free(network);
    network_free(back);
}

static double twice_and_more(double x, int place)
{
    return 2 * x + place + 1;
}

/* x · 1 is read as it is, and under another name with a bias. */
ON_BACKENDS(a_bias_stays_with_its_own_reader)
{
    static const char *const aliases[] = {"Concat", "Identity", "Sum"};
    static const float one[] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, bias[] = {1, 2, 3};
    static const int64_t sizes[] = {3, 3};
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        for (int first = 0; first < 2; first++) {
            struct hand hand;
            hand_features(&hand);
            hand_row(&hand, "row", one, 9);
            hand_row(&hand, "bias", bias, 3);
            hand_node(&hand, "Constant", "", NULL, "sizes");
            hand.nodes[2].n_input = 0;
            hand_ints(&hand, 2, "value_ints", sizes, 2);
            hand_node(&hand, "Reshape", "row", "sizes", "matrix");
            hand_node(&hand, "MatMul", "x", "matrix", "product");
            hand_node(&hand, aliases[i], "product", NULL, "alias");
            Onnx__AttributeProto *axis = hand_attribute(&hand, 5, "axis");
            axis->has_i = true;
            axis->i = 1;
            if (first)
                hand_node(&hand, "Add", "alias", "bias", "more");
            hand_node(&hand, "Identity", "product", NULL, "plain");
            if (!first)
                hand_node(&hand, "Add", "alias", "bias", "more");
            hand_node(&hand, "Add", "plain", "more", "y");
            check_gives(rig, &hand, twice_and_more);
        }
}

/* A factor that could learn is no setting of the product of matrices before it. */
TEST(a_factor_of_the_file_learns)
{
    static const int64_t one[] = {1}, none[] = {0};
    struct hand hand = {0};
    struct network *network = NULL;
    for (int d = 0; d < 3; d++)
        hand_dim(&hand, 2, NULL);
    hand_tensor(&hand, 2, NULL);
    hand_node(&hand, "Slice", "w", NULL, "factor");
    hand_ints(&hand, 0, "starts", none, 1);
    hand_ints(&hand, 0, "ends", one, 1);
    hand_node(&hand, "MatMul", "x", "x", "product");
    hand_node(&hand, "Mul", "product", "factor", "y");
    CHECK_EQUAL_INT(learnt_by(&hand), 1);
    if (CHECK_OK(hand_read(&hand, "t.onnx", NULL, &network)))
        CHECK(strstr(network->text, "learnt=1"));
    network_free(network);
}

TEST(doubles_are_said_to_be_rounded)
{
    static const int32_t types[] = {1, 10, 11};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int cast = 0; cast < 2; cast++) {
            struct hand hand;
            struct network *network = NULL;
            hand_features(&hand);
            hand.type = types[i];
            hand_node(&hand, cast ? "Cast" : "Relu", "x", NULL, cast ? "wide" : "y");
            if (cast) {
                Onnx__AttributeProto *to = hand_attribute(&hand, 0, "to");
                to->has_i = true;
                to->i = 11;
                hand_node(&hand, "Relu", "wide", NULL, "y");
            }
            if (CHECK_OK(hand_read(&hand, "t.onnx", NULL, &network)))
                CHECK_EQUAL_INT(network->rounded != NULL, cast || types[i] == 11);
            network_free(network);
        }
}

CHECK_MAIN
