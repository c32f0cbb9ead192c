/* timing.c: see timing.h. */
#include "bench/timing.h"

#include "base/clock.h"
#include "base/memory.h"
#include "bench/measure.h"

#include <math.h>

enum {
    CLOCK_SHARE = 400,  /* a sample lasts this many readings of the clock; it takes two */
    GROUP_SHARE = 2000, /* … and one of several iterations, which lose nothing by it, so many */
    OUTSIDE_SHARE = 10, /* … and this many times what passes outside the job's own clock, */
    OUTSIDE_MATTERS_NS = 10000000, /* unless it is so long that being woken up does not show */
    CALL_MATTERS_NS = 1000000,     /* longer samples are not doubled to hide the cost of a call */
    LONG_NS = 50000000,            /* a sample this long is not repeated just to calibrate */
    REPEATS = 3,                   /* of a calibration sample; the quickest counts */
    SLICE_NS = 5000000,            /* how long a contender's turn lasts */
    SLICE_MOST = 64,               /* samples in a turn */
    SLICE_LEAST = 3,               /* … and of samples that take less than: */
    SHORT_NS = 10000000,
};
static const int64_t PER_MOST = (int64_t)1 << 32;
static const double STEADY = 0.02; /* a slice that is not faster by this is no progress */

/* One sample of `per` iterations. *outside_ns is the wall time beyond what the job says it took. */
static enum status timing_sample(struct timing *contender, int64_t per, uint64_t *elapsed_ns,
                                 uint64_t *outside_ns)
{
    uint64_t start_ns = clock_ns();
    *elapsed_ns = 0;
    TRY(contender->job->kind->run(contender->job, per, elapsed_ns));
    uint64_t wall_ns = clock_ns() - start_ns;
    contender->spent_ns += wall_ns;
    *outside_ns = wall_ns > *elapsed_ns ? wall_ns - *elapsed_ns : 0;
    return STATUS_OK;
}

/* The quickest of a few samples; one is enough when it is long, and so was the first iteration:
 * else something held it up. */
static enum status timing_quickest(struct timing *contender, int64_t per, uint64_t *elapsed_ns,
                                   uint64_t *outside_ns)
{
    *elapsed_ns = *outside_ns = UINT64_MAX;
    for (int i = 0; i < REPEATS; i++) {
        uint64_t elapsed, outside;
        TRY(timing_sample(contender, per, &elapsed, &outside));
        if (elapsed < *elapsed_ns)
            *elapsed_ns = elapsed;
        if (outside < *outside_ns)
            *outside_ns = outside;
        if (elapsed > LONG_NS && contender->first_ns > LONG_NS / 2)
            break;
    }
    return STATUS_OK;
}

/* How many iterations a sample of so long ones has at least. */
int64_t timing_least(const struct timing *contender, double one_ns)
{
    int64_t lasting = (int64_t)ceil((double)contender->lasts_ns / one_ns);
    int64_t least = lasting > contender->together ? lasting : contender->together;
    return least > 1 ? least : 1;
}

/* Groups of at least that many, or of as many as there is time for: whether the clock costs 0.2 %
 * or 0.4 % of one must not depend on where doubling ended. */
static enum status timing_fill(struct timing *contender, uint64_t limit_ns)
{
    double one_ns = (double)contender->sample_ns / (double)contender->per;
    int64_t least = timing_least(contender, one_ns);
    int64_t lasting = (int64_t)((double)(GROUP_SHARE * clock_cost_ns()) / one_ns);
    least = contender->per > 1 && lasting > least ? lasting : least;
    int64_t most = limit_ns > contender->spent_ns
                       ? (int64_t)((double)(limit_ns - contender->spent_ns) / one_ns)
                       : 0;
    least = least < most ? least : most;
    if (least <= contender->per)
        return STATUS_OK;
    contender->per = least;
    return timing_sample(contender, least, &contender->sample_ns, &contender->outside_ns);
}

/* Finds `per`, within a quarter of the time. First so large that the clock and what is outside do
 * not matter; then doubled for as long as that makes an iteration cheaper by 1 %: a call has a
 * price of its own, such as a launch and a wait on a GPU. */
static enum status timing_calibrate(struct timing *contender, uint64_t limit_ns)
{
    const uint64_t clock_share_ns = CLOCK_SHARE * clock_cost_ns();
    uint64_t elapsed_ns, outside_ns;
    int64_t per = 1;

    TRY(timing_quickest(contender, per, &elapsed_ns, &outside_ns));
    if (elapsed_ns < limit_ns / 100)
        contender->spent_ns = 0; /* whatever held it up is not its own time */
    if (contender->alone) {
        contender->per = 1;
        contender->sample_ns = elapsed_ns;
        contender->outside_ns = outside_ns;
        return STATUS_OK;
    }
    /* The clock's share takes microseconds of an honest job: a machine that was busy elsewhere for
     * the whole of the time must not make it look like a job that takes none. */
    while ((elapsed_ns < clock_share_ns ||
            (elapsed_ns < OUTSIDE_SHARE * outside_ns && elapsed_ns < OUTSIDE_MATTERS_NS)) &&
           per < PER_MOST &&
           (contender->spent_ns < limit_ns / 4 ||
            (elapsed_ns < clock_share_ns && elapsed_ns > outside_ns))) {
        per *= 2;
        TRY(timing_quickest(contender, per, &elapsed_ns, &outside_ns));
    }
    if (elapsed_ns < clock_share_ns && (elapsed_ns == 0 || per >= PER_MOST))
        FAIL(STATUS_WRONG, "%lld iterations take no time: nothing is being measured",
             (long long)per);
    for (; elapsed_ns < clock_share_ns; elapsed_ns *= 2)
        per *= 2; /* a stall took the time for trying it out */
    while (elapsed_ns < CALL_MATTERS_NS && contender->spent_ns < limit_ns / 4) {
        uint64_t twice_ns;
        TRY(timing_quickest(contender, 2 * per, &twice_ns, &outside_ns));
        if ((double)twice_ns > 2 * 0.99 * (double)elapsed_ns)
            break;
        per *= 2;
        elapsed_ns = twice_ns;
    }
    contender->per = per;
    contender->sample_ns = elapsed_ns;
    contender->outside_ns = outside_ns;
    return timing_fill(contender, limit_ns);
}

