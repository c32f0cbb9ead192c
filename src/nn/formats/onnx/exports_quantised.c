/* exports_quantised.c: a network in 8 bits as QuantizeLinear and DequantizeLinear around operators
 * of reals, which is how ONNX Runtime and others take it: they find the pairs and compute in
 * integers. Weights are int8, biases int32, both with a scale per channel; activations are uint8.
 */
#include "nn/formats/onnx/exporter.h"

#include <math.h>
#include <string.h>

enum { UNSIGNED = 2, SIGNED = 3, WIDE = 6 }; /* how ONNX counts uint8, int8 and int32 */

export_writer export_quantise;

static const struct onnx_product *product_of(const struct export *ex)
{
    for (int32_t i = 0; ex->levels && i < ex->levels->product_count; i++)
        if (!strcmp(ex->levels->products[i].layer, ex->layer->name))
            return &ex->levels->products[i];
    return NULL;
}

static const void *numbers_of(const struct export *ex, const char *name, struct shape *shape)
{
    char full[200];
    snprintf(full, sizeof full, "%s.%s", ex->layer->name, name);
    int32_t entry = params_find(ex->params, full);
    if (entry < 0)
        return NULL;
    *shape = ex->params->entries[entry].shape;
    return params_data(ex->params, entry);
}

/* What a sum of each channel stands for: multiplier ÷ 2^shift is that ÷ scale of y. */
static void find_units(const struct export *ex, const struct onnx_product *product, int64_t count,
                       double *units)
{
    struct shape shape;
    const float *scale = numbers_of(ex, "scale", &shape);
    const int32_t *multiplier = numbers_of(ex, "multiplier", &shape);
    const int32_t *shift = numbers_of(ex, "shift", &shape);
    for (int64_t o = 0; o < count; o++)
        units[o] = scale ? (double)scale[o]
                         : ldexp((double)multiplier[o], -shift[o]) * (double)product->y_scale;
}

/* The bias has the zero point of x in it, times the channel's weights: b + zero·Σw. */
static void undo_zero(const struct export *ex, const struct onnx_product *product, int64_t channels,
                      int32_t *bias)
{
    struct shape shape;
    const int8_t *w = numbers_of(ex, "weight", &shape);
    const bool dense = shape.rank == 2;
    const int64_t terms = shape_count(&shape) / channels;
    for (int64_t o = 0; o < channels; o++)
        for (int64_t i = 0; i < terms; i++)
            bias[o] += product->x_zero * w[dense ? i * channels + o : o * terms + i];
}

static const char *add_scales(struct export *ex, const char *name, const double *units,
                              int64_t count, double divisor)
{
    char full[100];
    float *scales = arena_array(&ex->arena, (size_t)count, sizeof *scales);
    snprintf(full, sizeof full, "%s_scale", name);
    if (!scales) {
        ex->failed = true;
        return name;
    }
    for (int64_t o = 0; o < count; o++)
        scales[o] = (float)(units[o] / divisor);
    return export_reals(ex, full, scales, SHAPE(count));
}

static const char *add_dequantised(struct export *ex, const char *levels, const char *scales,
                                   const char *zeros, int64_t axis)
{
    const char *const inputs[] = {levels, scales, zeros};
    const char *name = export_node(ex, "DequantizeLinear", export_part(ex), inputs, zeros ? 3 : 2);
    export_int(ex, "axis", axis);
    return name;
}

const char *export_quantised(struct export *ex, const char *name, const struct shape *wanted)
{
    const struct onnx_product *product = product_of(ex);
    struct shape shape, row;
    const void *numbers = numbers_of(ex, name, &shape);
    numbers_of(ex, "bias", &row);
    const int64_t channels = row.dim[0];
    double *units = arena_array(&ex->arena, (size_t)channels, sizeof *units);
    int32_t *bias = arena_array(&ex->arena, (size_t)channels, sizeof *bias);
    const bool is_bias = !strcmp(name, "bias");
    if (!units || !bias || !product) {
        ex->failed = true;
        return name;
    }
    find_units(ex, product, channels, units);
    if (is_bias) {
        memcpy(bias, numbers, (size_t)channels * sizeof *bias);
        undo_zero(ex, product, channels, bias);
        const char *scales = add_scales(ex, name, units, channels, 1);
        return add_dequantised(ex, export_integers(ex, name, WIDE, bias, row), scales, NULL, 0);
    }
    const char *scales = add_scales(ex, name, units, channels, (double)product->x_scale);
    const char *levels = export_integers(ex, name, SIGNED, numbers, wanted ? *wanted : shape);
    int8_t *zeros = arena_array(&ex->arena, (size_t)channels, sizeof *zeros);
    if (!zeros) {
        ex->failed = true;
        return name;
    }
    const char *points = export_integers(ex, "weight_zero_point", SIGNED, zeros, row);
    return add_dequantised(ex, levels, scales, points, shape.rank == 2 ? 1 : 0);
}

/* To levels of 8 bits and back. Of fewer levels than those a Clip lets through what there is. */
static const char *add_pair(struct export *ex, const char *x, float scale, int32_t zero,
                            int32_t most, const char *output)
{
    uint8_t *point = arena_array(&ex->arena, 1, 1);
    if (!point) {
        ex->failed = true;
        return output;
    }
    *point = (uint8_t)zero;
    const char *step = export_constant(ex, &scale, (struct shape){0});
    const char *zeros = export_integers(ex, "zero_point", UNSIGNED, point, (struct shape){0});
    if (most < UINT8_MAX) {
        const float low = scale * (float)-zero, high = scale * (float)(most - zero);
        const char *least = export_constant(ex, &low, (struct shape){0});
        const char *largest = export_constant(ex, &high, (struct shape){0});
        x = export_node(ex, "Clip", export_part(ex), EXPORT_INPUTS(x, least, largest));
    }
    x = export_node(ex, "QuantizeLinear", export_part(ex), EXPORT_INPUTS(x, step, zeros));
    return export_node(ex, "DequantizeLinear", output, EXPORT_INPUTS(x, step, zeros));
}

static const struct onnx_level *level_of(const struct export *ex, const char *layer)
{
    for (int32_t i = 0; ex->levels && i < ex->levels->level_count; i++)
        if (!strcmp(ex->levels->levels[i].layer, layer))
            return &ex->levels->levels[i];
    return NULL;
}

bool export_rounds(const struct export *ex, const char *layer)
{
    return level_of(ex, layer) != NULL;
}

const char *export_rounded(struct export *ex, const char *layer, const char *x, const char *output)
{
    const struct onnx_level *level = level_of(ex, layer);
    return add_pair(ex, x, level->scale, level->zero, level->most, output);
}

enum status export_quantise(struct export *ex)
{
    const int32_t low = (int32_t)export_value(ex, "low"), high = (int32_t)export_value(ex, "high");
    const float scale = (float)export_value(ex, "scale"), back = 1 / scale;
    const bool levels = export_value(ex, "levels") != 0;
    const char *x = add_pair(ex, export_input(ex, 0), scale, -low, high - low,
                             levels ? export_part(ex) : ex->output);
    if (levels) /* the level itself: exact, since it is rounded to 8 bits once more */
        export_node(ex, "Round", ex->output,
                    EXPORT_INPUTS(export_node(
                        ex, "Mul", export_part(ex),
                        EXPORT_INPUTS(x, export_constant(ex, &back, (struct shape){0})))));
    return STATUS_OK;
}
