/* side_stream.h: work that nothing waits for but the end of the step, in a stream of its own.
 *
 * The list of ops is one valid order: what shares no bytes may run at once. On the way from the
 * data to the gradients each op needs the one before it; updates, losses that are only stored and
 * counts of right answers are beside that way, and would lengthen it by their launches. An op that
 * writes where side-stream work still reads or writes, or reads what it writes, waits for it. So
 * that this is rare, activations that such work reads have places of their own; others take turns.
 */
#ifndef PRONY_BACKEND_CUDA_SIDE_STREAM_H
#define PRONY_BACKEND_CUDA_SIDE_STREAM_H

#include "backend/cuda/device/launch.h"

struct plan;

/* What a plan has for it. */
struct side_stream {
    uint32_t *operands; /* [op]: bit i: what it does on the side stream touches its operand i; 0:
                           nothing is */
    char *workspace;    /* device; of what is done in `stream`, in its order … */
    uint64_t bytes;
    char *twin_workspace; /* … and of what is done in `twin`, which that may overtake */
    uint64_t twin_bytes;
    uint64_t places_bytes;     /* in a slot: of activations that side-stream work touches */
    cudaStream_t stream, twin; /* nothing runs in them: they are captured. NULL: all is in order */
    cudaEvent_t fork;          /* where work leaves the step … */
    cudaEvent_t join;          /* … where what the twin does ends … */
    cudaEvent_t *done;         /* [step], … and where that of a step ends */
    bool *pending;             /* [step], while steps are enqueued: nobody has waited for it */
};

enum : uint32_t {
    SIDE_WHOLE_OP = UINT32_MAX, /* the whole op is done on the side stream */
    SIDE_DENSE_SGD = 0x7f       /* all operands but dx */
};

/* Chooses what is done on the side stream, when the kernels are known, and how much workspace it
 * takes. */
enum status side_stream_choose(struct plan *plan);
enum status side_stream_open(struct plan *plan);
void side_stream_close(struct plan *plan);

/* Enqueues the step `s`, after whatever it must wait for. */
void side_stream_enqueue(const struct plan *plan, const struct call *call, int32_t s,
                         struct queue *queue);
/* Waits for all that is done on the side stream. */
void side_stream_join(const struct plan *plan, struct queue *queue);

#endif
