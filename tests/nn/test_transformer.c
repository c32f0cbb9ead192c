/* test_transformer.c: a transformer block written as a network learns, and sees what it may see. */
#include "nn/network.h"
#include "rig.h"

#include <stdio.h>

enum { TIME = 6, TOKENS = 8, ROWS = 512, BATCH = 32 };

struct block {
    struct network *network;
    struct params params;
    struct program *program;
    struct ready ready;
};

static bool block_open(struct block *block, struct rig *rig, const char *text, enum program_use use,
                       int32_t batch)
{
    *block = (struct block){0};
    params_init(&block->params, DTYPE_F32);
    struct compile_options options = {.batch = batch, .use = use};
    enum status status = text ? network_parse("block", text, strlen(text), &block->network)
                              : network_open("examples/transformer.net", &block->network);
    if (!CHECK_OK(status) ||
        !CHECK_OK(network_compile(block->network, &block->params, &options, &block->program)))
        return false;
    params_fill(&block->params, 5);
    return CHECK_OK(network_rate(block->network, NULL, &block->params.control.rate)) &&
           ready_open(&block->ready, rig, &block->params, block->program);
}

static void block_close(struct block *block)
{
    ready_close(&block->ready);
    program_free(block->program);
    params_free(&block->params);
    network_free(block->network);
}

static void draw_tokens(int32_t *tokens, int64_t count)
{
    unsigned seed = 1;
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        tokens[i] = (int32_t)(seed >> 16) % TOKENS;
    }
}

/* Which place to look at depends on the place alone: only attention and positions can learn it. */
ON_BACKENDS(learns_to_reverse_a_sequence)
{
    static int32_t tokens[ROWS][TIME], labels[ROWS][TIME];
    float loss[ROWS / BATCH], right[ROWS / BATCH], share = 0;
    struct block block;
    draw_tokens(tokens[0], (int64_t)ROWS * TIME);
    for (int row = 0; row < ROWS; row++)
        for (int t = 0; t < TIME; t++)
            labels[row][t] = tokens[row][TIME - 1 - t];
    if (block_open(&block, rig, NULL, USE_TRAINING, BATCH)) {
        ready_bind(&block.ready, block.program, (const char *[]){"x", "label", "loss", "right"},
                   (void *[]){tokens, labels, loss, right},
                   (int64_t[]){ROWS, ROWS, ROWS / BATCH, ROWS / BATCH}, 4, NULL, 0, 0);
        for (int epoch = 0; epoch < 100 && share < 0.99f; epoch++) {
            ready_run(&block.ready, PARTS_ALL, 0, ROWS / BATCH);
            share = 0;
            for (int step = 0; step < ROWS / BATCH; step++)
                share += right[step] / (float)(ROWS * TIME);
        }
        CHECK(share >= 0.99f);
    }
    block_close(&block);
}

/* The last token changes what is said at its own place, and nowhere before. */
ON_BACKENDS(causal_attention_sees_nothing_that_comes_later)
{
    static const char text[] = "input 6 tokens=8\nembedding 4\nx = position\n"
                               "matmul second < x, x\nweights = softmax causal=1\n"
                               "matmul < weights, x\ndense 8\n";
    int32_t tokens[2][TIME];
    float y[2][TIME][TOKENS];
    struct block block;
    draw_tokens(tokens[0], TIME);
    memcpy(tokens[1], tokens[0], sizeof tokens[0]);
    tokens[1][TIME - 1] = (tokens[0][TIME - 1] + 1) % TOKENS;
    if (block_open(&block, rig, text, USE_INFERENCE, 2)) {
        ready_bind(&block.ready, block.program, (const char *[]){"x", "y"}, (void *[]){tokens, y},
                   (int64_t[]){2, 2}, 2, NULL, 0, 0);
        ready_run(&block.ready, PARTS_ALL, 0, 1);
        CHECK(!memcmp(y[0], y[1], sizeof y[0] - sizeof y[0][0]));
        CHECK(memcmp(y[0][TIME - 1], y[1][TIME - 1], sizeof y[0][0]));
    }
    block_close(&block);
}

CHECK_MAIN
