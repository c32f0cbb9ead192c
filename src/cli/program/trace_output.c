/* trace_output.c: the profile of a trace. See trace_output.h. */
#include "cli/program/trace_output.h"

#include "cli/table/show_table.h"
#include "cli/table/wrap.h"
#include "watch/hot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 8 };

const char *traced_title(const struct trace *trace, const char *path)
{
    const char *command = trace_fact(trace, "command");
    return command ? command : path;
}

/* ---- the head -------------------------------------------------------------------------------- */

static void add_facts(const struct trace *trace, const char *key, const char *lead, int width,
                      struct text *out)
{
    for (size_t i = 0; i < trace->fact_count; i++)
        if (!strcmp(trace_word(trace, trace->facts[i].key), key))
            wrap_add(out, lead, trace_word(trace, trace->facts[i].value), width);
}

static void add_title(const struct trace *trace, const char *title, int width, struct text *out)
{
    const char *gpu = trace_fact(trace, "gpu");
    struct text line = {0};
    text_add(&line, title);
    if (gpu)
        text_printf(&line, ", %s", gpu);
    wrap_add(out, "", text_of(&line), width);
    text_free(&line);
}

/* Only samples of a program that uses no GPU: there is no budget of ops. */
static bool is_sampled(const struct advice *advice)
{
    return advice->steps.gpu < 0 && advice->samples && !advice->budget.compute_ns;
}

static void add_head(const struct trace *trace, const struct advice *advice, int width,
                     struct text *out)
{
    static const char *const by[] = {"", "by the kernels that repeat", "by the ops that repeat",
                                     "as the program marked them"};
    const struct steps *steps = &advice->steps;
    struct text line = {0};
    if (steps->count) {
        text_printf(&line, "%zu steps (%s)", steps->count, by[steps->by]);
        text_add(&line, " of ");
        text_add_time(&line, (double)advice->budget.window_ns / (double)steps->count);
        text_add(&line, advice->unwatched ? " watched, " : " on average, ");
        text_add_time(&line, advice->step_ns);
        text_add(&line, advice->unwatched ? " unwatched" : " in the median");
    } else if (is_sampled(advice)) {
        text_add(&line, "watched for ");
        text_add_time(&line, (double)advice->budget.window_ns);
        text_add(&line, ": ");
        text_add_grouped(&line, advice->samples);
        text_add(&line, " samples of running threads");
    } else {
        text_add(&line, "no steps were found: all of the ");
        text_add_time(&line, (double)advice->budget.window_ns);
        text_add(&line, " is one window");
    }
    wrap_add(out, "", text_of(&line), width);
    text_free(&line);
    add_facts(trace, "lacks", "the trace lacks: ", width, out);
    add_facts(trace, "lost", "records lost: ", width, out);
}

/* ---- the budget ------------------------------------------------------------------------------ */

static double per_step(const struct advice *advice, double ns)
{
    return advice->budget.steps ? ns / (double)advice->budget.steps : ns;
}

/* What the program would gain at most if that time were gone. */
static void add_bound(struct text *cell, const struct budget *budget, int64_t ns)
{
    double left = (double)(budget->window_ns - ns);
    if (left > 0.001 * (double)budget->window_ns)
        text_printf(cell, "%.2f ×", (double)budget->window_ns / left);
    else
        text_add(cell, "–");
}

static void add_part(struct show_table *table, const struct advice *advice, const char *name,
                     int64_t ns, bool bounded)
{
    const struct budget *budget = &advice->budget;
    struct text time = {0}, share = {0}, bound = {0};
    text_add_time(&time, per_step(advice, (double)ns));
    text_printf(&share, "%.1f %%",
                budget->window_ns ? 100 * (double)ns / (double)budget->window_ns : 0.0);
    if (bounded)
        add_bound(&bound, budget, ns);
    show_table_row(table,
                   (const char *const[]){name, text_of(&time), text_of(&share), text_of(&bound)});
    text_free(&time);
    text_free(&share);
    text_free(&bound);
}

