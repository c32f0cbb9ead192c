/* test_onnx_hand.c: models of ONNX that are not what they seem. */
#include "onnx.pb-c.h"

#include "onnx_hand.h"

/* y = x · what the operator makes of the numbers "w", [2] or [2, 2]. */
static void hand_known(struct hand *hand, const char *op, size_t rank)
{
    *hand = (struct hand){0};
    hand_dim(hand, 1, NULL);
    hand_dim(hand, 2, NULL);
    hand_tensor(hand, 2, NULL);
    hand->tensor_dims[1] = 2;
    hand->tensor.n_dims = rank;
    hand->tensor.data_type = rank == 2 ? 10 : 1; /* half precision: 8 bytes in all */
    hand_node(hand, op, "w", NULL, "v");
    hand_node(hand, "Mul", "x", "v", "y");
}

/* What would read them behind their end. */
TEST(known_numbers_stay_as_many_as_they_are)
{
    static const int64_t none[] = {0, 0}, ends[] = {2, 2};
    struct hand hand;
    hand_known(&hand, "Squeeze", 1);
    hand_ints(&hand, 0, "axes", none, 1);
    check_refused(&hand, "s.onnx", NULL, "s.onnx: node 'v' (Squeeze): found the axis 0 twice, or");
    hand_known(&hand, "Unsqueeze", 1);
    check_refused(&hand, "u.onnx", NULL, "u.onnx: node 'v' (Unsqueeze): found -1 axes");
    hand_ints(&hand, 0, "axes", none, 2);
    check_refused(&hand, "u.onnx", NULL, "u.onnx: node 'v' (Unsqueeze): found the axis 0 twice");
    hand_known(&hand, "Transpose", 2);
    hand_ints(&hand, 0, "perm", none, 2);
    check_refused(&hand, "t.onnx", NULL, "t.onnx: node 'v' (Transpose): expected each dimension");
    hand_known(&hand, "Slice", 2);
    hand_ints(&hand, 0, "starts", none, 2);
    hand_ints(&hand, 0, "ends", ends, 2);
    hand_ints(&hand, 0, "axes", none, 2);
    check_refused(&hand, "l.onnx", NULL, "l.onnx: node 'v' (Slice): found the axis 0 twice");
    hand.inputs[0][0] = "x"; /* also of what is not known */
    check_refused(&hand, "l.onnx", NULL, "l.onnx: node 'v' (Slice): found the axis 0 twice");
}

TEST(places_of_a_pool_go_to_an_unpool_only)
{
    static const int64_t window[] = {2, 2};
    static const char *const readers[] = {"Relu", "Cast", "Identity", "Shape", "Flatten"};
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        struct hand hand = {0};
        for (int d = 0; d < 4; d++)
            hand_dim(&hand, d < 2 ? 1 : 4, NULL);
        hand_node(&hand, "MaxPool", "x", NULL, "p");
        hand_ints(&hand, 0, "kernel_shape", window, 2);
        hand.outputs[0][1] = "places";
        hand.nodes[0].n_output = 2;
        hand_node(&hand, readers[i], "places", NULL, "y");
        check_refused(&hand, "p.onnx", NULL, "'places' is the places of a MaxPool, expected");
    }
}

TEST(attributes_are_what_they_may_be)
{
    static const int64_t three[] = {3};
    struct hand conv = {0}, recurrent = {0};
    for (int d = 0; d < 3; d++)
        hand_dim(&conv, d < 2 ? 1 : 4, NULL);
    hand_tensor(&conv, 1, NULL);
    conv.tensor_dims[1] = 1;
    conv.tensor_dims[2] = 2;
    conv.tensor.n_dims = 3;
    hand_node(&conv, "Conv", "x", "w", "y");
    hand_ints(&conv, 0, "kernel_shape", three, 1);
    check_refused(&conv, "c.onnx", NULL, "kernel_shape has 3 in it, expected the 2 of its weights");
    conv.nodes[0].n_attribute = 0;
    hand_text(&conv, 0, "auto_pad", "FOO");
    check_refused(&conv, "c.onnx", NULL, "auto_pad is 'FOO', expected one of NOTSET, VALID, SAME_");
    for (int d = 0; d < 3; d++)
        hand_dim(&recurrent, 2, NULL);
    hand_tensor(&recurrent, 2, NULL);
    hand_node(&recurrent, "RNN", "x", "w", "y");
    recurrent.inputs[0][2] = "w";
    recurrent.nodes[0].n_input = 3;
    hand_text(&recurrent, 0, "direction", "sideways");
    check_refused(&recurrent, "r.onnx", NULL, "direction is 'sideways', expected one of forward,");
}

