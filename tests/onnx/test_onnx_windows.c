/* test_onnx_windows.c: windows over images as ONNX files have them, and what becomes of them. */
#include "onnx.pb-c.h"

#include "onnx_answer.h"
#include "onnx_hand.h"

enum { AXES_MOST = 2 };

/* Pooling of a sample of one channel whose elements are its own random numbers. */
struct pooling {
    const char *op;
    int axes;
    int64_t size[AXES_MOST], window[AXES_MOST], stride[AXES_MOST], dilation[AXES_MOST];
    int64_t pads[2 * AXES_MOST]; /* before all axes, then behind */
    bool ceil, count_pad;
    int64_t places; /* in all: it is written down, so that nothing here works it out */
};

static void hand_flag(struct hand *hand, const char *name, bool set)
{
    Onnx__AttributeProto *attribute = hand_attribute(hand, hand->node_count - 1, name);
    attribute->has_i = true;
    attribute->i = set;
}

static void hand_pooling(struct hand *hand, const struct pooling *pooling)
{
    size_t axes = (size_t)pooling->axes;
    *hand = (struct hand){0};
    hand_dim(hand, 0, "samples");
    hand_dim(hand, 1, NULL);
    for (size_t i = 0; i < axes; i++)
        hand_dim(hand, pooling->size[i], NULL);
    hand_node(hand, pooling->op, "x", NULL, "y");
    hand_ints(hand, 0, "kernel_shape", pooling->window, axes);
    hand_ints(hand, 0, "strides", pooling->stride, axes);
    hand_ints(hand, 0, "pads", pooling->pads, 2 * axes);
    if (pooling->dilation[0])
        hand_ints(hand, 0, "dilations", pooling->dilation, axes);
    hand_flag(hand, "ceil_mode", pooling->ceil);
    if (pooling->count_pad)
        hand_flag(hand, "count_include_pad", true);
}

/* One window, element by element: `at` is its place along each axis. */
static double pool_at(const struct pooling *pooling, const float *x, const int64_t *at)
{
    int64_t elements = 1, counted = 0;
    double sum = 0, most = -HUGE_VAL;
    for (int i = 0; i < pooling->axes; i++)
        elements *= pooling->window[i];
    for (int64_t e = 0; e < elements; e++) {
        int64_t left = e, place = 0;
        bool image = true, padded = true;
        for (int i = pooling->axes - 1, step = 1; i >= 0; i--) {
            int64_t gap = pooling->dilation[0] ? pooling->dilation[i] : 1, size = pooling->size[i];
            int64_t one = at[i] * pooling->stride[i] + left % pooling->window[i] * gap;
            one -= pooling->pads[i];
            left /= pooling->window[i];
            image = image && one >= 0 && one < size;
            padded = padded && one < size + pooling->pads[pooling->axes + i];
            place += one * step;
            step *= (int)size;
        }
        counted += pooling->count_pad ? padded : image;
        sum += image ? (double)x[place] : 0;
        most = image && (double)x[place] > most ? (double)x[place] : most;
    }
    return strcmp(pooling->op, "MaxPool") ? sum / (double)counted : most;
}

/* Places along each axis, of all that there are. */
static void split_places(const struct pooling *pooling, const int64_t *along, int64_t i,
                         int64_t *at)
{
    for (int d = pooling->axes - 1; d >= 0; d--) {
        at[d] = i % along[d];
        i /= along[d];
    }
}

/* How far a window may begin: in the image, or in the pad before it. */
static void count_places(const struct pooling *pooling, int64_t *along)
{
    for (int i = 0; i < pooling->axes; i++) {
        int64_t gap = pooling->dilation[0] ? pooling->dilation[i] : 1, from = -pooling->pads[i];
        int64_t extent = (pooling->window[i] - 1) * gap + 1;
        int64_t end = pooling->size[i] + pooling->pads[pooling->axes + i];
        along[i] = 0;
        for (bool fits = true; fits && from < pooling->size[i]; from += pooling->stride[i]) {
            fits = from + extent <= end;
            along[i] += fits || (pooling->ceil && from < end);
        }
    }
}

