/* onnx_networks.h: random networks, for the way to ONNX and back: layers of every kind of
 * layers.def, their arguments drawn too, over what was there before. A line that does not fit is
 * not taken: the network itself says so, and which shape a layer gives. The same number gives the
 * same text.
 *
 * Functions that are no numbers in places, or grow quickly, get what was clipped before: two
 * networks that say NaN are the same too easily. */
#ifndef PRONY_TESTS_ONNX_NETWORKS_H
#define PRONY_TESTS_ONNX_NETWORKS_H

#include "base/text.h"
#include "nn/network.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As many as slow_onnx.sh asks for, or a few. */
static inline uint32_t networks_wanted(uint32_t few)
{
    const char *wanted = getenv("PRONY_ONNX_NETWORKS");
    int64_t count;
    return wanted && text_to_int(wanted, &count) && count > 0 ? (uint32_t)count : few;
}

enum { DRAWN_MOST = 16, ELEMENTS_MOST_DRAWN = 2000 };

/* A network being drawn: what there is so far, and of which shape a sample of it is. */
struct drawn {
    struct text *out;
    uint32_t seed;
    int32_t count; /* of values; 0 is the input */
    int32_t tokens;
    bool bare[DRAWN_MOST]; /* numbers that depend on no input */
    struct shape shapes[DRAWN_MOST];
};

static inline int draw(struct drawn *drawn, int low, int high)
{
    drawn->seed = drawn->seed * 1664525u + 1013904223u;
    return low + (int)((drawn->seed >> 8) % (uint32_t)(high - low + 1));
}

#define DRAW_WORD(drawn, ...)                                                                      \
    ((const char *const[]){__VA_ARGS__})[draw(                                                     \
        drawn, 0, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)) - 1)]

/* "input" or "v3" */
static inline const char *drawn_name(int32_t value, char name[16])
{
    snprintf(name, 16, value ? "v%d" : "input", value);
    return name;
}

/* Does the network so far go, and which shape has its last layer? */
static inline bool drawn_shape(const struct drawn *drawn, struct shape *out)
{
    struct network *network = NULL;
    struct shape shapes[DRAWN_MOST];
    bool goes =
        network_parse("drawn", text_of(drawn->out), drawn->out->length, &network) == STATUS_OK &&
        network_shapes(network, shapes) == STATUS_OK;
    if (goes) {
        const struct shape *last = &shapes[network->layer_count - 1];
        *out = (struct shape){.rank = last->rank - 1};
        memcpy(out->dim, last->dim + 1, (size_t)out->rank * sizeof *out->dim);
        goes = shape_count(out) <= ELEMENTS_MOST_DRAWN;
    }
    network_free(network);
    return goes;
}

/* The line of a new value, over as many as there are. */
static inline bool draw_line(struct drawn *drawn, const char *text, const int32_t *from,
                             int32_t count)
{
    size_t before = drawn->out->length;
    char name[16];
    if (drawn->count == DRAWN_MOST)
        return false;
    text_printf(drawn->out, "v%d = %s", drawn->count, text);
    for (int32_t i = 0; i < count; i++)
        text_printf(drawn->out, "%s%s", i ? ", " : " < ", drawn_name(from[i], name));
    text_add_char(drawn->out, '\n');
    if (drawn_shape(drawn, &drawn->shapes[drawn->count])) {
        drawn->count++;
        return true;
    }
    drawn->out->data[drawn->out->length = before] = 0;
    return false;
}

#define DRAWN_FROM(...)                                                                            \
    (const int32_t[]){__VA_ARGS__}, (int32_t)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static inline const char *draw_start(struct drawn *drawn)
{
    return draw(drawn, 0, 3) ? ""
                             : DRAW_WORD(drawn, " init=zeros", " init=uniform", " init=normal",
                                         " init=xavier", " init=he", " init=orthogonal");
}

/* "3x2", each from low to high. */
struct drawn_pair {
    char text[16];
};

