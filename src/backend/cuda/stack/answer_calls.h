/* answer_calls.h: plans that answer calls (plan_options.answering): the inputs of each are read
 * from host memory when it is asked, and its outputs are in host memory when it is answered. For
 * stacks of dense layers (core/pass/stack_find.h) at inference.
 *
 * Calls go through a mailbox. Either each is a launch, captured once for each of its slots
 * (answer_warp.cu, answer_block.cu: one kernel of one block; answer_layers.cu: one kernel a layer),
 * or, resident, a kernel stays and takes one after the other (answer_warp.cu, answer_block.cu,
 * stack_grid.cu). Calls of wide layers that are asked before the last one was collected are taken
 * by such a kernel too: it is launched once for all of them, and told to leave when they have been
 * waited for. The host does not synchronise: it looks for the answer. */
#ifndef PRONY_BACKEND_CUDA_ANSWER_CALLS_H
#define PRONY_BACKEND_CUDA_ANSWER_CALLS_H

#include "backend/cuda/device/mailbox.h"
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/stack/stack_run.h"

struct answer_layer {
    int32_t in, out;
    enum activation function;
    const float *w, *b; /* [in][out], [out] or NULL */
};

/* What a network's kernels are told. */
struct answer_net {
    struct mailbox mail;
    int32_t batch, layers;
    int32_t width;           /* narrow: lanes of a sample … */
    int32_t span;            /* … and floats from the first parameter to behind the last, … */
    const float *parameters; /* … which begin here */
    struct answer_layer layer[DENSE_STACK_MOST];
};

enum { ANSWER_STREAMS = 4 };

struct answer {
    const struct kernel *kernel; /* the row that takes it */
    const cudaDeviceProp *gpu;
    struct answer_net net;
    struct stack *stack; /* the plan's */
    struct stack *grid;  /* not narrow: the kernel that stays; NULL: it cannot */
    bool resident;
    bool queued;                       /* what can stay is sent by the first call */
    bool waits;                        /* a kernel has been launched, and not been told to leave */
    uint64_t *memory;                  /* pinned, mapped: the mailbox */
    cudaGraphExec_t slots[MAIL_SLOTS]; /* what answers the call in each; not resident */
    /* Of narrow networks several calls are answered at once, each in its slot's stream: by far most
     * of such a kernel's time it waits for the bus. All NULL: in the device's. */
    cudaStream_t streams[ANSWER_STREAMS];
    float *between;  /* device: activations; of answer_layers.cu */
    uint64_t bytes;  /* of device memory */
    uint32_t *order; /* host, or NULL */
    uint64_t samples;
    uint64_t asking, answering; /* places in the data of the next call to ask, to collect … */
    uint32_t asked, collected;  /* … and the numbers of the last ones asked and collected */
    const float *x;             /* bound; [rows][in] */
    float *y;                   /* bound, or NULL; [rows][out] */
};

/* What a row for calls does. Those of narrow networks may stay; for others the grid does. */
struct answer_kernel {
    bool stays;
    /* Device memory for what lies between layers, zeroed; NULL: none. */
    uint64_t (*bytes)(const struct answer_net *net);
    /* The call in the slot of number `first` or, if it stays, all from that on. NULL: the grid's
     * kernel alone answers. */
    cudaError_t (*launch)(struct answer *answer, uint32_t first, bool stays, cudaStream_t stream);
    int32_t (*launches)(const struct answer_net *net, int32_t layer); /* of a call; NULL: one */
};

/* answer_choice.cu. What kernels are told but addresses; and why no row takes the calls of a plan
 * (static text). */
struct answer_net answer_sizes(const struct program *program);
const char *answer_why_none(const struct plan *plan);

/* answer_calls.cu. Leaves plan->answer NULL where calls are steps like others; those of a resident
 * kernel are refused then. */
enum status answer_prepare(struct plan *plan, enum answering answering);
/* Of one call, for this op; 0: another op's, or one that covers many calls. */
int32_t answer_launches(const struct plan *plan, int32_t op);
enum status answer_bind(struct plan *plan, const struct binding *binding);
enum status answer_run(struct plan *plan, int64_t calls);
enum status answer_sync(struct plan *plan);
void answer_release(struct plan *plan);

/* answer_warp.cu: is one warp enough? answer_block.cu: shared memory of the block.
 * answer_layers.cu: do the layers fit? */
bool answer_warp_takes(const struct answer_net *net);
int64_t answer_block_bytes(const struct answer_net *net);
bool answer_layers_take(const struct answer_net *net, int64_t shared_bytes);

#endif
