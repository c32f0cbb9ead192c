/* cuda_bind.cu: bound data. Inputs are copied to the GPU when they are bound and stay there, unless
 * the binding wants them staged or there is no room (intake.cu); outputs are collected there, and
 * sync brings back the rows that were stored, and no others: several plans may write rows of the
 * same view. The kernels find all of it through the feed and the view list of the plan, whose
 * addresses never change: captured steps stay valid. */
#include "backend/cuda/answer_calls.h"
#include "backend/cuda/stages.h"

#include <cstring>

extern "C" {
#include "base/memory.h"
#include "core/binding.h"
}

static void forget_hosts(struct plan *plan)
{
    for (int32_t i = 0; i < plan->program->tensor_count; i++) {
        plan->mirrors[i].host = NULL;
        if (!plan->mirrors[i].mapped)
            mem_free(plan->mirrors[i].flags);
        plan->mirrors[i].flags = NULL;
    }
}

/* Afterwards nothing is bound, also for the kernels. */
static enum status forget_views(struct plan *plan)
{
    const size_t tensors = (size_t)plan->program->tensor_count;
    cudaStream_t stream = plan->instance->device->stream;
    forget_hosts(plan);
    CUDA(cudaMemsetAsync(plan->feed, 0, sizeof *plan->feed, stream));
    CUDA(cudaMemsetAsync(plan->views, 0, tensors * sizeof *plan->views, stream));
    return STATUS_OK;
}

/* What a call hands out is mostly little: written straight to host memory it is there when the
 * kernels are done, where copies would cost more than the kernels. */
enum { MAPPED_MOST = 1 << 20 };

void cuda_forget_mirror(struct mirror *mirror)
{
    if (mirror->mapped)
        cudaFreeHost(mirror->data);
    else
        cudaFree(mirror->data);
    cudaFreeHost(mirror->pinned);
    mirror->pinned = NULL;
    mirror->data = NULL;
    mirror->room = 0;
    mirror->mapped = false;
}

static enum status make_room(const struct device *device, struct mirror *mirror, uint64_t bytes,
                             bool mapped)
{
    void *memory;
    if (mirror->room >= bytes && mirror->mapped == mapped)
        return STATUS_OK;
    cuda_forget_mirror(mirror);
    if (mapped)
        CUDA(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped));
    else
        TRY(cuda_alloc(device, bytes, "the bound data", &memory));
    mirror->data = (uint32_t *)memory;
    mirror->room = bytes;
    mirror->mapped = mapped;
    return STATUS_OK;
}

/* Room for the rows of a few steps, here and in page-locked memory. */
static enum status stage_view(struct plan *plan, const struct view *view)
{
    struct mirror *mirror = &plan->mirrors[view->tensor];
    const uint64_t bytes = plan->intake.parts * plan->program->tensors[view->tensor].bytes;
    void *memory;
    TRY(make_room(plan->instance->device, mirror, bytes, false));
    if (!mirror->pinned && plan->intake.how != INGEST_DIRECT) {
        CUDA(cudaHostAlloc(&memory, mirror->room, cudaHostAllocDefault));
        mirror->pinned = (char *)memory;
    }
    mirror->host = view->data;
    return STATUS_OK;
}

static enum status mirror_view(struct plan *plan, const struct view *view)
{
    const struct device *device = plan->instance->device;
    struct mirror *mirror = &plan->mirrors[view->tensor];
    const bool is_output = binding_port(plan->program, view->tensor)->kind == OP_store;
    mirror->rows = (uint64_t)view->rows;
    mirror->row_bytes = binding_row_bytes(plan->program, view->tensor);
    const uint64_t bytes = mirror->rows * mirror->row_bytes;
    const uint64_t all = bytes + (is_output ? mirror->rows : 0);
    if (!is_output && plan->intake.how != INGEST_RESIDENT)
        return stage_view(plan, view);
    TRY(make_room(device, mirror, all, is_output && all <= MAPPED_MOST));
    mirror->written = is_output ? (uint8_t *)mirror->data + bytes : NULL;
    if (mirror->mapped) {
        mirror->flags = mirror->written;
        memset(mirror->flags, 0, mirror->rows);
    } else if (is_output) {
        NEED(mirror->flags = (uint8_t *)mem_alloc(mirror->rows));
        CUDA(cudaMemsetAsync(mirror->written, 0, mirror->rows, device->stream));
    } else {
        CUDA(cudaMemcpyAsync(mirror->data, view->data, bytes, cudaMemcpyHostToDevice,
                             device->stream));
    }
    mirror->host = view->data;
    return STATUS_OK;
}