static inline struct drawn_pair draw_pair(struct drawn *drawn, int low, int high)
{
    struct drawn_pair pair;
    int first = draw(drawn, low, high), second = draw(drawn, low, high);
    snprintf(pair.text, sizeof pair.text, "%dx%d", first, second);
    return pair;
}

static inline void draw_conv(struct drawn *drawn, int32_t from, int channels)
{
    struct drawn_pair kernel = draw_pair(drawn, 1, 3), stride = draw_pair(drawn, 1, 2);
    struct drawn_pair pad = draw_pair(drawn, 0, 2), dilation = draw_pair(drawn, 1, 2);
    struct drawn_pair beyond = draw_pair(drawn, 0, 1);
    const char *start = draw_start(drawn);
    bool turned = draw(drawn, 0, 2) == 0, bias = draw(drawn, 0, 1);
    int groups = draw(drawn, 0, 1) ? draw(drawn, 1, channels) : 1;
    char text[200];
    for (int i = 0; i < 3; i += 2) /* below the stride, as ONNX Runtime wants it */
        beyond.text[i] = stride.text[i] == '1' ? '0' : beyond.text[i];
    groups = channels % groups ? 1 : groups;
    snprintf(text, sizeof text, "%s %d %s stride=%s pad=%s dilation=%s groups=%d bias=%d%s%s%s",
             turned ? "conv_transpose" : "conv", groups * draw(drawn, 1, 3), kernel.text,
             stride.text, pad.text, dilation.text, groups, bias, start,
             turned ? " output_pad=" : "", turned ? beyond.text : "");
    draw_line(drawn, text, DRAWN_FROM(from));
}

static inline void draw_pool(struct drawn *drawn, int32_t from)
{
    struct drawn_pair window = draw_pair(drawn, 1, 3), stride = draw_pair(drawn, 0, 3);
    struct drawn_pair pad = draw_pair(drawn, 0, 2);
    const char *kind = DRAW_WORD(drawn, "max_pool", "average_pool", "average_pool");
    int ceil = draw(drawn, 0, 1);
    bool outside = draw(drawn, 0, 1) && strcmp(kind, "max_pool");
    char text[200];
    snprintf(text, sizeof text, "%s %s stride=%s pad=%s ceil=%d%s", kind, window.text, stride.text,
             pad.text, ceil, outside ? " count_pad=0" : "");
    draw_line(drawn, text, DRAWN_FROM(from));
}

/* Back to where the largest were: windows that do not overlap, which is what ONNX has. */
static inline void draw_unpool(struct drawn *drawn, int32_t from)
{
    char text[80];
    int32_t pool = drawn->count;
    int window = draw(drawn, 1, 3);
    struct drawn_pair stride = draw_pair(drawn, window, 3), pad = draw_pair(drawn, 0, window - 1);
    snprintf(text, sizeof text, "max_pool %d stride=%s pad=%s ceil=%d", window, stride.text,
             pad.text, draw(drawn, 0, 1));
    if (draw_line(drawn, text, DRAWN_FROM(from)) && draw_line(drawn, "tanh", DRAWN_FROM(pool)))
        draw_line(drawn, "max_unpool", DRAWN_FROM(pool + 1, pool));
}

static inline void draw_image(struct drawn *drawn, int32_t from)
{
    char text[200];
    int way = draw(drawn, 0, 9), size = draw(drawn, 0, 2) * 2 + 1;
    double a = draw(drawn, 1, 5) * 0.1, b = draw(drawn, 5, 8) * 0.1, c = draw(drawn, 1, 2);
    if (way <= 3)
        draw_conv(drawn, from, (int)drawn->shapes[from].dim[0]);
    if (way == 4 || way == 5)
        draw_pool(drawn, from);
    if (way == 6)
        draw_unpool(drawn, from);
    if (way <= 6)
        return;
    if (way == 7)
        snprintf(text, sizeof text, "batch_norm %g %g", a * 1e-3, b);
    else if (way == 8)
        snprintf(text, sizeof text, "lrn %d %g %g %g", size, a, b, c);
    else
        snprintf(text, sizeof text, "global_%s_pool", DRAW_WORD(drawn, "max", "average"));
    draw_line(drawn, text, DRAWN_FROM(from));
}

