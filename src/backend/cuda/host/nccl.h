/* nccl.h: sums from GPU to GPU by NVIDIA's NCCL, loaded where it is installed. It wants a GPU for
 * each rank; ranks that share one, or of which one has no NCCL, sum through the host. */
#ifndef PRONY_BACKEND_CUDA_NCCL_H
#define PRONY_BACKEND_CUDA_NCCL_H

#include "backend/cuda/device/launch.h"

struct nccl;

/* To be called by all ranks of the comm; they agree. Kept by the device, for this comm. *out is
 * NULL where sums go through the host. */
enum status nccl_join(struct device *device, struct comm *comm, const struct nccl **out);
void nccl_leave(struct device *device);
/* As NCCL counts, 22809 of 2.28.9; 0: this device's ranks do not sum by it. */
int nccl_version(const struct device *device);

/* Replaces the numbers by their sums over the ranks, in the queue's stream; one launch for all that
 * are between begin and end. */
void nccl_begin(const struct nccl *nccl, struct queue *queue);
void nccl_add(const struct nccl *nccl, struct queue *queue, float *numbers, size_t count);
void nccl_end(const struct nccl *nccl, struct queue *queue);

#endif
