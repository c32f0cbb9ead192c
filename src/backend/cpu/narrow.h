/* narrow.h: how an instance packs a copy of weights for products of narrow numbers.
 *
 * A word of 32 bits holds neighbours along the sum: two bf16, or four i8. Outputs of the product
 * are in lanes:
 *
 *     panel of 16 lanes, word, lane
 *
 * so a line is 16 lanes of one word, which meets one word of a sample, broadcast (tile_bf16_isa.c).
 * A pass over the weights is one stream a panel, for any batch. The sum is padded with zeros to 8
 * words and lanes to 16. A panel begins an odd number of lines behind the one before: panels 64 KB
 * apart would share their sets of L1.
 *
 *     dense, forward     sum along the inputs, lanes are outputs
 *     dense, backward    sum along the outputs, lanes are inputs
 *     conv, forward      sum along (in / elements of a word, h, w, in % these), lanes are outputs
 */
#ifndef PRONY_BACKEND_CPU_NARROW_H
#define PRONY_BACKEND_CPU_NARROW_H

#include "backend/cpu/kernel.h"

enum { NARROW_LANES = 16, NARROW_VISIT = 8 /* words */, NARROW_LINE = 64 /* bytes */ };

struct narrow {
    int64_t depth, lanes;  /* of the product */
    int64_t per_word;      /* elements */
    int64_t kernel;        /* taps of a channel; of a dense layer 1 */
    int64_t words, panels; /* padded */
    int64_t stride;        /* from panel to panel, in words of all lanes: lines */
};

/* Weights of f32 are packed as bf16, those of i8 as they are. */
struct narrow narrow_of(const struct shape *shape, enum dtype dtype, enum narrow_form form);
uint64_t narrow_bytes(const struct shape *shape, enum dtype dtype, enum narrow_form form);

/* A range of panels, from weights as the instance keeps them: f32 in blocks (blocked.h), i8
 * canonical, which have the forward form alone. */
void narrow_pack(const struct shape *shape, enum dtype dtype, enum narrow_form form,
                 const void *weights, void *packed, int64_t first, int64_t last);

static inline const char *narrow_panel(const void *packed, const struct narrow *narrow,
                                       int64_t panel)
{
    return (const char *)packed + panel * narrow->stride * NARROW_LINE;
}

#endif
