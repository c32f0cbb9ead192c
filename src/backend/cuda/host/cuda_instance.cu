/* cuda_instance.cu: a network's parameters and control block on the GPU, in canonical order. */
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/narrow/fp8.h"

extern "C" {
#include "base/memory.h"
}

static const enum role kept[] = {ROLE_PARAM, ROLE_STATISTIC, ROLE_STATE};

/* The scale of the loss that a training had reached, or the first. */
static enum status put_loss_scale(struct instance *instance, const struct control *control)
{
    struct loss_scale loss_scale = {LOSS_SCALE_FIRST, 0, 0, 0};
    if (control->scale) {
        loss_scale.scale = fmaxf(1.0f, fminf((float)control->scale, LOSS_SCALE_MOST));
        loss_scale.updates = (int32_t)(control->scaled % LOSS_SCALE_GROW_AFTER);
    }
    CUDA(cudaMemcpyAsync(instance->loss_scale, &loss_scale, offsetof(struct loss_scale, out),
                         cudaMemcpyHostToDevice, instance->device->stream));
    CUDA(cudaStreamSynchronize(instance->device->stream));
    return STATUS_OK;
}

static enum status get_loss_scale(const struct instance *instance, struct control *control)
{
    struct loss_scale loss_scale;
    CUDA(cudaMemcpyAsync(&loss_scale, instance->loss_scale, sizeof loss_scale,
                         cudaMemcpyDeviceToHost, instance->device->stream));
    CUDA(cudaStreamSynchronize(instance->device->stream));
    control->left_out = loss_scale.lost;
    control->scale = (uint64_t)loss_scale.scale;
    control->scaled = (uint64_t)loss_scale.updates;
    return STATUS_OK;
}

static enum status take_blocks(struct instance *instance, const struct params *params)
{
    void *memory;
    for (enum role role : kept) {
        uint64_t bytes = params->bare ? 0 : params->blocks[role].bytes;
        TRY(cuda_alloc(instance->device, bytes, "a copy of the parameters", &memory));
        instance->blocks[role].data = (char *)memory;
        instance->blocks[role].bytes = bytes;
    }
    TRY(cuda_alloc(instance->device, sizeof(struct control), "the control block", &memory));
    instance->control = (struct control *)memory;
    if (!precision_is_16bit(instance->device->precision))
        return STATUS_OK;
    TRY(cuda_alloc(instance->device, instance->blocks[ROLE_PARAM].bytes / 2,
                   "a copy of the parameters in 16 bits", &memory));
    instance->copy = (char *)memory;
    if (instance->device->precision != PRECISION_FP16)
        return STATUS_OK;
    TRY(cuda_alloc(instance->device, sizeof *instance->loss_scale, "the scale of the loss",
                   &memory));
    instance->loss_scale = (struct loss_scale *)memory;
    return put_loss_scale(instance, &params->control);
}

static bool has_fp8(const struct entry *entry)
{
    return entry->role == ROLE_PARAM && entry->dtype == DTYPE_F32 && entry->shape.rank == 2 &&
           fp8_fits(entry->shape.dim[0], entry->shape.dim[1]);
}

/* Room for the copies in fp8: for each its scale and its rows; before them all, room to round in.
 */
static enum status take_fp8(struct instance *instance, const struct params *params)
{
    const auto bytes_of = [](const struct entry *entry) {
        const int64_t bytes = fp8_pitch(entry->shape.dim[0]) * entry->shape.dim[1];
        return PARAMS_ALIGN + (uint64_t)(bytes + PARAMS_ALIGN - 1) / PARAMS_ALIGN * PARAMS_ALIGN;
    };
    uint64_t bytes = FP8_ROOM;
    void *memory;
    for (int32_t e = 0; e < params->count; e++)
        bytes += has_fp8(&params->entries[e]) ? bytes_of(&params->entries[e]) : 0;
    NEED(instance->fp8 =
             (struct fp8_copy *)mem_array((size_t)params->count + 1, sizeof *instance->fp8));
    TRY(cuda_alloc(instance->device, bytes, "a copy of the parameters in 8 bits", &memory));
    instance->fp8_memory = (char *)memory;
    char *at = instance->fp8_memory + FP8_ROOM;
    for (int32_t e = 0; e < params->count; e++) {
        if (!has_fp8(&params->entries[e]))
            continue;
        instance->fp8[e] = {(uint8_t *)at + PARAMS_ALIGN, (float *)at};
        at += bytes_of(&params->entries[e]);
    }
    return STATUS_OK;
}

