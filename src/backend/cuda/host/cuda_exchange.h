/* cuda_exchange.h: what ranks say to each other from within a captured step.
 *
 * Through the host: an operand is copied to page-locked memory, and a function that CUDA calls on
 * the host when the copy is there gives it to the comm. Another one waits, and what came is copied
 * back. So sums go on beside what the GPU computes, over any transport.
 *
 * Where each rank has a GPU of its own and NCCL is installed, sums are NCCL's, from GPU to GPU.
 * Then there is nothing for the host to do. */
#ifndef PRONY_BACKEND_CUDA_CUDA_EXCHANGE_H
#define PRONY_BACKEND_CUDA_CUDA_EXCHANGE_H

#include "backend/cuda/device/launch.h"

extern "C" {
#include "core/comm/exchange.h"
#include "core/comm/message.h"
}

struct nccl; /* nccl.h */

/* One op that communicates, in one copy of a slot. */
struct talk {
    struct exchange *exchange;
    struct message *message; /* of send and receive; else NULL */
    char *staged;            /* page-locked: its operands, one after the other … */
    size_t bytes;            /* … that long; of wait: NULL and 0, its sum's `staged` counts */
    const struct talk *sum;  /* of wait: what it waits for; else NULL */
    int32_t sum_op;          /* … and the op that began it */
    const struct nccl *nccl; /* or NULL: through the host */
};

struct cuda_exchange {
    struct exchange sums;
    struct messages messages;
    char *pinned;       /* all `staged` */
    struct talk *talks; /* [copy][op]; NULL: the program does not communicate */
};

/* A program that communicates needs a comm; all its ranks call this in the same order. */
enum status cuda_exchange_open(struct plan *plan, const struct plan_options *options);
void cuda_exchange_close(struct plan *plan);
/* When nothing runs any more: the first failure, if there was one. */
enum status cuda_exchange_end(struct plan *plan);

/* What the op says; NULL: it does not communicate, or the plan is dry. */
struct talk *cuda_exchange_talk(const struct plan *plan, int copy, int32_t op);

#endif
