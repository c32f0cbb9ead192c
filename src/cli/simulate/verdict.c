/* verdict.c: see verdict.h. */
#include "cli/simulate/verdict.h"

#include "cli/table/wrap.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* More workers pay as long as twice as many bring 1.2 × the samples per second, which is what one
 * of five that are added brings. */
#define PAYS 1.2
#define SLOWER 0.99

/* What twice the workers would bring, from two points. */
static double doubling(const struct verdict_point *a, const struct verdict_point *b)
{
    return pow(b->rate / a->rate, log(2) / log((double)b->workers / a->workers));
}

static void add_line(struct text *out, struct text *line)
{
    wrap_add(out, "", text_of(line), wrap_screen());
    out->failed |= line->failed;
    text_free(line);
}

static void add_workers(struct text *line, int32_t workers)
{
    text_add_grouped(line, (uint64_t)workers);
    text_add(line, workers == 1 ? " worker" : " workers");
}

/* One curve: from its first point on. */
static void tell_curve(const struct verdict_point *points, size_t count, struct text *out)
{
    struct text line = {0};
    size_t end = 0;
    if (count < 2)
        return;
    while (end + 1 < count && doubling(&points[end], &points[end + 1]) >= PAYS)
        end++;
    const struct verdict_point *last = &points[end], *next = last + 1;
    text_printf(&line, "%s parallelism ", points->way);
    if (end + 1 == count) {
        text_add(&line, "pays up to ");
        add_workers(&line, last->workers);
        text_add(&line, ", the most that were simulated.");
    } else {
        const double gain = doubling(last, next);
        if (last->workers == 1) {
            text_add(&line, "does not pay: ");
            add_workers(&line, next->workers);
            text_printf(&line, " bring %.2g × one", next->rate / last->rate);
        } else {
            text_add(&line, "pays up to ");
            add_workers(&line, last->workers);
            if (gain < SLOWER)
                text_add(&line, "; more make it slower");
            else
                text_printf(&line, "; twice as many then bring %.2g ×", gain);
        }
        text_printf(&line, ", limited by %s%s.", strcmp(next->binds, "computing") ? "the " : "",
                    next->binds);
    }
    if (line.length)
        line.data[0] = (char)(line.data[0] - 'a' + 'A');
    add_line(out, &line);
}

/* The fastest of all curves with so many workers. */
static const struct verdict_point *fastest(const struct verdict_point *points, size_t count,
                                           int32_t workers)
{
    const struct verdict_point *best = NULL;
    for (size_t i = 0; i < count; i++)
        if (points[i].workers == workers && (!best || points[i].rate > best->rate))
            best = &points[i];
    return best;
}

/* "Fastest: data up to 8 workers, pipeline with 16 and more." */
static void tell_fastest(const struct verdict_point *points, size_t count, struct text *out)
{
    struct text line = {0};
    const char *before = NULL;
    int32_t last = 1;
    for (;;) { /* the numbers of workers, upwards */
        int32_t next = INT32_MAX;
        for (size_t i = 0; i < count; i++)
            if (points[i].workers > last && points[i].workers < next)
                next = points[i].workers;
        if (next == INT32_MAX)
            break;
        const struct verdict_point *best = fastest(points, count, next);
        if (!before || strcmp(before, best->way) != 0) {
            text_printf(&line, "%s%s from ", before ? ", " : "Fastest: ", best->way);
            add_workers(&line, next);
            text_add(&line, " on");
        }
        before = best->way;
        last = next;
    }
    if (before) {
        text_add_char(&line, '.');
        add_line(out, &line);
    }
    text_free(&line);
}

void verdict_tell(const struct verdict_point *points, size_t count, struct text *out)
{
    bool several = false;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && points[end].curve == points[i].curve; end++)
            ;
        tell_curve(&points[i], end - i, out);
        several |= end < count && strcmp(points[end].way, points[i].way) != 0;
    }
    if (several)
        tell_fastest(points, count, out);
}
