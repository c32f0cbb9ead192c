/* conv_narrow.h: convolutions of narrow numbers, as products of pixels and packed weights
 * (product_narrow.h).
 *
 * First the source becomes an image of words, with its padding: a word has the neighbouring
 * channels of one pixel. So a tap of neighbouring pixels is neighbouring words, and a tile of 14
 * pixels is packed by one load and one store a tap, whatever the kernel's size. Sums run along
 * (channels of a word, h, w), and so do the weights (narrow.h). One group; others have kernels of
 * their own. */
#ifndef PRONY_BACKEND_CPU_SIMD_NARROW_CONV_NARROW_H
#define PRONY_BACKEND_CPU_SIMD_NARROW_CONV_NARROW_H

#include "backend/cpu/conv_relation.h"
#include "backend/cpu/simd/narrow/product_narrow.h"

struct narrow_conv {
    struct narrow_product product; /* x is the image; its store and context are the caller's */
    struct conv_relation relation;
    const char *x;   /* [n, c, h, w] … */
    int64_t x_bytes; /* … of an element */
    uint32_t pad;    /* the word beyond the image */
    /* worked out */
    int64_t height, width, planes; /* of a sample's image of words, padded */
    uint32_t *image;
    int64_t *offsets; /* [words]: where a tap finds the first pixel's word; -1: beyond the taps */
};

bool narrow_conv_suits(const struct conv_relation *relation);
uint64_t narrow_conv_bytes(const struct narrow_kernels *kernels, const struct narrow *narrow,
                           const struct conv_relation *relation, int threads);
void narrow_conv_run(const struct call *call, struct narrow_conv *conv);

#endif