enum status cuda_attach(struct device *device, const struct params *params, struct instance **out)
{
    if (params->real != DTYPE_F32)
        FAIL(STATUS_UNSUPPORTED, "the CUDA backend computes in f32, and these parameters are %s",
             dtype_name(params->real));
    TRY(cuda_use(device));
    struct instance *instance = (struct instance *)mem_alloc(sizeof *instance);
    NEED(instance);
    instance->device = device;
    instance->entries = params->count;
    enum status status = device->paper ? STATUS_OK : take_blocks(instance, params);
    if (status == STATUS_OK && !device->paper && device->fp8 && !params->bare)
        status = take_fp8(instance, params);
    if (status == STATUS_OK && !device->paper)
        status = cuda_upload(instance, params);
    if (status != STATUS_OK) {
        cuda_detach(instance);
        return status;
    }
    *out = instance;
    return STATUS_OK;
}

void cuda_detach(struct instance *instance)
{
    if (!instance)
        return;
    (void)cuda_use(instance->device);
    for (enum role role : kept)
        cudaFree(instance->blocks[role].data);
    cudaFree(instance->loss_scale);
    cudaFree(instance->copy);
    cudaFree(instance->fp8_memory);
    mem_free(instance->fp8);
    cudaFree(instance->control);
    mem_free(instance);
}

static enum status check_same(const struct instance *instance, const struct params *params)
{
    if (params->real != DTYPE_F32 || params->count != instance->entries)
        FAIL(STATUS_INPUT,
             "the parameters are not those the instance was attached with (%d entries, expected "
             "%d): attach again after declaring more",
             params->count, instance->entries);
    return STATUS_OK;
}

/* The copies in 16 and 8 bits, from the parameters that are there. */
static enum status round_params(struct instance *instance, const struct params *params)
{
    const int64_t count = (int64_t)(instance->blocks[ROLE_PARAM].bytes / sizeof(float));
    struct queue queue = {};
    queue.stream = instance->device->stream;
    if (instance->copy)
        mixed_cast(&queue, count, cells{instance->blocks[ROLE_PARAM].data, PRECISION_FP32},
                   cells{instance->copy, instance->device->precision});
    for (int32_t e = 0; instance->fp8 && e < params->count; e++) {
        const struct entry *entry = &params->entries[e];
        if (instance->fp8[e].w)
            fp8_round_weights(&queue, entry->shape.dim[0], entry->shape.dim[1],
                              (const float *)(instance->blocks[ROLE_PARAM].data + entry->offset),
                              &instance->fp8[e], instance->fp8_memory);
    }
    CUDA(queue.error);
    return STATUS_OK;
}

enum status cuda_upload(struct instance *instance, const struct params *params)
{
    cudaStream_t stream = instance->device->stream;
    TRY(check_same(instance, params));
    TRY(cuda_use(instance->device));
    for (enum role role : kept)
        if (instance->blocks[role].bytes)
            CUDA(cudaMemcpyAsync(instance->blocks[role].data, params->blocks[role].data,
                                 instance->blocks[role].bytes, cudaMemcpyHostToDevice, stream));
    CUDA(cudaMemcpyAsync(instance->control, &params->control, sizeof params->control,
                         cudaMemcpyHostToDevice, stream));
    TRY(round_params(instance, params));
    instance->version++;
    CUDA(cudaStreamSynchronize(stream));
    return instance->loss_scale ? put_loss_scale(instance, &params->control) : STATUS_OK;
}

enum status cuda_download(struct instance *instance, struct params *params)
{
    cudaStream_t stream = instance->device->stream;
    TRY(check_same(instance, params));
    TRY(cuda_use(instance->device));
    for (enum role role : kept)
        if (instance->blocks[role].bytes)
            CUDA(cudaMemcpyAsync(params->blocks[role].data, instance->blocks[role].data,
                                 instance->blocks[role].bytes, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaMemcpyAsync(&params->control, instance->control, sizeof params->control,
                         cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    return instance->loss_scale ? get_loss_scale(instance, &params->control) : STATUS_OK;
}
