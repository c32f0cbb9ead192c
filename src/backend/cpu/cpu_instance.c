/* cpu_instance.c: a network's parameters in this process: canonical, or matrices in blocks. */
#include "backend/cpu/blocked.h"
#include "backend/cpu/cpu_device.h"
#include "backend/cpu/narrow.h"
#include "backend/cpu/team.h"

#include "base/memory.h"

#include <string.h>

/* Gives every entry its place; returns the bytes of all. */
static uint64_t lay_out(struct instance *instance, const struct params *params)
{
    uint64_t total = 0;
    for (int32_t e = 0; e < params->count; e++) {
        const struct entry *entry = &params->entries[e];
        struct place *place = &instance->places[e];
        place->shape = entry->shape;
        place->dtype = entry->dtype;
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
    instance->bytes = lay_out(instance, params);
    if (!params->bare) {
        NEED_OR(fail, instance->memory = cpu_memory(device, instance->bytes));
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
    for (int32_t e = 0; instance->places && e < instance->entries; e++)
        for (int form = 0; form < NARROW_FORMS; form++)
            if (instance->places[e].packed[form])
                mem_free_large(instance->places[e].packed[form],
                               (size_t)narrow_bytes(&instance->places[e].shape,
                                                    instance->places[e].dtype,
                                                    (enum narrow_form)form));
    mem_free(instance->places);
    mem_free_large(instance->memory, (size_t)instance->bytes);
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

/* One entry on its way in or out; threads share its groups as the kernels do, so that each first
 * touches what it will use. */
struct transfer {
    const struct shape *shape;
    float *canonical, *blocked;
    bool in;
};

static void transfer_member(void *context, int member, int members)
{
    const struct transfer *transfer = context;
    long first, last;
    pool_share(blocked_groups(transfer->shape), 1, member, members, &first, &last);
    if (transfer->in)
        blocked_pack(transfer->shape, transfer->canonical, transfer->blocked, first, last);
    else
        blocked_unpack(transfer->shape, transfer->blocked, transfer->canonical, first, last);
}

static void transfer_entries(struct instance *instance, const struct params *params, bool in)
{
    struct pool *pool = instance->device->pool;
    for (int32_t e = 0; instance->memory && e < params->count; e++) {
        const struct place *place = &instance->places[e];
        void *canonical = params_data(params, e);
        if (place->blocked) {
            struct transfer transfer = {&params->entries[e].shape, canonical, (float *)place->data,
                                        in};
            int64_t groups = blocked_groups(transfer.shape);
            pool_run(pool, team_for_bytes(pool, (int64_t)place->bytes, groups), transfer_member,
                     &transfer);
        } else {
            memcpy(in ? place->data : canonical, in ? canonical : place->data,
                   (size_t)place->bytes);
        }
    }
}

/* A packed copy on its way; threads share its panels as the kernels do. */
struct packing {
    const struct place *place;
    enum narrow_form form;
};

static void pack_member(void *context, int member, int members)
{
    const struct packing *packing = context;
    const struct place *place = packing->place;
    const struct narrow narrow = narrow_of(&place->shape, place->dtype, packing->form);
    long first, last;
    pool_share(narrow.panels, 1, member, members, &first, &last);
    narrow_pack(&place->shape, place->dtype, packing->form, place->data,
                place->packed[packing->form], first, last);
}

static void pack_place(struct instance *instance, const struct place *place, enum narrow_form form)
{
    struct pool *pool = instance->device->pool;
    struct packing packing = {place, form};
    int64_t panels = narrow_of(&place->shape, place->dtype, form).panels;
    pool_run(pool, team_for_bytes(pool, (int64_t)place->bytes, panels), pack_member, &packing);
}

enum status cpu_pack(struct instance *instance, int32_t entry, enum narrow_form form)
{
    struct place *place = &instance->places[entry];
    if (place->packed[form] || !instance->memory)
        return STATUS_OK;
    NEED(place->packed[form] =
             cpu_memory(instance->device, narrow_bytes(&place->shape, place->dtype, form)));
    pack_place(instance, place, form);
    return STATUS_OK;
}

void cpu_repack(struct instance *instance, int32_t entry)
{
    const struct place *place = &instance->places[entry];
    for (int form = 0; form < NARROW_FORMS; form++)
        if (place->packed[form])
            pack_place(instance, place, (enum narrow_form)form);
}

enum status cpu_upload(struct instance *instance, const struct params *params)
{
    TRY(check_same(instance, params));
    transfer_entries(instance, params, true);
    for (int32_t e = 0; e < instance->entries; e++)
        cpu_repack(instance, e);
    instance->control = params->control;
    instance->changes++;
    return STATUS_OK;
}

enum status cpu_download(struct instance *instance, struct params *params)
{
    TRY(check_same(instance, params));
    transfer_entries(instance, params, false);
    params->control = instance->control;
    return STATUS_OK;
}
