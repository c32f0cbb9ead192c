/* agree.c: see agree.h. */
#include "train/workers/agree.h"

#include <string.h>
#include <unistd.h>

/* What a worker says of itself. */
struct claim {
    uint64_t hashes[AGREEMENTS_MOST];
    char host[64];
};

/* All find the same, and one of them tells it. */
static enum status differ(struct comm *comm, int rank, const struct claim *claim,
                          const struct claim *first, const char *what)
{
    return comm_abandon(comm, status_fail(STATUS_INPUT, __FILE__, __LINE__,
                                          "worker %d on %.64s differs from worker 0 on %.64s in "
                                          "its %s, expected the same on all of them",
                                          rank, claim->host, first->host, what));
}

enum status agree(struct comm *comm, const struct agreement *things, int count)
{
    struct claim own = {0}, first = {0};
    const int ranks = comm ? comm->size : 1;
    for (int i = 0; i < count; i++)
        own.hashes[i] = things[i].hash;
    gethostname(own.host, sizeof own.host - 1);
    for (int rank = 0; rank < ranks && ranks > 1; rank++) {
        struct claim claim = own;
        TRY(comm_broadcast(comm, rank, &claim, sizeof claim));
        if (rank == 0)
            first = claim;
        for (int i = 0; i < count; i++)
            if (claim.hashes[i] != first.hashes[i])
                return differ(comm, rank, &claim, &first, things[i].what);
    }
    return STATUS_OK;
}

/* Eight bytes at a time, since parameters are many; the rest one by one. */
uint64_t agree_hash(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;
    uint64_t word, at = 0;
    for (; at + sizeof word <= length; at += sizeof word) {
        memcpy(&word, byte + at, sizeof word);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    for (; at < length; at++)
        hash = (hash ^ byte[at]) * 0x100000001B3u;
    return hash ^ length;
}

uint64_t agree_hash_text(uint64_t hash, const char *text)
{
    return agree_hash(hash, text ? text : "", text ? strlen(text) : 0);
}

uint64_t agree_hash_params(const struct params *params)
{
    uint64_t hash = 0;
    for (int32_t e = 0; e < params->count; e++) {
        const struct entry *entry = &params->entries[e];
        hash = agree_hash_text(hash, entry->name);
        hash = agree_hash(hash, entry->shape.dim,
                          sizeof *entry->shape.dim * (size_t)entry->shape.rank);
        hash = agree_hash(hash, params_data(params, e), (size_t)entry->bytes);
    }
    return hash;
}
