/* crossover.c: see crossover.h. */
#include "bench/sweep/crossover.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTHS = 10, WIDTH_LEAST = 4 };       /* 4, 8 … 2,048 */
static const double CROSSOVER_MARGIN = 0.01; /* less is no difference */
/* At the usual 0.1 wide networks of sigmoids saturate, and gradients become subnormal numbers, with
 * which a CPU takes twenty times as long. */
static const char WIDTHS_OPTIMISER[] = "sgd:rate=0.01";

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
    const char *backends = NULL, *threads;
    struct cpu found;

    if (request->against || request->until || request->axis_text[AXIS_unit])
        FAIL(STATUS_INPUT, "--find-crossover compares the CPU with the GPU: leave out --against, "
                           "--until and --unit");
    TRY(registry_first(registry, "cpu", &cpu));
    if (registry_first(registry, "gpu", &gpu) == STATUS_OK) /* else the command says so */
        NEED(backends = arena_format(arena, "%s,%s", cpu->name, gpu->name));
    cpu_detect(&found);
    NEED(threads = found.cores > 1 ? arena_format(arena, "1,%d", found.cores) : "1");
    use_unless(&request->axis_text[AXIS_backend], backends);
    use_unless(&request->axis_text[AXIS_threads], threads);
    use_unless(&request->axis_text[AXIS_phase], "training,inference");
    use_unless(&request->axis_text[AXIS_batch], *count ? "1-1024*4" : "1,10");
    TRY(leave_cpu_in_fp32(request, arena));
    if (request->seconds <= 0)
        request->seconds = 0.2;
    if (*count)
        return STATUS_OK;
    use_unless(&request->axis_text[AXIS_optimiser], WIDTHS_OPTIMISER);
    return name_widths(arena, models, count);
}

/* What was measured. */
struct crossing {
    const struct table_row *rows;
    size_t count;
    bool widths; /* tables are over widths, else over batches */
};

/* What differs within a table: the width, or the batch. */
static int64_t place_of(const struct crossing *all, const struct point *point)
{
    return all->widths ? width_of(point->model) : point->batch;
}

/* The table of a GPU's point: of its precision there may be no CPU. */
static bool same_table(const struct crossing *all, const struct point *a, const struct point *like)
{
    return strcmp(a->phase, like->phase) == 0 &&
           (strcmp(a->unit, "cpu") == 0 || strcmp(a->precision, like->precision) == 0) &&
           (all->widths ? a->batch == like->batch : strcmp(a->model, like->model) == 0);
}

/* The best of a unit at one place of the table that `like` is in; NULL when nothing ran. */
static const struct record *best_of(const struct crossing *all, const struct point *like,
                                    int64_t place, const char *unit)
{
    const struct record *best = NULL;
    for (size_t i = 0; i < all->count; i++) {
        const struct record *record = all->rows[i].record;
        if (record->status == RECORD_OK && !record->handicap &&
            record->check.verdict != RECORD_WRONG && same_table(all, &record->point, like) &&
            place_of(all, &record->point) == place && strcmp(record->point.unit, unit) == 0 &&
            (!best || record->time_ns.median < best->time_ns.median))
            best = record;
    }
    return best;
}

/* The next larger place of the table; 0: there is none. */
static int64_t next_place(const struct crossing *all, const struct point *like, int64_t after)
{
    int64_t next = 0;
    for (size_t i = 0; i < all->count; i++) {
        const struct point *point = &all->rows[i].record->point;
        int64_t place = place_of(all, point);
        if (same_table(all, point, like) && place > after && (!next || place < next))
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
static const char *first_refusal(const struct crossing *all, const struct point *like)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct record *record = all->rows[i].record;
        if (record->status != RECORD_OK && record->reason && same_table(all, &record->point, like))
            return record->reason;
    }
    return "no place has times of both";
}

/* What a table says, place by place. */
struct told {
    bool compared;     /* anywhere */
    bool open;         /* nothing is known of the last */
    int64_t from, to;  /* the GPU is faster; 0: it is not, as far as is known */
    struct text doubt; /* places, since `from`, of which nothing is known: ", 64, 256" */
};

static void tell_place(struct told *told, int64_t place, enum verdict verdict)
{
    if (verdict == VERDICT_UNKNOWN) {
        told->open = true;
        text_printf(&told->doubt, ", %lld", (long long)place);
        return;
    }
    told->open = false;
    if (verdict != VERDICT_FASTER || !told->from)
        text_clear(&told->doubt);
    told->to = verdict == VERDICT_FASTER ? place : 0;
    told->from = told->to && told->from ? told->from : told->to;
}

static void add_sentence(struct text *out, const char *what, const struct told *told)
{
    if (!told->from && told->open) {
        text_printf(
            out, "It cannot be told whether the GPU is faster at the largest %s measured.\n", what);
        return;
    }
    if (!told->from) {
        text_printf(out, "The GPU is not faster at the largest %s measured.\n", what);
        return;
    }
    text_printf(out, "The GPU is faster %s %s %lld",
                told->open && told->to == told->from ? "at" : "from", what, (long long)told->from);
    if (!told->open)
        text_add(out, " on");
    else if (told->to > told->from)
        text_printf(out, " to %lld", (long long)told->to);
    if (told->doubt.length)
        text_printf(out, "; at %s it cannot be told", text_of(&told->doubt) + 2);
    text_add(out, ".\n");
}

static void add_heading(struct text *out, const struct crossing *all, const struct point *like)
{
    if (all->widths)
        text_printf(out, "\nmlp:4-W-W-W-1, %s, batch %lld", like->phase, (long long)like->batch);
    else
        text_printf(out, "\n%s, %s", like->model, like->phase);
    text_printf(out, ", %s%s\n\n", like->precision,
                !point_is(like, CHOICE_precision_fp32) ? " on the GPU, fp32 on the CPU" : "");
    text_printf(out, "| %s | CPU | GPU | CPU ÷ GPU |\n|---|---|---|---|\n",
                all->widths ? "width" : "batch");
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

/* One line; false: one of them could not run, and nothing is known here. */
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

static enum status add_table(struct text *out, const struct crossing *all, const struct point *like)
{
    struct told told = {0};

    add_heading(out, all, like);
    for (int64_t place = 0; (place = next_place(all, like, place)) != 0;) {
        enum verdict verdict;
        if (add_place(out, place, best_of(all, like, place, "cpu"),
                      best_of(all, like, place, "gpu"), &verdict))
            told.compared = true;
        tell_place(&told, place, verdict);
    }
    text_add(out, "\n");
    if (told.compared)
        add_sentence(out, all->widths ? "width" : "batch", &told);
    else
        text_printf(out, "They cannot be compared: %s.\n", first_refusal(all, like));
    enum status status = text_done(&told.doubt);
    text_free(&told.doubt);
    return status;
}

enum status crossover_print(const struct table_row *rows, size_t count, bool widths,
                            struct text *out)
{
    const struct crossing all = {rows, count, widths};
    for (size_t i = 0; i < count; i++) {
        const struct point *point = &rows[i].record->point;
        bool told = strcmp(point->unit, "cpu") == 0;
        for (size_t k = 0; k < i && !told; k++)
            told = strcmp(rows[k].record->point.unit, "cpu") != 0 &&
                   same_table(&all, &rows[k].record->point, point);
        if (!told)
            TRY(add_table(out, &all, point));
    }
    return text_done(out);
}
