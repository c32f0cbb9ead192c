/* program_report.c: see program_report.h. */
#include "cli/program/program_report.h"

#include "base/json.h"
#include "base/memory.h"
#include "cli/program/program_gpu.h"
#include "cli/table/show_figure.h"
#include "cli/table/show_table.h"
#include "cli/table/wrap.h"
#include "watch/hot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 10, THREADS = 8, INDENT = 2 };
static const double least_share = 0.005; /* of all running time: less is no row */

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* "train.py:58" */
static void add_place(const struct trace *trace, uint32_t site, struct text *out)
{
    const struct site *frame = &trace->sites[site];
    text_printf(out, "%s:%u", file_name(trace_word(trace, frame->file)), frame->line);
}

static void add_share(struct text *out, double part, double all)
{
    text_printf(out, "%.1f %%", all > 0 ? 100 * part / all : 0);
}

static void add_head(const struct program_report *report, struct text *out)
{
    const struct watched *watched = report->watched;
    struct text line = {0};
    if (report->unwatched) {
        text_add_time(&line, report->unwatched->wall_ns);
        text_add(&line, " unwatched, ");
    }
    text_add_time(&line, watched->end.wall_ns);
    text_add(&line, " watched");
    const double more = report->unwatched && report->unwatched->wall_ns > 0
                            ? 100 * (watched->end.wall_ns / report->unwatched->wall_ns - 1)
                            : (double)NAN;
    if (!isnan(more))
        text_printf(&line, " (%.1f %% %s)", fabs(more), more < 0 ? "less" : "more");
    text_add(&line, "; ");
    text_add_grouped(&line, watched->named.samples);
    text_printf(&line, " samples of running threads, %zu thread%s, %zu process%s",
                watched->thread_count, watched->thread_count == 1 ? "" : "s",
                watched->process_count, watched->process_count == 1 ? "" : "es");
    wrap_add(out, "", report->command, report->width);
    wrap_add(out, "  ", text_of(&line), report->width);
    out->failed |= line.failed;
    text_free(&line);
}

static double known(double value, double otherwise)
{
    return isnan(value) ? otherwise : value;
}

static int busy_first(const void *a, const void *b)
{
    const struct seen_thread *x = *(const struct seen_thread *const *)a,
                             *y = *(const struct seen_thread *const *)b;
    double p = known(x->ran_ns, x->ticks_running), q = known(y->ran_ns, y->ticks_running);
    return p != q ? (p > q ? -1 : 1) : x->thread - y->thread;
}

/* "futex 83 %, read 12 %": of a lane's waiting, or of all. */
static enum status add_calls(const struct trace *trace, int lane, struct text *out)
{
    enum { CALLS = 2 };
    static const double shown = 0.05;
    struct hot calls;
    TRY(hot_find(trace, HOT_CALLS, lane, &calls));
    for (size_t i = 0; i < calls.count && i < CALLS; i++) {
        const char *name = trace_word(trace, calls.rows[i].name);
        if (calls.rows[i].ns < shown * calls.all_ns)
            break;
        text_printf(out, "%s%s %.0f %%", i ? ", " : "", *name ? name : "no call",
                    100 * calls.rows[i].ns / calls.all_ns);
    }
    hot_free(&calls);
    return STATUS_OK;
}

static int lane_of(const struct trace *trace, const struct seen_thread *thread)
{
    for (size_t i = 0; i < trace->lane_count; i++)
        if (trace->lanes[i].group == thread->process && trace->lanes[i].number == thread->thread)
            return (int)i;
    return -1;
}

static enum status add_thread_row(struct show_table *table, const struct trace *trace,
                                  const char *name, double running, double ready, double waiting,
                                  int lane)
{
    enum { CELLS = 4 };
    struct text cells[CELLS] = {{0}};
    text_add_time(&cells[0], running);
    if (isnan(ready))
        text_add(&cells[1], "–");
    else
        text_add_time(&cells[1], ready);
    text_add_time(&cells[2], waiting);
    enum status status = add_calls(trace, lane, &cells[3]);
    show_table_row(table, (const char *const[]){name, text_of(&cells[0]), text_of(&cells[1]),
                                                text_of(&cells[2]), text_of(&cells[3])});
    show_table_spend(table, cells, CELLS);
    return status;
}

