/* test_whole_choice.c: how kernels of the CUDA backend that run a stack of layers whole lay out
 * memory: known without a GPU. Which of them runs: test_cuda_choice.c. */
#include "backend/cuda/stack/stack_block_layout.h"
#include "backend/cuda/stack/stack_grid_layout.h"
#include "backend/cuda/stack/stack_replicas_layout.h"
#include "check.h"

static const struct stack_limits h200 = {.multiprocessors = 132, .shared_bytes = 227 * 1024};

/* A trained stack of these widths, the last one 0. */
static struct dense_stack stack(const int32_t *widths)
{
    struct dense_stack dense = {.loss_grad = 1, .optimiser = -1};
    for (; widths[dense.layers + 1]; dense.layers++)
        dense.layer[dense.layers] = (struct dense_stack_layer){.in = widths[dense.layers],
                                                               .out = widths[dense.layers + 1],
                                                               .activation = ACTIVATION_SIGMOID};
    return dense;
}

#define STACK(...) stack((const int32_t[]){__VA_ARGS__, 0})

/* As an optimiser makes it that keeps so many numbers of each weight. */
static struct dense_stack learnt(struct dense_stack dense, int32_t states)
{
    dense.optimiser = 1;
    dense.states = states;
    return dense;
}

TEST(lines_of_a_block_do_not_overlap)
{
    const struct dense_stack dense = STACK(7, 16, 9, 3);
    struct block_layout layout;
    block_lay_out(&dense, 5, &layout);
    CHECK_EQUAL_INT(layout.width, 16);
    CHECK_EQUAL_INT(layout.lanes, 96); /* six samples of 16 lanes */
    CHECK_EQUAL_INT(layout.update_count, 16 * 3 + 9 * 5 + 3 * 4);
    CHECK_EQUAL_INT(layout.threads, 128);
    CHECK_EQUAL_INT(layout.lines, 3 * BLOCK_LAYER(16));
    CHECK(layout.line >= BLOCK_D(16, 3, 2) + 16);
    CHECK(layout.losses >= layout.lines + 6 * layout.line);
    CHECK_EQUAL_INT(layout.updates * 4 + 12 * layout.update_count, layout.shared_bytes);
    CHECK_EQUAL_INT(layout.kept, layout.updates);
}

/* Four numbers a state and update, in whole quadruples. */
TEST(what_optimisers_keep_has_its_place)
{
    const struct dense_stack plain = STACK(7, 16, 9, 3), dense = learnt(plain, 2);
    struct block_layout layout, without;
    block_lay_out(&plain, 5, &without);
    block_lay_out(&dense, 5, &layout);
    CHECK_EQUAL_INT(layout.kept % 4, 0);
    CHECK(layout.kept >= layout.paces + PACES * PACE_FLOATS);
    CHECK_EQUAL_INT(layout.updates, layout.kept + 2 * 4 * layout.update_count);
    CHECK_EQUAL_INT(layout.shared_bytes, without.shared_bytes + 32 * layout.update_count);
}

/* Every sample is some block's and some chunk's, there is room for a line of each sample of a
 * chunk, and what follows begins where that ends. */
