/* test_onnx_hand.c: models of ONNX that are not what they seem. */
#include "onnx.pb-c.h"

#include "onnx_hand.h"

#include "base/clock.h"
#include "base/text.h"
#include "nn/layer.h"

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
    check_refused(&hand, "n.onnx", NULL,
                  "n.onnx: node 'y' (Wa\\u001b[2J\\u000a\\xffrp\\u009b\xc3\xa9): prony has");
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

/* Whole numbers, as a node gives them. */
static void hand_sizes(struct hand *hand, const char *output, const int64_t *sizes, size_t count)
{
    hand_node(hand, "Constant", "", NULL, output);
    hand->nodes[hand->node_count - 1].n_input = 0;
    hand_ints(hand, hand->node_count - 1, "value_ints", sizes, count);
}

/* x [samples, 3, 4] in another shape, then a softmax over its last dimension. */
static void hand_reshaped(struct hand *hand, const int64_t *sizes, size_t count)
{
    *hand = (struct hand){0};
    hand_dim(hand, 0, "samples");
    hand_dim(hand, 3, NULL);
    hand_dim(hand, 4, NULL);
    hand_sizes(hand, "sizes", sizes, count);
    hand_node(hand, "Reshape", "x", "sizes", "rows");
    hand_node(hand, "Softmax", "rows", NULL, "y");
}

/* One dimension may count samples and parts of them; not parts of several. */
TEST(rows_of_all_samples_are_rows_of_each)
{
    static const int64_t none[] = {0, 12}, rows[] = {-1, 4}, halves[] = {-1, 2}, whole[] = {-1, 12},
                         mixed[] = {4, -1}, twice[] = {-1, -1, 4};
    const int64_t *const sizes[] = {rows, halves, whole};
    struct hand hand;
    struct network *network;
    for (size_t i = 0; i < 3; i++) {
        hand_reshaped(&hand, sizes[i], 2);
        if (CHECK_OK(hand_read(&hand, "r.onnx", NULL, &network)))
            CHECK_EQUAL_INT(shape_count(&network->input), 12);
        network_free(network);
    }
    hand_reshaped(&hand, none, 2);
    Onnx__AttributeProto *zero = hand_attribute(&hand, 1, "allowzero");
    zero->has_i = true;
    zero->i = 1;
    check_refused(&hand, "r.onnx", NULL, "node 'rows' (Reshape): it asks for a size of 0, of");
    hand_reshaped(&hand, mixed, 2);
    check_refused(&hand, "r.onnx", NULL, "node 'rows' (Reshape): it mixes samples");
    hand_reshaped(&hand, twice, 3);
    check_refused(&hand, "r.onnx", NULL, "node 'rows' (Reshape): found the size -1, or -1 twice");
}

TEST(a_node_without_its_first_output_is_refused)
{
    static const int64_t sizes[] = {-1, 12};
    struct hand hand;
    hand_reshaped(&hand, sizes, 2);
    hand.outputs[1][0] = "";
    hand.outputs[1][1] = "rows";
    hand.nodes[1].n_output = 2;
    check_refused(&hand, "o.onnx", NULL, "its output 'rows' is used, expected only the first");
}

/* y = x to a power. */
static void hand_power(struct hand *hand, float exponent)
{
    *hand = (struct hand){0};
    hand_dim(hand, 1, NULL);
    hand_dim(hand, 2, NULL);
    hand_number(hand, "e", exponent);
    hand_node(hand, "Pow", "x", "e", "y");
}

TEST(powers_are_products_and_roots)
{
    static const struct {
        float exponent;
        int products, roots, divisions;
    } rows[] = {{2, 1, 0, 0}, {3, 2, 0, 0}, {0.5f, 0, 1, 0}, {-1.5f, 1, 1, 1}, {16, 4, 0, 0}};
    struct hand hand;
    struct network *network;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int products = 0, roots = 0, divisions = 0;
        hand_power(&hand, rows[i].exponent);
        if (!CHECK_OK(hand_read(&hand, "p.onnx", NULL, &network)))
            continue;
        for (int32_t l = 0; l < network->layer_count; l++) {
            const char *kind = network->layers[l].kind->name;
            products += !strcmp(kind, "multiply");
            roots += !strcmp(kind, "sqrt");
            divisions += !strcmp(kind, "reciprocal");
        }
        if (!CHECK(products == rows[i].products && roots == rows[i].roots &&
                   divisions == rows[i].divisions))
            printf("    %s", network->text);
        network_free(network);
    }
    hand_power(&hand, 0.3f); /* e^(0.3·ln x) */
    if (CHECK_OK(hand_read(&hand, "p.onnx", NULL, &network)))
        CHECK(strstr(network->text, "= log <") && strstr(network->text, "= exp <"));
    network_free(network);
    hand_power(&hand, 1025); /* of what is negative there is no logarithm */
    check_refused(&hand, "p.onnx", NULL, "p.onnx: node 'y' (Pow): found whole exponents beside");
}

