/* query_draw.c: see query_draw.h. Bars are made of eighths of a character; lines of the dots of
 * braille characters, two by four in each, with a sign of its own for the points of each series. */
#include "cli/show/query_draw.h"

#include "cli/show/query_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BAR = 50, WIDTH = 64, HEIGHT = 16, SIGNS = 8, FIELD = 24, LABEL = 16 };
static const double WIDE = 16; /* what spans more than this is drawn over its logarithm */

static const char *const signs[SIGNS] = {"●", "■", "▲", "◆", "○", "□", "△", "◇"};

static void add_name(struct text *out, const struct store_query *query,
                     const struct store_mark *mark, size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_printf(out, "%s%s", i ? " " : "", *mark->values[i] ? mark->values[i] : "–");
    if (count == 0)
        text_add(out, query->y);
}

static void add_bar(struct text *out, double share)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int steps = (int)lround(fmin(fmax(share, 0), 1) * BAR * 8);
    for (int i = 0; i < steps / 8; i++)
        text_add(out, "█");
    text_add(out, eighths[steps % 8]);
}

static void draw_bars(const struct store_query *query, const struct store_chart *chart,
                      struct text *out)
{
    const struct metric *metric = metric_find(query->y);
    struct text name = {0};
    double most = 0;
    size_t widest = 0;
    for (int pass = 0; pass < 2; pass++) /* how wide the names are; then the bars */
        for (size_t i = 0; i < chart->count; i++) {
            const struct store_mark *mark = &chart->marks[i];
            text_clear(&name);
            add_name(&name, query, mark, query->group_count + 1);
            size_t width = table_width(text_of(&name));
            most = fmax(most, mark->y);
            widest = width > widest ? width : widest;
            if (pass == 0)
                continue;
            text_printf(out, "%s%*s ", text_of(&name), (int)(widest - width), "");
            add_bar(out, mark->y / most);
            text_add_char(out, ' ');
            query_figure(out, metric, mark->y);
            text_add_char(out, '\n');
        }
    out->failed |= name.failed;
    text_free(&name);
}

struct scale {
    double low, high;
    bool logarithm;
};

static void widen(struct scale *scale, double value)
{
    scale->low = fmin(scale->low, value);
    scale->high = fmax(scale->high, value);
}

static void settle(struct scale *scale)
{
    scale->logarithm = scale->low > 0 && scale->high / scale->low > WIDE;
    if (!scale->logarithm && scale->low > 0)
        scale->low = 0;
    if (scale->high <= scale->low)
        scale->high = scale->low + 1;
}

/* From 0 to 1. */
static double place(const struct scale *scale, double value)
{
    if (scale->logarithm)
        return log(value / scale->low) / log(scale->high / scale->low);
    return (value - scale->low) / (scale->high - scale->low);
}

struct canvas {
    unsigned char dots[HEIGHT][WIDTH]; /* bits of a braille character */
    const char *signs[HEIGHT][WIDTH];  /* over it; NULL: none */
};

static void add_dot(struct canvas *canvas, int x, int y) /* y from below */
{
    static const unsigned char bits[4][2] = {
        {0x40, 0x80}, {0x04, 0x20}, {0x02, 0x10}, {0x01, 0x08}};
    canvas->dots[HEIGHT - 1 - y / 4][x / 2] |= bits[y % 4][x % 2];
}

struct spot {
    int x, y; /* in dots */
};

static struct spot spot_of(const struct scale *x, const struct scale *y,
                           const struct store_mark *mark, double at)
{
    return (struct spot){(int)lround(place(x, at) * (2 * WIDTH - 1)),
                         (int)lround(place(y, mark->y) * (4 * HEIGHT - 1))};
}

static void join(struct canvas *canvas, struct spot from, struct spot to)
{
    int steps = abs(to.x - from.x) > abs(to.y - from.y) ? abs(to.x - from.x) : abs(to.y - from.y);
    for (int i = 0; i <= steps; i++) {
        double share = steps ? (double)i / steps : 0;
        add_dot(canvas, from.x + (int)lround(share * (to.x - from.x)),
                from.y + (int)lround(share * (to.y - from.y)));
    }
}

