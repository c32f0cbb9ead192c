/* own.c: see own.h. */
#include "advise/own.h"

#include <math.h>
#include <string.h>

static bool is_usable(const struct record *record)
{
    return record && record->status == RECORD_OK && record->check.verdict != RECORD_WRONG &&
           record->throughput > 0;
}

/* Half the interval, as a share. Of too few samples nothing is known. */
static double spread_of(const struct record *record)
{
    const struct stats *time = &record->time_ns;
    const double half = (time->ci_high - time->ci_low) / 2;
    return isnan(half) ? (double)INFINITY : half / time->median;
}

void own_weigh(struct own_trial *trial)
{
    trial->gain = 0;
    trial->spread = (double)INFINITY;
    if (!is_usable(trial->base) || !is_usable(trial->changed))
        return;
    trial->gain = trial->changed->throughput / trial->base->throughput;
    trial->spread = spread_of(trial->base) + spread_of(trial->changed);
}

static enum status add_evidence(const struct own_trial *trial, struct arena *arena,
                                const char **out)
{
    struct text text = {0};
    text_printf(&text, "--%s %s: ", rules[trial->rule].axis, trial->value);
    text_add_count(&text, trial->base->throughput);
    text_add(&text, " to ");
    text_add_count(&text, trial->changed->throughput);
    text_add(&text, " samples/s, a step of ");
    text_add_time(&text, trial->base->time_ns.median);
    text_add(&text, " to ");
    text_add_time(&text, trial->changed->time_ns.median);
    const double limit = record_of_limit(trial->changed);
    if (!isnan(limit))
        text_printf(&text, ", then at %.0f %% of the limit", limit);
    enum status status = text_done(&text);
    *out = arena_text(arena, text_of(&text));
    text_free(&text);
    TRY(status);
    NEED(*out);
    return STATUS_OK;
}

static bool is_worth(const struct advice *advice, const struct own_trial *trial)
{
    struct advice gate = *advice; /* each trial has a noise of its own */
    gate.spread = trial->spread;
    return advice_worth(&gate, trial->gain);
}

enum status own_take(const struct own_trial *trials, size_t count, struct advice *advice,
                     const struct own_trial **taken)
{
    *taken = NULL;
    for (size_t i = 0; i < count; i++)
        if (is_worth(advice, &trials[i]) && (!*taken || trials[i].gain > (*taken)->gain))
            *taken = &trials[i];
    if (!*taken || advice->count == RULES) {
        *taken = NULL;
        for (size_t i = 0; i < count; i++) /* what would have been worth it without the noise */
            if (trials[i].gain >= ADVICE_LEAST && isfinite(trials[i].spread))
                advice->spread = fmax(advice->spread, trials[i].spread);
        return STATUS_OK;
    }
    const struct rule *rule = &rules[(*taken)->rule];
    const struct rule_range *range = &advice->ranges[(*taken)->rule];
    const double more = (*taken)->gain - 1, noise = (*taken)->gain * (*taken)->spread;
    struct finding_of_trace *finding = &advice->findings[advice->count++];
    *finding = (struct finding_of_trace){.rule = rule,
                                         .gain = (*taken)->gain,
                                         .low = fmax(1 + range->low * more - noise, 1),
                                         .high = 1 + range->high * more + noise,
                                         .proofs = range->proofs};
    advice->together *= (*taken)->gain;
    return add_evidence(*taken, &advice->arena, &finding->evidence);
}

enum status own_bound(const struct record *record, struct advice *advice)
{
    static const char *const words[][2] = {
        {"flop", "arithmetic"}, {"bytes", "memory"}, {"latency", "waiting times"}};
    const char *bound = "";
    const double limit = record_of_limit(record);
    for (size_t i = 0; record->bound && i < sizeof words / sizeof *words; i++)
        if (strcmp(record->bound, words[i][0]) == 0)
            bound = words[i][1];
    NEED(advice->bound =
             isnan(limit) || !record->bound
                 ? arena_text(&advice->arena, "its limit is not known")
                 : arena_format(&advice->arena, "%s bound%s it: %.0f %% of that limit is reached",
                                bound, strcmp(record->bound, "latency") ? "s" : "", limit));
    return STATUS_OK;
}
