/* advice_output.c: findings of a trace, for people and as JSON. See trace_output.h. */
#include "base/json.h"
#include "cli/program/trace_output.h"
#include "cli/table/wrap.h"
#include "watch/hot.h"

#include <stdio.h>
#include <string.h>

static void add_gain(double gain, struct text *out)
{
    text_printf(out, gain < 1.995 ? "%.2f" : gain < 9.95 ? "%.1f" : "%.0f", gain);
}

/* "expected 4.6 × (4.2 to 4.9)", or "then 2.0 × more". */
static void add_expected(const struct finding_of_trace *finding, struct text *out)
{
    text_printf(out, "%s ", rule_word_name(finding->rule->word));
    add_gain(finding->gain, out);
    text_add(out, " ×");
    if (finding->rule->word != RULE_EXPECTED && !finding->proofs)
        return;
    text_add(out, ", between ");
    add_gain(finding->low, out);
    text_add(out, " and ");
    add_gain(finding->high, out);
    if (finding->proofs)
        text_printf(out, " (from %lld proof%s)", (long long)finding->proofs,
                    finding->proofs > 1 ? "s" : "");
}

static void add_finding(const struct trace *trace, const struct finding_of_trace *finding,
                        size_t number, int width, struct text *out)
{
    struct text line = {0};
    char lead[16];
    snprintf(lead, sizeof lead, "%-3zu", number);
    text_printf(&line, "%s %s: ", finding->rule->id, finding->rule->title);
    add_expected(finding, &line);
    if (number > 1)
        text_add(&line, ", after those above");
    wrap_add(out, lead, text_of(&line), width);
    text_clear(&line);
    trace_add_line(trace, finding->site, &line);
    if (line.length)
        text_add(&line, ": ");
    text_add(&line, finding->evidence);
    wrap_add(out, "   seen  ", text_of(&line), width);
    wrap_add(out, "   do    ", finding->rule->action, width);
    text_free(&line);
}

static void add_silence(const struct advice *advice, int width, struct text *out)
{
    struct text line = {0};
    if (advice->silent) {
        text_printf(&line, "nothing is advised: %s", advice->silent);
    } else {
        text_printf(&line, "looked at, nothing worth more than %.0f %%", 100 * (ADVICE_LEAST - 1));
        if (ADVICE_NOISE * advice->spread > ADVICE_LEAST - 1)
            text_printf(&line, ", nor than twice the noise of a step (%.0f %%)",
                        100 * ADVICE_NOISE * advice->spread);
    }
    wrap_add(out, "", text_of(&line), width);
    text_free(&line);
}

/* What disturbed the run. */
static void add_notices(const struct trace *trace, int width, struct text *out)
{
    for (size_t k = 0; k < NOTICES; k++)
        for (size_t i = 0; i < trace->fact_count; i++) {
            struct text line = {0};
            if (strcmp(trace_word(trace, trace->facts[i].key), notices[k].key) != 0)
                continue;
            text_printf(&line, "%s %s: %s", notices[k].id, notices[k].title,
                        trace_word(trace, trace->facts[i].value));
            wrap_add(out, "", text_of(&line), width);
            text_free(&line);
        }
}

enum status advised_text(const struct trace *trace, const struct advice *advice, const char *title,
                         int width, struct text *out)
{
    struct text line = {0};
    text_printf(&line, "%s: ", title);
    if (advice->steps.count)
        text_printf(&line, "%zu steps of ", advice->steps.count);
    text_add_time(&line, advice->step_ns);
    if (advice->steps.count)
        text_add(&line, advice->unwatched ? " unwatched" : " in the median");
    if (advice->steps.startup_ns) {
        text_add(&line, "; judged without the ");
        text_add_time(&line, (double)advice->steps.startup_ns);
        text_add(&line, " of its start-up (libraries are loaded, modules imported)");
    }
    wrap_add(out, "", text_of(&line), width);
    text_add(out, "\n");
    for (size_t i = 0; i < advice->count; i++)
        add_finding(trace, &advice->findings[i], i + 1, width, out);
    if (!advice->count)
        add_silence(advice, width, out);
    text_clear(&line);
    if (advice->count > 1 && advice->together > 1) {
        text_add(&line, "together ");
        add_gain(advice->together, &line);
        text_add(&line, " ×");
        wrap_add(out, "", text_of(&line), width);
    }
    text_add(out, "\n");
    wrap_add(out, "", advice->bound, width);
    text_clear(&line);
    if (advice->replay > 0) {
        text_printf(&line, "replay of the trace: %.3f × the time that it took", advice->replay);
        wrap_add(out, "", text_of(&line), width);
    }
    text_free(&line);
    add_notices(trace, width, out);
    return STATUS_OK;
}

