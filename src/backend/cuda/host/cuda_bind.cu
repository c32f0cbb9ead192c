/* cuda_bind.cu: bound data. Inputs are copied to the GPU when they are bound and stay there, unless
 * the binding wants them staged or there is no room (intake.cu); outputs are collected there, and
 * sync brings back the rows that were stored, and no others: several plans may write rows of the
 * same view. The kernels find all of it through the feed and the view list of the plan, whose
 * addresses never change: captured steps stay valid. */
#include "backend/cuda/host/stages.h"
#include "backend/cuda/stack/answer_calls.h"

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

static size_t told_bytes(const struct plan *plan)
{
    return sizeof *plan->feed + (size_t)plan->program->tensor_count * sizeof *plan->views;
}

/* Afterwards nothing is bound, also for the kernels, and nothing is on its way any more. */
static void forget_views(struct plan *plan)
{
    cudaStream_t stream = plan->instance->device->stream;
    forget_hosts(plan);
    cudaMemsetAsync(plan->feed, 0, told_bytes(plan), stream);
    cudaStreamSynchronize(stream);
    (void)cudaGetLastError(); /* why nothing is bound is known already */
}

/* What a call hands out is mostly little: written straight to host memory it is there when the
 * kernels are done, where copies would cost more than the kernels. */
enum { MAPPED_MOST = 1 << 20 };

struct shared *cuda_find_shared(const struct device *device, const void *host, uint64_t bytes,
                                uint64_t version)
{
    struct shared *shared = version ? device->shared : NULL;
    while (shared && (shared->version != version || shared->host != host || shared->bytes != bytes))
        shared = shared->next;
    return shared;
}

/* The last user takes them away. */
static void leave_shared(struct device *device, struct shared *shared)
{
    struct shared **link = &device->shared;
    if (--shared->users > 0)
        return;
    while (*link != shared)
        link = &(*link)->next;
    *link = shared->next;
    cudaFree(shared->data);
    mem_free(shared);
}

void cuda_forget_mirror(struct device *device, struct mirror *mirror)
{
    if (mirror->shared)
        leave_shared(device, mirror->shared);
    else if (mirror->mapped)
        cudaFreeHost(mirror->data);
    else
        cudaFree(mirror->data);
    cudaFreeHost(mirror->pinned);
    mirror->shared = NULL;
    mirror->pinned = NULL;
    mirror->data = NULL;
    mirror->room = 0;
    mirror->mapped = false;
}

static enum status make_room(struct device *device, struct mirror *mirror, uint64_t bytes,
                             bool mapped)
{
    void *memory;
    if (mirror->room >= bytes && mirror->mapped == mapped)
        return STATUS_OK;
    cuda_forget_mirror(device, mirror);
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

/* Copies the rows and waits, so that whose they are may change them. */
static enum status copy_rows(const struct device *device, uint32_t *to, const void *from,
                             uint64_t bytes)
{
    CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, device->stream));
    CUDA(cudaStreamSynchronize(device->stream));
    return STATUS_OK;
}

/* A copy that other plans may read, with no users yet. */
static enum status add_shared(struct device *device, const void *host, uint64_t bytes,
                              uint64_t version)
{
    void *memory = NULL;
    struct shared *shared = (struct shared *)mem_alloc(sizeof *shared);
    NEED(shared);
    enum status status = cuda_alloc(device, bytes, "the bound data", &memory);
    if (status == STATUS_OK)
        status = copy_rows(device, (uint32_t *)memory, host, bytes);
    if (status != STATUS_OK) {
        cudaFree(memory);
        mem_free(shared);
        return status;
    }
    *shared = {device->shared, host, bytes, version, (uint32_t *)memory, 0};
    device->shared = shared;
    return STATUS_OK;
}

static enum status share_view(struct device *device, struct mirror *mirror, const void *host,
                              uint64_t bytes, uint64_t version)
{
    struct shared *shared = cuda_find_shared(device, host, bytes, version);
    if (shared && mirror->shared == shared)
        return STATUS_OK;
    cuda_forget_mirror(device,
                       mirror); /* before anything is taken: there may be no room for both */
    if (!shared)
        TRY(add_shared(device, host, bytes, version));
    mirror->shared = shared ? shared : device->shared;
    mirror->shared->users++;
    mirror->data = mirror->shared->data;
    return STATUS_OK;
}

static enum status mirror_output(struct device *device, struct mirror *mirror)
{
    const uint64_t bytes = mirror->rows * mirror->row_bytes, all = bytes + mirror->rows;
    TRY(make_room(device, mirror, all, all <= MAPPED_MOST));
    mirror->written = (uint8_t *)mirror->data + bytes;
    if (mirror->mapped) {
        mirror->flags = mirror->written;
        memset(mirror->flags, 0, mirror->rows);
    } else {
        NEED(mirror->flags = (uint8_t *)mem_alloc(mirror->rows));
        CUDA(cudaMemsetAsync(mirror->written, 0, mirror->rows, device->stream));
    }
    return STATUS_OK;
}

