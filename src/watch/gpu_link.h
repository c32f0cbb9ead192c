/* gpu_link.h: how fast bytes come to a GPU and back when their memory is pinned: what a program
 * that copies pageable memory could have. */
#ifndef PRONY_WATCH_GPU_LINK_H
#define PRONY_WATCH_GPU_LINK_H

#include "base/status.h"

/* Bytes per second, measured with CUDA's driver, which is loaded for it: a second or less. `gpu` is
 * CUDA's number. STATUS_UNSUPPORTED where there is no driver, no such GPU, or no memory left. */
enum status gpu_link_measure(int gpu, double *up, double *down);

#endif
