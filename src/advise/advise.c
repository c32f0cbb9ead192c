/* advise.c: see advise.h. */
#include "advise/advise.h"

#include "advise/crowd.h"
#include "advise/rules.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct rule rules[RULES] = {
#define RULE(key, id, word, low, high, title, action)                                              \
    {#key, id, NULL, RULE_##word, low, high, title, action},
#include "advise/rules.def"
#define OWN(key, id, axis, word, low, high, title, action)                                         \
    {#key, id, #axis, RULE_##word, low, high, title, action},
#include "advise/rules.def"
};

const struct notice notices[NOTICES] = {
#define NOTICE(key, id, title, action) {#key, id, title, action},
#include "advise/rules.def"
};

static rule_look *const looks[RULES_OF_TRACES] = {
#define RULE(key, id, word, low, high, title, action) rule_##key,
#include "advise/rules.def"
};

const char *rule_word_name(enum rule_word word)
{
    static const char *const names[] = {"expected", "up to", "at least"};
    return names[word];
}

void rule_ranges(struct rule_range *ranges)
{
    for (int i = 0; i < RULES; i++)
        ranges[i] = (struct rule_range){rules[i].low, rules[i].high, 0};
}

void advice_begin(const struct rule_range *ranges, struct advice *advice)
{
    *advice = (struct advice){.together = 1};
    rule_ranges(advice->ranges);
    if (ranges)
        memcpy(advice->ranges, ranges, sizeof advice->ranges);
}

void advice_free(struct advice *advice)
{
    steps_free(&advice->steps);
    arena_free(&advice->arena);
    *advice = (struct advice){0};
}

/* ---- the time of a step ---------------------------------------------------------------------- */

static int order_of(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Runs that nobody watched say it best; else the watched steps. */
static enum status find_step_time(const struct trace *trace, struct advice *advice)
{
    double *times;
    size_t count = 0;
    NEED(times = mem_array(trace->fact_count + 1, sizeof *times));
    for (size_t i = 0; i < trace->fact_count; i++)
        if (!strcmp(trace_word(trace, trace->facts[i].key), "unwatched_ns") &&
            text_to_real(trace_word(trace, trace->facts[i].value), &times[count]) &&
            times[count] > 0)
            count++;
    advice->unwatched = count > 0;
    if (count) {
        qsort(times, count, sizeof *times, order_of);
        advice->step_ns = (times[(count - 1) / 2] + times[count / 2]) / 2;
        advice->spread = (times[count - 1 - count / 4] - times[count / 4]) / (2 * advice->step_ns);
    } else {
        advice->step_ns = steps_median_ns(trace, &advice->steps, &advice->spread);
    }
    mem_free(times);
    return STATUS_OK;
}

static void count_samples(const struct trace *trace, struct advice *advice)
{
    advice->samples = 0;
    advice->seen_ns = 0;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (span->start_ns < advice->steps.start_ns || span->start_ns >= advice->steps.end_ns)
            continue;
        advice->samples += span->kind == SPAN_sample;
        if (span->kind == SPAN_sample || span->kind == SPAN_sleep)
            advice->seen_ns += (double)span_ns(span);
    }
}

/* ---- asking the rules ------------------------------------------------------------------------ */

struct candidate {
    int rule;
    double gain, low_gain, least;
    bool assumed;
    uint32_t site;
    const char *evidence;
    struct replay changed;
};

bool advice_worth(const struct advice *advice, double gain)
{
    return gain >= ADVICE_LEAST && gain - 1 >= ADVICE_NOISE * advice->spread && !isinf(gain);
}

/* Surer words come first, then larger gains. */
static bool is_better(const struct candidate *a, const struct candidate *b)
{
    bool a_bound = rules[a->rule].word == RULE_UP_TO, b_bound = rules[b->rule].word == RULE_UP_TO;
    return a_bound != b_bound ? b_bound : a->gain > b->gain;
}

static enum status ask(const struct look *look, const struct replay *now, double now_ns, int rule,
                       struct advice *advice, struct candidate *candidate)
{
    struct rule_found found = {0};
    double window = 0;
    enum status status = STATUS_OK;
    *candidate = (struct candidate){.rule = rule};
    if (now)
        TRY_OR(done, replay_copy(now, &candidate->changed));
    TRY_OR(done, looks[rule](look, now ? &candidate->changed : NULL, &found));
    if (!found.applies)
        goto done;
    candidate->gain = found.gain;
    if (found.gain == 0 && now) {
        TRY_OR(done, replay_run(&candidate->changed, &window));
        candidate->gain = window > 0 ? now_ns / window : 0;
    }
    candidate->low_gain = found.low_gain;
    candidate->least = found.least;
    candidate->assumed = found.assumed;
    candidate->site = trace_user_site(look->trace, found.site);
    TRY_OR(done, text_done(&found.evidence));
    NEED_OR(done, candidate->evidence = arena_text(&advice->arena, text_of(&found.evidence)));
done:
    text_free(&found.evidence);
    return status;
}

static void keep(struct advice *advice, const struct candidate *candidate)
{
    const struct rule *rule = &rules[candidate->rule];
    const struct rule_range *range = &advice->ranges[candidate->rule];
    const double more = candidate->gain - 1;
    double low = range->low, high = range->high;
    if (candidate->assumed) { /* a bus of half to twice the rate: 0.5 to 3 of it */
        low = fmin(low, 0.5);
        high = fmax(high, 3);
    }
    low = 1 + low * more;
    if (candidate->low_gain > 0 && candidate->low_gain < candidate->gain && !range->proofs)
        low = fmax(candidate->low_gain * 0.9, 1);
    advice->findings[advice->count++] = (struct finding_of_trace){.rule = rule,
                                                                  .gain = candidate->gain,
                                                                  .low = low,
                                                                  .high = 1 + high * more,
                                                                  .proofs = range->proofs,
                                                                  .site = candidate->site,
                                                                  .evidence = candidate->evidence};
    if (rule->word != RULE_UP_TO)
        advice->together *= candidate->gain;
}

/* One round: the best of the rules that are left; *taken: there was one. *now becomes its change.
 */
static enum status take_best(const struct look *look, struct replay *now, double *now_ns,
                             bool *asked, struct advice *advice, bool *taken)
{
    struct candidate best = {.rule = -1}, next;
    enum status status = STATUS_OK;
    *taken = false;
    for (int rule = 0; rule < RULES_OF_TRACES; rule++) {
        if (asked[rule])
            continue;
        status = ask(look, look->base ? now : NULL, *now_ns, rule, advice, &next);
        if (status != STATUS_OK || !advice_worth(advice, next.gain) ||
            (next.least > 0 && next.least < ADVICE_LEAST) ||
            (best.rule >= 0 && !is_better(&next, &best))) {
            replay_free(&next.changed);
            if (status != STATUS_OK)
                break;
            continue;
        }
        replay_free(&best.changed);
        best = next;
    }
    if (status != STATUS_OK || best.rule < 0) {
        replay_free(&best.changed);
        return status;
    }
    asked[best.rule] = *taken = true;
    keep(advice, &best);
    /* what is only an upper bound, or not of the replay, changes nothing for the rest */
    if (look->base && rules[best.rule].word != RULE_UP_TO) {
        replay_free(now);
        *now = best.changed;
        return replay_run(now, now_ns);
    }
    replay_free(&best.changed);
    return STATUS_OK;
}

static enum status ask_rules(const struct look *look, struct advice *advice)
{
    bool asked[RULES_OF_TRACES] = {false}, taken = true;
    struct replay now = {0};
    double now_ns = look->window_ns;
    enum status status = look->base ? replay_copy(look->base, &now) : STATUS_OK;
    while (status == STATUS_OK && taken)
        status = take_best(look, &now, &now_ns, asked, advice, &taken);
    replay_free(&now);
    return status;
}

/* ---- when nothing is said -------------------------------------------------------------------- */

static enum status find_silence(const struct trace *trace, struct advice *advice)
{
    const struct steps *steps = &advice->steps;
    const char *why = NULL;
    if (!trace->span_count)
        why = "the trace is empty";
    else if (steps->gpu < 0 && advice->seen_ns <= 0)
        why = "the trace has neither kernels of a GPU nor samples of the host";
    else if (steps->gpu < 0 && advice->seen_ns < ADVICE_SEEN_NS)
        why = "the program is too short: it has to run for two seconds or more";
    else if (steps->gpu >= 0 && !steps->count)
        why = "no step repeats in it: a profile of ten steps or more can be judged";
    else if (steps->gpu >= 0 && steps->count < ADVICE_STEPS)
        NEED(why = arena_format(&advice->arena, "found %zu whole steps, expected %d or more",
                                steps->count, ADVICE_STEPS));
    else if (steps->gpu >= 0 && fabs(advice->replay - 1) > ADVICE_REPLAY)
        NEED(why = arena_format(&advice->arena,
                                "the replay of the trace takes %.2f × the time that it took, so "
                                "it supports no advice",
                                advice->replay));
    advice->silent = why;
    return STATUS_OK;
}

/* Where threads run for a part of the time that could be worth a word, but were seen too rarely. */
static enum status find_doubt(const struct trace *trace, struct advice *advice)
{
    struct crowd crowd;
    if (advice->steps.gpu >= 0 || advice->silent || advice->count ||
        advice->samples >= ADVICE_SAMPLES)
        return STATUS_OK;
    TRY(crowd_find(trace, &advice->steps, 0, &crowd));
    if (crowd.any_ns < (1 - 1 / ADVICE_LEAST) * crowd.window_ns)
        return STATUS_OK;
    NEED(advice->silent = arena_format(&advice->arena,
                                       "found %zu samples of running threads, expected %d or more: "
                                       "let the program run longer, or raise --rate",
                                       advice->samples, ADVICE_SAMPLES));
    return STATUS_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status look_with(const struct trace *trace, struct advice *advice,
                             struct replay *replay)
{
    struct look look = {.trace = trace, .advice = advice};
    if (advice->steps.gpu >= 0) {
        TRY(replay_fit(replay, advice->step_ns * (double)advice->steps.count));
        TRY(replay_run(replay, &look.window_ns));
        look.base = replay;
    }
    TRY(look_for_loader(&look));
    return ask_rules(&look, advice);
}

enum status advise_budget(const struct trace *trace, struct advice *advice)
{
    enum status status;
    advice_begin(NULL, advice);
    TRY_OR(done, steps_find(trace, &advice->steps));
    TRY_OR(done, budget_make(trace, &advice->steps, &advice->budget));
    TRY_OR(done, find_step_time(trace, advice));
    count_samples(trace, advice);
done:
    if (status != STATUS_OK)
        advice_free(advice);
    return status;
}

/* What is judged is the program after its start-up. */
static enum status leave_startup(const struct trace *trace, struct advice *advice)
{
    TRY(steps_skip_startup(trace, &advice->steps));
    TRY(budget_make(trace, &advice->steps, &advice->budget));
    count_samples(trace, advice);
    return STATUS_OK;
}

enum status advise(const struct trace *trace, const struct rule_range *ranges,
                   struct advice *advice)
{
    struct replay replay = {0};
    enum status status;
    TRY(advise_budget(trace, advice));
    if (ranges)
        memcpy(advice->ranges, ranges, sizeof advice->ranges);
    if (advice->steps.count > ADVICE_STEPS_MOST) {
        steps_keep_last(trace, &advice->steps, ADVICE_STEPS_MOST);
        TRY_OR(done, budget_make(trace, &advice->steps, &advice->budget));
    }
    if (advice->steps.gpu < 0 && !advice->steps.count && advice->samples)
        TRY_OR(done, leave_startup(trace, advice));
    if (advice->steps.gpu >= 0 && advice->steps.count) {
        TRY_OR(done, replay_make(trace, &advice->steps, &replay));
        TRY_OR(done, replay_check(&replay, &advice->replay));
    }
    TRY_OR(done, find_silence(trace, advice));
    if (!advice->silent)
        TRY_OR(done, look_with(trace, advice, &replay));
    TRY_OR(done, find_doubt(trace, advice));
    TRY_OR(done, advice_bound(trace, advice));
done:
    replay_free(&replay);
    if (status != STATUS_OK)
        advice_free(advice);
    return status;
}