static const struct pooling poolings[] = {
    /* pads that differ, of which the mean counts what is in them */
    {"AveragePool", 1, {6}, {3}, {2}, {0}, {2, 0}, true, true, 4},
    {"AveragePool", 1, {3}, {2}, {2}, {0}, {1, 0}, true, true, 2},
    {"AveragePool", 2, {5, 4}, {3, 2}, {2, 3}, {0}, {1, 0, 2, 1}, true, true, 6},
    {"AveragePool", 2, {6, 6}, {3, 2}, {2, 3}, {0}, {1, 0, 1, 0}, true, true, 8},
    {"AveragePool", 2, {5, 5}, {3, 3}, {3, 3}, {0}, {0, 2, 1, 2}, true, true, 6},
    {"AveragePool", 2, {5, 5}, {3, 3}, {3, 3}, {0}, {0, 2, 1, 2}, true, false, 6},
    {"AveragePool", 2, {5, 5}, {3, 2}, {1, 2}, {0}, {1, 1, 0, 0}, false, true, 12},
    {"AveragePool", 2, {5, 5}, {3, 3}, {2, 2}, {0}, {0, 0, 2, 2}, false, true, 9},
    /* a last window that would begin behind the image */
    {"MaxPool", 2, {6, 7}, {2, 2}, {3, 3}, {0}, {0}, true, false, 6},
    {"MaxPool", 2, {4, 4}, {2, 1}, {3, 3}, {2, 2}, {0}, true, false, 4},
    {"MaxPool", 1, {3}, {2}, {4}, {2}, {0}, true, false, 1},
    {"AveragePool", 1, {4}, {2}, {4}, {0}, {0}, true, false, 1},
    /* what no pad of a layer gives, so that it is taken apart */
    {"MaxPool", 2, {3, 3}, {2, 2}, {2, 1}, {0}, {0, 0, 1, 1}, false, false, 6},
};

ON_BACKENDS(pooling_is_as_element_by_element)
{
    for (size_t c = 0; c < sizeof poolings / sizeof *poolings; c++) {
        const struct pooling *pooling = &poolings[c];
        struct hand hand;
        struct network *network;
        struct answer found = {0};
        float x[BATCH * 64];
        int64_t along[AXES_MOST], at[AXES_MOST], elements = 1, places = 1;
        count_places(pooling, along);
        for (int i = 0; i < pooling->axes; i++) {
            elements *= pooling->size[i];
            places *= along[i];
        }
        CHECK_EQUAL_INT(places, pooling->places);
        hand_pooling(&hand, pooling);
        fill_random(x, BATCH * elements, 5);
        if (CHECK_OK(hand_read(&hand, "pool.onnx", NULL, &network)) &&
            answer(rig, network, true, &found) && CHECK_EQUAL_INT(found.count, BATCH * places))
            for (int64_t i = 0; i < found.count; i++) {
                split_places(pooling, along, i % places, at);
                double wanted = pool_at(pooling, x + i / places * elements, at);
                if (!CHECK(fabs((double)found.y[i] - wanted) < 1e-6))
                    printf("    case %zu, place %d: %g, expected %g\n%s", c, (int)i,
                           (double)found.y[i], wanted, network->text);
            }
        answer_free(&found);
        network_free(network);
    }
}

/* y = MaxUnpool(MaxPool(x)) of images of 4 × 6; to that size, or with `size` NULL to none. */
static void hand_unpool(struct hand *hand, const int64_t *window, const int64_t *size)
{
    *hand = (struct hand){0};
    hand_dim(hand, 0, "samples");
    hand_dim(hand, 1, NULL);
    hand_dim(hand, 4, NULL);
    hand_dim(hand, 6, NULL);
    hand_node(hand, "Constant", "", NULL, "size");
    hand->nodes[0].n_input = 0;
    hand_ints(hand, 0, "value_ints", size ? size : window, size ? 4 : 2);
    hand_node(hand, "MaxPool", "x", NULL, "p");
    hand_ints(hand, 1, "kernel_shape", window, 2);
    hand_ints(hand, 1, "strides", window, 2);
    hand->outputs[1][1] = "places";
    hand->nodes[1].n_output = 2;
    hand_node(hand, "MaxUnpool", "p", "places", "y");
    hand_ints(hand, 2, "kernel_shape", window, 2);
    hand_ints(hand, 2, "strides", window, 2);
    hand->inputs[2][2] = "size";
    hand->nodes[2].n_input = size ? 3 : 2;
}

TEST(unpooling_gives_what_its_pool_took)
{
    static const int64_t two[] = {2, 2}, four[] = {4, 4}, own[] = {1, 1, 4, 6};
    static const int64_t turned[] = {1, 1, 6, 4}, larger[] = {1, 1, 8, 8};
    struct hand hand;
    struct network *network;
    for (int given = 0; given < 2; given++) {
        hand_unpool(&hand, two, given ? own : NULL);
        CHECK_OK(hand_read(&hand, "u.onnx", NULL, &network));
        network_free(network);
    }
    hand_unpool(&hand, two, turned);
    check_refused(
        &hand, "u.onnx", NULL,
        "node 'y' (MaxUnpool): its output is 6x4, expected the 4x6 that its MaxPool took");
    hand_unpool(&hand, two, larger);
    check_refused(&hand, "u.onnx", NULL, "node 'y' (MaxUnpool): its output is 8x8, expected the 4");
    hand_unpool(&hand, four, NULL);
    check_refused(&hand, "u.onnx", NULL, "node 'y' (MaxUnpool): its output is 4x4, expected the 4");
}

CHECK_MAIN
