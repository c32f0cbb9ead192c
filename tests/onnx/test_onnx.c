/* test_onnx.c: networks to ONNX and back. */
#include "onnx.pb-c.h"

#include "base/file.h"
#include "base/memory.h"
#include "folder.h"
#include "nn/formats/onnx.h"
#include "nn/layer.h"
#include "onnx_answer.h"
#include "onnx_hand.h"
#include "onnx_networks.h"

#include <sys/stat.h>

/* Infinities are the same infinity, what is no number is none again. */
static bool is_same(double found, double expected, double tolerance)
{
    if (isnan(expected) || isinf(expected))
        return isnan(expected) ? isnan(found) : found == expected;
    return fabs(found - expected) <= tolerance * fmax(1, fabs(expected));
}

/* Does it say the same, its ops merged? */
static bool says_same(struct rig *rig, const struct network *network, const struct answer *expected,
                      double tolerance)
{
    struct answer found;
    bool ok = answer(rig, network, true, &found) && CHECK_EQUAL_INT(found.count, expected->count);
    for (int64_t i = 0; ok && i < expected->count; i++)
        ok = is_same((double)found.y[i], (double)expected->y[i], tolerance);
    answer_free(&found);
    return ok;
}

/* Text → program → ONNX → program: does the second, its ops merged, say what the first does, and so
 * does its form for inference alone? Gives whether all it says are numbers. */
static bool check_round(struct rig *rig, const char *text, const char *path, double tolerance)
{
    struct network *network = NULL, *back = NULL;
    struct answer before = {0};
    bool ok = CHECK_OK(network_parse("test", text, strlen(text), &network)) &&
              answer(rig, network, false, &before);
    struct onnx_ends ends = {.loss = ok ? network->loss : LOSS_AUTO};
    ok = ok && CHECK_OK(onnx_write(path, network, &before.params, &ends)) &&
         CHECK_OK(network_open(path, &back)) && says_same(rig, back, &before, tolerance) &&
         (!back->settled || says_same(rig, back->settled, &before, tolerance));
    bool numbers = ok;
    for (int64_t i = 0; numbers && i < before.count; i++)
        numbers = isfinite(before.y[i]);
    if (!CHECK(ok))
        printf("    %s    became\n%s", text, back ? back->text : "nothing\n");
    answer_free(&before);
    network_free(network);
    network_free(back);
    return numbers;
}

ON_BACKENDS(random_networks_come_back_the_same)
{
    const char *keep = getenv("PRONY_ONNX_KEEP"); /* a folder, where slow_onnx.sh wants them */
    char path[4096];
    uint32_t finite = 0;
    for (uint32_t number = 0; number < networks_wanted(60); number++) {
        struct text text = {0};
        draw_network(number, &text);
        snprintf(path, sizeof path, "%s/random%u.onnx", keep ? keep : "", number);
        finite += check_round(rig, text_of(&text), keep ? path : at("random.onnx"), 1e-4);
        text_free(&text);
    }
    CHECK(finite * 10 > networks_wanted(60) * 9); /* else they are the same too easily */
}

/* Of one kind of layer: was it drawn, and each of its arguments in more than one way? */
struct seen {
    const struct layer *first;
    bool varied[LAYER_VALUES];
};

static void see(struct seen *seen, const struct layer *layer)
{
    if (!seen->first)
        seen->first = layer;
    for (int i = 0; i < LAYER_VALUES; i++)
        seen->varied[i] = seen->varied[i] || layer->values[i] != seen->first->values[i] ||
                          memcmp(&layer->lists[i], &seen->first->lists[i], sizeof *layer->lists);
}