static enum status mirror_view(struct plan *plan, const struct view *view, uint64_t version)
{
    struct device *device = plan->instance->device;
    struct mirror *mirror = &plan->mirrors[view->tensor];
    mirror->rows = (uint64_t)view->rows;
    mirror->row_bytes = binding_row_bytes(plan->program, view->tensor);
    const uint64_t bytes = mirror->rows * mirror->row_bytes;
    if (binding_port(plan->program, view->tensor)->kind == OP_store) {
        TRY(mirror_output(device, mirror));
    } else if (plan->intake.how != INGEST_RESIDENT) {
        return stage_view(plan, view);
    } else if (version) {
        TRY(share_view(device, mirror, view->data, bytes, version));
    } else {
        TRY(make_room(device, mirror, bytes, false));
        TRY(copy_rows(device, mirror->data, view->data, bytes));
    }
    mirror->host = view->data;
    return STATUS_OK;
}

/* In room that is kept, here and on the host: a copy may still be on its way when bind is done. */
static enum status copy_order(struct plan *plan, const struct binding *binding)
{
    const uint64_t count = binding->order ? (uint64_t)binding->order_count : 0;
    const size_t bytes = (size_t)count * sizeof *binding->order;
    void *memory;
    if (count > plan->order_room) {
        cudaFree(plan->order);
        mem_free(plan->order_told);
        plan->order = plan->order_told = NULL;
        plan->order_room = 0;
        NEED(plan->order_told = (uint32_t *)mem_array(count, sizeof *plan->order_told));
        TRY(cuda_alloc(plan->instance->device, bytes, "the order of the data", &memory));
        plan->order = (uint32_t *)memory;
        plan->order_room = count;
    }
    if (!count)
        return STATUS_OK;
    memcpy(plan->order_told, binding->order, bytes);
    CUDA(cudaMemcpyAsync(plan->order, plan->order_told, bytes, cudaMemcpyHostToDevice,
                         plan->instance->device->stream));
    return STATUS_OK;
}

/* Tells the kernels, in one copy that need not be there when bind is done. */
static enum status point_kernels(struct plan *plan, const struct binding *binding, uint64_t samples)
{
    struct feed_view *views = (struct feed_view *)(plan->told + 1);
    memset(plan->told, 0, told_bytes(plan));
    *plan->told = {binding->start, binding->order ? plan->order : NULL, samples,
                   plan->intake.parts - 1, plan->intake.parts};
    for (int32_t i = 0; i < binding->view_count; i++) {
        const struct view *view = &binding->views[i];
        const struct mirror *mirror = &plan->mirrors[view->tensor];
        views[view->tensor].data = mirror->data;
        views[view->tensor].staged = plan->intake.how != INGEST_RESIDENT &&
                                     binding_port(plan->program, view->tensor)->kind == OP_load;
        views[view->tensor].rows = mirror->rows;
        views[view->tensor].written = mirror->written;
    }
    CUDA(cudaMemcpyAsync(plan->feed, plan->told, told_bytes(plan), cudaMemcpyHostToDevice,
                         plan->instance->device->stream));
    return STATUS_OK;
}

static enum status bind_views(struct plan *plan, const struct binding *binding, uint64_t samples)
{
    TRY(intake_choose(plan, binding));
    for (int32_t i = 0; i < binding->view_count; i++)
        TRY(mirror_view(plan, &binding->views[i], binding->version));
    TRY(copy_order(plan, binding));
    TRY(intake_begin(plan, binding, samples));
    return point_kernels(plan, binding, samples);
}

enum status cuda_bind(struct plan *plan, const struct binding *binding)
{
    uint64_t samples;
    if (plan->dry)
        FAIL(STATUS_INPUT, "a dry plan cannot be bound");
    if (plan->answer)
        return answer_bind(plan, binding);
    TRY(binding_check(plan->program, binding, &samples));
    TRY(cuda_use(plan->instance->device));
    TRY(cuda_sync(plan)); /* what ran so far belongs to the views bound so far */
    forget_hosts(plan);
    enum status status = bind_views(plan, binding, samples);
    plan->pending = status == STATUS_OK;
    if (status != STATUS_OK)
        forget_views(plan); /* so that nothing runs on what the kernels have not been told of */
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
    TRY(cuda_exchange_end(plan));
    for (int32_t i = 0; i < tensors; i++)
        if (plan->mirrors[i].flags)
            TRY(bring_back(stream, &plan->mirrors[i]));
    if (copied)
        CUDA(cudaStreamSynchronize(stream));
    plan->pending = false;
    return stages_hand_out(plan);
}
