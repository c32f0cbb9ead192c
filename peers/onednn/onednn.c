/* onednn.c: a network over oneDNN: matmul primitives made once, with bias and activation as part of
 * the product. The update is a product too, which scales by the rate and adds to the weights. In
 * inference the weights may lie in the blocks that oneDNN prefers; in training they lie as [in][out]
 * or [out][in], for three products share them.
 *
 * In bf16 weights and activations have that type, x is converted in each step, and the last layer's
 * outputs and the biases are floats. In int8 weights are s8 and activations u8, with prony's scales:
 * sums are real before the activation, and rounded to the next layer's levels behind it. */
#include "c_peer.h"

#include <dnnl.h>
#include <stdlib.h>
#include <string.h>

#if DNNL_VERSION_MAJOR != 2
#error "this peer is written for oneDNN 2"
#endif

/* A product that is ready to run. */
struct product {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[4];
    int arg_count;
};

struct dense {
    struct product forward, back, update;
    dnnl_memory_t x, weight, bias, y, dz, dx; /* x: of the first layer, moved from batch to batch */
};

struct own {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct dense *layers;
    dnnl_data_type_t type;    /* of activations between layers */
    dnnl_data_type_t weights; /* of weights: the same, but of int8's */
    struct product convert;   /* bf16, int8: the first layer's x from floats … */
    dnnl_memory_t floats;     /* … which move from batch to batch */
};

static const char *refuse(dnnl_status_t status)
{
    return status == dnnl_out_of_memory ? "oneDNN is out of memory" : "oneDNN refuses a product";
}

#define DO(call)                                                                                   \
    do {                                                                                           \
        dnnl_status_t found = (call);                                                              \
        if (found != dnnl_success)                                                                 \
            return refuse(found);                                                                  \
    } while (0)

static dnnl_memory_desc_t matrix_of(dnnl_data_type_t type, int rows, int columns,
                                    dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t desc;
    const dnnl_dims_t dims = {rows, columns};
    dnnl_memory_desc_init_by_tag(&desc, 2, dims, type, tag);
    return desc;
}

static dnnl_memory_desc_t matrix(int rows, int columns, dnnl_format_tag_t tag)
{
    return matrix_of(dnnl_f32, rows, columns, tag);
}

/* a·b (+ bias) into c, as the attributes say; *chosen is how b lies. */
static const char *make(struct own *own, struct product *out, dnnl_memory_desc_t a,
                        dnnl_memory_desc_t b, const dnnl_memory_desc_t *bias, dnnl_memory_desc_t c,
                        const_dnnl_primitive_attr_t attr, dnnl_memory_desc_t *chosen)
{
    dnnl_matmul_desc_t desc;
    dnnl_primitive_desc_t about;
    DO(dnnl_matmul_desc_init(&desc, &a, &b, bias, &c));
    DO(dnnl_primitive_desc_create(&about, &desc, attr, own->engine, NULL));
    if (chosen)
        *chosen = *dnnl_primitive_desc_query_md(about, dnnl_query_weights_md, 0);
    dnnl_status_t status = dnnl_primitive_create(&out->primitive, about);
    dnnl_primitive_desc_destroy(about);
    DO(status);
    return NULL;
}

static void bind(struct product *product, int place, dnnl_memory_t memory)
{
    product->args[product->arg_count++] = (dnnl_exec_arg_t){place, memory};
}

/* The weights into memory of oneDNN's own, in the layout it chose. */
static const char *pack(struct own *own, const struct layer *layer, const dnnl_memory_desc_t *to,
                        dnnl_memory_t *out)
{
    dnnl_memory_desc_t from = matrix(layer->inputs, layer->outputs, dnnl_ab);
    dnnl_memory_t plain;
    dnnl_primitive_desc_t about;
    dnnl_primitive_t reorder;
    DO(dnnl_memory_create(&plain, &from, own->engine, layer->weight));
    DO(dnnl_memory_create(out, to, own->engine, DNNL_MEMORY_ALLOCATE));
    DO(dnnl_reorder_primitive_desc_create(&about, &from, own->engine, to, own->engine, NULL));
    DO(dnnl_primitive_create(&reorder, about));
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, plain}, {DNNL_ARG_TO, *out}};
    DO(dnnl_primitive_execute(reorder, own->stream, 2, args));
    DO(dnnl_stream_wait(own->stream));
    dnnl_primitive_destroy(reorder);
    dnnl_primitive_desc_destroy(about);
    dnnl_memory_destroy(plain);
    return NULL;
}

