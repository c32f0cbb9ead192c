/* lstm_persistent.h: the steps of an lstm in one kernel, for layers of up to 256 units. */
#ifndef PRONY_BACKEND_CUDA_LSTM_PERSISTENT_H
#define PRONY_BACKEND_CUDA_LSTM_PERSISTENT_H

#include "backend/cuda/recurrent/recurrent.h"

/* Sums are x·Wx + bx, [n, steps, gates]; gates may lie there too. NULL: not there or not wanted. */
struct lstm_forward {
    const float *wh, *bh, *h0, *c0, *sums;
    float *y, *hn, *cn, *gates, *cells;
    void *words; /* lstm_words_bytes */
};

struct lstm_backward {
    const float *wh, *gates, *cells, *c0, *dy, *dhn, *dcn;
    float *dh0, *dc0, *dgates;
    void *words;
};

/* Is it narrow enough, and the device wide enough? */
bool lstm_is_persistent(int64_t hidden, int32_t multiprocessors);
/* Device memory by which blocks exchange. */
uint64_t lstm_words_bytes(int64_t n, bool back);
void lstm_persistent(struct queue *queue, const struct sequence &sequence,
                     const struct lstm_forward &lstm);
void lstm_persistent_back(struct queue *queue, const struct sequence &sequence,
                          const struct lstm_backward &lstm);

#endif
