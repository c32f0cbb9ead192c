/* stages.h: how long the steps of staged data take to gather, to copy and to compute, for who asks
 * (core/lanes.h). Copies and computing lie between events, in the streams that they are in anyway;
 * one more event, which the host waits for, puts both clocks beside each other, to some
 * microseconds. */
#ifndef PRONY_BACKEND_CUDA_STAGES_H
#define PRONY_BACKEND_CUDA_STAGES_H

#include "backend/cuda/host/cuda_device.h"

struct stage {
    uint64_t gather_ns[2]; /* from, to */
    cudaEvent_t copy[2], compute[2];
};

/* Does nothing unless the plan's observer asks for it. */
enum status stages_open(struct plan *plan);
void stages_close(struct plan *plan);
/* That of the step which begins; NULL: nobody asks. */
enum status stages_next(struct plan *plan, struct stage **out);
/* The times of all steps since the last time; they are done. */
enum status stages_hand_out(struct plan *plan);

/* Records the event, where there is a stage. */
#define STAGE_MARK(stage, event, stream)                                                           \
    do {                                                                                           \
        if (stage)                                                                                 \
            CUDA(cudaEventRecord((stage)->event, stream));                                         \
    } while (0)

#endif