enum status traced_budget(const struct advice *advice, int width, struct text *out)
{
    const struct budget *budget = &advice->budget;
    struct show_table table = {.width = width};
    show_table_column(&table, budget->steps ? "of a step" : "of the window", SHOW_LEFT, SHOW_ALWAYS,
                      0);
    show_table_column(&table, "time", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(&table, "share", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(&table, "without it, at most", SHOW_RIGHT, 50, 0);
    for (int part = 0; part < BUDGET_ALLOCATION; part++)
        if (advice->steps.gpu >= 0 || budget->part_ns[part])
            add_part(&table, advice, budget_part_name((enum budget_part)part),
                     budget->part_ns[part], part != BUDGET_COMPUTE);
    if (advice->steps.gpu >= 0) {
        add_part(&table, advice, "idle, meanwhile the host was in", budget->idle_ns, true);
        for (int part = BUDGET_ALLOCATION; part < BUDGET_PARTS; part++) {
            char name[64];
            snprintf(name, sizeof name, "  %s", budget_part_name((enum budget_part)part));
            add_part(&table, advice, name, budget->part_ns[part], true);
        }
    } else {
        add_part(&table, advice, "outside of ops", budget->idle_ns, true);
    }
    add_part(&table, advice, "all of it", budget->window_ns, false);
    show_table_print(&table, out);
    enum status status = show_table_done(&table);
    show_table_free(&table);
    return status;
}

/* ---- the classic figures --------------------------------------------------------------------- */

static void add_times(struct text *line, const struct advice *advice, int64_t a, const char *word,
                      int64_t b)
{
    text_add_time(line, per_step(advice, (double)a));
    text_printf(line, " %s ", word);
    text_add_time(line, per_step(advice, (double)b));
}

static void add_rate(struct text *line, const struct trace *trace, uint64_t bytes, int64_t ns,
                     const char *fact)
{
    double pinned = trace_fact_real(trace, fact, 0);
    text_add_size(line, (double)bytes / (double)ns * 1e9);
    text_add(line, "/s");
    if (pinned > 0) {
        text_add(line, "; pinned memory reaches ");
        text_add_size(line, pinned);
        text_add(line, "/s");
    }
}

static void add_figure(struct text *line, const char *name, int width, struct text *out)
{
    struct text lead = {0};
    text_add(&lead, name);
    wrap_pad(&lead, 24 - wrap_width(name));
    wrap_add(out, text_of(&lead), text_of(line), width);
    text_free(&lead);
    text_clear(line);
}

static void add_figures(const struct trace *trace, const struct advice *advice, int width,
                        struct text *out)
{
    const struct budget *budget = &advice->budget;
    struct text line = {0};
    text_printf(&line, "%.0f %%",
                budget->window_ns ? 100 * (double)budget->compute_ns / (double)budget->window_ns
                                  : 0.0);
    add_figure(&line, "compute utilisation", width, out);
    if (budget->copies && budget->copy_ns > 0) {
        int64_t least = budget->compute_ns < budget->copy_ns ? budget->compute_ns : budget->copy_ns;
        add_times(&line, advice, budget->compute_ns, "÷", budget->copy_ns);
        text_printf(&line, " = %.2f", (double)budget->compute_ns / (double)budget->copy_ns);
        add_figure(&line, "compute ÷ copy", width, out);
        add_times(&line, advice, budget->overlap_ns, "of", least);
        text_printf(&line, " = %.0f %%; hiding all of it gains at most ",
                    least ? 100 * (double)budget->overlap_ns / (double)least : 0.0);
        int64_t hidable = least - budget->overlap_ns;
        int64_t exposed = budget->part_ns[BUDGET_COPY];
        add_bound(&line, budget, hidable < exposed ? hidable : exposed);
        add_figure(&line, "overlap", width, out);
    }
    if (budget->up_ns > 0) {
        add_rate(&line, trace, budget->up_bytes, budget->up_ns, "pinned_up");
        add_figure(&line, "copies to the GPU", width, out);
    }
    if (budget->down_ns > 0) {
        add_rate(&line, trace, budget->down_bytes, budget->down_ns, "pinned_down");
        add_figure(&line, "copies from the GPU", width, out);
    }
    text_printf(&line, "%.1f %% of the compute has two kernels or more at once",
                budget->compute_ns
                    ? 100 * (double)budget->concurrent_ns / (double)budget->compute_ns
                    : 0.0);
    add_figure(&line, "kernel concurrency", width, out);
    text_free(&line);
}

/* ---- kernels and lines ----------------------------------------------------------------------- */

static enum status print_table(struct show_table *table, struct text *out)
{
    text_add_char(out, '\n');
    show_table_print(table, out);
    enum status status = show_table_done(table);
    show_table_free(table);
    return status;
}

static enum status add_kernels(const struct trace *trace, const struct advice *advice, int width,
                               struct text *out)
{
    struct budget_kernel kernels[ROWS];
    size_t count;
    TRY(budget_kernels(trace, &advice->steps, kernels, ROWS, &count));
    if (!count)
        return STATUS_OK;
    struct show_table table = {.width = width};
    show_table_column(&table,
                      advice->steps.gpu >= 0 ? "kernels, longest first"
                                             : "ops, longest "
                                               "first",
                      SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_column(&table, "a step", SHOW_RIGHT, 40, 0);
    show_table_column(&table, "time", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(&table, "share", SHOW_RIGHT, SHOW_ALWAYS, 0);
    for (size_t i = 0; i < count; i++) {
        struct text name = {0}, cut = {0}, each = {0}, time = {0}, share = {0};
        trace_add_name(trace_word(trace, kernels[i].name), &name);
        wrap_add_cut(&cut, *text_of(&name) ? text_of(&name) : "without a name",
                     (size_t)(width > 70 ? width - 35 : 35));
        text_printf(&each, "%.3g", per_step(advice, (double)kernels[i].count));
        text_add_time(&time, per_step(advice, (double)kernels[i].ns));
        text_printf(&share, "%.1f %%",
                    100 * (double)kernels[i].ns / fmax((double)advice->budget.window_ns, 1));
        show_table_row(&table, (const char *const[]){text_of(&cut), text_of(&each), text_of(&time),
                                                     text_of(&share)});
        struct text *const all[] = {&name, &cut, &each, &time, &share};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            text_free(all[k]);
    }
    return print_table(&table, out);
}

static enum status add_lines(const struct trace *trace, const struct advice *advice, int width,
                             struct text *out)
{
    struct budget_line lines[ROWS];
    size_t count;
    int64_t sampled_ns;
    TRY(budget_lines(trace, &advice->steps, lines, ROWS, &count, &sampled_ns));
    if (!count)
        return STATUS_OK;
    struct show_table table = {.width = width};
    show_table_column(&table,
                      advice->steps.gpu >= 0 ? "lines of the host while the GPU idles"
                                             : "lines of the host",
                      SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_column(&table, "share", SHOW_RIGHT, SHOW_ALWAYS, 0);
    for (size_t i = 0; i < count; i++) {
        struct text line = {0}, share = {0};
        trace_add_line(trace, lines[i].site, &line);
        text_printf(&share, "%.1f %%", 100 * (double)lines[i].ns / fmax((double)sampled_ns, 1));
        show_table_row(&table,
                       (const char *const[]){lines[i].site ? text_of(&line) : "no line of the user",
                                             text_of(&share)});
        text_free(&line);
        text_free(&share);
    }
    return print_table(&table, out);
}

/* ---- programs without a GPU ------------------------------------------------------------------ */

static enum status add_threads(const struct trace *trace, const struct advice *advice, int width,
                               struct text *out)
{
    struct budget_thread threads[ROWS];
    size_t count;
    TRY(budget_threads(trace, &advice->steps, threads, ROWS, &count));
    struct show_table table = {.width = width};
    show_table_column(&table, "threads, busiest first", SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_column(&table, "runs or is ready", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(&table, "waits", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(&table, "mostly in", SHOW_LEFT, SHOW_ALWAYS - 1, 0);
    for (size_t i = 0; i < count; i++) {
        struct text name = {0}, runs = {0}, waits = {0};
        trace_add_lane(trace, &trace->lanes[threads[i].lane], &name);
        text_add_time(&runs, (double)threads[i].ran_ns);
        text_add_time(&waits, (double)threads[i].waited_ns);
        show_table_row(&table, (const char *const[]){
                                   text_of(&name), text_of(&runs), text_of(&waits),
                                   threads[i].call_ns ? trace_word(trace, threads[i].call) : ""});
        text_free(&name);
        text_free(&runs);
        text_free(&waits);
    }
    return print_table(&table, out);
}

static enum status add_functions(const struct trace *trace, int width, struct text *out)
{
    struct hot hot;
    TRY(hot_find(trace, HOT_NAMES, -1, &hot));
    struct show_table table = {.width = width};
    int name =
        show_table_column(&table, "ops and functions, themselves", SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_column(&table, "time", SHOW_RIGHT, SHOW_ALWAYS - 1, 0);
    show_table_column(&table, "share", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_flex(&table, name, 30);
    for (size_t i = 0; i < hot.count && i < ROWS; i++) {
        struct text time = {0}, share = {0};
        const char *word = trace_word(trace, hot.rows[i].name);
        text_add_time(&time, hot.rows[i].ns);
        text_printf(&share, "%.1f %%", 100 * hot.rows[i].ns / fmax(hot.all_ns, 1));
        show_table_row(&table, (const char *const[]){*word ? word : "(not seen)", text_of(&time),
                                                     text_of(&share)});
        text_free(&time);
        text_free(&share);
    }
    hot_free(&hot);
    return print_table(&table, out);
}

enum status traced_text(const struct trace *trace, const struct advice *advice, const char *title,
                        int width, struct text *out)
{
    add_title(trace, title, width, out);
    return traced_parts(trace, advice, width, out);
}

enum status traced_parts(const struct trace *trace, const struct advice *advice, int width,
                         struct text *out)
{
    add_head(trace, advice, width, out);
    if (is_sampled(advice)) {
        TRY(add_threads(trace, advice, width, out));
        TRY(add_functions(trace, width, out));
        return add_lines(trace, advice, width, out);
    }
    text_add(out, "\n");
    TRY(traced_budget(advice, width, out));
    if (advice->steps.gpu >= 0) {
        text_add(out, "\n");
        add_figures(trace, advice, width, out);
    }
    TRY(add_kernels(trace, advice, width, out));
    return add_lines(trace, advice, width, out);
}