static int timing_slice_samples(const struct timing *contender)
{
    uint64_t count = SLICE_NS / (contender->sample_ns + contender->outside_ns + 1);
    uint64_t least = contender->sample_ns < SHORT_NS ? SLICE_LEAST : 1;
    return count < least ? (int)least : count > SLICE_MOST ? SLICE_MOST : (int)count;
}

/* A growing list, with room for one more; NULL when memory is out. */
static void *timing_room(void *list, size_t count, size_t *room, size_t bytes)
{
    if (count < *room)
        return list;
    size_t wider = *room ? 2 * *room : 256;
    void *grown = mem_grow(list, wider, bytes);
    if (grown)
        *room = wider;
    return grown;
}

static enum status timing_keep(struct timing *contender, double sample_ns)
{
    double *list =
        timing_room(contender->samples_ns, contender->count, &contender->room, sizeof *list);
    NEED(list);
    contender->samples_ns = list;
    list[contender->count++] = sample_ns;
    return STATUS_OK;
}

static enum status timing_keep_turn(struct timing *contender, size_t first_sample)
{
    size_t *list =
        timing_room(contender->turns, contender->turn_count, &contender->turn_room, sizeof *list);
    NEED(list);
    contender->turns = list;
    list[contender->turn_count++] = first_sample;
    return STATUS_OK;
}

/* A contender's turn: its samples are kept, or only their quickest is told (warm-up). What is kept
 * is a few samples also where the time is up already. */
enum status timing_slice(const struct measure_options *options, struct timing *contender, bool keep,
                         double *quickest_ns)
{
    const int samples = timing_slice_samples(contender);
    *quickest_ns = (double)INFINITY;
    for (int i = 0; i < samples; i++) {
        uint64_t elapsed_ns, outside_ns;
        if (options->stopped && options->stopped())
            FAIL(STATUS_INTERRUPTED, "stopped");
        TRY(timing_sample(contender, contender->per, &elapsed_ns, &outside_ns));
        double sample_ns = (double)elapsed_ns / (double)contender->per;
        if (keep)
            TRY(timing_keep(contender, sample_ns));
        *quickest_ns = fmin(*quickest_ns, sample_ns);
        if (contender->spent_ns >= options->limit_ns && (!keep || i + 1 >= SLICE_LEAST))
            break;
    }
    return STATUS_OK;
}

/* Calibration and warm-up, within a quarter of the time. The very first iteration, which pays for
 * what is done once (code is loaded or compiled, memory is touched), is never a sample. One that is
 * longer than all of the time when it is warm is measured that once; a short one that something
 * held up is not. */
enum status timing_warm(const struct measure_options *options, struct timing *contender)
{
    double best_ns = (double)INFINITY, quickest_ns;
    uint64_t outside_ns;
    int flat = 0;

    if (contender->warm && contender->first_ns > options->limit_ns) {
        contender->per = 1;
        contender->meters = contender->first_meters;
        return timing_keep(contender, (double)contender->first_ns);
    }
    if (!contender->first_ns)
        TRY(timing_sample(contender, 1, &contender->first_ns, &outside_ns));
    contender->spent_ns = 0;
    meters_begin(&contender->meters, &contender->family);
    enum status status = timing_calibrate(contender, options->limit_ns);
    meters_end(&contender->meters, &contender->family);
    TRY(status);
    const double one_ns = (double)contender->sample_ns / (double)contender->per;
    if (one_ns > (double)options->limit_ns)
        return timing_keep(contender, one_ns);
    contender->meters = (struct meters){0}; /* it is no sample */
    while (contender->spent_ns < options->limit_ns / 4) {
        TRY(timing_slice(options, contender, false, &quickest_ns));
        flat = quickest_ns < best_ns * (1 - STEADY) ? 0 : flat + 1;
        best_ns = fmin(best_ns, quickest_ns);
        if (flat == 2) {
            contender->steady = true;
            break;
        }
    }
    return STATUS_OK;
}

/* A turn of one among several. */
enum status timing_turn(const struct measure_options *options, struct timing *contender,
                        bool switched)
{
    uint64_t elapsed_ns, outside_ns;
    double quickest_ns;

    if (switched && contender->sample_ns < LONG_NS)
        TRY(timing_sample(contender, contender->per, &elapsed_ns, &outside_ns));
    size_t before = contender->count;
    meters_begin(&contender->meters, &contender->family);
    enum status status = timing_slice(options, contender, true, &quickest_ns);
    meters_end(&contender->meters, &contender->family);
    TRY(status);
    return timing_keep_turn(contender, before);
}

void timing_free(struct timing *contender)
{
    mem_free(contender->samples_ns);
    mem_free(contender->turns);
    contender->turns = NULL;
    contender->samples_ns = NULL;
    contender->count = contender->room = contender->turn_count = contender->turn_room = 0;
}
