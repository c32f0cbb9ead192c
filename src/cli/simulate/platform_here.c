/* platform_here.c: two processes, by the transport that training takes here: half of the quickest
 * round trip of a byte, and the quickest exchange of large messages both ways. */
#include "cli/simulate/platform_here.h"

#include "base/clock.h"
#include "base/memory.h"
#include "comm/shm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { TRIPS = 2000, EXCHANGES = 12, BYTES = 16 << 20 };

/* In memory that both see. */
struct found {
    double latency_s, bytes_per_s;
};

static enum status time_trips(struct comm *comm, double *out)
{
    char byte = 0;
    *out = 1;
    for (int i = 0; i < TRIPS; i++) {
        const uint64_t begun = clock_ns();
        if (comm->rank == 0)
            TRY(comm_send(comm, 1, &byte, 1));
        TRY(comm_receive(comm, 1 - comm->rank, &byte, 1));
        if (comm->rank == 1)
            TRY(comm_send(comm, 0, &byte, 1));
        const double seconds = (double)(clock_ns() - begun) / 2e9;
        *out = seconds < *out ? seconds : *out;
    }
    return STATUS_OK;
}

static enum status time_exchanges(struct comm *comm, double *out)
{
    char *sent = mem_large(BYTES), *received = mem_large(BYTES);
    enum status status = sent && received ? STATUS_OK : STATUS_MEMORY;
    *out = 0;
    if (status == STATUS_OK)
        memset(sent, 1, BYTES);
    for (int i = 0; i < EXCHANGES && status == STATUS_OK; i++) {
        const uint64_t begun = clock_ns();
        status = comm_exchange(comm, 1 - comm->rank, sent, BYTES, 1 - comm->rank, received, BYTES);
        const double rate = BYTES / ((double)(clock_ns() - begun) / 1e9);
        *out = rate > *out ? rate : *out;
    }
    mem_free_large(sent, BYTES);
    mem_free_large(received, BYTES);
    if (status == STATUS_MEMORY)
        FAIL(STATUS_MEMORY, "out of memory");
    return status;
}

static enum status measure(struct comm *comm, void *context)
{
    struct found found;
    TRY(time_trips(comm, &found.latency_s));
    TRY(time_exchanges(comm, &found.bytes_per_s));
    if (comm->rank == 0)
        *(struct found *)context = found;
    return STATUS_OK;
}

enum status platform_here(struct platform *out)
{
    struct found *found =
        mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED)
        FAIL(STATUS_MEMORY, "out of memory: %s", strerror(errno));
    enum status status = shm_run(2, measure, found);
    *out = (struct platform){.name = "here", .units = 1, .here = true, .clusters = 1};
    out->outside = (struct platform_link){found->bytes_per_s, found->latency_s};
    snprintf(out->title, sizeof out->title,
             "processes of this machine (measured: %.2g us, %.3g GB/s each way)",
             found->latency_s * 1e6, found->bytes_per_s / 1e9);
    munmap(found, sizeof *found);
    return status;
}