TEST(every_layer_and_argument_is_drawn)
{
    enum { DRAWN = 400, KINDS = 100 };
    static struct network *networks[DRAWN];
    struct seen seen[KINDS] = {0};
    int32_t kind_count;
    const struct layer_kind *kinds = layer_kinds(&kind_count);
    CHECK(kind_count <= KINDS);
    for (uint32_t number = 0; number < DRAWN; number++) {
        struct text text = {0};
        draw_network(number, &text);
        if (CHECK_OK(network_parse("drawn", text_of(&text), text.length, &networks[number])))
            for (int32_t i = 0; i < networks[number]->layer_count; i++) {
                const struct layer *layer = &networks[number]->layers[i];
                see(&seen[layer->kind - kinds], layer);
            }
        text_free(&text);
    }
    for (int32_t k = 0; k < kind_count; k++) {
        int argument = 0;
        if (!strcmp(kinds[k].name, "quantise")) /* a rounding before it moves it by a step: */
            continue;                           /* quantised.sh */
        for (const char *at = kinds[k].arguments; *at; at += strcspn(at, " "), at += *at == ' ')
            if (!CHECK(seen[k].first && seen[k].varied[argument++]))
                printf("    %s: %.*s is always the same\n", kinds[k].name, (int)strcspn(at, " "),
                       at);
        if (!CHECK(seen[k].first))
            printf("    %s is not drawn\n", kinds[k].name);
    }
    for (uint32_t number = 0; number < DRAWN; number++)
        network_free(networks[number]);
}

/* y = relu(x) - z and a = relu(x), over three features each. */
ON_BACKENDS(several_inputs_are_one_row_and_outputs_are_named)
{
    for (int which = 0; which < 2; which++) {
        struct hand hand = {.two = true};
        struct network *network;
        struct answer found = {0};
        float x[BATCH * 6];
        hand_dim(&hand, 2, NULL);
        hand_dim(&hand, 3, NULL);
        hand_node(&hand, "Relu", "x", NULL, "a");
        hand_node(&hand, "Sub", "a", "z", "y");
        fill_random(x, BATCH * 6, 5);
        if (CHECK_OK(hand_read(&hand, "two.onnx", which ? "output=a" : NULL, &network)) &&
            CHECK_EQUAL_INT(shape_count(&network->input), 6) &&
            answer(rig, network, false, &found) && CHECK_EQUAL_INT(found.count, BATCH * 3))
            for (int i = 0; i < BATCH * 3; i++) {
                const float *row = x + i / 3 * 6;
                float a = row[i % 3] > 0 ? row[i % 3] : 0;
                CHECK(fabsf(found.y[i] - (which ? a : a - row[3 + i % 3])) < 1e-6f);
            }
        answer_free(&found);
        network_free(network);
    }
}

TEST(an_input_without_a_name_is_not_there)
{
    struct hand hand;
    hand_features(&hand);
    hand_node(&hand, "Relu", "", NULL, "y");
    check_refused(&hand, "e.onnx", NULL,
                  "e.onnx: node 'y' (Relu): its input 1 is not there, expected 1 inputs");
}

TEST(an_output_that_is_not_there_is_refused)
{
    struct hand hand = {.two = true};
    hand_dim(&hand, 2, NULL);
    hand_dim(&hand, 3, NULL);
    hand_node(&hand, "Add", "x", "z", "a");
    hand_node(&hand, "Relu", "a", NULL, "y");
    check_refused(&hand, "two.onnx", "output=b", "two.onnx: it has no output 'b'");
}

TEST(numbers_of_16_bits_become_floats)
{
    static const struct {
        int32_t type;
        uint16_t bits[4];
        float expected[4];
    } cases[] = {
        {10, {0x3c00, 0xc000, 0x0001, 0x7bff}, {1, -2, 0x1p-24f, 65504}},
        {16, {0x3f80, 0xc040, 0x0000, 0x4170}, {1, -3, 0, 15}},
    };
    for (size_t c = 0; c < 2; c++) {
        struct hand hand = {0};
        struct network *network;
        uint8_t bytes[8];
        hand_dim(&hand, 2, NULL);
        hand_dim(&hand, 4, NULL);
        hand_node(&hand, "Mul", "x", "w", "y");
        hand_tensor(&hand, 4, NULL);
        memcpy(bytes, cases[c].bits, sizeof bytes);
        hand.tensor.data_type = cases[c].type;
        hand.tensor.raw_data.data = bytes;
        if (CHECK_OK(hand_read(&hand, "half.onnx", NULL, &network)) &&
            CHECK_EQUAL_INT(network->given_count, 1) && CHECK_EQUAL_INT(network->given[0].count, 4))
            for (int i = 0; i < 4; i++)
                CHECK(network->given[0].values[i] == cases[c].expected[i]);
        network_free(network);
    }
}

