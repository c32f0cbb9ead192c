/* random_networks.h: networks that follow from a number, for tests of passes: dense layers, images
 * with norms, pools and ways around a block, and sequences with recurrent layers and attention. */
#ifndef PRONY_TESTS_RANDOM_NETWORKS_H
#define PRONY_TESTS_RANDOM_NETWORKS_H

#include "base/text.h"

#include <stdlib.h>

/* How many a test tries: PRONY_RANDOM_NETWORKS=200 for all (tests/long/splits.sh), else a few. */
static inline unsigned random_count(unsigned few)
{
    const char *asked = getenv("PRONY_RANDOM_NETWORKS");
    return asked ? (unsigned)atoi(asked) : few;
}

static inline unsigned random_below(unsigned *seed, unsigned below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 10) % below;
}

static inline void random_activation(struct text *text, unsigned *seed)
{
    static const char *const names[] = {"relu", "tanh", "sigmoid", "gelu", "elu", "softplus"};
    text_printf(text, "%s\n", names[random_below(seed, 6)]);
}

/* Layers over images: convolutions, norms, pools, blocks with a way around them. */
static inline void random_images(struct text *text, unsigned *seed)
{
    unsigned channels = 1 + random_below(seed, 3), number = 0;
    text_printf(text, "input %ux6x6\n", channels);
    for (unsigned i = 0, n = 1 + random_below(seed, 3); i < n; i++) {
        const unsigned wide = 2 + random_below(seed, 8);
        switch (random_below(seed, 4)) {
        case 0:
            text_printf(text, "conv %u 3x3 pad=1\n", channels = wide);
            random_activation(text, seed);
            break;
        case 1:
            text_printf(text, "conv %u 1x1 bias=0\nbatch_norm\n", channels = wide);
            random_activation(text, seed);
            text_add(text, "average_pool 3 stride=1 pad=1\n");
            break;
        case 2: /* the second of two ways through the block is what came in */
            text_printf(text, "in%u = conv %u 3x3 pad=1\n", number, channels = wide);
            text_printf(text, "conv %u 3x3 pad=1 < in%u\n", 2 + random_below(seed, 8), number);
            random_activation(text, seed);
            text_printf(text, "out%u = conv %u 1x1\nadd < out%u, in%u\n", number, channels, number,
                        number);
            number++;
            break;
        default: /* two ways side by side */
            text_printf(text, "s%u = conv %u 3x3 pad=1\n", number, wide);
            text_printf(text, "a%u = conv 3 1x1 < s%u\n", number, number);
            text_printf(text, "conv 4 3x3 pad=1 < s%u\nrelu\nb%u = conv 2 1x1\n", number, number);
            text_printf(text, "concat < a%u, b%u\n", number, number);
            channels = 5;
            number++;
        }
    }
    text_add(text, random_below(seed, 2) ? "max_pool 2\nflatten\n" : "flatten\n");
}

/* A block of attention over `wide` features of each of `steps` places, with two heads. */
static inline void random_attention(struct text *text, unsigned *seed, unsigned number,
                                    unsigned steps, unsigned wide)
{
    static const char *const parts[] = {"query", "key", "value"};
    text_printf(text, "x%u = dense %u\nn%u = layer_norm\n", number, wide, number);
    for (int i = 0; i < 3; i++)
        text_printf(text, "dense %u%s < n%u\nreshape %ux2x%u\n%s%u = transpose 2,1,3\n", wide,
                    i == 1 ? " bias=0" : "", number, steps, wide / 2, parts[i], number);
    text_printf(text, "matmul transpose=second scale=0.5 < query%u, key%u\nw%u = softmax%s\n",
                number, number, number, random_below(seed, 2) ? " causal=1" : "");
    text_printf(text, "matmul < w%u, value%u\ntranspose 2,1,3\nreshape %ux%u\n", number, number,
                steps, wide);
    text_printf(text, "m%u = dense %u\nadd < m%u, x%u\n", number, wide, number, number);
}

/* Layers over sequences: recurrent ones, attention, dense layers at each place. */
static inline void random_sequences(struct text *text, unsigned *seed)
{
    static const char *const recurrent[] = {"lstm", "gru", "rnn"};
    const unsigned steps = 3 + random_below(seed, 3);
    text_printf(text, "input %ux%u\n", steps, 2 + random_below(seed, 4));
    for (unsigned i = 0, n = 1 + random_below(seed, 3); i < n; i++) {
        const unsigned wide = 2 * (1 + random_below(seed, 4));
        const unsigned kind = random_below(seed, 5);
        if (kind < 3)
            text_printf(text, "%s %u\n", recurrent[kind], wide);
        else if (kind == 3)
            random_attention(text, seed, i, steps, wide);
        else
            text_printf(text, "dense %u\ntanh\n", wide);
    }
    text_add(text, random_below(seed, 2) ? "gru 4 output=last\n" : "flatten\n");
}

static inline void random_dense(struct text *text, unsigned *seed)
{
    for (unsigned i = 0, n = random_below(seed, 5); i < n; i++) {
        text_printf(text, "dense %u%s\n", 2 + random_below(seed, 12),
                    random_below(seed, 3) ? "" : " bias=0");
        if (random_below(seed, 4))
            random_activation(text, seed);
        if (!random_below(seed, 6))
            text_add(text, "dropout 0.2\n");
        if (!random_below(seed, 6))
            text_add(text, "layer_norm\n");
    }
    text_add(text, "dense 3\nloss mse\n");
}

/* The text of one that learns numbers; what the test draws itself it draws from *seed. */
static inline void random_network(unsigned number, unsigned *seed, struct text *text)
{
    *seed = number * 2654435761u + 1;
    switch (random_below(seed, 3)) {
    case 0: random_images(text, seed); break;
    case 1: random_sequences(text, seed); break;
    default: text_printf(text, "input %u\n", 1 + random_below(seed, 9));
    }
    random_dense(text, seed);
}

#endif
