/* stages.cu: see stages.h. */
#include "backend/cuda/host/stages.h"

extern "C" {
#include "base/clock.h"
#include "core/lanes.h"
}

enum { STAGES_MOST = 64 }; /* steps between two syncs; more than that are synced */

struct stages {
    cudaEvent_t zero;
    uint64_t zero_ns, start_ns; /* the host's time of that event, and of the first step */
    int count;
    struct stage list[STAGES_MOST];
};

static enum status make_pair(cudaEvent_t pair[2])
{
    CUDA(cudaEventCreate(&pair[0]));
    CUDA(cudaEventCreate(&pair[1]));
    return STATUS_OK;
}

enum status stages_open(struct plan *plan)
{
    struct stages *stages;
    if (plan->observer.level != OBSERVE_NOTHING || !plan->observer.event)
        return STATUS_OK;
    NEED(plan->stages = stages =
             (struct stages *)arena_array(&plan->arena, 1, sizeof *plan->stages));
    CUDA(cudaEventCreate(&stages->zero));
    for (struct stage &stage : stages->list) {
        TRY(make_pair(stage.copy));
        TRY(make_pair(stage.compute));
    }
    return STATUS_OK;
}

static void free_event(cudaEvent_t event)
{
    if (event)
        cudaEventDestroy(event);
}

void stages_close(struct plan *plan)
{
    if (!plan->stages)
        return;
    free_event(plan->stages->zero);
    for (const struct stage &stage : plan->stages->list)
        for (int end = 0; end < 2; end++) {
            free_event(stage.copy[end]);
            free_event(stage.compute[end]);
        }
}

/* Nothing runs: the event and the middle of the time that it takes here are one moment. */
static enum status set_clocks(const struct plan *plan)
{
    struct stages *stages = plan->stages;
    const uint64_t before_ns = clock_ns();
    CUDA(cudaEventRecord(stages->zero, plan->instance->device->stream));
    CUDA(cudaEventSynchronize(stages->zero));
    stages->start_ns = clock_ns();
    stages->zero_ns = before_ns + (stages->start_ns - before_ns) / 2;
    return STATUS_OK;
}

enum status stages_next(struct plan *plan, struct stage **out)
{
    struct stages *stages = plan->stages;
    *out = NULL;
    if (!stages)
        return STATUS_OK;
    if (stages->count == STAGES_MOST) {
        TRY(cuda_sync(plan));
        plan->pending = true;
    }
    if (stages->count == 0)
        TRY(set_clocks(plan));
    *out = &stages->list[stages->count++];
    (*out)->gather_ns[0] = (*out)->gather_ns[1] = 0;
    return STATUS_OK;
}

static void tell(const struct plan *plan, enum lane lane, uint64_t start_ns, uint64_t end_ns)
{
    const struct event event = {-1, PART_PREPARE, "", lane, start_ns, end_ns};
    plan->observer.event(plan->observer.context, &event);
}

static enum status tell_events(const struct plan *plan, enum lane lane, const cudaEvent_t pair[2])
{
    uint64_t ns[2];
    for (int end = 0; end < 2; end++) {
        float ms;
        CUDA(cudaEventElapsedTime(&ms, plan->stages->zero, pair[end]));
        ns[end] = plan->stages->zero_ns + (uint64_t)((double)ms * 1e6);
    }
    tell(plan, lane, ns[0], ns[1]);
    return STATUS_OK;
}

enum status stages_hand_out(struct plan *plan)
{
    struct stages *stages = plan->stages;
    if (!stages || !stages->count)
        return STATUS_OK;
    const uint64_t end_ns = clock_ns();
    for (int i = 0; i < stages->count; i++) {
        const struct stage *stage = &stages->list[i];
        if (stage->gather_ns[1])
            tell(plan, LANE_GATHER, stage->gather_ns[0], stage->gather_ns[1]);
        TRY(tell_events(plan, LANE_COPY, stage->copy));
        TRY(tell_events(plan, LANE_COMPUTE, stage->compute));
    }
    tell(plan, LANE_ALL, stages->start_ns, end_ns);
    stages->count = 0;
    return STATUS_OK;
}
