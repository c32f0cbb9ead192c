/* Iterations that find cold caches: what empties them is theirs neither in time nor in any meter.
 */
#include "base/machine/cpu.h"
#include "bench/job/job_cold.h"
#include "check.h"

#include <sched.h>

enum { MB = 1 << 20 };

struct counted {
    struct job job;
    int64_t calls, iterations;
};

static enum status counted_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    struct counted *counted = (struct counted *)job;
    counted->calls++;
    counted->iterations += iterations;
    *elapsed_ns = 7;
    return STATUS_OK;
}

static const struct job_kind counted_kind = {.name = "counted", .run = counted_run};
static const struct cpu caches = {.l1_bytes = 32 << 10,
                                  .l2_bytes = 1 * MB,
                                  .l3_bytes = 16 * MB}; /* as an example */

TEST(runs_one_at_a_time_and_goes_back_to_its_cpus)
{
    struct counted inner = {.job = {&counted_kind}};
    struct pins pins = {0};
    struct job *cold;
    cpu_set_t before, after;
    uint64_t elapsed_ns;
    pins_find(&pins);
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    if (!CHECK_OK(job_cold_open(&inner.job, &caches, &pins, &cold)))
        return;
    CHECK_OK(cold->kind->run(cold, 3, &elapsed_ns));
    CHECK_EQUAL_INT(elapsed_ns, 21);
    CHECK_EQUAL_INT(inner.calls, 3);
    CHECK_EQUAL_INT(inner.iterations, 3);
    CHECK(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&before, &after));
    cold->kind->close(cold);
}

/* The first time the memory is written it is fetched, page by page: not by what is measured. */
TEST(meters_stand_still_meanwhile)
{
    struct counted inner = {.job = {&counted_kind}};
    const struct family ours = {.count = 0};
    struct meters meters = {0};
    struct pins pins = {0};
    struct job *cold;
    uint64_t elapsed_ns;
    pins_find(&pins);
    if (!CHECK_OK(job_cold_open(&inner.job, &caches, &pins, &cold)))
        return;
    job_cold_meter(cold, &meters, &ours);
    meters_begin(&meters, &ours);
    CHECK_OK(cold->kind->run(cold, 1, &elapsed_ns));
    meters_end(&meters, &ours);
    CHECK(!meters.running && meters.page_faults < 2 * caches.l3_bytes / 4096 / 2);
    CHECK_OK(cold->kind->run(cold, 1, &elapsed_ns)); /* … and those that do not run stay so */
    CHECK(!meters.running);
    cold->kind->close(cold);
}

TEST(says_where_caches_cannot_be_emptied)
{
    struct counted inner = {.job = {&counted_kind}};
    const struct pins none = {0};
    struct pins gone = {.cpus = {0, PIN_CPUS - 1}, .count = 2};
    struct job *cold;
    uint64_t elapsed_ns;
    CHECK_EQUAL_INT(job_cold_open(&inner.job, &caches, &none, &cold), STATUS_UNSUPPORTED);
    if (!CHECK_OK(job_cold_open(&inner.job, &caches, &gone, &cold)))
        return;
    if (sched_getcpu() != gone.cpus[1])
        CHECK_EQUAL_INT(cold->kind->run(cold, 1, &elapsed_ns), STATUS_UNSUPPORTED);
    cold->kind->close(cold);
}

CHECK_MAIN
