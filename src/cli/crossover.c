/* crossover.c: see crossover.h. */
#include "cli/crossover.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTHS = 10, WIDTH_LEAST = 4 };       /* 4, 8 … 2,048 */
static const double CROSSOVER_MARGIN = 0.01; /* less is no difference */

/* Three hidden layers of one width. */
static enum status name_widths(struct arena *arena, const char *const **models, int *count)
{
    const char **names = arena_array(arena, WIDTHS, sizeof *names);
    NEED(names);
    for (int i = 0, width = WIDTH_LEAST; i < WIDTHS; i++, width *= 2)
        NEED(names[i] = arena_format(arena, "mlp:4-%d-%d-%d-1:sigmoid", width, width, width));
    *models = names;
    *count = WIDTHS;
    return STATUS_OK;
}

/* The width of one of those; 0: it is another network. */
static int width_of(const char *model)
{
    int width, second, third, end = 0;
    if (sscanf(model, "mlp:4-%d-%d-%d-1:sigmoid%n", &width, &second, &third, &end) != 3 ||
        width != second || width != third || !end || model[end])
        return 0;
    return width;
}

static void use_unless(const char **text, const char *usual)
{
    *text = *text ? *text : usual;
}

/* A CPU computes in fp32, whatever the GPU is asked for, and the GPU in no more than that. */
static enum status leave_cpu_in_fp32(struct bench_request *request, struct arena *arena)
{
    const char **precision = &request->axis_text[AXIS_precision], *others = "";
    struct sweep_list asked = {0};
    bool fp32 = false;

    if (*precision)
        TRY(sweep_split(&axes[AXIS_precision], *precision, arena, &asked));
    for (int i = 0; i < asked.count; i++) {
        if (strcmp(asked.values[i], "fp32") == 0)
            fp32 = true;
        else
            NEED(others =
                     arena_format(arena, "%s%s%s", others, *others ? "," : "", asked.values[i]));
    }
    if (!*others)
        return STATUS_OK;
    if (!fp32)
        NEED(*precision = arena_format(arena, "%s,fp32", *precision));
    NEED(request->skip = arena_format(arena, "%s%s%sunit=cpu precision=%s",
                                      request->skip ? request->skip : "", request->skip ? "; " : "",
                                      fp32 ? "" : "unit=gpu precision=fp32; ", others));
    return STATUS_OK;
}

enum status crossover_ask(const struct registry *registry, struct bench_request *request,
                          struct arena *arena, const char *const **models, int *count)
{
    const struct backend *cpu, *gpu;
    const char *backends, *threads;
    struct cpu found;

    if (request->against || request->until || request->axis_text[AXIS_unit])
        FAIL(STATUS_INPUT, "--find-crossover compares the CPU with the GPU: leave out --against, "
                           "--until and --unit");
    TRY(registry_first(registry, "cpu", &cpu));
    TRY(registry_first(registry, "gpu", &gpu));
    cpu_detect(&found);
    NEED(backends = arena_format(arena, "%s,%s", cpu->name, gpu->name));
    NEED(threads = found.cores > 1 ? arena_format(arena, "1,%d", found.cores) : "1");
    use_unless(&request->axis_text[AXIS_backend], backends);
    use_unless(&request->axis_text[AXIS_threads], threads);
    use_unless(&request->axis_text[AXIS_phase], "training,inference");
    use_unless(&request->axis_text[AXIS_batch], *count ? "1-1024*4" : "1,10");
    TRY(leave_cpu_in_fp32(request, arena));
    if (request->seconds <= 0)
        request->seconds = 0.2;
    return *count ? STATUS_OK : name_widths(arena, models, count);
}

/* What differs within a table: the width, or the batch. */
static int64_t place_of(const struct point *point)
{
    int width = width_of(point->model);
    return width ? width : point->batch;
}

/* The table of a GPU's point: of its precision there may be no CPU. */
static bool same_table(const struct point *a, const struct point *like)
{
    bool widths = width_of(a->model) && width_of(like->model);
    return strcmp(a->phase, like->phase) == 0 &&
           (strcmp(a->unit, "cpu") == 0 || strcmp(a->precision, like->precision) == 0) &&
           (widths ? a->batch == like->batch : strcmp(a->model, like->model) == 0);
}

/* The best of a unit at one place of the table that `like` is in; NULL when nothing ran. */
static const struct record *best_of(const struct table_row *rows, size_t count,
                                    const struct point *like, int64_t place, const char *unit)
{
    const struct record *best = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct record *record = rows[i].record;
        if (record->status == RECORD_OK && record->check.verdict != RECORD_WRONG &&
            same_table(&record->point, like) && place_of(&record->point) == place &&
            strcmp(record->point.unit, unit) == 0 &&
            (!best || record->time_ns.median < best->time_ns.median))
            best = record;
    }
    return best;
}

