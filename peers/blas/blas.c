/* blas.c: a network over BLAS, as one writes it in C: a product a layer and a few loops. The update
 * is the product itself, which adds to the weights. One sample takes the matrix-vector functions.
 * Weights lie as [in][out] or as [out][in]; which is quicker depends on library and batch. */
#include "c_peer.h"

#include <dlfcn.h>
#include <stdlib.h>

enum { ROW_MAJOR = 101, PLAIN = 111, TURNED = 112 }; /* as cblas.h numbers them */

static void (*gemm)(int order, int turn_a, int turn_b, int m, int n, int k, float alpha,
                    const float *a, int lda, const float *b, int ldb, float beta, float *c,
                    int ldc);
static void (*gemv)(int order, int turn, int m, int n, float alpha, const float *a, int lda,
                    const float *x, int incx, float beta, float *y, int incy);
static void (*ger)(int order, int m, int n, float alpha, const float *x, int incx, const float *y,
                   int incy, float *a, int lda);

static const char *turn_all(const struct network *network, int to_turned)
{
    for (int l = 0; network->turned && l < network->layer_count; l++) {
        const struct layer *layer = &network->layers[l];
        float *room = malloc((size_t)layer->inputs * layer->outputs * sizeof *room);
        if (!room)
            return "out of memory";
        layer_turn(layer, to_turned, room);
        free(room);
    }
    return NULL;
}

const char *network_open(struct network *network, const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return dlerror();
    *(void **)&gemm = dlsym(handle, "cblas_sgemm");
    *(void **)&gemv = dlsym(handle, "cblas_sgemv");
    *(void **)&ger = dlsym(handle, "cblas_sger");
    if (!gemm || !gemv || !ger)
        return "it has no cblas interface";
    return turn_all(network, 1);
}

static void activate(const struct layer *layer, int batch)
{
    int count = batch * layer->outputs;
    float *y = layer->y;
    if (layer->activation == ACTIVATION_SIGMOID) {
#pragma omp simd
        for (int i = 0; i < count; i++)
            y[i] = 1 / (1 + expf(-y[i]));
    } else if (layer->activation == ACTIVATION_RELU) {
        for (int i = 0; i < count; i++)
            y[i] = y[i] > 0 ? y[i] : 0;
    }
}

static void forward(const struct network *network, const float *x)
{
    int batch = network->batch, turned = network->turned;
    for (int l = 0; l < network->layer_count; l++) {
        const struct layer *layer = &network->layers[l];
        int in = layer->inputs, out = layer->outputs;
        const float *w = layer->weight;
        for (int b = 0; b < batch; b++)
            for (int j = 0; j < out; j++)
                layer->y[(size_t)b * out + j] = layer->bias[j];
        if (batch == 1 && turned)
            gemv(ROW_MAJOR, PLAIN, out, in, 1, w, in, x, 1, 1, layer->y, 1);
        else if (batch == 1)
            gemv(ROW_MAJOR, TURNED, in, out, 1, w, out, x, 1, 1, layer->y, 1);
        else
            gemm(ROW_MAJOR, PLAIN, turned ? TURNED : PLAIN, batch, out, in, 1, x, in, w,
                 turned ? in : out, 1, layer->y, out);
        activate(layer, batch);
        x = layer->y;
    }
    if (network->softmax)
        network_softmax(network);
}

/* dx from the weights as they were, then the weights. */
static void backward_turned(const struct network *network, const struct layer *layer,
                            const float *x, int needs_dx)
{
    int batch = network->batch, in = layer->inputs, out = layer->outputs;
    float *w = layer->weight, *dz = layer->dz, rate = network->rate;
    if (batch == 1) {
        if (needs_dx)
            gemv(ROW_MAJOR, TURNED, out, in, 1, w, in, dz, 1, 0, layer->dx, 1);
        ger(ROW_MAJOR, out, in, -rate, dz, 1, x, 1, w, in);
        return;
    }
    if (needs_dx)
        gemm(ROW_MAJOR, PLAIN, PLAIN, batch, in, out, 1, dz, out, w, in, 0, layer->dx, in);
    gemm(ROW_MAJOR, TURNED, PLAIN, out, in, batch, -rate, dz, out, x, in, 1, w, in);
}

static void backward_plain(const struct network *network, const struct layer *layer, const float *x,
                           int needs_dx)
{
    int batch = network->batch, in = layer->inputs, out = layer->outputs;
    float *w = layer->weight, *dz = layer->dz, rate = network->rate;
    if (batch == 1) {
        if (needs_dx)
            gemv(ROW_MAJOR, PLAIN, in, out, 1, w, out, dz, 1, 0, layer->dx, 1);
        ger(ROW_MAJOR, in, out, -rate, x, 1, dz, 1, w, out);
        return;
    }
    if (needs_dx)
        gemm(ROW_MAJOR, PLAIN, TURNED, batch, in, out, 1, dz, out, w, out, 0, layer->dx, in);
    gemm(ROW_MAJOR, TURNED, PLAIN, in, out, batch, -rate, x, in, dz, out, 1, w, out);
}

void network_step(struct network *network, int32_t batch)
{
    struct layer *layers = network->layers, *last = &layers[network->layer_count - 1];
    const float *x = network->x + (size_t)batch * network->batch * layers[0].inputs;

    forward(network, x);
    if (!network->training)
        return;
    network_compare(network, batch);
    const float *dy = last->dz;
    for (int l = network->layer_count - 1; l >= 0; l--) {
        const float *input = l ? layers[l - 1].y : x;
        layer_slopes(&layers[l], network->batch, dy);
        if (network->turned)
            backward_turned(network, &layers[l], input, l > 0);
        else
            backward_plain(network, &layers[l], input, l > 0);
        layer_update_bias(&layers[l], network->batch, network->rate);
        dy = layers[l].dx;
    }
}

void network_read_back(struct network *network)
{
    turn_all(network, 0);
}