TEST(what_is_no_model_is_refused_with_its_name)
{
    struct network *network;
    struct text bytes = {0};
    const char *path = at("whole.onnx"), *net = "input 3\ndense 2\nsoftmax\n";
    struct params params;
    struct program *program;
    params_init(&params, DTYPE_F32);
    if (CHECK_OK(network_parse("whole", net, strlen(net), &network)) &&
        CHECK_OK(
            network_compile(network, &params, &(struct compile_options){.batch = 1}, &program))) {
        CHECK_OK(onnx_write(path, network, &params, &(struct onnx_ends){.loss = LOSS_AUTO}));
        program_free(program);
        network_free(network);
    }
    if (CHECK_OK(file_read(path, 1 << 20, &bytes)))
        for (size_t length = 0; length < bytes.length; length++) {
            network = NULL;
            bool refused =
                onnx_parse("cut.onnx", text_of(&bytes), length, NULL, &network, NULL) != STATUS_OK;
            if (!CHECK(refused && strstr(status_message(), "cut.onnx")))
                printf("    %zu bytes: %s\n", length, status_message());
            network_free(network);
        }
    params_free(&params);
    text_free(&bytes);
}

/* Every allocation of reading fails once. */
TEST(memory_that_is_out_is_said)
{
    static const char *const names[] = {"image", "attention", "time", "numbers", "begun", "volume"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[100];
        struct text bytes = {0};
        snprintf(path, sizeof path, "tests/fuzz/corpus/onnx/%s.onnx", names[i]);
        if (!CHECK_OK(file_read(path, 1 << 20, &bytes)))
            continue;
        enum status status = STATUS_MEMORY;
        for (long nth = 1; status == STATUS_MEMORY; nth++) {
            struct network *network = NULL;
            memory_fail_at(nth);
            status = onnx_parse(path, text_of(&bytes), bytes.length, NULL, &network, NULL);
            memory_fail_at(0);
            network_free(network);
        }
        CHECK_OK(status);
        text_free(&bytes);
    }
}

TEST(hostile_graphs_are_refused_by_node)
{
    struct hand circle = {0}, unknown = {0}, steps = {0}, twice = {0}, nowhere = {0};
    hand_dim(&circle, 2, NULL);
    hand_dim(&circle, 3, NULL);
    hand_node(&circle, "Add", "x", "y", "a");
    hand_node(&circle, "Relu", "a", NULL, "y");
    check_refused(&circle, "circle.onnx", NULL, "circle.onnx: node 'a' (Add): its input 'y' comes");
    hand_dim(&unknown, 2, NULL);
    hand_node(&unknown, "Warp", "x", NULL, "y");
    check_refused(&unknown, "u.onnx", NULL, "u.onnx: node 'y' (Warp): prony has no such operator");
    hand_dim(&steps, 5, NULL); /* of the samples that the other counts */
    hand_dim(&steps, 0, "n");
    hand_node(&steps, "Warp", "x", NULL, "y");
    check_refused(&steps, "o.onnx:n=2", "n=2", "o.onnx: node 'y' (Warp): prony has no such");
    hand_dim(&twice, 2, NULL);
    hand_node(&twice, "Relu", "x", NULL, "y");
    hand_node(&twice, "Tanh", "x", NULL, "y");
    check_refused(&twice, "t.onnx", NULL, "t.onnx: node 'y' (Tanh): 'y' is given twice");
    hand_dim(&nowhere, 2, NULL);
    hand_node(&nowhere, "Relu", "z", NULL, "y");
    check_refused(&nowhere, "n.onnx", NULL, "n.onnx: node 'y' (Relu): its input 'z' comes from no");
}

