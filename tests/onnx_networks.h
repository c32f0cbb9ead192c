/* onnx_networks.h: random networks, for the way to ONNX and back: a few layers of any kind over
 * what was there before, of random sizes. The same number gives the same text. */
#ifndef PRONY_TESTS_ONNX_NETWORKS_H
#define PRONY_TESTS_ONNX_NETWORKS_H

#include "base/text.h"
#include "core/tensor.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { DRAWN_MOST = 16 };

/* A network being drawn: what there is so far, and of which shape a sample of it is. */
struct drawn {
    struct text *out;
    uint32_t seed;
    int32_t count; /* of values; 0 is the input */
    struct shape shapes[DRAWN_MOST];
};

static inline int64_t draw(struct drawn *drawn, int64_t low, int64_t high)
{
    drawn->seed = drawn->seed * 1664525u + 1013904223u;
    return low + (int64_t)((drawn->seed >> 8) % (uint32_t)(high - low + 1));
}

/* "input" or "v3" */
static inline const char *drawn_name(int32_t value, char name[16])
{
    snprintf(name, 16, value ? "v%d" : "input", value);
    return name;
}

/* The line of a new value over one that is there; its shape is what `to` says. */
static inline void draw_line(struct drawn *drawn, const char *text, int32_t from, int32_t second,
                             struct shape to)
{
    char a[16], b[16];
    text_printf(drawn->out, "v%d = %s < %s", drawn->count, text, drawn_name(from, a));
    if (second >= 0)
        text_printf(drawn->out, ", %s", drawn_name(second, b));
    text_add_char(drawn->out, '\n');
    drawn->shapes[drawn->count++] = to;
}

static inline void draw_image(struct drawn *drawn, int32_t from, struct shape shape)
{
    int64_t kernel = draw(drawn, 1, 3), stride = draw(drawn, 1, 2), pad = draw(drawn, 0, 1);
    char text[120];
    struct shape to = shape;
    bool fits = kernel <= shape.dim[1] + 2 * pad && kernel <= shape.dim[2] + 2 * pad;
    if (!fits)
        kernel = 1, pad = 0;
    int64_t high = (shape.dim[1] + 2 * pad - kernel) / stride + 1;
    int64_t wide = (shape.dim[2] + 2 * pad - kernel) / stride + 1;
    switch (draw(drawn, 0, 6)) {
    case 0:
        to = SHAPE(draw(drawn, 1, 5), high, wide);
        snprintf(text, sizeof text, "conv %d %d stride=%d pad=%d bias=%d", (int)to.dim[0],
                 (int)kernel, (int)stride, (int)pad, (int)draw(drawn, 0, 1));
        break;
    case 1:
    case 2:
        to = SHAPE(shape.dim[0], high, wide);
        pad = pad < kernel ? pad : 0;
        to.dim[1] = (shape.dim[1] + 2 * pad - kernel) / stride + 1;
        to.dim[2] = (shape.dim[2] + 2 * pad - kernel) / stride + 1;
        snprintf(text, sizeof text, "%s %d stride=%d pad=%d",
                 draw(drawn, 0, 1) ? "max_pool" : "average_pool", (int)kernel, (int)stride,
                 (int)pad);
        break;
    case 3: snprintf(text, sizeof text, "batch_norm"); break;
    case 4: snprintf(text, sizeof text, "lrn 3"); break;
    case 5:
        to = SHAPE(shape.dim[0]);
        snprintf(text, sizeof text, "global_%s_pool", draw(drawn, 0, 1) ? "max" : "average");
        break;
    default:
        to = SHAPE(draw(drawn, 1, 4), (shape.dim[1] - 1) * stride + kernel,
                   (shape.dim[2] - 1) * stride + kernel);
        snprintf(text, sizeof text, "conv_transpose %d %d stride=%d", (int)to.dim[0], (int)kernel,
                 (int)stride);
    }
    draw_line(drawn, text, from, -1, to);
}

static inline void draw_sequence(struct drawn *drawn, int32_t from, struct shape shape)
{
    static const char *const kinds[] = {"rnn", "gru", "lstm"};
    int64_t units = draw(drawn, 1, 5);
    bool last = draw(drawn, 0, 1);
    char text[80];
    if (draw(drawn, 0, 1)) {
        snprintf(text, sizeof text, "matmul transpose=second scale=0.5");
        draw_line(drawn, text, from, from, SHAPE(shape.dim[0], shape.dim[0]));
        return;
    }
    snprintf(text, sizeof text, "%s %d%s", kinds[draw(drawn, 0, 2)], (int)units,
             last ? " output=last" : "");
    draw_line(drawn, text, from, -1, last ? SHAPE(units) : SHAPE(shape.dim[0], units));
}

