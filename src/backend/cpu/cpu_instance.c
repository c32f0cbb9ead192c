/* cpu_instance.c: a network's parameters in this process: canonical, or matrices in blocks. */
#include "backend/cpu/cpu_device.h"
#include "backend/cpu/simd/blocked.h"

#include "base/memory.h"

#include <string.h>

/* Gives every entry its place; returns the bytes of all. */
static uint64_t lay_out(struct instance *instance, const struct params *params)
{
    uint64_t total = 0;
    for (int32_t e = 0; e < params->count; e++) {
        const struct entry *entry = &params->entries[e];
        struct place *place = &instance->places[e];
        place->blocked = instance->device->kernels.blocks &&
                         blocked_wanted(entry->matrix, entry->dtype, &entry->shape);
        place->bytes = place->blocked ? blocked_bytes(&entry->shape) : entry->bytes;
        total += (place->bytes + PARAMS_ALIGN - 1) / PARAMS_ALIGN * PARAMS_ALIGN;
    }
    return total;
}

enum status cpu_attach(struct device *device, const struct params *params, struct instance **out)
{
    struct instance *instance = mem_alloc(sizeof *instance);
    NEED(instance);
    instance->device = device;
    instance->real = params->real;
    instance->entries = params->count;
    enum status status;
    NEED_OR(fail,
            instance->places = mem_array((size_t)params->count + 1, sizeof *instance->places));
    uint64_t bytes = lay_out(instance, params);
    if (!params->bare) {
        NEED_OR(fail, instance->memory = mem_large((size_t)bytes));
        char *at = instance->memory;
        for (int32_t e = 0; e < params->count; e++) {
            instance->places[e].data = at;
            at += (instance->places[e].bytes + PARAMS_ALIGN - 1) / PARAMS_ALIGN * PARAMS_ALIGN;
        }
    }
    TRY_OR(fail, cpu_upload(instance, params));
    *out = instance;
    return STATUS_OK;
fail:
    cpu_detach(instance);
    return status;
}

void cpu_detach(struct instance *instance)
{
    if (!instance)
        return;
    mem_free(instance->places);
    mem_free(instance->memory);
    mem_free(instance);
}

static enum status check_same(const struct instance *instance, const struct params *params)
{
    if (params->real != instance->real || params->count != instance->entries)
        FAIL(STATUS_INPUT,
             "the parameters are not those the instance was attached with "
             "(%d entries, expected %d): attach again after declaring more",
             params->count, instance->entries);
    return STATUS_OK;
}

enum status cpu_upload(struct instance *instance, const struct params *params)
{
    TRY(check_same(instance, params));
    for (int32_t e = 0; instance->memory && e < params->count; e++) {
        const struct place *place = &instance->places[e];
        if (place->blocked)
            blocked_pack(&params->entries[e].shape, params_data(params, e), (float *)place->data);
        else
            memcpy(place->data, params_data(params, e), (size_t)place->bytes);
    }
    instance->control = params->control;
    instance->changes++;
    return STATUS_OK;
}

enum status cpu_download(struct instance *instance, struct params *params)
{
    TRY(check_same(instance, params));
    for (int32_t e = 0; instance->memory && e < params->count; e++) {
        const struct place *place = &instance->places[e];
        if (place->blocked)
            blocked_unpack(&params->entries[e].shape, (const float *)place->data,
                           params_data(params, e));
        else
            memcpy(params_data(params, e), place->data, (size_t)place->bytes);
    }
    params->control = instance->control;
    return STATUS_OK;
}
