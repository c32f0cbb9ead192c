/* params.c: named entries in three growing blocks. */
#include "core/params.h"

#include "base/machine/room.h"
#include "base/memory.h"

#include <assert.h>
#include <string.h>

void params_init(struct params *params, enum dtype real)
{
    *params = (struct params){.real = real, .control = {.rate = 0.1}};
}

void params_free(struct params *params)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        mem_free_large(params->blocks[role].data, (size_t)params->blocks[role].room);
    arena_free(&params->arena);
    params_init(params, params->real);
}

void params_drop(struct params *params)
{
    for (int role = 0; role < ROLE_COUNT; role++) {
        mem_free_large(params->blocks[role].data, (size_t)params->blocks[role].room);
        params->blocks[role].data = NULL;
        params->blocks[role].room = 0;
    }
}

enum status params_hold(struct params *params)
{
    for (int role = 0; role < ROLE_COUNT; role++) {
        const uint64_t bytes = params->blocks[role].bytes;
        if (params->bare || params->blocks[role].data || !bytes)
            continue;
        NEED(params->blocks[role].data = mem_large((size_t)bytes));
        params->blocks[role].room = bytes;
    }
    return STATUS_OK;
}

void params_mark_matrix(struct params *params, int32_t entry)
{
    assert(params->entries[entry].shape.rank == 2 || params->entries[entry].shape.rank == 4);
    params->entries[entry].matrix = true;
}

void params_give(struct params *params, int32_t entry, const float *values)
{
    params->entries[entry].given = values;
}

int32_t params_find(const struct params *params, const char *name)
{
    for (int32_t i = 0; i < params->count; i++)
        if (!strcmp(params->entries[i].name, name))
            return i;
    return -1;
}

void *params_data(const struct params *params, int32_t entry)
{
    const struct entry *e = &params->entries[entry];
    return (char *)params->blocks[e->role].data + e->offset;
}

static enum status grow_entries(struct params *params)
{
    if (params->count < params->room)
        return STATUS_OK;
    int32_t room = params->room ? params->room * 2 : 16;
    struct entry *entries = arena_array(&params->arena, (size_t)room, sizeof *entries);
    NEED(entries);
    if (params->count)
        memcpy(entries, params->entries, (size_t)params->count * sizeof *entries);
    params->entries = entries;
    params->room = room;
    return STATUS_OK;
}

/* Gives the role's block `bytes` more bytes, zeroed; its data may move. What cannot fit is refused
 * here, before a byte is written: the system promises more than it has. */
static enum status grow_block(struct params *params, const char *name, enum role role,
                              uint64_t bytes)
{
    uint64_t need;
    if (__builtin_add_overflow(params->blocks[role].bytes, bytes, &need) || need > SIZE_MAX / 2)
        FAIL(STATUS_INPUT, "the parameters do not fit into memory");
    if (need > params->blocks[role].room && !params->bare) {
        uint64_t total = mem_total(), room = params->blocks[role].room * 2;
        TRY(room_check(2 * (double)need,
                       "with '%s' there are %.1f MB, and as much again where they are used", name,
                       (double)need / 1e6));
        room = room < need || room > total / 2 ? need : room;
        void *data = mem_grow_large(params->blocks[role].data, (size_t)params->blocks[role].room,
                                    (size_t)room);
        if (!data)
            FAIL(STATUS_MEMORY, "out of memory: %.1f MB are needed", (double)need / 1e6);
        params->blocks[role].data = data;
        params->blocks[role].room = room;
    }
    params->blocks[role].bytes = need;
    return STATUS_OK;
}

enum status params_declare(struct params *params, const char *name, enum role role,
                           enum dtype dtype, struct shape shape, struct init init, int32_t *entry)
{
    int32_t found = params_find(params, name);
    if (found >= 0) {
        const struct entry *e = &params->entries[found];
        if (e->role != role || e->dtype != dtype || !shape_equal(&e->shape, &shape))
            FAIL(STATUS_INPUT, "the parameter '%s' is declared twice, with different shapes", name);
        *entry = found;
        return STATUS_OK;
    }
    int64_t count = shape_count(&shape);
    uint64_t bytes, padded;
    if (count < 0 ||
        __builtin_mul_overflow((uint64_t)count, (uint64_t)dtype_bytes(dtype), &bytes) ||
        __builtin_add_overflow(bytes, PARAMS_ALIGN - 1, &padded))
        FAIL(STATUS_INPUT, "the parameter '%s' is too large", name);
    padded -= padded % PARAMS_ALIGN;
    TRY(grow_entries(params));
    const char *copy = arena_text(&params->arena, name);
    NEED(copy);
    uint64_t offset = params->blocks[role].bytes;
    TRY(grow_block(params, name, role, padded));
    params->entries[params->count] = (struct entry){
        .name = copy,
        .role = role,
        .dtype = dtype,
        .shape = shape,
        .init = init,
        .bytes = bytes,
        .offset = offset,
    };
    *entry = params->count++;
    return STATUS_OK;
}

static void fill_given(const struct entry *entry, void *data)
{
    int64_t count = shape_count(&entry->shape);
    if (entry->dtype == DTYPE_F32) {
        memcpy(data, entry->given, (size_t)count * sizeof *entry->given);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        ((double *)data)[i] = (double)entry->given[i];
}

enum status params_fill_new(struct params *params)
{
    for (; params->filled < params->count; params->filled++) {
        const struct entry *e = &params->entries[params->filled];
        if (e->raw) {
            memcpy(params_data(params, params->filled), e->raw, (size_t)e->bytes);
            continue;
        }
        if (e->given) {
            fill_given(e, params_data(params, params->filled));
            continue;
        }
        TRY(init_fill(&e->init, params->control.seed, e->name, e->dtype, &e->shape,
                      params_data(params, params->filled)));
    }
    return STATUS_OK;
}

enum status params_fill(struct params *params, uint64_t seed)
{
    params->control.step = 0;
    params->control.seed = seed;
    params->filled = 0;
    return params_fill_new(params);
}

uint64_t params_count(const struct params *params)
{
    uint64_t count = 0;
    for (int32_t i = 0; i < params->count; i++)
        if (params->entries[i].role == ROLE_PARAM)
            count += (uint64_t)shape_count(&params->entries[i].shape);
    return count;
}

int64_t params_layers(const struct params *params)
{
    int64_t layers = 0;
    const char *before = "";
    for (int32_t i = 0; i < params->count; i++) {
        const char *name = params->entries[i].name, *dot = strrchr(name, '.');
        size_t length = dot ? (size_t)(dot - name) + 1 : strlen(name);
        if (params->entries[i].role != ROLE_PARAM)
            continue;
        layers += strncmp(name, before, length) != 0; /* a layer's parameters are neighbours */
        before = name;
    }
    return layers;
}