/* Layers that move or take elements. */
static inline void draw_moved(struct drawn *drawn, int32_t from, struct shape shape)
{
    static const char *const functions[] = {"sum", "mean", "max"};
    int64_t axis = draw(drawn, 1, shape.rank), count = shape_count(&shape);
    int64_t size = draw(drawn, 1, shape.dim[axis - 1]);
    struct shape to = shape;
    char text[80];
    switch (draw(drawn, 0, 4)) {
    case 0:
        snprintf(text, sizeof text, "flatten");
        to = SHAPE(count);
        break;
    case 1:
        to.dim[axis - 1] = size;
        snprintf(text, sizeof text, "slice %d from=%d axis=%d", (int)size,
                 (int)(shape.dim[axis - 1] - size), (int)axis);
        break;
    case 2:
        to = SHAPE(1);
        for (int32_t d = 0; d < shape.rank; d++)
            if (d != axis - 1)
                to.dim[to.rank++ - 1] = shape.dim[d];
        to.rank -= to.rank > 1;
        snprintf(text, sizeof text, "reduce %s axis=%d", functions[draw(drawn, 0, 2)], (int)axis);
        break;
    case 3:
        to = count % 2 ? SHAPE(1, count) : SHAPE(2, count / 2);
        snprintf(text, sizeof text, "reshape %dx%d", (int)to.dim[0], (int)to.dim[1]);
        break;
    default:
        to.dim[0] = shape.dim[shape.rank - 1];
        to.dim[shape.rank - 1] = shape.dim[0];
        snprintf(text, sizeof text, "transpose %s",
                 shape.rank == 1   ? "1"
                 : shape.rank == 2 ? "2,1"
                                   : "3,2,1");
    }
    draw_line(drawn, text, from, -1, to);
}

/* Two values that fit, or one and itself. */
static inline void draw_pair(struct drawn *drawn, int32_t from, struct shape shape)
{
    int32_t other = from;
    char text[40];
    for (int32_t v = 0; v < drawn->count; v++)
        if (shape_equal(&drawn->shapes[v], &shape) && draw(drawn, 0, 1))
            other = v;
    if (draw(drawn, 0, 2)) {
        draw_line(drawn, draw(drawn, 0, 1) ? "add" : "multiply", from, other, shape);
        return;
    }
    int64_t axis = draw(drawn, 1, shape.rank);
    snprintf(text, sizeof text, "concat axis=%d", (int)axis);
    shape.dim[axis - 1] *= 2;
    draw_line(drawn, text, from, other, shape);
}

static inline void draw_simple(struct drawn *drawn, int32_t from, struct shape shape)
{
    static const char *const kinds[] = {"sigmoid",        "tanh",        "relu",     "gelu",
                                        "softplus",       "elu 0.7",     "softmax",  "layer_norm",
                                        "leaky_relu 0.2", "dropout 0.3", "position", "dense"};
    const char *kind = kinds[draw(drawn, 0, 11)];
    char text[40];
    if (strcmp(kind, "dense")) {
        draw_line(drawn, kind, from, -1, shape);
        return;
    }
    shape.dim[shape.rank - 1] = draw(drawn, 1, 6);
    snprintf(text, sizeof text, "dense %d bias=%d", (int)shape.dim[shape.rank - 1],
             (int)draw(drawn, 0, 1));
    draw_line(drawn, text, from, -1, shape);
}

/* Numbers of its own, that what is there is added to. */
static inline void draw_parameter(struct drawn *drawn, int32_t from, struct shape shape)
{
    if (drawn->count + 2 > DRAWN_MOST)
        return;
    text_printf(drawn->out, "v%d = parameter ", drawn->count);
    for (int32_t d = 0; d < shape.rank; d++)
        text_printf(drawn->out, "%s%d", d ? "x" : "", (int)shape.dim[d]);
    text_printf(drawn->out, " learnt=%d\n", (int)draw(drawn, 0, 1));
    drawn->shapes[drawn->count++] = shape;
    draw_line(drawn, draw(drawn, 0, 1) ? "add" : "multiply", from, drawn->count - 1, shape);
}

/* The text of network `number`. */
static inline void draw_network(uint32_t number, struct text *out)
{
    struct drawn drawn = {.out = out, .seed = number * 2654435761u + 1, .count = 1};
    struct shape *input = &drawn.shapes[0];
    input->rank = (int32_t)draw(&drawn, 1, 3);
    for (int32_t d = 0; d < input->rank; d++)
        input->dim[d] = draw(&drawn, 1, d ? 7 : 5);
    text_add(out, "input ");
    for (int32_t d = 0; d < input->rank; d++)
        text_printf(out, "%s%d", d ? "x" : "", (int)input->dim[d]);
    text_add_char(out, '\n');
    int32_t layers = (int32_t)draw(&drawn, 1, DRAWN_MOST - 3);
    while (drawn.count <= layers) {
        int32_t from =
            (int32_t)draw(&drawn, drawn.count > 3 ? drawn.count - 3 : 0, drawn.count - 1);
        struct shape shape = drawn.shapes[from];
        int64_t way = draw(&drawn, 0, 7);
        if (shape_count(&shape) > 2000)
            draw_line(&drawn, "reduce mean axis=1 ", from, -1,
                      shape.rank == 1   ? SHAPE(1)
                      : shape.rank == 2 ? SHAPE(shape.dim[1])
                                        : SHAPE(shape.dim[1], shape.dim[2]));
        else if (way < 2 && shape.rank == 3)
            draw_image(&drawn, from, shape);
        else if (way < 2 && shape.rank == 2)
            draw_sequence(&drawn, from, shape);
        else if (way < 4)
            draw_moved(&drawn, from, shape);
        else if (way < 5)
            draw_pair(&drawn, from, shape);
        else if (way < 6)
            draw_parameter(&drawn, from, shape);
        else
            draw_simple(&drawn, from, shape);
    }
    if (draw(&drawn, 0, 2) == 0)
        text_add(out, "loss cross_entropy\n");
}

#endif
