/* crossover.c: see crossover.h. */
#include "cli/crossover.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTHS = 10, WIDTH_LEAST = 4 }; /* 4, 8 … 2,048 */

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

static bool same_table(const struct point *a, const struct point *b)
{
    bool widths = width_of(a->model) && width_of(b->model);
    return strcmp(a->phase, b->phase) == 0 && strcmp(a->precision, b->precision) == 0 &&
           (widths ? a->batch == b->batch : strcmp(a->model, b->model) == 0);
}

/* The best of a unit at one place of the table that `like` is in; NaN when nothing ran. */
static double best_time(const struct table_row *rows, size_t count, const struct point *like,
                        int64_t place, const char *unit)
{
    double best = (double)NAN;
    for (size_t i = 0; i < count; i++) {
        const struct record *record = rows[i].record;
        if (record->status == RECORD_OK && same_table(&record->point, like) &&
            place_of(&record->point) == place && strcmp(record->point.unit, unit) == 0)
            best = fmin(best, record->time_ns.median);
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

static void add_time(struct text *out, double ns)
{
    text_add(out, isnan(ns) ? " – |" : " ");
    if (isnan(ns))
        return;
    text_add_time(out, ns);
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
        text_printf(out, "The CPU is faster up to the largest %s measured.\n", what);
}

static void add_table(struct text *out, const struct table_row *rows, size_t count,
                      const struct point *like)
{
    bool widths = width_of(like->model) != 0, wins = false, compared = false;
    int64_t from = 0;

    if (widths)
        text_printf(out, "\nmlp:4-W-W-W-1, %s, batch %lld, %s\n\n", like->phase,
                    (long long)like->batch, like->precision);
    else
        text_printf(out, "\n%s, %s, %s\n\n", like->model, like->phase, like->precision);
    text_printf(out, "| %s | CPU | GPU | CPU ÷ GPU |\n|---|---|---|---|\n",
                widths ? "width" : "batch");
    for (int64_t place = 0; (place = next_place(rows, count, like, place)) != 0;) {
        double cpu = best_time(rows, count, like, place, "cpu");
        double gpu = best_time(rows, count, like, place, "gpu");
        text_printf(out, "| %lld |", (long long)place);
        add_time(out, cpu);
        add_time(out, gpu);
        if (isnan(cpu / gpu))
            text_add(out, " – |\n");
        else
            text_printf(out, " %.2f |\n", cpu / gpu);
        if (isnan(cpu / gpu))
            continue; /* one of them could not run: nothing is known here */
        from = gpu >= cpu ? 0 : wins ? from : place;
        wins = gpu < cpu;
        compared = true;
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
        bool told = false;
        for (size_t k = 0; k < i && !told; k++)
            told = same_table(&rows[k].record->point, &rows[i].record->point);
        if (!told)
            add_table(out, rows, count, &rows[i].record->point);
    }
    return text_done(out);
}
