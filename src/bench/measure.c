/* measure.c: see measure.h. */
#include "bench/measure.h"

#include "base/clock.h"
#include "bench/meter/pin.h"
#include "record/stats.h"

#include <math.h>
#include <stdio.h>

enum {
    COMPARED_LEAST_NS = 50000, /* of a comparison: what a sample lasts, … */
    COMPARED_MOST_NS = 1000000,
    COMPARED_OUTSIDE = 2, /* … which is this many times what passes outside, or the most */
    ROUNDS_LEAST = 6,     /* before an interval is believed, … */
    SAMPLES_LEAST = 6,    /* … or there can be one */
    START_SHARE = 12,     /* of the time: what takes longer to start has one instance */
    INSTANCE_ROUNDS = 4,  /* forth and back, that an instance has at least */
    PROBE_SHARE = 10,     /* probes have this part of the time */
};

static void measure_fail(struct timing *contender, enum status status)
{
    contender->stop = MEASURE_FAILED;
    contender->status = status;
    contender->out = true;
    snprintf(contender->message, sizeof contender->message, "%s", status_message());
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
        enum status status = timing_turn(options, contender, count > 1 || probed);
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
    TRY(timing_slice(options, contender, false, &quickest_ns)); /* warm again */
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
        enum status status = timing_warm(options, &list[i]);
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
    uint64_t least_ns = (uint64_t)((double)timing_least(contender, one_ns) * one_ns);
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