static inline void draw_sequence(struct drawn *drawn, int32_t from)
{
    const char *kind = DRAW_WORD(drawn, "rnn", "gru", "lstm"), *start = draw_start(drawn);
    const char *output = DRAW_WORD(drawn, "", " output=last");
    bool relu = draw(drawn, 0, 1) && !strcmp(kind, "rnn");
    char text[120];
    snprintf(text, sizeof text, "%s %d%s%s%s", kind, draw(drawn, 1, 5), output,
             relu ? " function=relu" : "", start);
    draw_line(drawn, text, DRAWN_FROM(from));
}

/* Scores of rows among each other, and what attention makes of them. */
static inline void draw_scores(struct drawn *drawn, int32_t from)
{
    const char *turned = DRAW_WORD(drawn, "first", "second");
    int32_t scores = drawn->count;
    char text[80];
    snprintf(text, sizeof text, "matmul transpose=%s scale=%g", turned, draw(drawn, 1, 4) * 0.25);
    if (draw_line(drawn, text, DRAWN_FROM(from, from)) &&
        draw_line(drawn, DRAW_WORD(drawn, "softmax", "softmax causal=1"), DRAWN_FROM(scores)) &&
        !strcmp(turned, "second"))
        draw_line(drawn, "matmul", DRAWN_FROM(scores + 1, from));
}

/* Layers that move or take elements. */
static inline void draw_moved(struct drawn *drawn, int32_t from)
{
    struct shape shape = drawn->shapes[from];
    int axis = draw(drawn, 1, shape.rank), count = (int)shape_count(&shape);
    int size = draw(drawn, 1, (int)shape.dim[axis - 1]), rows = draw(drawn, 1, 4);
    char text[80];
    switch (draw(drawn, 0, 5)) {
    case 0: snprintf(text, sizeof text, "flatten"); break;
    case 1:
        snprintf(text, sizeof text, "slice %d from=%d axis=%d", size,
                 draw(drawn, 0, (int)shape.dim[axis - 1] - size), axis);
        break;
    case 2:
        snprintf(text, sizeof text, "reduce %s axis=%d", DRAW_WORD(drawn, "sum", "mean", "max"),
                 draw(drawn, 0, 4) ? axis : 0);
        break;
    case 3:
        rows = count % rows ? 1 : rows;
        snprintf(text, sizeof text, draw(drawn, 0, 1) ? "reshape %dx%d" : "reshape 1x%dx%d", rows,
                 count / rows);
        break;
    default:
        snprintf(text, sizeof text, "transpose %s",
                 shape.rank == 1   ? "1"
                 : shape.rank == 2 ? "2,1"
                                   : DRAW_WORD(drawn, "3,2,1", "1,3,2", "2,3,1", "3,1,2"));
    }
    draw_line(drawn, text, DRAWN_FROM(from));
}

/* Two values that fit, or one and itself; one may be repeated. */
static inline void draw_together(struct drawn *drawn, int32_t from)
{
    int32_t other = from, first = drawn->tokens ? 1 : 0, positive = drawn->count;
    char text[40];
    for (int32_t v = first; v < drawn->count; v++)
        if (drawn->shapes[v].rank == drawn->shapes[from].rank && draw(drawn, 0, 1))
            other = v;
    switch (draw(drawn, 0, 3)) {
    case 0: draw_line(drawn, "add", DRAWN_FROM(from, other)); break;
    case 1: draw_line(drawn, "multiply", DRAWN_FROM(from, other)); break;
    case 2:
        if (draw_line(drawn, "clip 0.5 2", DRAWN_FROM(other)))
            draw_line(drawn, "divide", DRAWN_FROM(from, positive));
        break;
    default:
        snprintf(text, sizeof text, "concat axis=%d", draw(drawn, 1, drawn->shapes[from].rank));
        if (draw(drawn, 0, 1))
            draw_line(drawn, text, DRAWN_FROM(from, other));
        else
            draw_line(drawn, text, DRAWN_FROM(other, from, from));
    }
}

