/* shm.c: a region in anonymous shared memory (a memfd that has no name anywhere).
 *
 * A rank holds a lock on its own byte of the file. The kernel drops it when the process ends,
 * whatever ended it, and neither a zombie nor a process that got its number again holds it. */
#include "comm/shm.h"

#include "base/memory.h"
#include "comm/region.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 1 << 16 }; /* no machine has larger small pages */

/* Addresses of the file; only what is written takes memory. */
static const off_t file_bytes = (off_t)1 << 36;

struct shm {
    int file, size;
    struct region *region;
};

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static enum status map_region(const struct shm *shm, uint64_t offset, int size, struct region **out)
{
    void *memory = mmap(NULL, whole_pages(region_bytes(size)), PROT_READ | PROT_WRITE, MAP_SHARED,
                        shm->file, (off_t)offset);
    if (memory == MAP_FAILED)
        FAIL(STATUS_MEMORY, "no shared memory for %d ranks: %s", size, strerror(errno));
    *out = memory;
    return STATUS_OK;
}

static void unmap_region(struct region *region)
{
    munmap(region, whole_pages(region_bytes(region->size)));
}

enum status shm_create(int size, struct shm **out)
{
    struct shm *shm;
    enum status status;
    if (size < 1 || size > SHM_MOST)
        FAIL(STATUS_INPUT, "%d ranks: from 1 to %d share memory", size, SHM_MOST);
    NEED(shm = mem_alloc(sizeof *shm));
    shm->size = size;
    shm->file = memfd_create("prony", MFD_CLOEXEC);
    if (shm->file < 0 || ftruncate(shm->file, file_bytes) != 0) {
        status =
            status_fail(STATUS_IO, __FILE__, __LINE__,
                        "the system gives no shared memory (memfd_create): %s", strerror(errno));
        goto free_shm;
    }
    TRY_OR(free_shm, map_region(shm, 0, size, &shm->region));
    region_init(shm->region, size);
    atomic_store(&shm->region->next, whole_pages(region_bytes(size)));
    *out = shm;
    return STATUS_OK;
free_shm:
    if (shm->file >= 0)
        close(shm->file);
    mem_free(shm);
    return status;
}

void shm_free(struct shm *shm)
{
    if (!shm)
        return;
    unmap_region(shm->region);
    close(shm->file);
    mem_free(shm);
}

/* ---- who is there ---- */

static struct flock lock_of(int rank)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
}

