/* blas.c: a network over BLAS, as one writes it in C: a product a layer and a few loops. The update
 * is the product itself, which adds to the weights. One sample takes the matrix-vector functions. */
#include "c_peer.h"

#include <dlfcn.h>
#include <stddef.h>

enum { ROW_MAJOR = 101, PLAIN = 111, TURNED = 112 }; /* as cblas.h numbers them */

static void (*gemm)(int order, int turn_a, int turn_b, int m, int n, int k, float alpha,
                    const float *a, int lda, const float *b, int ldb, float beta, float *c,
                    int ldc);
static void (*gemv)(int order, int turn, int m, int n, float alpha, const float *a, int lda,
                    const float *x, int incx, float beta, float *y, int incy);
static void (*ger)(int order, int m, int n, float alpha, const float *x, int incx, const float *y,
                   int incy, float *a, int lda);

const char *network_open(struct network *network, const char *library)
{
    (void)network;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return dlerror();
    *(void **)&gemm = dlsym(handle, "cblas_sgemm");
    *(void **)&gemv = dlsym(handle, "cblas_sgemv");
    *(void **)&ger = dlsym(handle, "cblas_sger");
    return gemm && gemv && ger ? NULL : "it has no cblas interface";
}

static void activate(const struct layer *layer, int batch)
{
    int count = batch * layer->outputs;
    float *y = layer->y;
    if (layer->activation == ACTIVATION_SIGMOID)
        for (int i = 0; i < count; i++)
            y[i] = 1 / (1 + expf(-y[i]));
    else if (layer->activation == ACTIVATION_RELU)
        for (int i = 0; i < count; i++)
            y[i] = y[i] > 0 ? y[i] : 0;
}

static void forward(const struct network *network, const float *x)
{
    int batch = network->batch;
    for (int l = 0; l < network->layer_count; l++) {
        const struct layer *layer = &network->layers[l];
        int in = layer->inputs, out = layer->outputs;
        for (int b = 0; b < batch; b++)
            for (int j = 0; j < out; j++)
                layer->y[b * out + j] = layer->bias[j];
        if (batch == 1)
            gemv(ROW_MAJOR, TURNED, in, out, 1, layer->weight, out, x, 1, 1, layer->y, 1);
        else
            gemm(ROW_MAJOR, PLAIN, PLAIN, batch, out, in, 1, x, in, layer->weight, out, 1, layer->y,
                 out);
        activate(layer, batch);
        x = layer->y;
    }
}

/* From dy to dz, in the place of dz. */
static void slopes(const struct layer *layer, int batch, const float *dy)
{
    int count = batch * layer->outputs;
    const float *y = layer->y;
    for (int i = 0; i < count; i++) {
        float slope = layer->activation == ACTIVATION_SIGMOID ? y[i] * (1 - y[i])
                      : layer->activation == ACTIVATION_RELU  ? (float)(y[i] > 0)
                                                              : 1;
        layer->dz[i] = dy[i] * slope;
    }
}

static void backward(const struct network *network, const struct layer *layer, const float *x,
                     int needs_dx)
{
    int batch = network->batch, in = layer->inputs, out = layer->outputs;
    float rate = network->rate;
    if (batch == 1) {
        if (needs_dx)
            gemv(ROW_MAJOR, PLAIN, in, out, 1, layer->weight, out, layer->dz, 1, 0, layer->dx, 1);
        ger(ROW_MAJOR, in, out, -rate, x, 1, layer->dz, 1, layer->weight, out);
    } else {
        if (needs_dx)
            gemm(ROW_MAJOR, PLAIN, TURNED, batch, in, out, 1, layer->dz, out, layer->weight, out, 0,
                 layer->dx, in);
        gemm(ROW_MAJOR, TURNED, PLAIN, in, out, batch, -rate, x, in, layer->dz, out, 1,
             layer->weight, out);
    }
    for (int b = 0; b < batch; b++)
        for (int j = 0; j < out; j++)
            layer->bias[j] -= rate * layer->dz[b * out + j];
}

void network_step(struct network *network, int32_t batch)
{
    struct layer *layers = network->layers, *last = &layers[network->layer_count - 1];
    const float *x = network->x + (size_t)batch * network->batch * layers[0].inputs;
    int count = network->batch * last->outputs;

    forward(network, x);
    if (!network->training)
        return;
    const float *target = network->target + (size_t)batch * count, *dy = last->dz;
    double loss = 0;
    for (int i = 0; i < count; i++) {
        float difference = last->y[i] - target[i];
        loss += (double)difference * difference;
        last->dz[i] = 2 * difference / count;
    }
    network->loss = loss / count;
    for (int l = network->layer_count - 1; l >= 0; l--) {
        slopes(&layers[l], network->batch, dy);
        backward(network, &layers[l], l ? layers[l - 1].y : x, l > 0);
        dy = layers[l].dx;
    }
}

void network_read_back(struct network *network)
{
    (void)network; /* they are always in the layers */
}