/* Of numbers between these. */
static inline void draw_clipped(struct drawn *drawn, int32_t from)
{
    int32_t clipped = drawn->count;
    const char *kind = DRAW_WORD(drawn, "sqrt", "reciprocal", "log", "exp");
    if (draw_line(drawn, strcmp(kind, "exp") ? "clip 0.25 3" : "clip -3.4e38 1.5",
                  DRAWN_FROM(from)))
        draw_line(drawn, kind, DRAWN_FROM(clipped));
}

static inline void draw_simple(struct drawn *drawn, int32_t from)
{
    const char *kind = DRAW_WORD(drawn, "sigmoid", "tanh", "relu", "gelu", "softplus", "erf", "elu",
                                 "leaky_relu", "softmax", "layer_norm", "dropout", "position",
                                 "mask", "clip", "clip", "dense", "dense");
    const char *start = draw_start(drawn);
    double a = draw(drawn, 1, 8) * 0.1;
    int low = draw(drawn, -2, 0), units = draw(drawn, 1, 6), bias = draw(drawn, 0, 1);
    char text[80];
    if (!strcmp(kind, "dense"))
        snprintf(text, sizeof text, "dense %d bias=%d%s", units, bias, start);
    else if (!strcmp(kind, "clip"))
        snprintf(text, sizeof text, "clip %g %g", low * 0.25, bias ? a : 3.4e38);
    else if (!strcmp(kind, "layer_norm"))
        snprintf(text, sizeof text, "layer_norm %g", a * 1e-3);
    else if (!strcmp(kind, "elu") || !strcmp(kind, "leaky_relu") || !strcmp(kind, "dropout"))
        snprintf(text, sizeof text, "%s %g", kind, a);
    else
        snprintf(text, sizeof text, "%s", kind);
    draw_line(drawn, text, DRAWN_FROM(from));
}

/* Numbers of its own, that what is there is added to. */
static inline void draw_parameter(struct drawn *drawn, int32_t from)
{
    struct shape shape = drawn->shapes[from];
    int32_t parameter = drawn->count;
    struct text text = {0};
    if (parameter == DRAWN_MOST)
        return;
    text_add(&text, "parameter ");
    for (int32_t d = 0; d < shape.rank; d++)
        text_printf(&text, "%s%d", d ? "x" : "", (int)shape.dim[d]);
    text_printf(&text, " learnt=%d", draw(drawn, 0, 1));
    drawn->bare[parameter] = draw_line(drawn, text_of(&text), NULL, 0);
    if (drawn->bare[parameter])
        draw_line(drawn, DRAW_WORD(drawn, "add", "multiply"), DRAWN_FROM(from, parameter));
    text_free(&text);
}

/* Weights, views of what they give, and of these, then what a fusion may take along; any of them
 * may have another reader, before or behind that. */