TEST(names_of_a_file_are_text_when_they_are_said)
{
    struct hand hand = {0};
    hand_dim(&hand, 2, NULL);
    hand_node(&hand, "Wa\33[2J\n\xffrp\xc2\x9b\xc3\xa9", "x", NULL, "y");
    check_refused(&hand, "n.onnx", NULL, "n.onnx: node 'y' (Wa?[2J??rp??\xc3\xa9): there is");
    hand.nodes[0].op_type = (char *)(uintptr_t) "Relu~6";
    hand.hollow = '~';
    check_refused(&hand, "n.onnx", NULL, "n.onnx: found a name with a byte 0 in it");
}

TEST(known_numbers_are_cast_as_their_type_says)
{
    static const float numbers[] = {0.5f, 0};
    static const int64_t wide[] = {5000000000};
    struct hand hand = {0};
    struct network *network;
    hand_dim(&hand, 1, NULL);
    hand_dim(&hand, 2, NULL);
    hand_tensor(&hand, 2, NULL);
    hand.tensor.raw_data.data = (uint8_t *)(uintptr_t)numbers;
    hand_node(&hand, "Cast", "w", NULL, "truth");
    hand_node(&hand, "Cast", "truth", NULL, "v");
    hand_node(&hand, "Mul", "x", "v", "y");
    for (size_t n = 0; n < 2; n++) {
        Onnx__AttributeProto *to = hand_attribute(&hand, n, "to");
        to->has_i = true;
        to->i = n ? 1 : 9; /* bool, then float */
    }
    if (CHECK_OK(hand_read(&hand, "b.onnx", NULL, &network)) &&
        CHECK_EQUAL_INT(network->given_count, 1))
        CHECK(network->given[0].values[0] == 1 && network->given[0].values[1] == 0);
    network_free(network);
    hand.nodes[0].op_type = (char *)(uintptr_t) "Constant";
    hand.nodes[0].n_input = hand.nodes[0].n_attribute = 0;
    hand_ints(&hand, 0, "value_ints", wide, 1);
    hand.attributes[1][0].i = 6; /* int32 */
    check_refused(&hand, "c.onnx", NULL, "node 'v' (Cast): found 5e+09, which cannot be cast");
}

enum norm_part { WHOLE, SUB, POW, DIV, AXIS, COLUMN, NORM_PARTS };

/* Layer normalisation as opset 13 has it: a pattern of nodes, of which one may be another. */
static void hand_norm(struct hand *hand, enum norm_part at)
{
    static const int64_t last[] = {-1}, first[] = {1};
    *hand = (struct hand){0};
    for (int d = 0; d < 3; d++)
        hand_dim(hand, d ? 2 : 1, NULL);
    hand_tensor(hand, 2, NULL);
    hand->tensor_dims[1] = 1;
    hand->tensor.n_dims = at == COLUMN ? 2 : 1;
    hand_number(hand, "two", 2);
    hand_number(hand, "small", 1e-5f);
    hand_node(hand, "ReduceMean", "x", NULL, "mean");
    hand_node(hand, "Sub", at == SUB ? "mean" : "x", at == SUB ? "x" : "mean", "c");
    hand_node(hand, "Pow", at == POW ? "two" : "c", at == POW ? "c" : "two", "square");
    hand_node(hand, "ReduceMean", "square", NULL, "variance");
    hand_node(hand, "Add", "variance", "small", "more");
    hand_node(hand, "Sqrt", "more", NULL, "root");
    hand_node(hand, "Div", at == DIV ? "root" : "c", at == DIV ? "c" : "root", "norm");
    hand_node(hand, "Mul", "norm", "w", "scaled");
    hand_node(hand, "Add", "scaled", "w", "y");
    hand_ints(hand, 2, "axes", last, 1);
    hand_ints(hand, 5, "axes", at == AXIS ? first : last, 1);
}

TEST(only_a_layer_norm_is_taken_for_one)
{
    for (int at = WHOLE; at < NORM_PARTS; at++) {
        struct hand hand;
        struct network *network;
        hand_norm(&hand, (enum norm_part)at);
        bool read = hand_read(&hand, "norm.onnx", NULL, &network) == STATUS_OK;
        if (!CHECK(at == WHOLE ? read : !read || !strstr(network->text, "layer_norm")))
            printf("    %d: %s\n", at, read ? network->text : status_message());
        if (at == WHOLE && read)
            CHECK(strstr(network->text, "layer_norm"));
        network_free(network);
    }
}

CHECK_MAIN