/* x · ½ · (1 + erf(x / √2)), or what is only near to it. */
TEST(only_a_gelu_is_taken_for_one)
{
    static const float numbers[][3] = {{1.41421354f, 1, 0.5f},
                                       {1.4142f, 1, 0.5f},
                                       {1.41421354f, 0.99995f, 0.5f},
                                       {1.41421354f, 1, 0.50005f}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct hand hand = {0};
        struct network *network;
        hand_dim(&hand, 1, NULL);
        hand_dim(&hand, 2, NULL);
        hand_number(&hand, "root", numbers[i][0]);
        hand_number(&hand, "one", numbers[i][1]);
        hand_number(&hand, "half", numbers[i][2]);
        hand_node(&hand, "Div", "x", "root", "a");
        hand_node(&hand, "Erf", "a", NULL, "b");
        hand_node(&hand, "Add", "b", "one", "c");
        hand_node(&hand, "Mul", "x", "c", "d");
        hand_node(&hand, "Mul", "d", "half", "y");
        if (CHECK_OK(hand_read(&hand, "gelu.onnx", NULL, &network)))
            CHECK((strstr(network->text, "gelu") != NULL) == (i == 0));
        network_free(network);
    }
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

/* A field of a message: its bytes are fewer than 2^21. */
static void put(struct text *out, int field, const char *bytes, size_t length)
{
    const char head[] = {(char)(field << 3 | 2), (char)((length & 127) | 128),
                         (char)((length >> 7 & 127) | 128), (char)(length >> 14)};
    text_add_bytes(out, head, sizeof head);
    text_add_bytes(out, bytes, length);
}

static void put_name(struct text *out, int field, const char *stem, int number)
{
    char name[32];
    put(out, field, name, (size_t)snprintf(name, sizeof name, "%s%d", stem, number));
}

/* x + w + w …, so many nodes, beside so many initializers that nothing uses; in CPU time. */
static uint64_t time_chain(int nodes, int idle)
{
    static const char opset[] = "\x10\x0d",
                      type[] = "\x0a\x0c\x08\x01\x12\x08\x0a\x02\x08\x01"
                               "\x0a\x02\x08\x02",
                      numbers[] = "\x08\x02\x10\x01\x42\x01w\x4a\x08\0\0\0\0\0\0\0\0";
    struct text model = {0}, graph = {0}, part = {0};
    struct network *network = NULL;
    for (int i = 0; i < nodes; i++, text_free(&part), part = (struct text){0}) {
        put_name(&part, 1, "n", i);
        put(&part, 1, "w", 1);
        put_name(&part, 2, "n", i + 1);
        put(&part, 4, "Add", 3);
        put(&graph, 1, text_of(&part), part.length);
    }
    for (int i = 0; i < idle; i++, text_free(&part), part = (struct text){0}) {
        put_name(&part, 8, "idle", i);
        put(&graph, 5, text_of(&part), part.length);
    }
    put(&graph, 5, numbers, sizeof numbers - 1);
    put_name(&part, 1, "n", 0);
    put(&part, 2, type, sizeof type - 1);
    put(&graph, 11, text_of(&part), part.length);
    text_free(&part);
    part = (struct text){0};
    put_name(&part, 1, "n", nodes);
    put(&graph, 12, text_of(&part), part.length);
    put(&model, 7, text_of(&graph), graph.length);
    put(&model, 8, opset, sizeof opset - 1);
    uint64_t start_ns = clock_cpu_ns();
    CHECK_OK(onnx_parse("chain.onnx", text_of(&model), model.length, NULL, &network, NULL));
    start_ns = clock_cpu_ns() - start_ns;
    network_free(network);
    text_free(&part);
    text_free(&graph);
    text_free(&model);
    return start_ns;
}

/* A node looks at what it reads, not at all that the file names. */
TEST(a_node_takes_no_longer_in_a_larger_file)
{
    enum { NODES_FEW = 300, IDLE = 60000 };
    time_chain(1, 1);
    uint64_t nodes_ns = time_chain(NODES_FEW, 1), idle_ns = time_chain(1, IDLE);
    uint64_t both_ns = time_chain(NODES_FEW, IDLE);
    if (!CHECK(both_ns < 2 * (nodes_ns + idle_ns)))
        printf("    %.1f ms and %.1f ms, together %.1f ms\n", (double)nodes_ns / 1e6,
               (double)idle_ns / 1e6, (double)both_ns / 1e6);
}

CHECK_MAIN