static inline void draw_fused(struct drawn *drawn, int32_t from)
{
    int32_t rank = drawn->shapes[from].rank, at = drawn->count;
    char text[40];
    if (rank == 3)
        draw_conv(drawn, from, (int)drawn->shapes[from].dim[0]);
    else
        draw_line(drawn, "dense 4", DRAWN_FROM(from));
    if (drawn->count == at)
        return;
    for (int views = draw(drawn, 0, 2); views > 0; views--) {
        const struct shape *shape = &drawn->shapes[drawn->count - 1];
        int count = (int)shape_count(shape), first = (int)shape->dim[0];
        if (draw(drawn, 0, 1))
            snprintf(text, sizeof text, "flatten");
        else
            snprintf(text, sizeof text, "reshape %dx1x%d", first, count / first);
        draw_line(drawn, text, DRAWN_FROM(drawn->count - 1));
    }
    int32_t other = draw(drawn, 0, 2) ? drawn->count - 1 : at; /* mostly the ends of the row */
    int32_t last = draw(drawn, 0, 2) ? at : draw(drawn, at, drawn->count - 1);
    bool before = draw(drawn, 0, 1);
    const char *fused = DRAW_WORD(drawn, "relu", "tanh", "batch_norm", "clip 0 1");
    at = drawn->count;
    if (draw_line(drawn, before ? "reduce mean axis=1" : fused,
                  DRAWN_FROM(before ? other : last)) &&
        draw_line(drawn, before ? fused : "reduce mean axis=1",
                  DRAWN_FROM(before ? last : other)) &&
        draw_line(drawn, "flatten", DRAWN_FROM(at)) &&
        draw_line(drawn, "flatten", DRAWN_FROM(at + 1)))
        draw_line(drawn, "concat axis=1", DRAWN_FROM(at + 2, at + 3));
}

static inline void draw_input(struct drawn *drawn)
{
    struct shape *input = &drawn->shapes[0];
    char text[40];
    input->rank = draw(drawn, 1, 3);
    for (int32_t d = 0; d < input->rank; d++)
        input->dim[d] = draw(drawn, 1, d ? 7 : 5);
    text_add(drawn->out, "input ");
    for (int32_t d = 0; d < input->rank; d++)
        text_printf(drawn->out, "%s%d", d ? "x" : "", (int)input->dim[d]);
    if (input->rank == 1 && draw(drawn, 0, 1))
        drawn->tokens = draw(drawn, 1, (int)input->dim[0]);
    if (drawn->tokens)
        text_printf(drawn->out, " tokens=%d", drawn->tokens);
    text_add_char(drawn->out, '\n');
    snprintf(text, sizeof text, "embedding %d", draw(drawn, 1, 4));
    if (drawn->tokens)
        draw_line(drawn, text, DRAWN_FROM(0));
}

/* The text of network `number`. */
static inline void draw_network(uint32_t number, struct text *out)
{
    struct drawn drawn = {.out = out, .seed = number * 2654435761u + 1, .count = 1};
    draw_input(&drawn);
    int32_t layers = draw(&drawn, 2, DRAWN_MOST - 2), first = drawn.tokens ? 1 : 0;
    for (int tries = 0; drawn.count <= layers && (tries < 50 || drawn.count < 2); tries++) {
        int32_t least = drawn.count > first + 3 ? drawn.count - 3 : first;
        int32_t from = draw(&drawn, least, drawn.count - 1);
        while (drawn.tokens && drawn.bare[from]) /* a file says by its tables how many there are */
            from--;
        int32_t rank = drawn.shapes[from].rank;
        switch (draw(&drawn, 0, 9)) {
        case 0:
        case 1:
            if (rank == 3)
                draw_image(&drawn, from);
            else if (rank == 2)
                draw_sequence(&drawn, from);
            break;
        case 2: draw_moved(&drawn, from); break;
        case 3: draw_together(&drawn, from); break;
        case 4: draw_parameter(&drawn, from); break;
        case 5: draw_clipped(&drawn, from); break;
        case 7: draw_fused(&drawn, from); break;
        case 6:
            if (rank == 2 && drawn.tokens && drawn.shapes[from].dim[0] >= drawn.tokens)
                draw_line(&drawn, "gather", DRAWN_FROM(from, 0));
            else if (rank == 2)
                draw_scores(&drawn, from);
            break;
        default: draw_simple(&drawn, from);
        }
    }
    if (draw(&drawn, 0, 2) == 0)
        text_add(out, "loss cross_entropy\n");
}

#endif