TEST(blocks_share_many_samples)
{
    const struct dense_stack small = STACK(4, 3, 4, 5, 1),
                             wide = learnt(STACK(32, 32, 31, 32, 2), 2);
    const int32_t batches[] = {1, 65, 150, 257, 1000, 16384, 100000, 1000000, 1000000000};
    for (size_t i = 0; i < 2 * sizeof batches / sizeof *batches; i++) {
        const struct dense_stack *dense = i % 2 ? &wide : &small;
        const int32_t batch = batches[i / 2];
        struct replicas_layout layout;
        if (!CHECK(replicas_lay_out(dense, batch, &h200, &layout)))
            continue;
        CHECK(layout.blocks <= h200.multiprocessors);
        CHECK((int64_t)layout.blocks * layout.share >= batch);
        CHECK((int64_t)(layout.blocks - 1) * layout.share < batch); /* none has nothing to do */
        CHECK((int64_t)layout.chunks * layout.samples >= layout.share);
        CHECK(layout.samples % 32 == 0 && layout.samples <= REPLICAS_THREADS);
        CHECK(layout.line / 4 % 2 == 1 && layout.intake / 4 % 2 == 1);
        CHECK(layout.line >= layout.layer[dense->layers - 1].d + 4);
        CHECK(layout.sums == layout.kept + layout.states * layout.numbers);
        CHECK(layout.places >= layout.tiles + REPLICAS_TILE_FLOATS * layout.tile_count);
        CHECK(layout.paces % 4 == 0 && layout.intakes % 4 == 0 && layout.lines % 4 == 0);
        CHECK(layout.intakes + 2 * layout.samples * layout.intake <= layout.lines);
        CHECK(layout.lines + layout.samples * layout.line <= layout.floats);
        CHECK(layout.lines + 3 * layout.packets * layout.pieces <= layout.floats);
        CHECK(layout.shared_bytes == 4 * (int64_t)layout.floats);
        CHECK(layout.shared_bytes <= h200.shared_bytes);
    }
}

/* Every layer's tiles cover it, and nothing lies over anything else. */
TEST(tiles_cover_every_layer)
{
    const struct dense_stack dense = STACK(4, 1600, 2600, 1600, 2500, 1);
    for (int32_t batch = 1; batch <= GRID_TRAINED_MOST; batch++) {
        struct grid_layout layout = {0};
        int32_t at = 0;
        int64_t weights = 0;
        if (!CHECK(grid_lay_out(&dense, batch, &h200, &layout)))
            continue;
        CHECK_EQUAL_INT(layout.rows * layout.columns, 132);
        CHECK(layout.samples >= batch && layout.samples >= 3);
        CHECK(layout.shared_bytes + GRID_OWN_BYTES <= h200.shared_bytes);
        CHECK_EQUAL_INT(grid_sharers(&layout, 0), 1); /* four inputs: each block has them all */
        CHECK_EQUAL_INT(grid_sharers(&layout, 1), 12);
        for (int32_t l = 0; l < dense.layers; l++) {
            const int32_t rows = grid_sharers(&layout, l), columns = grid_across(&layout, l);
            const int32_t at_once = GRID_SETS_AT_ONCE(layout.samples);
            const int64_t tile = 16 * (int64_t)layout.layer[l].passes * layout.layer[l].quads;
            CHECK(4 * layout.layer[l].quads * rows >= dense.layer[l].in);
            CHECK(4 * layout.layer[l].sets * (layout.layer[l].copied ? 1 : columns) >=
                  dense.layer[l].out);
            CHECK(layout.layer[l].x > at && layout.layer[l].bias > layout.layer[l].x);
            at = layout.layer[l].bias;
            CHECK_EQUAL_INT(layout.layer[l].far + layout.layer[l].near * tile, at_once * tile);
            weights += layout.layer[l].near * tile * 4;
        }
        CHECK(layout.layer[0].weights * 4 + weights <= layout.shared_bytes);
        const bool few = batch <= GRID_BATCH_MOST; /* then most of a block's room holds weights */
        CHECK(weights > (few ? 100 : 70) * 1024);
        CHECK(layout.far_bytes < (few ? 40 : 44) << 20);
    }
}

/* Every block must hear of all others, so there are none that own nothing. */
TEST(small_networks_take_fewer_blocks)
{
    const struct dense_stack dense = STACK(4, 64, 64, 3), one = STACK(400, 5);
    struct grid_layout layout = {0};
    CHECK(grid_lay_out(&dense, 3, &h200, &layout));
    CHECK_EQUAL_INT(layout.rows, 2);
    CHECK_EQUAL_INT(layout.columns, 2);
    CHECK(grid_lay_out(&one, 3, &h200, &layout));
    CHECK_EQUAL_INT(layout.columns, 1);
}

CHECK_MAIN
