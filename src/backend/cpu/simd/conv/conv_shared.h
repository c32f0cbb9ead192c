/* conv_shared.h: the seam between the loops of convolution (conv_lanes.c, conv_gemm.c: tiles,
 * bands, threads, written once) and its kernels (conv_isa.c: compiled once per ISA). Tiles are
 * [element][lane], see vec_lanes.h. */
#ifndef PRONY_BACKEND_CPU_SIMD_CONV_CONV_SHARED_H
#define PRONY_BACKEND_CPU_SIMD_CONV_CONV_SHARED_H

#include <stdint.h>

enum { CONV_OUTPUTS = 8, CONV_PIXELS = 4 }; /* the largest blocks of a kernel */

/* A few outputs at a few neighbouring pixels, each a sum over taps: `taps` of each of `rows` rows
 * of the weights, the rows being row_taps apart in the lists. */
struct conv_sum {
    const float *x;         /* where a tap of offset 0 finds its element for the first pixel */
    const int64_t *offsets; /* from there, by tap */
    const float *w;         /* [tap][outputs] */
    int64_t rows, taps, row_taps;
    int64_t step;  /* from a pixel to the next, in x … */
    int64_t place; /* … and in y */
    float *y;      /* the first pixel of the first output … */
    int64_t plane; /* … and from an output to the next */
};

/* The gradients of a few outputs' weights at a few taps: sums over all pixels and lanes. */
struct conv_wgrad {
    const float *x;
    const int64_t *offsets; /* [taps] */
    const float *dy;        /* [outputs][rows][columns] */
    int64_t plane;          /* from an output to the next in dy */
    int64_t rows, columns;
    int64_t row_step, step; /* from a row, and a pixel, to the next in x */
    float *dw;              /* added to: [outputs][taps], outputs `stride` apart */
    int64_t stride;
};

/* Elements of the source for neighbouring pixels, at most a vector of them. */
struct conv_piece {
    int64_t at;    /* in the panel */
    int64_t from;  /* the first one's place in the channel of the first sample … */
    uint32_t mask; /* … and which of them there are: the others are padding, and 0. Bits are lanes,
                      with a step of 2 every second one */
};

/* A panel of patches, [tap][pixel]: taps are channel by channel, with the same pieces in each. */
struct conv_gather {
    const float *x;                  /* the first channel of the first sample */
    int64_t plane;                   /* from a channel to the next */
    int64_t step;                    /* from a pixel to the next */
    int64_t ahead;                   /* elements that far behind these are fetched into L2 */
    const struct conv_piece *pieces; /* [taps][count], in the order of `at` */
    int64_t taps, count;
    float *out; /* whole vectors are written: up to a vector more than the panel */
    int64_t lead;
};

/* A run of pixels of one channel, each with its taps at the same offsets in x. */
struct conv_flat {
    const float *x;
    const int64_t *offsets; /* [taps] */
    int64_t taps, count;    /* count: whole vectors */
    float *w;               /* [taps] */
    float *y;               /* [count] */
};

/* What follows a convolution: y = f(scale · sum + shift + add), bounded. */
struct conv_after {
    float *scale, *shift; /* per output */
    const float *add;     /* like y, or NULL */
    int32_t function;     /* enum activation, without an alpha */
    float low, high;      /* infinite: no bounds */
};

struct conv_kernels {
    int64_t lanes;
    int64_t accumulators; /* outputs × pixels, outputs × taps: no more */
    void (*from_samples)(const float *x, int64_t stride, int64_t samples, int64_t count,
                         float *out);
    void (*to_samples)(const float *in, int64_t count, float *y, int64_t stride, int64_t samples);
    /* `count` taps from number `first` on */
    void (*gather)(const struct conv_gather *gather, int64_t first, int64_t count);
    /* Neighbouring pixels of one output, the first at `place` of y; sums may be y. */
    void (*finish)(const struct conv_after *after, int64_t output, int64_t place, const float *sums,
                   int64_t count, float *y);
    /* The same for `lanes` outputs, `plane` apart in y, from sums [pixel][lead]. */
    void (*finish_transposed)(const struct conv_after *after, int64_t output, int64_t place,
                              int64_t plane, const float *sums, int64_t lead, int64_t count,
                              float *y);
    /* to[r · pitch + i] = x[r · line + i · stride] */
    void (*pick_rows)(const float *x, int64_t line, int64_t stride, int64_t rows, int64_t count,
                      float *to, int64_t pitch);
    void (*flat_sum)(const struct conv_flat *flat);   /* y[i] = Σ_k w[k] · x[offsets[k] + i] */
    void (*flat_wgrad)(const struct conv_flat *flat); /* w[k] += Σ_i y[i] · x[offsets[k] + i] */
    /* by outputs and pixels; NULL where the accumulators do not suffice */
    void (*sum[CONV_OUTPUTS + 1][CONV_PIXELS + 1])(const struct conv_sum *sum);
    /* by outputs and taps */
    void (*wgrad[CONV_OUTPUTS + 1][CONV_PIXELS + 1])(const struct conv_wgrad *wgrad);
};

#endif
