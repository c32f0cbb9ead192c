/* cuda_bind.cu: bound data. Views are copied to the GPU when they are bound and stay there; outputs
 * have a copy there too, which sync brings back. The kernels find all of it through the feed and
 * the view list of the plan, whose addresses never change: captured steps stay valid. */
#include "backend/cuda/cuda_device.h"

extern "C" {
#include "base/memory.h"
#include "core/binding.h"
}

static void forget_views(struct plan *plan)
{
    for (int32_t i = 0; i < plan->program->tensor_count; i++)
        plan->mirrors[i].host = NULL;
}

/* Outputs are copied to the GPU as well: rows that no step writes come back as they were. */
static enum status copy_view(struct plan *plan, const struct view *view)
{
    const struct device *device = plan->instance->device;
    struct mirror *mirror = &plan->mirrors[view->tensor];
    const uint64_t bytes = binding_row_bytes(plan->program, view->tensor) * (uint64_t)view->rows;
    if (mirror->room < bytes) {
        void *memory;
        cudaFree(mirror->data);
        mirror->data = NULL;
        mirror->room = 0;
        TRY(cuda_alloc(device, bytes, "the bound data", &memory));
        mirror->data = (uint32_t *)memory;
        mirror->room = bytes;
    }
    CUDA(cudaMemcpyAsync(mirror->data, view->data, bytes, cudaMemcpyHostToDevice, device->stream));
    mirror->host = view->data;
    mirror->bytes = bytes;
    mirror->is_output = binding_port(plan->program, view->tensor)->kind == OP_store;
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
    const struct feed feed = {binding->start, plan->order, samples};
    for (int32_t i = 0; i < binding->view_count; i++) {
        const struct view *view = &binding->views[i];
        views[view->tensor].data = plan->mirrors[view->tensor].data;
        views[view->tensor].rows = (uint64_t)view->rows;
    }
    CUDA(cudaMemcpyAsync(plan->feed, &feed, sizeof feed, cudaMemcpyHostToDevice, stream));
    CUDA(cudaMemcpyAsync(plan->views, views, sizeof *views * (size_t)plan->program->tensor_count,
                         cudaMemcpyHostToDevice, stream));
    CUDA(cudaStreamSynchronize(stream));
    return STATUS_OK;
}

enum status cuda_bind(struct plan *plan, const struct binding *binding)
{
    uint64_t samples;
    if (plan->dry)
        FAIL(STATUS_INPUT, "a dry plan cannot be bound");
    TRY(binding_check(plan->program, binding, &samples));
    TRY(cuda_sync(plan)); /* what ran so far belongs to the views bound so far */
    forget_views(plan);
    for (int32_t i = 0; i < binding->view_count; i++)
        TRY(copy_view(plan, &binding->views[i]));
    TRY(copy_order(plan, binding));
    struct feed_view *views =
        (struct feed_view *)mem_array((size_t)plan->program->tensor_count, sizeof *views);
    NEED(views);
    enum status status = point_kernels(plan, binding, samples, views);
    mem_free(views);
    return status;
}

enum status cuda_sync(struct plan *plan)
{
    cudaStream_t stream = plan->instance->device->stream;
    if (!plan->pending)
        return STATUS_OK;
    TRY(cuda_use(plan->instance->device));
    for (int32_t i = 0; i < plan->program->tensor_count; i++) {
        const struct mirror *mirror = &plan->mirrors[i];
        if (mirror->host && mirror->is_output)
            CUDA(cudaMemcpyAsync(mirror->host, mirror->data, mirror->bytes, cudaMemcpyDeviceToHost,
                                 stream));
    }
    CUDA(cudaStreamSynchronize(stream));
    plan->pending = false;
    return STATUS_OK;
}
