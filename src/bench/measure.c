/* measure.c: see measure.h. */
#include "bench/measure.h"

#include "base/clock.h"
#include "base/memory.h"
#include "bench/meter/pin.h"
#include "record/stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    COMPARED_LEAST_NS = 50000, /* of a comparison: what a sample lasts, … */
    COMPARED_MOST_NS = 1000000,
    COMPARED_OUTSIDE = 2, /* … which is this many times what passes outside, or the most */
    ROUNDS_LEAST = 6,     /* before an interval is believed, … */
    SAMPLES_LEAST = 6,    /* … or there can be one */
    START_SHARE = 12,     /* of the time: what takes longer to start has one instance */
    INSTANCE_ROUNDS = 4,  /* forth and back, that an instance has at least */
    PROBE_SHARE = 10,     /* probes have this part of the time */
};
static const int64_t PER_MOST = (int64_t)1 << 32;
static const double STEADY = 0.02; /* a slice that is not faster by this is no progress */

static void measure_fail(struct timing *contender, enum status status)
{
    contender->stop = MEASURE_FAILED;
    contender->status = status;
    contender->out = true;
    snprintf(contender->message, sizeof contender->message, "%s", status_message());
}

/* One sample of `per` iterations. *outside_ns is the wall time beyond what the job says it took. */
static enum status measure_sample(struct timing *contender, int64_t per, uint64_t *elapsed_ns,
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
static enum status measure_quickest(struct timing *contender, int64_t per, uint64_t *elapsed_ns,
                                    uint64_t *outside_ns)
{
    *elapsed_ns = *outside_ns = UINT64_MAX;
    for (int i = 0; i < REPEATS; i++) {
        uint64_t elapsed, outside;
        TRY(measure_sample(contender, per, &elapsed, &outside));
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
static int64_t measure_least(const struct timing *contender, double one_ns)
{
    int64_t lasting = (int64_t)ceil((double)contender->lasts_ns / one_ns);
    int64_t least = lasting > contender->together ? lasting : contender->together;
    return least > 1 ? least : 1;
}

/* Groups of at least that many, or of as many as there is time for: whether the clock costs 0.2 %
 * or 0.4 % of one must not depend on where doubling ended. */
static enum status measure_fill(struct timing *contender, uint64_t limit_ns)
{
    double one_ns = (double)contender->sample_ns / (double)contender->per;
    int64_t least = measure_least(contender, one_ns);
    int64_t lasting = (int64_t)((double)(GROUP_SHARE * clock_cost_ns()) / one_ns);
    least = contender->per > 1 && lasting > least ? lasting : least;
    int64_t most = limit_ns > contender->spent_ns
                       ? (int64_t)((double)(limit_ns - contender->spent_ns) / one_ns)
                       : 0;
    least = least < most ? least : most;
    if (least <= contender->per)
        return STATUS_OK;
    contender->per = least;
    return measure_sample(contender, least, &contender->sample_ns, &contender->outside_ns);
}

/* Finds `per`, within a quarter of the time. First so large that the clock and what is outside do
 * not matter; then doubled for as long as that makes an iteration cheaper by 1 %: a call has a
 * price of its own, such as a launch and a wait on a GPU. */
static enum status measure_calibrate(struct timing *contender, uint64_t limit_ns)
{
    const uint64_t clock_share_ns = CLOCK_SHARE * clock_cost_ns();
    uint64_t elapsed_ns, outside_ns;
    int64_t per = 1;

    TRY(measure_quickest(contender, per, &elapsed_ns, &outside_ns));
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
        TRY(measure_quickest(contender, per, &elapsed_ns, &outside_ns));
    }
    if (elapsed_ns < clock_share_ns && (elapsed_ns == 0 || per >= PER_MOST))
        FAIL(STATUS_WRONG, "%lld iterations take no time: nothing is being measured",
             (long long)per);
    for (; elapsed_ns < clock_share_ns; elapsed_ns *= 2)
        per *= 2; /* a stall took the time for trying it out */
    while (elapsed_ns < CALL_MATTERS_NS && contender->spent_ns < limit_ns / 4) {
        uint64_t twice_ns;
        TRY(measure_quickest(contender, 2 * per, &twice_ns, &outside_ns));
        if ((double)twice_ns > 2 * 0.99 * (double)elapsed_ns)
            break;
        per *= 2;
        elapsed_ns = twice_ns;
    }
    contender->per = per;
    contender->sample_ns = elapsed_ns;
    contender->outside_ns = outside_ns;
    return measure_fill(contender, limit_ns);
}

static int measure_slice_samples(const struct timing *contender)
{
    uint64_t count = SLICE_NS / (contender->sample_ns + contender->outside_ns + 1);
    uint64_t least = contender->sample_ns < SHORT_NS ? SLICE_LEAST : 1;
    return count < least ? (int)least : count > SLICE_MOST ? SLICE_MOST : (int)count;
}

/* A growing list, with room for one more; NULL when memory is out. */
static void *measure_room(void *list, size_t count, size_t *room, size_t bytes)
{
    if (count < *room)
        return list;
    size_t wider = *room ? 2 * *room : 256;
    void *grown = mem_grow(list, wider, bytes);
    if (grown)
        *room = wider;
    return grown;
}

static enum status measure_keep(struct timing *contender, double sample_ns)
{
    double *list =
        measure_room(contender->samples_ns, contender->count, &contender->room, sizeof *list);
    NEED(list);
    contender->samples_ns = list;
    list[contender->count++] = sample_ns;
    return STATUS_OK;
}

static enum status measure_keep_turn(struct timing *contender, size_t first_sample)
{
    size_t *list =
        measure_room(contender->turns, contender->turn_count, &contender->turn_room, sizeof *list);
    NEED(list);
    contender->turns = list;
    list[contender->turn_count++] = first_sample;
    return STATUS_OK;
}

/* A contender's turn: its samples are kept, or only their quickest is told (warm-up). What is kept
 * is a few samples also where the time is up already. */
static enum status measure_slice(const struct measure_options *options, struct timing *contender,
                                 bool keep, double *quickest_ns)
{
    const int samples = measure_slice_samples(contender);
    *quickest_ns = (double)INFINITY;
    for (int i = 0; i < samples; i++) {
        uint64_t elapsed_ns, outside_ns;
        if (options->stopped && options->stopped())
            FAIL(STATUS_INTERRUPTED, "stopped");
        TRY(measure_sample(contender, contender->per, &elapsed_ns, &outside_ns));
        double sample_ns = (double)elapsed_ns / (double)contender->per;
        if (keep)
            TRY(measure_keep(contender, sample_ns));
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
static enum status measure_warm(const struct measure_options *options, struct timing *contender)
{
    double best_ns = (double)INFINITY, quickest_ns;
    uint64_t outside_ns;
    int flat = 0;

    if (contender->warm && contender->first_ns > options->limit_ns) {
        contender->per = 1;
        contender->meters = contender->first_meters;
        return measure_keep(contender, (double)contender->first_ns);
    }
    if (!contender->first_ns)
        TRY(measure_sample(contender, 1, &contender->first_ns, &outside_ns));
    contender->spent_ns = 0;
    meters_begin(&contender->meters, &contender->family);
    enum status status = measure_calibrate(contender, options->limit_ns);
    meters_end(&contender->meters, &contender->family);
    TRY(status);
    const double one_ns = (double)contender->sample_ns / (double)contender->per;
    if (one_ns > (double)options->limit_ns)
        return measure_keep(contender, one_ns);
    contender->meters = (struct meters){0}; /* it is no sample */
    while (contender->spent_ns < options->limit_ns / 4) {
        TRY(measure_slice(options, contender, false, &quickest_ns));
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
static enum status measure_turn(const struct measure_options *options, struct timing *contender,
                                bool switched)
{
    uint64_t elapsed_ns, outside_ns;
    double quickest_ns;

    if (switched && contender->sample_ns < LONG_NS)
        TRY(measure_sample(contender, contender->per, &elapsed_ns, &outside_ns));
    size_t before = contender->count;
    meters_begin(&contender->meters, &contender->family);
    enum status status = measure_slice(options, contender, true, &quickest_ns);
    meters_end(&contender->meters, &contender->family);
    TRY(status);
    return measure_keep_turn(contender, before);
}

static struct turns measure_turns(const struct timing *contender)
{
    return (struct turns){contender->samples_ns, contender->count, contender->turns,
                          contender->turn_count};
}

enum status measure_compare(const struct measure_options *options, const struct timing *a,
                            const struct timing *b, struct comparison *out)
{
    const struct turns of_a = measure_turns(a), of_b = measure_turns(b);
    size_t instances = a->instances < b->instances ? a->instances : b->instances;
    return compare_turns(&of_a, &of_b, a->begins, instances, options->margin, out);
}

/* Is the interval within the target? */
static enum status measure_look(const struct measure_options *options, struct timing *contender)
{
    struct stats stats;
    TRY(stats_compute(contender->samples_ns, contender->count, contender->per, &stats));
    contender->tight =
        (stats.ci_high - stats.ci_low) / 2 <= options->target * stats.median && /* NaN: false */
        contender->spent_ns - contender->warm_ns >= options->least_ns;
    return STATUS_OK;
}

/* The probes' turns, which are nobody's time. */
struct probing {
    uint64_t spent_ns;
    int64_t turns;
};

static void measure_probe(const struct measure_options *options, struct probing *probing, int count)
{
    uint64_t elapsed_ns, start_ns = clock_ns();
    for (int i = 0; i < count; i++) {
        struct job *probe = options->probes[probing->turns++ % options->probe_count];
        probe->kind->run(probe, 1, &elapsed_ns);
    }
    probing->spent_ns += clock_ns() - start_ns;
}

/* Does the last begin this round? Every other round goes back, and every other instance begins with
 * the last: what it is worth to be the first after a start must not always be the same one's. */
static bool measure_goes_back(const struct timing *list, int64_t round)
{
    return (round % 2 != 0) != (list[0].instances % 2 == 0);
}

/* Between two rounds, where there is time for it: before a round forth and before one back in turn,
 * so that nobody is always the first after it. */
static bool measure_probes(const struct measure_options *options, const struct timing *list,
                           int count, int64_t round, struct probing *probing)
{
    uint64_t timed_ns = 0;
    for (int i = 0; i < count; i++)
        timed_ns += list[i].spent_ns - list[i].warm_ns;
    if (options->probe_count == 0 || measure_goes_back(list, round) != (probing->turns % 2 != 0) ||
        PROBE_SHARE * probing->spent_ns > timed_ns)
        return false;
    measure_probe(options, probing, 1);
    return true;
}

/* One round: everyone who has time left has a turn. */
static enum status measure_round(const struct measure_options *options, struct timing *list,
                                 int count, int64_t round, bool look, bool probed)
{
    const bool back = measure_goes_back(list, round);
    for (int i = 0; i < count; i++) {
        struct timing *contender = &list[back ? count - 1 - i : i];
        if (contender->out)
            continue;
        enum status status = measure_turn(options, contender, count > 1 || probed);
        if (status == STATUS_OK && look && !options->compare)
            status = measure_look(options, contender);
        if (status == STATUS_INTERRUPTED)
            return status;
        if (status != STATUS_OK)
            measure_fail(contender, status);
        else if (contender->spent_ns >= options->limit_ns && contender->count >= SAMPLES_LEAST)
            contender->out = true;
    }
    return STATUS_OK;
}

/* Is there time to start both afresh, often enough? */
static bool measure_renews(const struct measure_options *options, const struct timing *pair)
{
    for (int i = 0; i < 2; i++)
        if (!pair[i].job->kind->renew || pair[i].start_ns == 0 ||
            pair[i].start_ns > options->limit_ns / START_SHARE)
            return false;
    return true;
}

static enum status measure_renew(const struct measure_options *options, struct timing *contender)
{
    double quickest_ns;
    int process = 0;
    uint64_t start_ns = clock_ns();
    TRY(contender->job->kind->renew(contender->job, &process));
    contender->spent_ns += clock_ns() - start_ns;
    TRY(measure_slice(options, contender, false, &quickest_ns)); /* warm again */
    family_find(process, &contender->family);
    contender->renewed_ns = contender->spent_ns;
    contender->begins[contender->instances++] = contender->turn_count;
    return STATUS_OK;
}

/* How long an instance is timed: what starting takes is part of its share, up to half of it. */
static uint64_t measure_stint(const struct measure_options *options, const struct timing *pair)
{
    uint64_t share_ns = options->limit_ns / MEASURE_INSTANCES;
    uint64_t start_ns = (pair[0].start_ns + pair[1].start_ns) / 2;
    return share_ns - (start_ns < share_ns / 2 ? start_ns : share_ns / 2);
}

/* Has the time of these instances come? */
static bool measure_aged(const struct measure_options *options, const struct timing *pair)
{
    uint64_t timed_ns =
        pair[0].spent_ns - pair[0].renewed_ns + pair[1].spent_ns - pair[1].renewed_ns;
    size_t turns = pair[0].turn_count - pair[0].begins[pair[0].instances - 1];
    return timed_ns >= 2 * measure_stint(options, pair) && turns >= 2 * INSTANCE_ROUNDS;
}

/* Between two comparisons forth and back: both have new instances when their time has come; who
 * begins is started first. */
static enum status measure_renew_pair(const struct measure_options *options, struct timing *pair)
{
    if (!measure_renews(options, pair) || pair[0].instances == MEASURE_INSTANCES ||
        pair[0].turn_count != pair[1].turn_count || !measure_aged(options, pair))
        return STATUS_OK;
    for (size_t i = 0, first = pair[0].instances % 2; i < 2; i++) {
        struct timing *contender = &pair[i ? 1 - first : first];
        enum status status = measure_renew(options, contender);
        if (status == STATUS_INTERRUPTED)
            return status;
        if (status != STATUS_OK)
            measure_fail(contender, status);
    }
    return STATUS_OK;
}

/* A comparison: both are tight when their ratio is, or what it says will not change. Where there
 * will be enough instances, they are waited for. */
static enum status measure_look_at_pair(const struct measure_options *options, struct timing *pair)
{
    struct comparison found;
    TRY(measure_compare(options, &pair[0], &pair[1], &found));
    pair[0].tight = pair[1].tight =
        (found.sure || (found.high - found.low) / 2 <= options->target * found.ratio) &&
        (found.instances >= COMPARE_INSTANCES || !measure_renews(options, pair));
    return STATUS_OK;
}

static bool measure_compares(const struct measure_options *options, const struct timing *list,
                             int count)
{
    return options->compare && count == 2 && !list[0].out && !list[1].out;
}

/* Someone is neither out of time nor tight: those who are tight go on too, so that the comparison
 * stays interleaved to the end. */
static bool measure_goes_on(const struct timing *list, int count)
{
    for (int i = 0; i < count; i++)
        if (!list[i].out && !list[i].tight)
            return true;
    return false;
}

/* Looks at whoever ran out of time between two looks, and says why each ended: of a pair that is
 * compared, whether its ratio is known. */
static void measure_conclude(const struct measure_options *options, struct timing *list, int count)
{
    if (options->compare && count == 2 && list[0].tight && list[1].tight) {
        list[0].stop = list[1].stop = MEASURE_TIGHT;
        return;
    }
    for (int i = 0; i < count; i++) {
        struct timing *contender = &list[i];
        if (contender->stop == MEASURE_FAILED || contender->count == 0) /* or it was interrupted */
            continue;
        enum status status = measure_look(options, contender);
        if (status != STATUS_OK)
            measure_fail(contender, status);
        else
            contender->stop = contender->tight ? MEASURE_TIGHT : MEASURE_TIME;
    }
}

static void measure_reset(struct timing *contender)
{
    *contender = (struct timing){.job = contender->job,
                                 .family = contender->family,
                                 .threads = contender->threads,
                                 .start_ns = contender->start_ns,
                                 .instances = 1, /* the first, from round 0 on */
                                 .alone = contender->alone,
                                 .together = contender->together,
                                 .lasts_ns = contender->lasts_ns,
                                 .first_ns = contender->first_ns,
                                 .first_meters = contender->first_meters,
                                 .warm = contender->warm,
                                 .stop = MEASURE_TIME};
}

/* Everyone is calibrated and warmed up, and whoever takes too long has had its one sample. */
static enum status measure_warm_all(const struct measure_options *options, struct timing *list,
                                    int count)
{
    for (int i = 0; i < count; i++) {
        enum status status = measure_warm(options, &list[i]);
        if (status == STATUS_INTERRUPTED)
            return status;
        if (status != STATUS_OK)
            measure_fail(&list[i], status);
        list[i].warm_ns = list[i].spent_ns;
        if (status == STATUS_OK && list[i].count)
            list[i].out = true; /* everyone else has at least one turn, whatever is left */
    }
    return STATUS_OK;
}

/* How long a sample of one that is compared should be. Short: most of what disturbs lasts for
 * milliseconds, and hits some samples and not others; but an iteration at least, or what the
 * contender needs. */
static uint64_t measure_length(const struct timing *contender)
{
    double one_ns = (double)contender->sample_ns / (double)contender->per;
    uint64_t least_ns = (uint64_t)((double)measure_least(contender, one_ns) * one_ns);
    uint64_t most_ns = COMPARED_OUTSIDE * contender->outside_ns;
    uint64_t length_ns = contender->sample_ns;
    most_ns = most_ns > COMPARED_MOST_NS ? most_ns : COMPARED_MOST_NS;
    length_ns = length_ns < most_ns ? length_ns : most_ns;
    length_ns = length_ns > COMPARED_LEAST_NS ? length_ns : COMPARED_LEAST_NS;
    return length_ns > least_ns ? length_ns : least_ns;
}

/* Samples of two that are compared are equally long: what each one pays for being woken up, and for
 * caches that the other has used, weighs the same. */
static void measure_equalise(struct timing *pair)
{
    if (pair[0].out || pair[1].out || pair[0].alone || pair[1].alone)
        return;
    uint64_t a_ns = measure_length(&pair[0]), b_ns = measure_length(&pair[1]);
    uint64_t length_ns = a_ns > b_ns ? a_ns : b_ns;
    for (int i = 0; i < 2; i++) {
        double one_ns = (double)pair[i].sample_ns / (double)pair[i].per;
        int64_t per = llround((double)length_ns / one_ns);
        pair[i].per = per > 1 ? per : 1;
        pair[i].sample_ns = (uint64_t)((double)pair[i].per * one_ns);
    }
}

/* Two of one thread each run on the same CPU, forth and back: that is one comparison. */
static enum status measure_pinned_round(const struct measure_options *options, struct timing *list,
                                        int count, int64_t round, bool look, bool probed,
                                        struct pins *pins, int *cpu)
{
    uint64_t cpu_ns = 0, wall_ns = 0;
    for (int i = 0; i < count; i++) {
        cpu_ns -= list[i].meters.cpu_ns;
        wall_ns -= list[i].meters.wall_ns;
    }
    if (round % 2 == 0)
        *cpu = pins_choose(pins, round / 2);
    for (int i = 0; i < count && round % 2 == 0; i++)
        pins_set(pins, &list[i].family, *cpu);
    TRY(measure_round(options, list, count, round, look, probed));
    for (int i = 0; i < count; i++) {
        cpu_ns += list[i].meters.cpu_ns;
        wall_ns += list[i].meters.wall_ns;
    }
    pins_note(pins, *cpu, cpu_ns, wall_ns);
    return STATUS_OK;
}

/* Rounds until everyone is known well enough, or out of time. */
static enum status measure_rounds(const struct measure_options *options, struct timing *list,
                                  int count, struct pins *pins)
{
    struct probing probing = {0};
    int64_t next_look = ROUNDS_LEAST;
    bool probed = options->probe_count > 0;
    int cpu = 0;

    measure_probe(options, &probing, options->probe_count);
    for (int64_t round = 0; measure_goes_on(list, count); round++) {
        bool look = round + 1 >= next_look;
        if (look)
            next_look += next_look / 4 + 1; /* looking sorts: let it stay rare */
        if (round % 2 == 0 && measure_compares(options, list, count))
            TRY(measure_renew_pair(options, list));
        if (round > 0)
            probed = measure_probes(options, list, count, round, &probing);
        TRY(measure_pinned_round(options, list, count, round, look, probed, pins, &cpu));
        if (look && measure_compares(options, list, count))
            TRY(measure_look_at_pair(options, list));
        if (options->compare && !measure_compares(options, list, count))
            break;
    }
    measure_probe(options, &probing, options->probe_count);
    return STATUS_OK;
}

uint64_t measure_usual_least(uint64_t limit_ns)
{
    enum { USUAL_NS = 500000000 };
    return limit_ns / 2 < USUAL_NS ? limit_ns / 2 : USUAL_NS;
}

enum status measure(const struct measure_options *options, struct timing *list, int count)
{
    struct pins pins = {0};

    for (int i = 0; i < count; i++)
        measure_reset(&list[i]);
    enum status status = measure_warm_all(options, list, count);
    if (options->compare && count == 2)
        measure_equalise(list);
    if (options->compare && count == 2 && list[0].threads == 1 && list[1].threads == 1)
        pins_find(&pins);
    if (status == STATUS_OK)
        status = measure_rounds(options, list, count, &pins);
    for (int i = 0; i < count; i++)
        pins_release(&pins, &list[i].family);
    measure_conclude(options, list, count);
    return status;
}

void measure_free(struct timing *contender)
{
    mem_free(contender->samples_ns);
    mem_free(contender->turns);
    contender->turns = NULL;
    contender->samples_ns = NULL;
    contender->count = contender->room = contender->turn_count = contender->turn_room = 0;
}
