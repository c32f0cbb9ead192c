/* c_peer.h: what peers in C compute: a stack of dense layers. c_peer.py fills it and owns all
 * memory. A peer is a C file with the three functions declared here. */
#ifndef PRONY_C_PEER_H
#define PRONY_C_PEER_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum activation { ACTIVATION_NONE, ACTIVATION_SIGMOID, ACTIVATION_RELU };

struct layer {
    int32_t inputs, outputs, activation;
    float *weight; /* [inputs, outputs] */
    float *bias;   /* [outputs] */
    float *y, *dz; /* [batch, outputs] */
    float *dx;     /* [batch, inputs] */
    /* In int8 weights are whole numbers as floats, and biases int32 in the place of floats: a sum
     * of output o times units[o] is real. Inputs are u8, (x - x_zero) · x_scale; biases have the
     * zero point in them. */
    const float *units; /* [outputs] */
    float x_scale;
    int32_t x_zero;
};

struct network {
    int32_t layer_count, batch, batches, training, threads;
    int32_t turned; /* the setting: weights lie as [outputs, inputs] */
    float rate;
    const float *x, *target; /* of all batches, one after another; target NULL: by labels */
    const int32_t *label;    /* NULL unless the loss is cross-entropy */
    int32_t softmax;         /* the loss is cross-entropy: outputs are probabilities */
    double loss;
    struct layer *layers;
    void *own; /* the peer's */
};

/* NULL, or why it cannot be done. `library` is what c_peer.py was told to load, or "". */
const char *network_open(struct network *network, const char *library);
/* One iteration; the outputs are in the last layer's y. */
void network_step(struct network *network, int32_t batch);
/* After training: the weights in the layers are those of the network. */
void network_read_back(struct network *network);

/* The loop that is timed. */
void network_run(struct network *network, int64_t first, int64_t count);
void network_run(struct network *network, int64_t first, int64_t count)
{
    for (int64_t i = first; i < first + count; i++)
        network_step(network, (int32_t)(i % network->batches));
}

/* The rows of the last layer's outputs become probabilities. */
static inline void network_softmax(const struct network *network)
{
    const struct layer *last = &network->layers[network->layer_count - 1];
    int width = last->outputs;
    for (int b = 0; b < network->batch; b++) {
        float *y = last->y + (size_t)b * width, most = y[0], sum = 0;
        for (int i = 1; i < width; i++)
            most = y[i] > most ? y[i] : most;
        for (int i = 0; i < width; i++)
            sum += y[i] = expf(y[i] - most);
        for (int i = 0; i < width; i++)
            y[i] /= sum;
    }
}

/* Sets the loss, and the last layer's dz to its slopes by the outputs (by what is before the
 * softmax, where there is one). */
static inline void network_compare(struct network *network, int32_t batch)
{
    const struct layer *last = &network->layers[network->layer_count - 1];
    int width = last->outputs, samples = network->batch, count = samples * width;
    double loss = 0;

    if (network->softmax) {
        for (int i = 0; i < count; i++)
            last->dz[i] = last->y[i] / (float)samples;
        for (int b = 0; b < samples; b++) {
            int at = b * width + network->label[(size_t)batch * samples + b];
            loss -= log((double)last->y[at]) / samples;
            last->dz[at] -= 1 / (float)samples;
        }
    } else {
        const float *target = network->target + (size_t)batch * count;
        for (int i = 0; i < count; i++) {
            float difference = last->y[i] - target[i];
            loss += (double)difference * difference / count;
            last->dz[i] = 2 * difference / (float)count;
        }
    }
    network->loss = loss;
}

/* From the slopes by the outputs, dy, to those before the activation, in dz. */
static inline void layer_slopes(const struct layer *layer, int batch, const float *dy)
{
    int count = batch * layer->outputs;
    const float *y = layer->y;
    float *dz = layer->dz;
    if (layer->activation == ACTIVATION_SIGMOID)
        for (int i = 0; i < count; i++)
            dz[i] = dy[i] * (y[i] * (1 - y[i]));
    else if (layer->activation == ACTIVATION_RELU)
        for (int i = 0; i < count; i++)
            dz[i] = y[i] > 0 ? dy[i] : 0;
    else if (dz != dy)
        for (int i = 0; i < count; i++)
            dz[i] = dy[i];
}

/* The sum over the samples comes first: steps of one sample each would round away beside the bias. */
static inline void layer_update_bias(const struct layer *layer, int batch, float rate)
{
    enum { TOGETHER = 64 };
    for (int from = 0; from < layer->outputs; from += TOGETHER) {
        int count = layer->outputs - from < TOGETHER ? layer->outputs - from : TOGETHER;
        float sum[TOGETHER] = {0};
        for (int b = 0; b < batch; b++)
            for (int j = 0; j < count; j++)
                sum[j] += layer->dz[(size_t)b * layer->outputs + from + j];
        for (int j = 0; j < count; j++)
            layer->bias[from + j] -= rate * sum[j];
    }
}

/* The weights of a layer as [outputs, inputs], or back. `room` holds as many. */
static inline void layer_turn(const struct layer *layer, int to_turned, float *room)
{
    size_t in = layer->inputs, out = layer->outputs;
    for (size_t i = 0; i < in; i++)
        for (size_t j = 0; j < out; j++)
            if (to_turned)
                room[j * in + i] = layer->weight[i * out + j];
            else
                room[i * out + j] = layer->weight[j * in + i];
    for (size_t i = 0; i < in * out; i++)
        layer->weight[i] = room[i];
}

#endif