TEST(hostile_sizes_are_refused)
{
    struct hand hand = {0};
    hand_dim(&hand, 2, NULL);
    hand_dim(&hand, -3, NULL);
    hand_node(&hand, "Add", "x", "w", "y");
    check_refused(&hand, "h.onnx", NULL, "h.onnx: dimension 1 of its input is -3");
    hand.dims[1].dim_value = INT64_MAX;
    check_refused(&hand, "h.onnx", NULL, "dimension 1 of its input is 9223372036854775807");
    hand.dims[1].dim_value = 2;
    hand_tensor(&hand, INT64_MAX, NULL);
    check_refused(&hand, "h.onnx", NULL, "h.onnx: the tensor 'w' ");
    hand_tensor(&hand, 0, NULL);
    hand.tensor.raw_data.len = 0;
    hand.tensor_dims[1] = hand.tensor_dims[2] = INT64_MAX / 2; /* a 0 does not make it small */
    hand.tensor.n_dims = 3;
    check_refused(&hand, "h.onnx", NULL, "h.onnx: the tensor 'w' has a negative dimension, or is");
    hand_tensor(&hand, -1, NULL);
    check_refused(&hand, "h.onnx", NULL, "h.onnx: the tensor 'w' has a negative dimension");
    hand_tensor(&hand, 3, NULL);
    check_refused(&hand, "h.onnx", NULL, "'w' has 8 bytes, expected 3 elements of 4");
}

TEST(numbers_outside_the_folder_are_refused)
{
    struct hand hand = {0};
    struct network *network;
    char path[200], inside[200], outside[200];
    snprintf(path, sizeof path, "%s", at("model.onnx"));
    snprintf(inside, sizeof inside, "%s", at("numbers.bin"));
    snprintf(outside, sizeof outside, "%s", at("link.bin"));
    CHECK_OK(file_write(inside, "12345678", 8));
    CHECK(symlink("/etc/hostname", outside) == 0);
    hand_dim(&hand, 1, NULL);
    hand_dim(&hand, 2, NULL);
    hand_node(&hand, "Add", "x", "w", "y");
    hand_tensor(&hand, 2, "numbers.bin");
    if (CHECK_OK(hand_read(&hand, path, NULL, &network)))
        network_free(network);
    static char key[] = "length", bytes[] = "4";
    onnx__string_string_entry_proto__init(&hand.length);
    hand.length.key = key;
    hand.length.value = bytes;
    hand.entries[1] = &hand.length;
    hand.tensor.n_external_data = 2;
    check_refused(&hand, path, NULL, "the tensor 'w' takes '4' bytes, expected 8");
    hand_tensor(&hand, 3, "numbers.bin");
    check_refused(&hand, path, NULL, "numbers.bin: found 8 bytes, expected 12 from byte 0 on");
    const char *const places[] = {"/etc/hostname", "../../etc/hostname", "link.bin"};
    for (int i = 0; i < 3; i++) {
        hand_tensor(&hand, 1, places[i]);
        check_refused(&hand, path, NULL, "expected one in the model's folder");
    }
    /* a cache: the model and its numbers are links to files that lie side by side elsewhere */
    CHECK(mkdir(at("seen"), 0700) == 0 && symlink("../model.bin", at("seen/model.onnx")) == 0 &&
          symlink("../numbers.bin", at("seen/linked.bin")) == 0 &&
          symlink("../link.bin", at("seen/far.bin")) == 0);
    CHECK_OK(file_write(at("model.bin"), "", 0));
    snprintf(path, sizeof path, "%s", at("seen/model.onnx"));
    hand_tensor(&hand, 2, "linked.bin");
    if (CHECK_OK(hand_read(&hand, path, NULL, &network)))
        network_free(network);
    hand_tensor(&hand, 1, "far.bin");
    check_refused(&hand, path, NULL, "expected one in the model's folder: copy it there");
    snprintf(path, sizeof path, "%s", at("model.onnx"));
    hand_tensor(&hand, 1, "absent.bin");
    check_refused(&hand, path, NULL, "'absent.bin', which is not there");
    CHECK(mkdir(at("sub"), 0700) == 0);
    hand_tensor(&hand, 1, "sub");
    check_refused(&hand, path, NULL, "model.onnx: the tensor 'w': ");
    CHECK(rmdir(at("sub")) == 0);
}