/* The next larger place of the table; 0: there is none. */
static int64_t next_place(const struct table_row *rows, size_t count, const struct point *like,
                          int64_t after)
{
    int64_t next = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t place = place_of(&rows[i].record->point);
        if (same_table(&rows[i].record->point, like) && place > after && (!next || place < next))
            next = place;
    }
    return next;
}

/* "| 3.5 µs, 2 threads |" */
static void add_time(struct text *out, const struct record *record)
{
    text_add(out, record ? " " : " –");
    if (record)
        text_add_time(out, record->time_ns.median);
    if (record && record->point.threads)
        text_printf(out, ", %lld thread%s", (long long)record->point.threads,
                    record->point.threads == 1 ? "" : "s");
    text_add(out, " |");
}

/* Why one of them could not run, anywhere in the table. */
static const char *first_refusal(const struct table_row *rows, size_t count,
                                 const struct point *like)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].record->status != RECORD_OK && rows[i].record->reason &&
            same_table(&rows[i].record->point, like))
            return rows[i].record->reason;
    return "no place has times of both";
}

static void add_sentence(struct text *out, const struct point *like, int64_t from, bool last_gpu)
{
    const char *what = width_of(like->model) ? "width" : "batch";
    if (from && last_gpu)
        text_printf(out, "The GPU is faster from %s %lld on.\n", what, (long long)from);
    else
        text_printf(out, "The GPU is not faster at the largest %s measured.\n", what);
}

static void add_heading(struct text *out, const struct point *like)
{
    bool widths = width_of(like->model) != 0;
    if (widths)
        text_printf(out, "\nmlp:4-W-W-W-1, %s, batch %lld", like->phase, (long long)like->batch);
    else
        text_printf(out, "\n%s, %s", like->model, like->phase);
    text_printf(out, ", %s%s\n\n", like->precision,
                strcmp(like->precision, "fp32") ? " on the GPU, fp32 on the CPU" : "");
    text_printf(out, "| %s | CPU | GPU | CPU ÷ GPU |\n|---|---|---|---|\n",
                widths ? "width" : "batch");
}

/* Of the GPU's time beside the CPU's. Where one was measured too seldom for an interval, as what
 * takes long, a factor of two speaks for itself. */
static enum verdict verdict_of(const struct record *cpu, const struct record *gpu)
{
    struct comparison found;
    double ratio = gpu->time_ns.median / cpu->time_ns.median;
    compare_results(&gpu->time_ns, &cpu->time_ns, CROSSOVER_MARGIN, &found);
    if (!isnan(found.low))
        return found.verdict;
    return ratio < 0.5 ? VERDICT_FASTER : ratio > 2 ? VERDICT_SLOWER : VERDICT_UNKNOWN;
}

/* One line; false: one of them is missing. */
static bool add_place(struct text *out, int64_t place, const struct record *cpu,
                      const struct record *gpu, enum verdict *verdict)
{
    text_printf(out, "| %lld |", (long long)place);
    add_time(out, cpu);
    add_time(out, gpu);
    *verdict = cpu && gpu ? verdict_of(cpu, gpu) : VERDICT_UNKNOWN;
    if (cpu && gpu)
        text_printf(out, " %s%.2f |\n", *verdict == VERDICT_UNKNOWN ? "≈ " : "",
                    cpu->time_ns.median / gpu->time_ns.median);
    else
        text_add(out, " – |\n");
    return cpu && gpu;
}

static void add_table(struct text *out, const struct table_row *rows, size_t count,
                      const struct point *like)
{
    bool wins = false, compared = false;
    int64_t from = 0;

    add_heading(out, like);
    for (int64_t place = 0; (place = next_place(rows, count, like, place)) != 0;) {
        enum verdict verdict;
        if (!add_place(out, place, best_of(rows, count, like, place, "cpu"),
                       best_of(rows, count, like, place, "gpu"), &verdict))
            continue; /* one of them could not run: nothing is known here */
        compared = true;
        if (verdict == VERDICT_UNKNOWN)
            continue; /* neither begins nor ends anything */
        from = verdict != VERDICT_FASTER ? 0 : wins ? from : place;
        wins = verdict == VERDICT_FASTER;
    }
    text_add(out, "\n");
    if (compared)
        add_sentence(out, like, from, wins);
    else
        text_printf(out, "They cannot be compared: %s.\n", first_refusal(rows, count, like));
}

enum status crossover_print(const struct table_row *rows, size_t count, struct text *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct point *point = &rows[i].record->point;
        bool told = strcmp(point->unit, "cpu") == 0;
        for (size_t k = 0; k < i && !told; k++)
            told = strcmp(rows[k].record->point.unit, "cpu") != 0 &&
                   same_table(&rows[k].record->point, point);
        if (!told)
            add_table(out, rows, count, point);
    }
    return text_done(out);
}
