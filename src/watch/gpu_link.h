/* gpu_link.h: how fast bytes come to a GPU and back when their memory is pinned: what a program
 * that copies pageable memory could have. */
#ifndef PRONY_WATCH_GPU_LINK_H
#define PRONY_WATCH_GPU_LINK_H

#include "base/status.h"

#include <stdint.h>

/* Bytes per second, and who else is on the GPU. */
struct gpu_link {
    double up, down;
    double others_busy; /* per cent: how much another process computed at most; NaN: not told */
};

/* Measured with CUDA's driver, which is loaded for it: a second or less. `gpu` is CUDA's number,
 * `since_us` when others count from, in µs since 1970. STATUS_UNSUPPORTED where there is no driver,
 * no such GPU, or no memory left. */
enum status gpu_link_measure(int gpu, uint64_t since_us, struct gpu_link *link);

#endif