static enum status fill_threads(struct show_table *table, const struct program_report *report,
                                const struct seen_thread **sorted)
{
    const struct watched *watched = report->watched;
    double running = 0, ready = 0, waiting = 0;
    for (size_t i = 0; i < watched->thread_count; i++) {
        const struct seen_thread *thread = sorted[i];
        struct text name = {0};
        running += known(thread->ran_ns, thread->ticks_running);
        ready += known(thread->runnable_ns, 0);
        waiting += thread->ticks_waiting;
        if (i >= THREADS)
            continue;
        text_printf(&name, "%s %d", thread->name, (int)thread->thread);
        enum status status = add_thread_row(
            table, report->trace, text_of(&name), known(thread->ran_ns, thread->ticks_running),
            thread->runnable_ns, thread->ticks_waiting, lane_of(report->trace, thread));
        table->failed |= name.failed;
        text_free(&name);
        TRY(status);
    }
    if (watched->thread_count < 2)
        return STATUS_OK;
    return add_thread_row(table, report->trace, "all threads", running, ready, waiting, -1);
}

static enum status print_table(struct show_table *table, struct text *out)
{
    text_add_char(out, '\n');
    show_table_print(table, out);
    enum status status = show_table_done(table);
    show_table_free(table);
    return status;
}

static enum status add_threads(const struct program_report *report, struct text *out)
{
    const struct watched *watched = report->watched;
    const struct seen_thread **sorted = mem_array(watched->thread_count + 1, sizeof *sorted);
    NEED(sorted);
    for (size_t i = 0; i < watched->thread_count; i++)
        sorted[i] = &watched->threads[i];
    qsort(sorted, watched->thread_count, sizeof *sorted, busy_first);
    struct show_table table = {.width = report->width, .indent = INDENT};
    text_add(&table.title, "Threads");
    show_table_column(&table, "thread", SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_column(&table, "on a core", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(&table, "ready", SHOW_RIGHT, SHOW_ALWAYS - 2, 0);
    show_table_column(&table, "waiting", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(&table, "in", SHOW_LEFT, SHOW_ALWAYS - 1, 0);
    enum status status = fill_threads(&table, report, sorted);
    mem_free(sorted);
    if (status == STATUS_OK)
        return print_table(&table, out);
    show_table_free(&table);
    return status;
}

static void add_line_row(struct show_table *table, const struct trace *trace,
                         const struct hot_row *row, double all_ns)
{
    struct text share = {0}, time = {0}, place = {0};
    add_share(&share, row->ns, all_ns);
    text_add_time(&time, row->ns);
    add_place(trace, row->site, &place);
    show_table_row(table, (const char *const[]){text_of(&share), text_of(&time), text_of(&place),
                                                trace_word(trace, trace->sites[row->site].function),
                                                trace_word(trace, row->name)});
    table->failed |= share.failed || time.failed || place.failed;
    text_free(&share);
    text_free(&time);
    text_free(&place);
}

static enum status add_lines(const struct program_report *report, struct text *out)
{
    struct hot hot;
    TRY(hot_find(report->trace, HOT_LINES, -1, &hot));
    if (!hot.count) {
        hot_free(&hot);
        return STATUS_OK;
    }
    struct show_table table = {.width = report->width, .indent = INDENT};
    text_add(&table.title,
             "Lines, with what they call (of the time that threads run or are ready)");
    show_table_column(&table, "share", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(&table, "time", SHOW_RIGHT, SHOW_ALWAYS - 3, 0);
    show_table_column(&table, "line", SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_column(&table, "function", SHOW_LEFT, SHOW_ALWAYS - 2, 0);
    int most = show_table_column(&table, "mostly", SHOW_LEFT, SHOW_ALWAYS - 1, 0);
    show_table_flex(&table, most, 20);
    for (size_t i = 0; i < hot.count && i < ROWS && hot.rows[i].ns >= least_share * hot.all_ns; i++)
        add_line_row(&table, report->trace, &hot.rows[i], hot.all_ns);
    hot_free(&hot);
    return print_table(&table, out);
}

/* The library of a function. An op has none: the innermost function that was seen in it is another.
 */
static const char *library_of(const struct trace *trace, const struct hot_row *row)
{
    const struct site *site = &trace->sites[row->site];
    return row->site && site->function == row->name ? file_name(trace_word(trace, site->file)) : "";
}

static enum status add_names(const struct program_report *report, struct text *out)
{
    struct hot hot;
    TRY(hot_find(report->trace, HOT_NAMES, -1, &hot));
    if (!hot.count)
        return STATUS_OK;
    struct show_table table = {.width = report->width, .indent = INDENT};
    text_add(&table.title, "Ops and functions, themselves");
    show_table_column(&table, "share", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(&table, "time", SHOW_RIGHT, SHOW_ALWAYS - 3, 0);
    int name = show_table_column(&table, "name", SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_column(&table, "in", SHOW_LEFT, SHOW_ALWAYS - 1, 0);
    show_table_flex(&table, name, 30);
    for (size_t i = 0; i < hot.count && i < ROWS && hot.rows[i].ns >= least_share * hot.all_ns;
         i++) {
        const struct hot_row *row = &hot.rows[i];
        struct text share = {0}, time = {0};
        const char *word = trace_word(report->trace, row->name);
        add_share(&share, row->ns, hot.all_ns);
        text_add_time(&time, row->ns);
        show_table_row(&table, (const char *const[]){text_of(&share), text_of(&time),
                                                     *word ? word : "(not seen)",
                                                     library_of(report->trace, row)});
        table.failed |= share.failed || time.failed;
        text_free(&share);
        text_free(&time);
    }
    hot_free(&hot);
    return print_table(&table, out);
}

/* The child with the most time of those that are left; 0: none. */
static size_t largest_child(const struct hot_tree *tree, size_t node, const bool *done)
{
    size_t best = 0;
    for (size_t child = tree->nodes[node].first; child; child = tree->nodes[child].next)
        if (!done[child] && (!best || tree->nodes[child].ns > tree->nodes[best].ns))
            best = child;
    return best;
}

/* A line for each node of at least 5 %, the most first, children below and further in. */
static void add_node(const struct program_report *report, const struct hot_tree *tree, size_t node,
                     int depth, bool *done, struct text *out)
{
    enum { DEEPEST = 24 };
    static const double shown = 0.05;
    const double all_ns = tree->nodes[0].ns;
    for (size_t child; depth < DEEPEST && (child = largest_child(tree, node, done)) != 0;) {
        const struct hot_node *found = &tree->nodes[child];
        done[child] = true;
        if (found->ns < shown * all_ns)
            return;
        struct text line = {0};
        const char *file = file_name(trace_word(report->trace, found->file));
        text_printf(&line, "%5.1f %%  %*s%s", 100 * found->ns / all_ns, depth, "",
                    trace_word(report->trace, found->function));
        if (*file)
            text_printf(&line, "  (%s)", file);
        text_printf(out, "%*s", INDENT, "");
        wrap_add_cut(out, text_of(&line), (size_t)(report->width - INDENT));
        text_add_char(out, '\n');
        out->failed |= line.failed;
        text_free(&line);
        add_node(report, tree, child, depth + 1, done, out);
    }
}

static enum status add_graph(const struct program_report *report, struct text *out)
{
    struct hot_tree tree;
    TRY(hot_tree_find(report->trace, &tree));
    bool *done = mem_array(tree.count, sizeof *done);
    if (done && tree.nodes[0].ns > 0) {
        text_add(out, "\nCall graph, ways of at least 5 %\n");
        add_node(report, &tree, 0, 0, done, out);
    }
    hot_tree_free(&tree);
    NEED(done);
    mem_free(done);
    return STATUS_OK;
}

static void add_cost(const struct program_report *report, struct text *out)
{
    const struct watched *watched = report->watched;
    const struct named *named = &watched->named;
    const double cpu_ns = watched->end.user_ns + watched->end.system_ns;
    struct text line = {0};
    if (named->samples) {
        text_printf(&line, "%.0f %% of the samples have a function or op",
                    100.0 * (double)named->with_function / (double)named->samples);
        if (named->of_python)
            text_printf(&line, ", %.0f %% of those of Python's threads a line, %.1f %% are torn",
                        100.0 * (double)named->with_line / (double)named->of_python,
                        100.0 * (double)named->torn / (double)named->of_python);
    }
    if (cpu_ns > 0)
        text_printf(&line, "%ssampling took %.1f %% of its CPU time, looking %.1f %% of a core",
                    line.length ? "; " : "", 100 * watched->handler_ns / cpu_ns,
                    100 * watched->look_ns / watched->end.wall_ns);
    text_add_char(out, '\n');
    wrap_add(out, "", text_of(&line), report->width);
    out->failed |= line.failed;
    text_free(&line);
}

static void add_used(const struct program_report *report, struct text *out)
{
    const struct running_end *end = report->unwatched ? report->unwatched : &report->watched->end;
    struct text line = {0};
    text_add(&line, "CPU time ");
    text_add_time(&line, end->user_ns + end->system_ns);
    text_printf(&line, " (%.2f cores, %.0f %% in the system), memory ",
                (end->user_ns + end->system_ns) / end->wall_ns,
                100 * end->system_ns / (end->user_ns + end->system_ns + 1));
    text_add_size(&line, end->peak_bytes);
    text_add(&line, ", page faults ");
    text_add_grouped(&line, (uint64_t)(end->page_faults + end->storage_faults));
    wrap_add(out, "  ", text_of(&line), report->width);
    out->failed |= line.failed;
    text_free(&line);
}

void program_report_end(const struct running_end *end, int width, struct text *out)
{
    struct text line = {0};
    if (!end->code && !end->signal)
        return;
    text_add(&line, "The program ");
    running_add_end(end, &line);
    text_add(&line, ": what follows is what was seen until then.");
    wrap_add(out, "", text_of(&line), width);
    out->failed |= line.failed;
    text_free(&line);
}

static void add_brevity(const struct watched *watched, int width, struct text *out)
{
    struct text line = {0};
    if (watched->named.samples >= WATCHED_FEW)
        return;
    text_printf(&line, "It did not run long enough to be seen well: %.0f samples.",
                (double)watched->named.samples);
    wrap_add(out, "", text_of(&line), width);
    out->failed |= line.failed;
    text_free(&line);
}

enum status program_report_text(const struct program_report *report, struct text *out)
{
    const struct watched *watched = report->watched;
    add_head(report, out);
    add_used(report, out);
    if (watched->stopped)
        wrap_add(out, "", "It was stopped before its end.", report->width);
    else
        program_report_end(&watched->end, report->width, out);
    add_brevity(watched, report->width, out);
    TRY(program_gpu_text(report->trace, report->advice, report->width, out));
    TRY(add_threads(report, out));
    TRY(add_lines(report, out));
    TRY(add_names(report, out));
    TRY(add_graph(report, out));
    add_cost(report, out);
    for (const char *note = text_of(&watched->notes); *note; note += strcspn(note, "\n") + 1) {
        struct text line = {0};
        text_add_bytes(&line, note, strcspn(note, "\n"));
        wrap_add(out, "", text_of(&line), report->width);
        text_free(&line);
    }
    for (size_t i = 0; i < report->trace->fact_count; i++) {
        const struct fact *fact = &report->trace->facts[i];
        struct text line = {0};
        if (strcmp(trace_word(report->trace, fact->key), "machine") != 0)
            continue;
        text_printf(&line, "the machine was disturbed: %s", trace_word(report->trace, fact->value));
        wrap_add(out, "", text_of(&line), report->width);
        text_free(&line);
    }
    return text_done(out);
}

static void write_end(struct json_writer *json, const struct running_end *end)
{
    json_object(json);
    json_put_real(json, "wall_ns", end->wall_ns);
    json_put_real(json, "user_ns", end->user_ns);
    json_put_real(json, "system_ns", end->system_ns);
    json_put_real(json, "peak_bytes", end->peak_bytes);
    json_put_real(json, "page_faults", end->page_faults);
    json_put_real(json, "storage_faults", end->storage_faults);
    json_put_real(json, "status", end->code);
    json_put_real(json, "signal", end->signal);
    json_end(json);
}

static void write_threads(struct json_writer *json, const struct watched *watched)
{
    json_array(json);
    for (size_t i = 0; i < watched->thread_count; i++) {
        const struct seen_thread *thread = &watched->threads[i];
        json_object(json);
        json_put_text(json, "name", thread->name);
        json_put_real(json, "process", thread->process);
        json_put_real(json, "thread", thread->thread);
        json_put_real(json, "on_core_ns", thread->ran_ns);
        json_put_real(json, "ready_ns", thread->runnable_ns);
        json_put_real(json, "waiting_ns", thread->ticks_waiting);
        json_end(json);
    }
    json_end(json);
}

static enum status write_hot(struct json_writer *json, const struct trace *trace, enum hot_by by)
{
    enum { MOST = 100 };
    struct hot hot;
    TRY(hot_find(trace, by, -1, &hot));
    json_array(json);
    for (size_t i = 0; i < hot.count && i < MOST; i++) {
        const struct hot_row *row = &hot.rows[i];
        const struct site *site = row->site ? &trace->sites[row->site] : NULL;
        json_object(json);
        json_put_text(json, "name", trace_word(trace, row->name));
        if (site && by != HOT_CALLS) {
            json_put_text(json, "file", trace_word(trace, site->file));
            json_put_real(json, "line", site->line);
            json_put_text(json, "function", trace_word(trace, site->function));
        }
        json_put_real(json, "ns", row->ns);
        json_put_real(json, "share", row->ns / hot.all_ns);
        json_end(json);
    }
    json_end(json);
    hot_free(&hot);
    return STATUS_OK;
}

enum status program_report_json(const struct program_report *report, struct text *out)
{
    static const struct {
        const char *key;
        enum hot_by by;
    } lists[] = {{"lines", HOT_LINES},
                 {"names", HOT_NAMES},
                 {"functions", HOT_FUNCTIONS},
                 {"waits", HOT_CALLS}};
    const struct watched *watched = report->watched;
    struct json_writer json;
    json_begin(&json, out);
    json_object(&json);
    json_put_text(&json, "command", report->command);
    if (report->unwatched) {
        json_key(&json, "unwatched");
        write_end(&json, report->unwatched);
    }
    json_key(&json, "watched");
    write_end(&json, &watched->end);
    json_put_real(&json, "samples", (double)watched->named.samples);
    json_put_real(&json, "of_python", (double)watched->named.of_python);
    json_put_real(&json, "with_line", (double)watched->named.with_line);
    json_put_real(&json, "with_function", (double)watched->named.with_function);
    json_put_real(&json, "with_both", (double)watched->named.with_both);
    json_put_real(&json, "torn", (double)watched->named.torn);
    json_put_real(&json, "unanswered", (double)watched->named.unanswered);
    json_put_real(&json, "sampling_ns", watched->handler_ns);
    json_put_real(&json, "looking_ns", watched->look_ns);
    program_gpu_json(&watched->gpu, report->advice, &json);
    json_key(&json, "threads");
    write_threads(&json, watched);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        json_key(&json, lists[i].key);
        TRY(write_hot(&json, report->trace, lists[i].by));
    }
    json_put_text(&json, "notes", text_of(&watched->notes));
    json_put_text(&json, "machine", trace_fact(report->trace, "machine"));
    json_end(&json);
    text_add_char(out, '\n');
    return text_done(out);
}
