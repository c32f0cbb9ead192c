/* cpu_instance.c: a network's parameters in this process, in canonical order. */
#include "backend/cpu/cpu_device.h"

#include "base/memory.h"

#include <string.h>

static const enum role kept[] = {ROLE_PARAM, ROLE_STATISTIC, ROLE_STATE};
enum { KEPT = sizeof kept / sizeof *kept };

enum status cpu_attach(struct device *device, const struct params *params, struct instance **out)
{
    struct instance *instance = mem_alloc(sizeof *instance);
    NEED(instance);
    instance->device = device;
    instance->real = params->real;
    instance->entries = params->count;
    enum status status;
    for (int i = 0; i < KEPT; i++) {
        uint64_t bytes = params->bare ? 0 : params->blocks[kept[i]].bytes;
        instance->blocks[kept[i]].bytes = bytes;
        NEED_OR(fail, instance->blocks[kept[i]].data = mem_aligned(PARAMS_ALIGN, (size_t)bytes));
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
    for (int i = 0; i < KEPT; i++)
        mem_free(instance->blocks[kept[i]].data);
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
    for (int i = 0; i < KEPT; i++)
        if (instance->blocks[kept[i]].bytes)
            memcpy(instance->blocks[kept[i]].data, params->blocks[kept[i]].data,
                   (size_t)instance->blocks[kept[i]].bytes);
    instance->control = params->control;
    return STATUS_OK;
}

enum status cpu_download(struct instance *instance, struct params *params)
{
    TRY(check_same(instance, params));
    for (int i = 0; i < KEPT; i++)
        if (instance->blocks[kept[i]].bytes)
            memcpy(params->blocks[kept[i]].data, instance->blocks[kept[i]].data,
                   (size_t)instance->blocks[kept[i]].bytes);
    params->control = instance->control;
    return STATUS_OK;
}