/* In bf16 and int8 the first layer's x is converted; in fp32 it is where the batch lies. */
static const char *open_first(struct own *own, const struct layer *layer,
                              const dnnl_memory_desc_t *x, const dnnl_memory_desc_t *floats)
{
    struct dense *dense = &own->layers[0];
    dnnl_primitive_desc_t about;
    dnnl_primitive_attr_t attr;
    if (own->type == dnnl_f32) {
        DO(dnnl_memory_create(&dense->x, x, own->engine, DNNL_MEMORY_NONE));
        return NULL;
    }
    DO(dnnl_memory_create(&dense->x, x, own->engine, DNNL_MEMORY_ALLOCATE));
    DO(dnnl_memory_create(&own->floats, floats, own->engine, DNNL_MEMORY_NONE));
    DO(dnnl_primitive_attr_create(&attr));
    if (own->type == dnnl_u8) {
        const float steps = 1 / layer->x_scale;
        DO(dnnl_primitive_attr_set_output_scales(attr, 1, 0, &steps));
        DO(dnnl_primitive_attr_set_zero_points(attr, DNNL_ARG_DST, 1, 0, &layer->x_zero));
    }
    DO(dnnl_reorder_primitive_desc_create(&about, floats, own->engine, x, own->engine, attr));
    dnnl_primitive_attr_destroy(attr);
    DO(dnnl_primitive_create(&own->convert.primitive, about));
    dnnl_primitive_desc_destroy(about);
    bind(&own->convert, DNNL_ARG_FROM, own->floats);
    bind(&own->convert, DNNL_ARG_TO, dense->x);
    return NULL;
}

static const char *open_forward(struct network *network, struct own *own, int l,
                                dnnl_format_tag_t tag)
{
    const struct layer *layer = &network->layers[l];
    struct dense *dense = &own->layers[l];
    int batch = network->batch, in = layer->inputs, out = layer->outputs;
    const int last = l == network->layer_count - 1;
    dnnl_memory_desc_t x = matrix_of(own->type, batch, in, dnnl_ab);
    dnnl_memory_desc_t y = matrix_of(last ? dnnl_f32 : own->type, batch, out, dnnl_ab);
    const int int8 = own->type == dnnl_u8;
    dnnl_memory_desc_t bias = matrix_of(int8 ? dnnl_s32 : dnnl_f32, 1, out, dnnl_ab);
    dnnl_memory_desc_t weight = matrix_of(own->weights, in, out, tag);
    const dnnl_memory_desc_t floats = matrix(batch, in, dnnl_ab);
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t after;

    DO(dnnl_primitive_attr_create(&attr));
    DO(dnnl_post_ops_create(&after));
    if (layer->activation == ACTIVATION_SIGMOID)
        DO(dnnl_post_ops_append_eltwise(after, 1, dnnl_eltwise_logistic, 0, 0));
    else if (layer->activation == ACTIVATION_RELU)
        DO(dnnl_post_ops_append_eltwise(after, 1, dnnl_eltwise_relu, 0, 0));
    if (int8)
        DO(dnnl_primitive_attr_set_output_scales(attr, out, 1 << 1, layer->units));
    if (int8 && !last)
        DO(dnnl_post_ops_append_eltwise(after, 1, dnnl_eltwise_linear, 1 / layer[1].x_scale,
                                        (float)layer[1].x_zero));
    DO(dnnl_primitive_attr_set_post_ops(attr, after));
    const char *refusal = make(own, &dense->forward, x, weight, &bias, y, attr, &weight);
    dnnl_post_ops_destroy(after);
    dnnl_primitive_attr_destroy(attr);
    if (refusal || (refusal = pack(own, layer, &weight, &dense->weight)) != NULL)
        return refusal;
    DO(dnnl_memory_create(&dense->bias, &bias, own->engine, layer->bias));
    DO(dnnl_memory_create(&dense->y, &y, own->engine, layer->y)); /* room for floats */
    if (l)
        dense->x = own->layers[l - 1].y;
    else if ((refusal = open_first(own, layer, &x, &floats)) != NULL)
        return refusal;
    bind(&dense->forward, DNNL_ARG_SRC, dense->x);
    bind(&dense->forward, DNNL_ARG_WEIGHTS, dense->weight);
    bind(&dense->forward, DNNL_ARG_BIAS, dense->bias);
    bind(&dense->forward, DNNL_ARG_DST, dense->y);
    return NULL;
}

