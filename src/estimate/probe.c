/* probe.c: see probe.h. On a CPU a burst is a pass that is thrown away, since whoever had its turn
 * before left other things in the caches, and then passes that are timed, forth and back. Threads
 * are started for every burst and end with it: whoever is timed next finds the CPUs its own. A
 * burst that had to share its CPUs is thrown away. */
#include "estimate/probe.h"

#include "base/clock.h"
#include "base/memory.h"
#include "estimate/ground.h"
#include "record/stats.h"

#include <math.h>
#include <string.h>

enum { PATTERNS = 2, SAMPLES_MOST = 1024 };
/* A burst whose threads had their CPUs for less than this share says what other programs took, not
 * what memory gives: three busy shells on one core made 24 GB/s of 223. */
static const double CPU_SHARE_LEAST = 0.9;
static const uint64_t SET_MOST = (uint64_t)128 << 20;
static const uint64_t WAY_NS = 3000000, UNIT_NS = 4000000; /* a look at a way; a unit's burst */

struct pattern {
    bool wanted;
    struct ceiling_row like; /* the ceiling it is measured against; per_s: the most that it saw */
    struct burst burst;      /* of a CPU: by the way that is fastest here */
    double samples[SAMPLES_MOST]; /* bytes a second; the latest */
    size_t count;
};

struct probe {
    struct job job;
    struct yardstick yardstick;
    struct ground ground;  /* of a CPU */
    bool grounded, capped; /* capped: its set is smaller than the task's */
    bool failed;
    struct pattern patterns[PATTERNS]; /* reading, updating */
};

static enum status pattern_keep(struct pattern *pattern, double per_s)
{
    if (!(per_s > 0) || isinf(per_s))
        FAIL(STATUS_WRONG, "a burst took no time");
    pattern->samples[pattern->count++ % SAMPLES_MOST] = per_s;
    pattern->like.per_s = fmax(pattern->like.per_s, per_s);
    return STATUS_OK;
}

static enum status pattern_run_cpu(struct probe *probe, struct pattern *pattern,
                                   uint64_t *elapsed_ns)
{
    const long times = pattern->burst.times;
    pattern->burst.times = 1;
    burst_run_ns(probe->ground.pool, &pattern->burst);
    pattern->burst.times = times;
    const uint64_t cpu_ns = clock_cpu_ns();
    const uint64_t took_ns = burst_run_ns(probe->ground.pool, &pattern->burst);
    const double had_ns = (double)(clock_cpu_ns() - cpu_ns) / pattern->like.threads;
    *elapsed_ns += took_ns;
    if (had_ns < CPU_SHARE_LEAST * (double)took_ns)
        return STATUS_OK;
    return pattern_keep(pattern, burst_work(pattern->like.ceiling, (double)pattern->burst.bytes) *
                                     (double)times / (double)took_ns * 1e9);
}

static enum status pattern_run_unit(struct probe *probe, struct pattern *pattern,
                                    uint64_t *elapsed_ns)
{
    const struct calibration *calibration = probe->yardstick.calibration;
    double per_s;
    if (calibration->unit.backend != probe->yardstick.backend)
        FAIL(STATUS_UNSUPPORTED, "another unit is being calibrated");
    TRY(calibration->unit.backend->burst(calibration->unit.device,
                                         ceiling_name(pattern->like.ceiling),
                                         pattern->like.set_bytes, UNIT_NS, &per_s));
    *elapsed_ns += UNIT_NS;
    return pattern_keep(pattern, per_s);
}

static enum status probe_iterate(struct probe *probe, uint64_t *elapsed_ns)
{
    const bool unit = probe->yardstick.backend != NULL;
    enum status status = STATUS_OK;

    if (!unit)
        TRY(ground_team(&probe->ground, probe->patterns[0].like.threads));
    for (int i = 0; i < PATTERNS && status == STATUS_OK; i++)
        if (probe->patterns[i].wanted)
            status =
                (unit ? pattern_run_unit : pattern_run_cpu)(probe, &probe->patterns[i], elapsed_ns);
    ground_dismiss(&probe->ground);
    return status;
}

static enum status probe_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    struct probe *probe = (struct probe *)job;
    enum status status = STATUS_OK;

    *elapsed_ns = 0;
    for (int64_t i = 0; i < iterations && !probe->failed && status == STATUS_OK; i++)
        status = probe_iterate(probe, elapsed_ns);
    probe->failed = probe->failed || status != STATUS_OK;
    return status;
}

static void probe_close(struct job *job)
{
    struct probe *probe = (struct probe *)job;
    if (probe->grounded)
        ground_close(&probe->ground);
    mem_free(probe);
}

static const struct job_kind probe_kind = {.name = "probe", .run = probe_run, .close = probe_close};