static void add_braille(struct text *out, unsigned char dots)
{
    const char bytes[] = {(char)0xE2, (char)(0xA0 | dots >> 6), (char)(0x80 | (dots & 0x3F)), 0};
    text_add(out, dots ? bytes : " ");
}

static void print_canvas(const struct canvas *canvas, const struct metric *metric,
                         const struct scale *y, struct text *out)
{
    struct text ends[2] = {{0}};
    query_figure(&ends[0], metric, y->high);
    query_figure(&ends[1], metric, y->low);
    for (int row = 0; row < HEIGHT; row++) {
        const char *end = row == 0 ? text_of(&ends[0]) : row + 1 == HEIGHT ? text_of(&ends[1]) : "";
        text_printf(out, "%*s%s ┤", LABEL - (int)table_width(end), "", end);
        for (int column = 0; column < WIDTH; column++) {
            if (canvas->signs[row][column])
                text_add(out, canvas->signs[row][column]);
            else
                add_braille(out, canvas->dots[row][column]);
        }
        while (out->length && out->data[out->length - 1] == ' ')
            out->data[--out->length] = '\0';
        text_add_char(out, '\n');
    }
    text_free(&ends[0]);
    text_free(&ends[1]);
}

static void print_axis(const struct store_query *query, const struct scale *x, struct text *out)
{
    char low[FIELD], high[FIELD];
    snprintf(low, sizeof low, "%.4g", x->low);
    snprintf(high, sizeof high, "%.4g", x->high);
    text_printf(out, "%*s└", LABEL + 1, "");
    for (int i = 0; i < WIDTH; i++)
        text_add(out, "─");
    int middle = WIDTH - (int)strlen(low) - (int)strlen(high);
    int before = (middle - (int)strlen(query->x)) / 2;
    text_printf(out, "\n%*s%s%*s%s%*s%s\n", LABEL + 2, "", low, before, "", query->x,
                middle - before - (int)strlen(query->x), "", high);
}

static enum status draw_lines(const struct store_query *query, const struct store_chart *chart,
                              struct text *out)
{
    struct scale x = {INFINITY, -INFINITY, false}, y = x;
    struct canvas canvas = {0};
    struct text legend = {0};
    size_t series = 0;
    for (size_t i = 0; i < chart->count; i++) {
        widen(&x, (double)store_mark_number(&chart->marks[i], query));
        widen(&y, chart->marks[i].y);
    }
    settle(&x);
    settle(&y);
    struct spot before = {0};
    for (size_t i = 0; i < chart->count; i++) {
        const struct store_mark *mark = &chart->marks[i];
        bool first = i == 0 || !store_same_series(mark, mark - 1, query);
        struct spot spot = spot_of(&x, &y, mark, (double)store_mark_number(mark, query));
        series += first;
        const char *sign = signs[(series - 1) % SIGNS];
        if (!first)
            join(&canvas, before, spot);
        canvas.signs[HEIGHT - 1 - spot.y / 4][spot.x / 2] = sign;
        before = spot;
        if (first) {
            text_printf(&legend, "%*s%s ", LABEL + 2, "", sign);
            add_name(&legend, query, mark, query->group_count);
            text_add_char(&legend, '\n');
        }
    }
    print_canvas(&canvas, metric_find(query->y), &y, out);
    print_axis(query, &x, out);
    text_add(out, text_of(&legend));
    enum status status = text_done(&legend);
    text_free(&legend);
    return status;
}

enum status query_draw(const struct store_query *query, const struct store_chart *chart,
                       const char *how, struct text *out)
{
    bool numbers = store_key_kind(query->x) == AXIS_INT;
    bool lines = strcmp(how, "line") == 0 || (strcmp(how, "auto") == 0 && numbers);
    if (!lines && strcmp(how, "bar") && strcmp(how, "none") && strcmp(how, "auto"))
        FAIL(STATUS_INPUT, "--draw: found \"%s\", expected bar, line, none or auto", how);
    if (lines && !numbers)
        FAIL(STATUS_INPUT, "--draw line: found \"%s\", which is no number, as x; use bar",
             query->x);
    if (chart->count == 0 || strcmp(how, "none") == 0)
        return STATUS_OK;
    text_add_char(out, '\n');
    if (lines)
        return draw_lines(query, chart, out);
    draw_bars(query, chart, out);
    return STATUS_OK;
}
