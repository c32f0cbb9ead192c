/* finding_busy.c: whether the machine was busy; why results that are there carry no sentence. */
#include "finding/finding_inside.h"

#include <stdio.h>
#include <string.h>

static enum status take_disturbed(void *context, const char *key, const char *value, int64_t count)
{
    struct finding_lack *lack = context;
    (void)key;
    if (!value)
        return STATUS_OK;
    lack->all += count;
    if (!*value)
        return STATUS_OK;
    lack->disturbed += count;
    if (count > lack->most) {
        lack->most = count;
        snprintf(lack->why, sizeof lack->why, "%s", value);
    }
    return STATUS_OK;
}

static enum status take_point(void *context, const struct store_row *row)
{
    *(struct point *)context = row->point;
    return STATUS_OK;
}

enum status finding_count_lack(struct store *store, struct arena *arena, struct store_where where,
                               struct finding_lack *out)
{
    static const enum metric_index none[] = {METRIC_COUNT};
    const struct store_filter ok = {"status", "ok"};
    const struct store_filter unchecked[] = {{"disturbed", ""}, {"check", "none"}};
    struct store_glance glance = {.metrics = none, .limit = 1};
    struct store_where measured, of_those;
    int64_t count;
    *out = (struct finding_lack){.all = 0};
    point_start(&out->point);
    TRY(finding_add_filters(arena, where, &ok, 1, &measured));
    TRY(store_values(store, "disturbed", measured, take_disturbed, out));
    TRY(finding_add_filters(arena, measured, unchecked, 2, &of_those));
    TRY(store_count(store, of_those, &out->unchecked));
    const struct store_filter why = {"disturbed", out->why};
    glance.where = out->unchecked ? of_those : measured;
    if (out->disturbed)
        TRY(finding_add_filters(arena, measured, &why, 1, &glance.where));
    return store_rows(store, &glance, take_point, &out->point, &count);
}

static const char *busy_words(const char *why)
{
    if (strcmp(why, "the host") == 0)
        return "The host took CPU time away";
    return strstr(why, "GPU") ? "Other programs used the GPU" : "Other programs used the CPU";
}

void finding_add_lack(struct text *out, const struct finding_lack *lack)
{
    const long long all = lack->all, disturbed = lack->disturbed, unchecked = lack->unchecked;
    if (disturbed)
        text_printf(out, "%s during %lld of %lld result%s", busy_words(lack->why), disturbed, all,
                    all == 1 ? "" : "s");
    if (disturbed && unchecked)
        text_printf(out, ", and %lld more %s not checked", unchecked,
                    unchecked == 1 ? "was" : "were");
    else if (unchecked)
        text_printf(out, "%lld of %lld result%s %s not checked", unchecked, all,
                    all == 1 ? "" : "s", unchecked == 1 ? "was" : "were");
}

/* Said where a fifth of the results, or more, was disturbed: these are left out of all others. */
enum status finding_busy(struct asking *asking)
{
    const struct finding_about *about = asking->about;
    const char *asked = finding_asked_for(about->where, "source");
    const char *source = asked ? asked : about->source;
    const struct store_filter filters[] = {{"server", about->server}, {"source", source}};
    struct text *out = &asking->finding->sentence;
    struct finding_lack lack;
    TRY(finding_count_lack(about->store, about->arena,
                           (struct store_where){filters, *source ? 2 : 1}, &lack));
    asking->finding->known = lack.disturbed > 0 && 5 * lack.disturbed >= lack.all;
    if (!asking->finding->known) {
        text_printf(out, "No: %lld of %lld results", (long long)lack.disturbed,
                    (long long)lack.all);
        finding_add_place(out, about);
        text_add(out, " were disturbed.");
        return STATUS_OK;
    }
    lack.unchecked = 0; /* it is about the machine */
    finding_add_lack(out, &lack);
    text_add(out, ", and no finding rests on these. Measure again while nothing else runs.");
    text_clear(&asking->finding->command);
    point_command(&lack.point, &asking->finding->command);
    for (size_t i = 0; i < asking->chart.count; i++)
        finding_rests_on(asking->finding, &asking->chart.marks[i]);
    return STATUS_OK;
}

/* "Other programs used the CPU during 8 of 9 results: no finding rests on these. Measure again …"
 */
enum status finding_say_lack(struct store *store, struct arena *arena, struct store_where where,
                             struct text *sentence, struct text *command)
{
    struct finding_lack lack;
    TRY(finding_count_lack(store, arena, where, &lack));
    const int64_t rest = lack.all - lack.disturbed - lack.unchecked;
    text_clear(sentence);
    text_clear(command);
    if (rest >= 2 || !(lack.disturbed + lack.unchecked)) {
        text_printf(sentence,
                    "%lld result%s that %s checked and not disturbed: too few to be compared.",
                    (long long)rest, rest == 1 ? "" : "s", rest == 1 ? "was" : "were");
        text_add(command, "prony suite demo");
    } else {
        bool opened;
        finding_add_lack(sentence, &lack);
        text_add(sentence, ": no finding rests on these.");
        TRY(finding_is_opened(store, lack.point.model, lack.point.framework, &opened));
        if (opened && lack.disturbed)
            text_add(sentence, " Measure again while nothing else runs.");
        if (opened)
            point_command(&lack.point, command);
    }
    TRY(text_done(sentence));
    return text_done(command);
}
