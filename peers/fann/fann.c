/* fann.c: a network in FANN, the Fast Artificial Neural Network library. Its weights are its own, a
 * row for each unit with the bias at its end; a batch is a data set that it trains on once. Its rate
 * is for the sum over outputs of half the squared error, ours for the mean of the squared error. */
#include "c_peer.h"

#include <floatfann.h>
#include <stddef.h>
#include <stdlib.h>

struct own {
    struct fann *net;
    struct fann_train_data **batches;
};

static const char *fill(struct network *network, struct fann *net)
{
    fann_type *weight = net->weights;
    for (int l = 0; l < network->layer_count; l++) {
        const struct layer *layer = &network->layers[l];
        if (layer->activation == ACTIVATION_RELU)
            return "FANN has no relu";
        fann_set_activation_function_layer(
            net, layer->activation == ACTIVATION_SIGMOID ? FANN_SIGMOID : FANN_LINEAR, l + 1);
        fann_set_activation_steepness_layer(
            net, layer->activation == ACTIVATION_SIGMOID ? 0.5f : 1.0f, l + 1);
        for (int j = 0; j < layer->outputs; j++) {
            for (int i = 0; i < layer->inputs; i++)
                *weight++ = layer->weight[(size_t)i * layer->outputs + j];
            *weight++ = layer->bias[j];
        }
    }
    return NULL;
}

const char *network_open(struct network *network, const char *library)
{
    (void)library;
    if (network->threads > 1)
        return "FANN makes one thread";
    unsigned *sizes = calloc((size_t)network->layer_count + 1, sizeof *sizes);
    struct own *own = calloc(1, sizeof *own);
    int outputs = network->layers[network->layer_count - 1].outputs;
    int inputs = network->layers[0].inputs, batch = network->batch;

    sizes[0] = (unsigned)inputs;
    for (int l = 0; l < network->layer_count; l++)
        sizes[l + 1] = (unsigned)network->layers[l].outputs;
    own->net = fann_create_standard_array((unsigned)network->layer_count + 1, sizes);
    free(sizes);
    network->own = own;
    if (!own->net)
        return "FANN could not make the network";
    fann_set_training_algorithm(own->net, FANN_TRAIN_BATCH);
    fann_set_train_error_function(own->net, FANN_ERRORFUNC_LINEAR);
    fann_set_learning_rate(own->net, 2 * network->rate / (float)outputs);
    if (network->training) {
        own->batches = calloc((size_t)network->batches, sizeof *own->batches);
        for (int b = 0; b < network->batches; b++) {
            own->batches[b] = fann_create_train((unsigned)batch, (unsigned)inputs, (unsigned)outputs);
            for (int row = 0; row < batch; row++) {
                size_t at = (size_t)b * batch + row;
                for (int i = 0; i < inputs; i++)
                    own->batches[b]->input[row][i] = network->x[at * inputs + i];
                for (int i = 0; i < outputs; i++)
                    own->batches[b]->output[row][i] = network->target[at * outputs + i];
            }
        }
    }
    return fill(network, own->net);
}

void network_step(struct network *network, int32_t batch)
{
    struct own *own = network->own;
    struct layer *last = &network->layers[network->layer_count - 1];
    int inputs = network->layers[0].inputs;

    if (network->training) {
        network->loss = fann_train_epoch(own->net, own->batches[batch]);
        return;
    }
    for (int row = 0; row < network->batch; row++) {
        size_t at = (size_t)batch * network->batch + row;
        fann_type *y = fann_run(own->net, (fann_type *)(network->x + at * inputs));
        for (int i = 0; i < last->outputs; i++)
            last->y[row * last->outputs + i] = y[i];
    }
}

void network_read_back(struct network *network)
{
    const fann_type *weight = ((struct own *)network->own)->net->weights;
    for (int l = 0; l < network->layer_count; l++) {
        const struct layer *layer = &network->layers[l];
        for (int j = 0; j < layer->outputs; j++) {
            for (int i = 0; i < layer->inputs; i++)
                layer->weight[(size_t)i * layer->outputs + j] = *weight++;
            layer->bias[j] = *weight++;
        }
    }
}