static bool holds_lock(const struct shm *shm, int rank)
{
    struct flock lock = lock_of(rank);
    return fcntl(shm->file, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

static void place_in(const struct shm *shm, int rank, char *text, size_t room)
{
    char host[64] = "this machine";
    gethostname(host, sizeof host - 1);
    snprintf(text, room, "host %s, process %d", host,
             atomic_load(&shm->region->members[rank].process));
}

static void place_of(const struct comm *comm, int rank, char *text, size_t room)
{
    const struct region_end *end = (const struct region_end *)comm;
    place_in(end->owner, end->ranks[rank], text, room);
}

static enum status check_rank(struct comm *comm, int rank)
{
    const struct region_end *end = (const struct region_end *)comm;
    const struct shm *shm = end->owner;
    struct region_member *member = &end->first->members[end->ranks[rank]];
    TRY(region_check(comm, rank));
    if (atomic_load(&member->state) != REGION_JOINED || holds_lock(shm, end->ranks[rank]))
        return STATUS_OK;
    TRY(region_check(comm, rank)); /* it may have left in good order meanwhile */
    char name[COMM_NAME];
    FAIL(STATUS_DEVICE, "%s died", comm_name(comm, rank, name));
}

void shm_lost(struct shm *shm, int rank, const char *how)
{
    char why[REGION_WHY], place[100];
    place_in(shm, rank, place, sizeof place);
    snprintf(why, sizeof why, "rank %d (%s) %s", rank, place, how);
    region_record(shm->region, STATUS_DEVICE, why);
}

enum status shm_failure(const struct shm *shm)
{
    if (atomic_load(&shm->region->failed) == 2)
        FAIL(shm->region->code, "%s", shm->region->why);
    return STATUS_OK;
}

/* ---- ends ---- */

static void close_end(struct comm *comm)
{
    struct region_end *end = (struct region_end *)comm;
    if (end->region == end->first)
        region_leave(end);
    else
        unmap_region(end->region);
    region_close_end(end);
}

/* The kernel copies between two processes, where it lets them (see shm_join). */
static enum status copy_across(struct comm *comm, int rank, char *theirs, char *ours, size_t bytes,
                               bool there)
{
    const struct region_end *end = (const struct region_end *)comm;
    const int process = atomic_load(&end->first->members[end->ranks[rank]].process);
    for (size_t done = 0; done < bytes;) {
        struct iovec near = {ours + done, bytes - done}, far = {theirs + done, bytes - done};
        const ssize_t moved = there ? process_vm_writev(process, &near, 1, &far, 1, 0)
                                    : process_vm_readv(process, &near, 1, &far, 1, 0);
        if (moved <= 0) {
            const int error = errno;
            char name[COMM_NAME];
            TRY(check_rank(comm, rank));
            if (error == ESRCH) /* its memory goes before its lock does */
                FAIL(STATUS_DEVICE, "%s died", comm_name(comm, rank, name));
            FAIL(STATUS_DEVICE, "the memory of %s cannot be reached: %s",
                 comm_name(comm, rank, name), strerror(error));
        }
        done += (size_t)moved;
    }
    return STATUS_OK;
}

static enum status fetch(struct comm *comm, int rank, const char *theirs, void *to, size_t bytes)
{
    return copy_across(comm, rank, (char *)(uintptr_t)theirs, to, bytes, false);
}

static enum status store(struct comm *comm, int rank, char *theirs, const void *from, size_t bytes)
{
    return copy_across(comm, rank, theirs, (char *)(uintptr_t)from, bytes, true);
}

static enum status open_group(struct comm *comm, const int *ranks, int count, struct comm **out);

static const struct comm_transport shm_transport = {
    .name = "shm",
    .advance = region_advance,
    .rest = region_rest,
    .check = check_rank,
    .fetch = fetch,
    .store = store,
    .group = open_group,
    .place = place_of,
    .abandon = region_abandon,
    .close = close_end,
};

/* The first member takes the next bytes of the file and tells the others where. */
static enum status make_region(struct region_end *end, int count, bool mine, uint64_t *offset,
                               struct region **out)
{
    const struct shm *shm = end->owner;
    if (mine)
        *offset = atomic_fetch_add(&shm->region->next, (uint64_t)whole_pages(region_bytes(count)));
    if (*offset + region_bytes(count) > (uint64_t)file_bytes)
        FAIL(STATUS_MEMORY, "too many groups of ranks were opened");
    TRY(map_region(shm, *offset, count, out));
    if (mine)
        region_init(*out, count);
    return STATUS_OK;
}

static enum status open_group(struct comm *comm, const int *ranks, int count, struct comm **out)
{
    struct region_end *end = (struct region_end *)comm;
    return region_open_group(end, ranks, count, make_region, unmap_region, out);
}

enum status shm_join(struct shm *shm, int rank, struct comm **out)
{
    struct region_end *end;
    struct flock lock = lock_of(rank);
    assert(rank >= 0 && rank < shm->size);
    if (fcntl(shm->file, F_SETLK, &lock) != 0)
        FAIL(STATUS_IO, "rank %d is taken by another process: %s", rank, strerror(errno));
    TRY(region_open_end(&shm_transport, shm->region, shm->region, NULL, shm->size, rank, &end));
    end->owner = shm;
    /* Where a process may look only at its own children (Yama), those of our parent may look at us:
     * the other ranks. Where that is refused too, sums go through the lanes. */
    prctl(PR_SET_PTRACER, (unsigned long)getppid());
    atomic_store(&shm->region->members[rank].process, (int)getpid());
    atomic_store(&shm->region->members[rank].state, REGION_JOINED);
    *out = &end->comm;
    return STATUS_OK;
}
