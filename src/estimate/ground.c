/* ground.c: see ground.h. */
#include "estimate/ground.h"

#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

static const uint64_t HUGE_PAGE = (uint64_t)2 << 20;

enum status ground_open(struct ground *ground, enum pages pages, uint64_t set_bytes)
{
    *ground = (struct ground){.mapped_bytes = set_bytes + 2 * HUGE_PAGE};
    cpu_detect(&ground->cpu);
    ground->mapped = mmap(NULL, ground->mapped_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ground->mapped == MAP_FAILED)
        FAIL(STATUS_MEMORY, "no %llu bytes to calibrate with: %s",
             (unsigned long long)ground->mapped_bytes, strerror(errno));
    uintptr_t beyond = (uintptr_t)ground->mapped % HUGE_PAGE;
    ground->data = ground->mapped + (beyond ? HUGE_PAGE - beyond : 0);
    /* Refused, 2 MB pages are slower, not wrong. */
    madvise(ground->data, set_bytes + HUGE_PAGE,
            pages == PAGES_2M ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    memset(ground->data, 0, set_bytes);
    return STATUS_OK;
}

enum status ground_team(struct ground *ground, int threads)
{
    if (threads > 1 && pool_open(threads, POOL_SPREAD, &ground->pool) == STATUS_OK)
        return STATUS_OK;
    return pool_open(threads, POOL_NONE, &ground->pool);
}

void ground_dismiss(struct ground *ground)
{
    pool_close(ground->pool);
    ground->pool = NULL;
}

void ground_close(struct ground *ground)
{
    munmap(ground->mapped, ground->mapped_bytes);
    pool_close(ground->pool);
}

static void burst_member(void *context, int member, int members)
{
    struct burst *burst = context;
    long from = 0, to = burst->bytes / BURST_GRAIN;
    if (burst->apart)
        pool_share(to, 1, member, members, &from, &to);
    if (from < to)
        burst->sink[member] = burst->kernel(burst->data + from * BURST_GRAIN,
                                            (to - from) * BURST_GRAIN, burst->times);
}

uint64_t burst_run_ns(struct pool *pool, struct burst *burst)
{
    uint64_t start_ns = clock_ns();
    pool_run(pool, pool_threads(pool), burst_member, burst);
    return clock_ns() - start_ns;
}

double burst_best_ns(struct pool *pool, struct burst *burst, uint64_t limit_ns)
{
    uint64_t deadline_ns = clock_ns() + limit_ns;
    double best_ns = (double)INFINITY;

    burst->times = 1;
    do {
        uint64_t elapsed_ns = burst_run_ns(pool, burst);
        if (elapsed_ns < BURST_LEAST_NS)
            burst->times *= 2;
        else
            best_ns = fmin(best_ns, (double)elapsed_ns / (double)burst->times);
    } while (clock_ns() < deadline_ns || isinf(best_ns));
    return best_ns;
}