/* ---- proof ----------------------------------------------------------------------------------- */

/* Which change was made is not known: the first finding, or all of them? */
static const char *verdict_of(const struct advice *before, double measured, double noise)
{
    if (measured - 1 < noise)
        return "not proved: no faster";
    if (!before->count)
        return "faster, though nothing was advised";
    const struct finding_of_trace *first = &before->findings[0];
    if (measured >= first->low * (1 - noise) && measured <= first->high * (1 + noise))
        return "proved";
    if (before->count > 1 && measured >= 0.9 * before->together * (1 - noise) &&
        measured <= 1.1 * before->together * (1 + noise))
        return "proved, with all findings";
    return "faster, but not as expected";
}

void advised_proof(const struct advice *before, const struct advice *after, int width,
                   struct text *out)
{
    struct text line = {0};
    double measured = after->step_ns > 0 ? before->step_ns / after->step_ns : 0;
    double noise = before->spread + after->spread;
    if (before->count) {
        text_printf(&line, "%s ", rule_word_name(before->findings[0].rule->word));
        add_gain(before->findings[0].gain, &line);
        text_add(&line, " × · ");
    }
    text_printf(&line, "measured %.2f × ± %.1f %% · %s", measured, 100 * noise,
                verdict_of(before, measured, noise));
    if (before->unwatched != after->unwatched)
        text_add(&line, " (one of the two was watched, which takes time)");
    text_add(out, "\n");
    wrap_add(out, "", text_of(&line), width);
    text_free(&line);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void traced_json_budget(struct json_writer *json, const struct budget *budget)
{
    json_key(json, "budget");
    json_object(json);
    json_put_int(json, "window_ns", budget->window_ns);
    for (int part = 0; part < BUDGET_PARTS; part++)
        json_put_int(json, budget_part_name((enum budget_part)part), budget->part_ns[part]);
    json_end(json);
    json_key(json, "figures");
    json_object(json);
    json_put_int(json, "compute_ns", budget->compute_ns);
    json_put_int(json, "copy_ns", budget->copy_ns);
    json_put_int(json, "overlap_ns", budget->overlap_ns);
    json_put_int(json, "concurrent_ns", budget->concurrent_ns);
    json_put_int(json, "kernels", (int64_t)budget->kernels);
    json_put_int(json, "kernel_ns", budget->kernel_ns);
    json_put_int(json, "copies", (int64_t)budget->copies);
    json_put_int(json, "up_bytes", (int64_t)budget->up_bytes);
    json_put_int(json, "up_ns", budget->up_ns);
    json_put_int(json, "down_bytes", (int64_t)budget->down_bytes);
    json_put_int(json, "down_ns", budget->down_ns);
    json_end(json);
}

static void put_finding(struct json_writer *json, const struct trace *trace,
                        const struct finding_of_trace *finding)
{
    struct text line = {0};
    json_object(json);
    json_put_text(json, "rule", finding->rule->id);
    json_put_text(json, "key", finding->rule->key);
    json_put_text(json, "title", finding->rule->title);
    json_put_text(json, "word", rule_word_name(finding->rule->word));
    json_put_real(json, "gain", finding->gain);
    json_put_real(json, "low", finding->low);
    json_put_real(json, "high", finding->high);
    json_put_int(json, "range_proofs", finding->proofs);
    trace_add_line(trace, finding->site, &line);
    json_put_text(json, "line", line.length ? text_of(&line) : NULL);
    json_put_text(json, "evidence", finding->evidence);
    json_put_text(json, "action", finding->rule->action);
    json_end(json);
    text_free(&line);
}

void advised_json_findings(struct json_writer *json, const struct trace *trace,
                           const struct advice *advice)
{
    json_key(json, "findings");
    json_array(json);
    for (size_t i = 0; i < advice->count; i++)
        put_finding(json, trace, &advice->findings[i]);
    json_end(json);
}

enum { ROWS_MOST = 200 };

/* A name as it was recorded, and as people write it. */
static void put_names(struct json_writer *json, const char *name)
{
    struct text title = {0};
    trace_add_name(name, &title);
    json_put_text(json, "name", name);
    json_put_text(json, "title", text_of(&title));
    text_free(&title);
}

static enum status put_kernels(struct json_writer *json, const struct trace *trace,
                               const struct advice *advice)
{
    struct budget_kernel kernels[ROWS_MOST];
    size_t count;
    TRY(budget_kernels(trace, &advice->steps, kernels, ROWS_MOST, &count));
    json_key(json, "kernels");
    json_array(json);
    for (size_t i = 0; i < count; i++) {
        json_object(json);
        put_names(json, trace_word(trace, kernels[i].name));
        json_put_int(json, "count", (int64_t)kernels[i].count);
        json_put_int(json, "ns", kernels[i].ns);
        json_end(json);
    }
    json_end(json);
    return STATUS_OK;
}

/* Ops and functions that were seen running, each without what it calls. */
static enum status put_functions(struct json_writer *json, const struct trace *trace)
{
    struct hot hot;
    TRY(hot_find(trace, HOT_NAMES, -1, &hot));
    json_key(json, "functions");
    json_array(json);
    for (size_t i = 0; i < hot.count && i < ROWS_MOST; i++) {
        json_object(json);
        put_names(json, trace_word(trace, hot.rows[i].name));
        json_put_int(json, "count", (int64_t)hot.rows[i].samples);
        json_put_int(json, "ns", (int64_t)hot.rows[i].ns);
        json_end(json);
    }
    json_end(json);
    hot_free(&hot);
    return STATUS_OK;
}

static enum status put_threads(struct json_writer *json, const struct trace *trace,
                               const struct advice *advice)
{
    enum { MOST = 16 };
    struct budget_thread threads[MOST];
    size_t count;
    TRY(budget_threads(trace, &advice->steps, threads, MOST, &count));
    json_key(json, "threads");
    json_array(json);
    for (size_t i = 0; i < count; i++) {
        const struct budget_thread *thread = &threads[i];
        struct text name = {0};
        trace_add_lane(trace, &trace->lanes[thread->lane], &name);
        json_object(json);
        json_put_text(json, "name", text_of(&name));
        json_put_int(json, "ran_ns", thread->ran_ns);
        json_put_int(json, "waited_ns", thread->waited_ns);
        json_put_int(json, "unseen_ns",
                     advice->budget.window_ns - thread->ran_ns - thread->waited_ns);
        json_put_text(json, "call", thread->call_ns ? trace_word(trace, thread->call) : NULL);
        json_put_int(json, "call_ns", thread->call_ns);
        json_end(json);
        text_free(&name);
    }
    json_end(json);
    return STATUS_OK;
}

static enum status put_lines(struct json_writer *json, const struct trace *trace,
                             const struct advice *advice)
{
    enum { MOST = 50 };
    struct budget_line lines[MOST];
    size_t count;
    int64_t sampled_ns;
    TRY(budget_lines(trace, &advice->steps, lines, MOST, &count, &sampled_ns));
    json_key(json, "lines");
    json_array(json);
    for (size_t i = 0; i < count; i++) {
        struct text line = {0};
        trace_add_line(trace, lines[i].site, &line);
        json_object(json);
        json_put_text(json, "line", line.length ? text_of(&line) : NULL);
        json_put_int(json, "ns", lines[i].ns);
        json_end(json);
        text_free(&line);
    }
    json_end(json);
    return STATUS_OK;
}

enum status traced_json_members(struct json_writer *json, const struct trace *trace,
                                const struct advice *advice, const char *title)
{
    json_put_text(json, "title", title);
    json_put_text(json, "format", trace_fact(trace, "format"));
    json_put_text(json, "gpu", trace_fact(trace, "gpu"));
    json_put_bool(json, "on_gpu", advice->steps.gpu >= 0);
    json_put_int(json, "steps", (int64_t)advice->steps.count);
    json_put_real(json, "step_ns", advice->step_ns);
    json_put_real(json, "spread", advice->spread);
    json_put_int(json, "startup_ns", advice->steps.startup_ns);
    json_put_bool(json, "unwatched", advice->unwatched);
    json_put_real(json, "replay", advice->replay);
    json_put_int(json, "samples", (int64_t)advice->samples);
    traced_json_budget(json, &advice->budget);
    TRY(put_kernels(json, trace, advice));
    TRY(put_functions(json, trace));
    TRY(put_lines(json, trace, advice));
    TRY(put_threads(json, trace, advice));
    advised_json_findings(json, trace, advice);
    json_put_real(json, "together", advice->together);
    json_put_text(json, "silent", advice->silent);
    json_put_text(json, "bound", advice->bound);
    json_key(json, "notices");
    json_array(json);
    for (size_t k = 0; k < NOTICES; k++)
        for (size_t i = 0; i < trace->fact_count; i++)
            if (!strcmp(trace_word(trace, trace->facts[i].key), notices[k].key)) {
                json_object(json);
                json_put_text(json, "rule", notices[k].id);
                json_put_text(json, "evidence", trace_word(trace, trace->facts[i].value));
                json_end(json);
            }
    json_end(json);
    return STATUS_OK;
}

enum status traced_json(const struct trace *trace, const struct advice *advice, const char *title,
                        struct text *out)
{
    struct json_writer json;
    json_begin(&json, out);
    json_object(&json);
    TRY(traced_json_members(&json, trace, advice, title));
    json_end(&json);
    text_add(out, "\n");
    return STATUS_OK;
}