/* dx = dz·Wᵀ and W -= rate·xᵀ·dz. A transposed matrix is the same bytes under the other tag. */
static const char *open_backward(struct network *network, struct own *own, int l,
                                 dnnl_format_tag_t tag)
{
    const struct layer *layer = &network->layers[l];
    struct dense *dense = &own->layers[l];
    int batch = network->batch, in = layer->inputs, out = layer->outputs;
    dnnl_format_tag_t other = tag == dnnl_ab ? dnnl_ba : dnnl_ab;
    dnnl_memory_desc_t dz = matrix(batch, out, dnnl_ab), dx = matrix(batch, in, dnnl_ab);
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t after;
    const float scale = -network->rate;

    DO(dnnl_memory_create(&dense->dz, &dz, own->engine, layer->dz));
    DO(dnnl_memory_create(&dense->dx, &dx, own->engine, layer->dx));
    const char *refusal =
        make(own, &dense->back, dz, matrix(out, in, other), NULL, dx, NULL, NULL);
    if (refusal)
        return refusal;
    bind(&dense->back, DNNL_ARG_SRC, dense->dz);
    bind(&dense->back, DNNL_ARG_WEIGHTS, dense->weight);
    bind(&dense->back, DNNL_ARG_DST, dense->dx);

    DO(dnnl_primitive_attr_create(&attr));
    DO(dnnl_primitive_attr_set_output_scales(attr, 1, 0, &scale));
    DO(dnnl_post_ops_create(&after));
    DO(dnnl_post_ops_append_sum(after, 1));
    DO(dnnl_primitive_attr_set_post_ops(attr, after));
    /* A weight of [out][in] is written as its transpose: Wᵀ -= rate·dzᵀ·x. */
    int turned = tag == dnnl_ba;
    refusal = turned ? make(own, &dense->update, matrix(out, batch, dnnl_ba),
                            matrix(batch, in, dnnl_ab), NULL, matrix(out, in, dnnl_ab), attr, NULL)
                     : make(own, &dense->update, matrix(in, batch, dnnl_ba),
                            matrix(batch, out, dnnl_ab), NULL, matrix(in, out, dnnl_ab), attr, NULL);
    dnnl_post_ops_destroy(after);
    dnnl_primitive_attr_destroy(attr);
    bind(&dense->update, DNNL_ARG_SRC, turned ? dense->dz : dense->x);
    bind(&dense->update, DNNL_ARG_WEIGHTS, turned ? dense->x : dense->dz);
    bind(&dense->update, DNNL_ARG_DST, dense->weight);
    return refusal;
}

/* `library` is not one: it is the setting of the weights, "any", "ab" or "ba", and " bf16" or " int8" behind
 * it where the network is computed in that. */
const char *network_open(struct network *network, const char *library)
{
    struct own *own = calloc(1, sizeof *own);
    dnnl_format_tag_t tag = !strncmp(library, "any", 3)  ? dnnl_format_tag_any
                            : !strncmp(library, "ba", 2) ? dnnl_ba
                                                         : dnnl_ab;
    if (!own || !(own->layers = calloc((size_t)network->layer_count, sizeof *own->layers)))
        return "out of memory";
    network->own = own;
    own->type = own->weights = strstr(library, " bf16") ? dnnl_bf16 : dnnl_f32;
    if (strstr(library, " int8")) {
        own->type = dnnl_u8;
        own->weights = dnnl_s8;
    }
    DO(dnnl_engine_create(&own->engine, dnnl_cpu, 0));
    DO(dnnl_stream_create(&own->stream, own->engine, dnnl_stream_default_flags));
    for (int l = 0; l < network->layer_count; l++) {
        const char *refusal = open_forward(network, own, l, tag);
        if (!refusal && network->training)
            refusal = open_backward(network, own, l, tag);
        if (refusal)
            return refusal;
    }
    return NULL;
}

static void run(const struct own *own, const struct product *product)
{
    dnnl_primitive_execute(product->primitive, own->stream, product->arg_count, product->args);
}

void network_step(struct network *network, int32_t batch)
{
    struct own *own = network->own;
    struct layer *layers = network->layers, *last = &layers[network->layer_count - 1];
    const float *x = network->x + (size_t)batch * network->batch * layers[0].inputs;

    dnnl_memory_set_data_handle(own->type == dnnl_f32 ? own->layers[0].x : own->floats,
                                (void *)(uintptr_t)x);
    if (own->type != dnnl_f32)
        run(own, &own->convert);
    for (int l = 0; l < network->layer_count; l++)
        run(own, &own->layers[l].forward);
    if (network->softmax)
        network_softmax(network);
    if (!network->training)
        return;
    network_compare(network, batch);
    const float *dy = last->dz;
    for (int l = network->layer_count - 1; l >= 0; l--) {
        layer_slopes(&layers[l], network->batch, dy);
        if (l)
            run(own, &own->layers[l].back);
        run(own, &own->layers[l].update);
        layer_update_bias(&layers[l], network->batch, network->rate);
        dy = layers[l].dx;
    }
}

void network_read_back(struct network *network)
{
    struct own *own = network->own;
    for (int l = 0; l < network->layer_count; l++) {
        struct layer *layer = &network->layers[l];
        size_t bytes = (size_t)layer->inputs * layer->outputs * sizeof(float);
        void *weight;
        dnnl_memory_get_data_handle(own->layers[l].weight, &weight);
        memcpy(layer->weight, weight, bytes);
        float *room = network->turned ? malloc(bytes) : NULL;
        if (room)
            layer_turn(layer, 0, room);
        free(room);
    }
}