/* A file of holes costs nothing, and may be named by any number of tensors. */
TEST(numbers_beside_the_file_are_read_where_they_are_used_and_fit)
{
    struct hand hand = {0};
    struct network *network;
    char path[200];
    snprintf(path, sizeof path, "%s", at("model.onnx"));
    CHECK_OK(file_write(at("numbers.bin"), "12345678", 8));
    hand_dim(&hand, 1, NULL);
    hand_dim(&hand, 2, NULL);
    hand_node(&hand, "Relu", "x", NULL, "y");
    hand_tensor(&hand, 2, "absent.bin");
    if (CHECK_OK(hand_read(&hand, path, NULL, &network)))
        network_free(network);
    hand.node_count = 0;
    hand_node(&hand, "Add", "x", "w", "y");
    hand_tensor(&hand, (int64_t)(mem_total() / 2 / sizeof(float)) + 1, "numbers.bin");
    check_refused(&hand, path, NULL, "expected at most half of this machine's memory");
}

/* The system says more bytes of such a file than come out of it: as of one that becomes shorter. */
TEST(a_file_that_becomes_shorter_is_refused)
{
    const char *path = "/sys/devices/system/cpu/online";
    struct network *network;
    struct stat info;
    struct text content = {0};
    bool shorter = stat(path, &info) == 0 && file_read(path, 4096, &content) == STATUS_OK &&
                   (off_t)content.length < info.st_size;
    text_free(&content);
    if (!shorter)
        SKIP("there is no such file");
    CHECK_STATUS(STATUS_INPUT, onnx_read(path, &network));
    CHECK_MESSAGE("it became shorter while it was read");
}

TEST(open_dimensions_are_said)
{
    struct hand hand = {0};
    struct network *network;
    hand_dim(&hand, 0, "samples");
    hand_dim(&hand, 0, "wide");
    hand_node(&hand, "Relu", "x", NULL, "y");
    check_refused(&hand, "o.onnx", NULL, "o.onnx: its size is left open, expected --shape wide=N");
    check_refused(&hand, "o.onnx:wide", "wide", "--shape is 'wide', expected NAME=N");
    check_refused(&hand, "o.onnx:w=2", "w=2", "--shape says 'w', which is no dimension");
    check_refused(&hand, "o.onnx:", "", "o.onnx: found nothing behind 'o.onnx:', expected NAME=N");
    check_refused(&hand, "o.onnx:wide=5,wide=6", "wide=5,wide=6", "--shape says 'wide' twice");
    static const char *const names[] = {"wide", "output", "a=b,c", "wide,wide"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char shapes[20];
        hand.dims[1].dim_param = (char *)(uintptr_t)names[i];
        snprintf(shapes, sizeof shapes, "%s=5", names[i]);
        if (CHECK_OK(hand_read(&hand, "o.onnx", shapes, &network)))
            CHECK_EQUAL_INT(shape_count(&network->input), 5);
        network_free(network);
    }
}

/* Also where the samples could be counted by the open one, and something else is wrong then. */
TEST(what_is_open_is_said_first_and_at_once)
{
    struct hand hand = {0};
    hand_dim(&hand, 1, NULL);
    hand_dim(&hand, 0, "high");
    hand_dim(&hand, 0, "wide");
    hand_node(&hand, "Relu", "x", NULL, "a");
    hand_node(&hand, "Warp", "a", NULL, "y");
    check_refused(&hand, "o.onnx", NULL,
                  "o.onnx: its size is left open, expected --shape high=N,wide=N");
    check_refused(&hand, "o.onnx:wide=2", "wide=2", "open, expected --shape high=N");
    check_refused(&hand, "o.onnx:wide=2,high=3", "wide=2,high=3", "node 'y' (Warp)");
}

