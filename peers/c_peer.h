/* c_peer.h: what peers in C compute: a stack of dense layers. c_peer.py fills it and owns all memory.
 * A peer is a C file with the three functions declared here. */
#ifndef PRONY_C_PEER_H
#define PRONY_C_PEER_H

#include <math.h>
#include <stdint.h>

enum activation { ACTIVATION_NONE, ACTIVATION_SIGMOID, ACTIVATION_RELU };

struct layer {
    int32_t inputs, outputs, activation;
    float *weight; /* [inputs, outputs] */
    float *bias;   /* [outputs] */
    float *y, *dz; /* [batch, outputs] */
    float *dx;     /* [batch, inputs] */
};

struct network {
    int32_t layer_count, batch, batches, training, threads;
    float rate;
    const float *x, *target; /* of all batches, one after another */
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

#endif
