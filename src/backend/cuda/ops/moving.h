/* moving.h: the threads of a block that moves rows of data in so many pieces (data.cu). Beside what
 * computes it is one warp of at most 32 registers a thread, for which there is room on a
 * multiprocessor that a large product fills. */
#ifndef PRONY_BACKEND_CUDA_MOVING_H
#define PRONY_BACKEND_CUDA_MOVING_H

#include "backend/cuda/device/launch.h"

#define MOVING_BOUNDS __launch_bounds__(THREADS, 8)

unsigned moving_threads(const struct queue *queue, int64_t pieces);

#endif