/* A layer may be called as the input, a parameter or a value on the way to another would be. */
TEST(no_two_values_are_called_the_same)
{
    static const char net[] = "input 1x4x4\na = max_pool 2\na/places = relu\n"
                              "max_unpool < a/places, a\nflatten\nraw = gelu\nraw/1 = relu\n"
                              "d = dense 3\nd.weight = dense 2\nd.weight_ = relu\n";
    static const float mean[16] = {1}, scale[16] = {1};
    const struct onnx_ends ends = {.loss = LOSS_MSE, .mean = mean, .scale = scale};
    struct network *network = NULL, *back = NULL;
    struct program *program = NULL;
    struct params params;
    params_init(&params, DTYPE_F32);
    if (CHECK_OK(network_parse("names", net, strlen(net), &network)) &&
        CHECK_OK(
            network_compile(network, &params, &(struct compile_options){.batch = 1}, &program)) &&
        CHECK_OK(onnx_write(at("names.onnx"), network, &params, &ends)))
        CHECK_OK(network_open(at("names.onnx"), &back));
    program_free(program);
    params_free(&params);
    network_free(network);
    network_free(back);
}

/* A network for each kind of layer. */
TEST(every_kind_of_layer_is_written)
{
    int32_t count;
    const struct layer_kind *kinds = layer_kinds(&count);
    for (int32_t k = 0; k < count; k++) {
        bool written = false;
#define EXPORT(kind, writer) written |= !strcmp(kinds[k].name, #kind);
#include "nn/formats/onnx/exports.def"
#undef EXPORT
        if (!CHECK(written))
            printf("    %s is not in exports.def\n", kinds[k].name);
    }
}

ON_BACKENDS(what_random_networks_lack_comes_back_the_same)
{
    static const char *const texts[] = {
        "input 6 tokens=8\nembedding 4\nposition\nlayer_norm\ndense 4\na = transpose 2,1\n"
        "t = transpose 2,1\nmatmul transpose=first < t, t\nsoftmax causal=1\ndense 3\n",
        "input 5 tokens=3\nembedding 2\nreshape 5x2\ngather < reshape1, input\n",
        "input 3 tokens=2\nembedding 1\np = parameter 3x4 learnt=0\nexp < p\n", /* of no token */
        "input 1x6x6\naverage_pool 3x2 stride=2x3 pad=1x0 ceil=1\nflatten\ndense 3\n",
        "input 1x7x7\na = max_pool 2 ceil=1\nconv 1 1\nmax_unpool < conv1, a\n",
        "input 2x7x6\na = max_pool 2\nconv 2 1\nmax_unpool < conv1, a\nflatten\ndense 3\n",
        "input 3x9x9\nmax_pool 3 stride=2 ceil=1\naverage_pool 2 ceil=1 count_pad=0\n",
        "input 3x8x8\nconv_transpose 6 3 stride=2 pad=1 output_pad=1 groups=3\nlrn 5 alpha=0.1\n"
        "average_pool 3 stride=2 pad=1 ceil=1\n",
        "input 2x6x5\nconv 4 3x2 stride=2x1 pad=1x2 dilation=2x3 groups=2 bias=0\nbatch_norm\n"
        "relu\nglobal_max_pool\n",
        "input 4x3\nrnn 5 function=relu\ngru 3\nlstm 2 output=last\ndense 2\n",
        "input 3x4\ndense 5\nsoftplus\nsqrt\nreciprocal\nlog\nexp\nerf\n",
        "input 3x4\na = dense 5\nb = mask\nc = clip -0.5 0.25\nd = clip -3.4e38 0.1\n"
        "e = clip 1 -1\nf = clip -3.4028235e38 3.4028235e38\ndivide < b, e\nadd < divide1, d\n",
        "input 4\np = parameter 4x2\na = reshape 1x4 < input\nmatmul < a, p\n",
        "input 4\ny = dense 4\nreshape 2x2\n", /* what is called as the output is, of another shape
                                                */
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_round(rig, texts[i], at("kind.onnx"), 1e-5);
}

CHECK_MAIN
