/* nccl.cu: see nccl.h. NCCL's headers are not asked for: it is seldom where programs are built.
 * What is used of it has been the same since its version 2.0. */
#include "backend/cuda/host/nccl.h"

#include "backend/cuda/host/cuda_device.h"

extern "C" {
#include "base/memory.h"
}

#include <dlfcn.h>
#include <string.h>

enum { NCCL_FLOAT = 7, NCCL_SUM = 0, NCCL_ID_BYTES = 128 };

struct nccl_id {
    char bytes[NCCL_ID_BYTES];
};

struct nccl {
    const struct comm *comm; /* whose ranks these are: only its address is looked at */
    void *library;           /* NULL: these ranks sum through the host */
    void *ranks;             /* ncclComm_t */
    int (*GetVersion)(int *version);
    int (*GetUniqueId)(struct nccl_id *id);
    int (*CommInitRank)(void **ranks, int size, struct nccl_id id, int rank);
    int (*CommDestroy)(void *ranks);
    int (*GroupStart)(void);
    int (*GroupEnd)(void);
    int (*AllReduce)(const void *from, void *to, size_t count, int type, int sum, void *ranks,
                     cudaStream_t stream);
    const char *(*GetErrorString)(int error);
};

/* What each rank tells the others: which GPU it has, which NCCL. */
struct card {
    char gpu[16]; /* its UUID */
    int version;  /* 0: it has no NCCL */
};

static bool load(struct nccl *nccl)
{
    static const char *const names[] = {"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"};
    for (const char *name : names)
        if (!nccl->library)
            nccl->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!nccl->library)
        return false;
#define DO(name)                                                                                   \
    nccl->name = (decltype(nccl->name))dlsym(nccl->library, "nccl" #name);                         \
    if (!nccl->name)                                                                               \
        return false;
    DO(GetVersion)
    DO(GetUniqueId)
    DO(CommInitRank)
    DO(CommDestroy)
    DO(GroupStart)
    DO(GroupEnd)
    DO(AllReduce)
    DO(GetErrorString)
#undef DO
    return true;
}

/* Every rank sees the same cards, so all of them come to the same answer. */
static enum status ask_all(struct comm *comm, const struct card *own, bool *all_have_it)
{
    struct card *cards;
    enum status status = STATUS_OK;
    NEED(cards = (struct card *)mem_array((size_t)comm->size, sizeof *cards));
    cards[comm->rank] = *own;
    for (int rank = 0; status == STATUS_OK && rank < comm->size; rank++)
        status = comm_broadcast(comm, rank, &cards[rank], sizeof *cards);
    *all_have_it = own->version > 0;
    for (int rank = 0; rank < comm->size; rank++) {
        *all_have_it = *all_have_it && cards[rank].version == own->version;
        for (int other = 0; other < rank; other++)
            *all_have_it =
                *all_have_it && memcmp(cards[rank].gpu, cards[other].gpu, sizeof own->gpu) != 0;
    }
    mem_free(cards);
    return status;
}

static enum status meet(struct nccl *nccl, struct comm *comm)
{
    struct nccl_id id = {};
    int error = comm->rank == 0 ? nccl->GetUniqueId(&id) : 0;
    TRY(comm_broadcast(comm, 0, &id, sizeof id));
    if (!error)
        error = nccl->CommInitRank(&nccl->ranks, comm->size, id, comm->rank);
    if (error)
        FAIL(STATUS_IO, "NCCL does not start: %s (NCCL_DEBUG=WARN says more)",
             nccl->GetErrorString(error));
    return STATUS_OK;
}

static enum status join(struct device *device, struct comm *comm, struct nccl *nccl)
{
    struct card own = {};
    bool all_have_it = false;
    memcpy(own.gpu, device->properties.uuid.bytes, sizeof own.gpu);
    if (!load(nccl) || nccl->GetVersion(&own.version) != 0)
        own.version = 0;
    TRY(ask_all(comm, &own, &all_have_it));
    if (all_have_it)
        return meet(nccl, comm);
    if (nccl->library)
        dlclose(nccl->library);
    nccl->library = NULL;
    return STATUS_OK;
}

enum status nccl_join(struct device *device, struct comm *comm, const struct nccl **out)
{
    if (!device->nccl || device->nccl->comm != comm) {
        nccl_leave(device);
        struct nccl *nccl = (struct nccl *)mem_alloc(sizeof *nccl);
        NEED(nccl);
        nccl->comm = comm;
        device->nccl = nccl;
        const enum status status = join(device, comm, nccl);
        if (status != STATUS_OK) {
            nccl_leave(device);
            return status;
        }
    }
    *out = device->nccl->library ? device->nccl : NULL;
    return STATUS_OK;
}

void nccl_leave(struct device *device)
{
    struct nccl *nccl = device->nccl;
    device->nccl = NULL;
    if (!nccl)
        return;
    if (nccl->ranks)
        nccl->CommDestroy(nccl->ranks);
    mem_free(nccl); /* the library stays: its threads may still be about to end */
}

int nccl_version(const struct device *device)
{
    int version = 0;
    if (device->nccl && device->nccl->library)
        device->nccl->GetVersion(&version);
    return version;
}

void nccl_begin(const struct nccl *nccl, struct queue *queue)
{
    queue->launches++;
    queue->chained = 0;
    if (!queue->counting && queue->error == cudaSuccess && nccl->GroupStart() != 0)
        queue->error = cudaErrorUnknown;
}

void nccl_add(const struct nccl *nccl, struct queue *queue, float *numbers, size_t count)
{
    if (!queue->counting && queue->error == cudaSuccess &&
        nccl->AllReduce(numbers, numbers, count, NCCL_FLOAT, NCCL_SUM, nccl->ranks,
                        queue->stream) != 0)
        queue->error = cudaErrorUnknown;
}

void nccl_end(const struct nccl *nccl, struct queue *queue)
{
    if (!queue->counting && queue->error == cudaSuccess && nccl->GroupEnd() != 0)
        queue->error = cudaErrorUnknown;
}