/* The fastest way now, and so many passes that they are long enough, in pairs: forth and back. */
static void pattern_choose(struct probe *probe, struct pattern *pattern)
{
    burst_kernel *const *ways =
        burst_ways(pattern->like.ceiling, pattern->like.isa, &probe->ground.cpu);
    struct burst trial = {.data = probe->ground.data,
                          .apart = true,
                          .bytes = (long)pattern->like.set_bytes / BURST_GRAIN * BURST_GRAIN};
    double best_ns = (double)INFINITY;

    for (; *ways; ways++) {
        trial.kernel = *ways;
        const double way_ns = burst_best_ns(probe->ground.pool, &trial, WAY_NS);
        if (way_ns >= best_ns)
            continue;
        best_ns = way_ns;
        pattern->burst = trial;
        pattern->burst.times += trial.times % 2;
    }
}

static enum status probe_prepare_cpu(struct probe *probe)
{
    TRY(ground_open(&probe->ground, PAGES_2M, probe->patterns[0].like.set_bytes));
    probe->grounded = true;
    TRY(ground_team(&probe->ground, probe->patterns[0].like.threads));
    for (int i = 0; i < PATTERNS; i++)
        if (probe->patterns[i].wanted)
            pattern_choose(probe, &probe->patterns[i]);
    ground_dismiss(&probe->ground);
    return STATUS_OK;
}

/* The ceilings are looked for as floors do, so that there is something to measure against. */
static enum status probe_prepare(struct probe *probe, uint64_t set_bytes)
{
    const struct yardstick *yardstick = &probe->yardstick;
    struct ceiling_row like = {.pages = PAGES_2M};
    struct ceilings found;
    struct cpu cpu;

    TRY(yardstick_read(yardstick, set_bytes < SET_MOST ? set_bytes : SET_MOST, false, &found));
    probe->capped = calibration_set(set_bytes) > found.set_bytes;
    like.set_bytes = found.set_bytes;
    like.threads = found.threads;
    if (yardstick->backend) {
        like.pages = PAGES_4K; /* a unit has none */
        memcpy(like.unit, yardstick->calibration->unit.name, sizeof like.unit);
    } else {
        cpu_detect(&cpu);
        like.isa = cpu.isa;
    }
    for (int i = 0; i < PATTERNS; i++) {
        like.ceiling = i ? CEILING_UPDATE : CEILING_READ;
        probe->patterns[i].like = like;
    }
    return yardstick->backend ? STATUS_OK : probe_prepare_cpu(probe);
}

enum status probe_open(const struct yardstick *yardstick, uint64_t set_bytes,
                       const struct floor *floor, struct job **out)
{
    if (!floor->reads && !floor->updates)
        FAIL(STATUS_UNSUPPORTED, "nothing is bound by bytes");
    struct probe *probe = mem_alloc(sizeof *probe);
    NEED(probe);
    probe->job.kind = &probe_kind;
    probe->yardstick = *yardstick;
    probe->patterns[0].wanted = floor->reads;
    probe->patterns[1].wanted = floor->updates;
    enum status status = probe_prepare(probe, set_bytes);
    if (status != STATUS_OK) {
        probe_close(&probe->job);
        return status;
    }
    *out = &probe->job;
    return STATUS_OK;
}

bool probe_fits(const struct job *job, const struct yardstick *yardstick)
{
    const struct yardstick *own = &((const struct probe *)job)->yardstick;
    return own->backend == yardstick->backend && own->threads == yardstick->threads;
}

/* What the bursts gave, by their median, and the best ever seen. */
static enum status pattern_read(const struct probe *probe, const struct pattern *pattern,
                                double *per_s, double *best)
{
    const size_t count = pattern->count < SAMPLES_MOST ? pattern->count : SAMPLES_MOST;
    double sorted[SAMPLES_MOST], low, high;

    TRY(calibration_merge(probe->yardstick.calibration, &pattern->like));
    probe->yardstick.calibration->changed = true;
    *best = calibration_best(probe->yardstick.calibration, &pattern->like);
    memcpy(sorted, pattern->samples, count * sizeof *sorted);
    stats_median(sorted, count, 0.95, per_s, &low, &high);
    return STATUS_OK;
}

enum status probe_read(const struct job *job, struct ceilings *best, struct probe_seen *out)
{
    const struct probe *probe = (const struct probe *)job;
    double *const bests[PATTERNS] = {&best->read_per_s, &best->update_per_s};
    double *const nows[PATTERNS] = {&out->now.read_per_s, &out->now.update_per_s};
    double share[PATTERNS] = {1, 1}, least = 1;

    for (int i = 0; i < PATTERNS; i++) {
        const struct pattern *pattern = &probe->patterns[i];
        if (!pattern->wanted)
            continue;
        if (probe->failed || pattern->count == 0)
            FAIL(STATUS_UNSUPPORTED, "no burst of calibration had its CPUs to itself");
        double per_s, most;
        TRY(pattern_read(probe, pattern, &per_s, &most));
        share[i] = fmin(per_s / most, 1);
        if (!probe->capped)
            *bests[i] = fmax(*bests[i], most);
        if (share[i] <= least) {
            least = share[i];
            out->per_s = per_s;
            out->best = most;
        }
    }
    out->now = *best;
    for (int i = 0; i < PATTERNS; i++)
        *nows[i] *= share[i];
    return STATUS_OK;
}