static enum status copy_order(struct plan *plan, const struct binding *binding)
{
    const struct device *device = plan->instance->device;
    const uint64_t bytes = (uint64_t)binding->order_count * sizeof *binding->order;
    void *memory;
    cudaFree(plan->order);
    plan->order = NULL;
    if (!binding->order)
        return STATUS_OK;
    TRY(cuda_alloc(device, bytes, "the order of the data", &memory));
    plan->order = (uint32_t *)memory;
    CUDA(cudaMemcpyAsync(plan->order, binding->order, bytes, cudaMemcpyHostToDevice,
                         device->stream));
    return STATUS_OK;
}

/* Tells the kernels; `views` is a host array of one element per tensor. */
static enum status point_kernels(struct plan *plan, const struct binding *binding, uint64_t samples,
                                 struct feed_view *views)
{
    cudaStream_t stream = plan->instance->device->stream;
    const struct feed feed = {binding->start, plan->order, samples, plan->intake.parts - 1,
                              plan->intake.parts};
    for (int32_t i = 0; i < binding->view_count; i++) {
        const struct view *view = &binding->views[i];
        const struct mirror *mirror = &plan->mirrors[view->tensor];
        views[view->tensor].data = mirror->data;
        views[view->tensor].staged = plan->intake.how != INGEST_RESIDENT &&
                                     binding_port(plan->program, view->tensor)->kind == OP_load;
        views[view->tensor].rows = mirror->rows;
        views[view->tensor].written = mirror->written;
    }
    CUDA(cudaMemcpyAsync(plan->feed, &feed, sizeof feed, cudaMemcpyHostToDevice, stream));
    CUDA(cudaMemcpyAsync(plan->views, views, sizeof *views * (size_t)plan->program->tensor_count,
                         cudaMemcpyHostToDevice, stream));
    CUDA(cudaStreamSynchronize(stream));
    return STATUS_OK;
}

static enum status bind_views(struct plan *plan, const struct binding *binding, uint64_t samples)
{
    TRY(intake_choose(plan, binding));
    for (int32_t i = 0; i < binding->view_count; i++)
        TRY(mirror_view(plan, &binding->views[i]));
    TRY(copy_order(plan, binding));
    TRY(intake_begin(plan, binding, samples));
    struct feed_view *views =
        (struct feed_view *)mem_array((size_t)plan->program->tensor_count, sizeof *views);
    NEED(views);
    enum status status = point_kernels(plan, binding, samples, views);
    mem_free(views);
    return status;
}

enum status cuda_bind(struct plan *plan, const struct binding *binding)
{
    uint64_t samples;
    if (plan->dry)
        FAIL(STATUS_INPUT, "a dry plan cannot be bound");
    if (plan->answer)
        return answer_bind(plan, binding);
    TRY(binding_check(plan->program, binding, &samples));
    TRY(cuda_sync(plan)); /* what ran so far belongs to the views bound so far */
    TRY(forget_views(plan));
    enum status status = bind_views(plan, binding, samples);
    if (status != STATUS_OK)
        forget_hosts(plan); /* so that nothing runs on what the kernels have not been told of */
    return status;
}

/* Each run of neighbouring rows that were stored is one copy. */
static enum status bring_back(cudaStream_t stream, const struct mirror *mirror)
{
    for (uint64_t from = 0, to; from < mirror->rows; from = to + 1) {
        for (to = from; to < mirror->rows && mirror->flags[to]; to++)
            continue;
        const uint64_t start = from * mirror->row_bytes, bytes = (to - from) * mirror->row_bytes;
        char *host = (char *)mirror->host + start;
        if (to > from && mirror->mapped)
            memcpy(host, (const char *)mirror->data + start, bytes);
        else if (to > from)
            CUDA(cudaMemcpyAsync(host, (const char *)mirror->data + start, bytes,
                                 cudaMemcpyDeviceToHost, stream));
    }
    if (mirror->mapped)
        memset(mirror->flags, 0, mirror->rows);
    else
        CUDA(cudaMemsetAsync(mirror->written, 0, mirror->rows, stream));
    return STATUS_OK;
}

enum status cuda_sync(struct plan *plan)
{
    cudaStream_t stream = plan->instance->device->stream;
    const int32_t tensors = plan->program->tensor_count;
    bool copied = false;
    if (plan->answer)
        return answer_sync(plan);
    if (!plan->pending)
        return STATUS_OK;
    TRY(cuda_use(plan->instance->device));
    for (int32_t i = 0; i < tensors; i++) {
        const struct mirror *mirror = &plan->mirrors[i];
        if (!mirror->flags || mirror->mapped)
            continue;
        CUDA(cudaMemcpyAsync(mirror->flags, mirror->written, mirror->rows, cudaMemcpyDeviceToHost,
                             stream));
        copied = true;
    }
    CUDA(cudaStreamSynchronize(stream));
    for (int32_t i = 0; i < tensors; i++)
        if (plan->mirrors[i].flags)
            TRY(bring_back(stream, &plan->mirrors[i]));
    if (copied)
        CUDA(cudaStreamSynchronize(stream));
    plan->pending = false;
    return stages_hand_out(plan);
}
