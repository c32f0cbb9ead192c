/* query_draw.c: see query_draw.h. Bars are made of eighths of a character; lines of the dots of
 * braille characters, two by four in each, with a sign of its own for the points of each series.
 * Where nobody looks, or the terminal has no such characters, plain ones stand for them. */
#include "cli/show/query_draw.h"

#include "cli/screen.h"
#include "cli/show/query_table.h"
#include "cli/table/wrap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 100, NARROW = 16, HEIGHT = 16, SIGNS = 8, FIELD = 24, LABEL = 16 };
static const double WIDE = 16; /* what spans more than this is drawn over its logarithm */

/* What charts are made of; where drawn characters cannot be shown, letters and strokes. */
struct pen {
    const char *signs[SIGNS];
    const char *tick, *corner, *base, *dot, *path; /* path: before a dot on a logarithmic scale */
};
static const struct pen drawn = {{"●", "■", "▲", "◆", "○", "□", "△", "◇"}, "┤", "└", "─", "●", "·"};
static const struct pen plain = {{"o", "x", "+", "#", "*", "@", "%", "&"}, "|", "+", "-", "o", "."};

static const struct pen *pen_of(void)
{
    return screen_has_drawing(stdout) ? &drawn : &plain;
}

/* Which axes are logarithmic: as was asked for, or those that span much. */
enum log_choice { LOG_AUTO, LOG_ON, LOG_OFF };

struct drawing {
    const struct store_query *query;
    const struct store_chart *chart;
    enum log_choice log_x, log_y;
};

static void add_name(struct text *out, const struct store_query *query,
                     const struct store_mark *mark, size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_printf(out, "%s%s", i ? " " : "", *mark->values[i] ? mark->values[i] : "–");
    if (count == 0)
        text_add(out, query->y);
}

/* As much as is left of the screen beside what else is in the line. */
static int drawing_width(size_t beside)
{
    int left = wrap_screen() - (int)beside;
    return left < NARROW ? NARROW : left > WIDTH ? WIDTH : left;
}

static void add_bar(struct text *out, double share, int width)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const bool drawing = screen_has_drawing(stdout);
    int steps = (int)lround(fmin(fmax(share, 0), 1) * width * 8);
    for (int i = 0; i < steps / 8; i++)
        text_add(out, drawing ? "█" : "#");
    text_add(out, drawing ? eighths[steps % 8] : steps % 8 >= 4 ? "#" : "");
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

static void settle(struct scale *scale, enum log_choice choice)
{
    bool wide = scale->high / scale->low > WIDE;
    scale->logarithm = scale->low > 0 && (choice == LOG_ON || (choice == LOG_AUTO && wide));
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

/* What is drawn: "throughput, log scale"; its figures have their unit. */
static void print_measure(const struct store_query *query, const struct scale *y, struct text *out)
{
    text_printf(out, "%s%s\n", query->y, y->logarithm ? ", log scale" : "");
}

/* On a logarithmic scale no bar begins at zero: a dot stands where the figure is. */
static void add_dot_line(struct text *out, double share, int width)
{
    int at = (int)lround(fmin(fmax(share, 0), 1) * (width - 1));
    for (int i = 0; i < at; i++)
        text_add(out, pen_of()->path);
    text_add(out, pen_of()->dot);
}

/* The widest name, and the widest figure. */
static void measure_names(const struct drawing *drawing, size_t *names, size_t *figures)
{
    const struct metric *metric = metric_find(drawing->query->y);
    *names = *figures = 0;
    for (size_t i = 0; i < drawing->chart->count; i++) {
        const struct store_mark *mark = &drawing->chart->marks[i];
        struct text text = {0};
        add_name(&text, drawing->query, mark, drawing->query->group_count + 1);
        size_t name = wrap_width(text_of(&text));
        text_clear(&text);
        query_figure(&text, metric, mark->y);
        size_t figure = wrap_width(text_of(&text));
        *names = name > *names ? name : *names;
        *figures = figure > *figures ? figure : *figures;
        text_free(&text);
    }
    size_t most = (size_t)wrap_screen() / 2; /* the table above has the names whole */
    *names = *names > most ? most : *names;
}

static void draw_bars(const struct drawing *drawing, struct text *out)
{
    const struct store_query *query = drawing->query;
    const struct metric *metric = metric_find(query->y);
    struct scale scale = {(double)INFINITY, -(double)INFINITY, false};
    size_t names, figures;
    measure_names(drawing, &names, &figures);
    const int width = drawing_width(names + figures + 2);
    for (size_t i = 0; i < drawing->chart->count; i++)
        widen(&scale, drawing->chart->marks[i].y);
    settle(&scale, drawing->log_y == LOG_ON ? LOG_ON : LOG_OFF);
    print_measure(query, &scale, out);
    for (size_t i = 0; i < drawing->chart->count; i++) {
        const struct store_mark *mark = &drawing->chart->marks[i];
        struct text name = {0}, cut = {0};
        add_name(&name, query, mark, query->group_count + 1);
        wrap_add_cut(&cut, text_of(&name), names);
        text_add(out, text_of(&cut));
        wrap_pad(out, names - wrap_width(text_of(&cut)) + 1);
        if (scale.logarithm)
            add_dot_line(out, place(&scale, mark->y), width);
        else
            add_bar(out, mark->y / scale.high, width);
        text_add_char(out, ' ');
        query_figure(out, metric, mark->y);
        text_add_char(out, '\n');
        out->failed |= name.failed || cut.failed;
        text_free(&name);
        text_free(&cut);
    }
}

struct canvas {
    unsigned char dots[HEIGHT][WIDTH]; /* bits of a braille character */
    const char *signs[HEIGHT][WIDTH];  /* over it; NULL: none */
    int width;                         /* at most WIDTH */
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

static struct spot spot_of(const struct canvas *canvas, const struct scale *x,
                           const struct scale *y, const struct store_mark *mark, double at)
{
    return (struct spot){(int)lround(place(x, at) * (2 * canvas->width - 1)),
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
    text_add(out, !dots ? " " : screen_has_drawing(stdout) ? bytes : plain.path);
}

static void print_canvas(const struct canvas *canvas, const struct metric *metric,
                         const struct scale *y, struct text *out)
{
    struct text ends[2] = {{0}};
    query_figure(&ends[0], metric, y->high);
    query_figure(&ends[1], metric, y->low);
    for (int row = 0; row < HEIGHT; row++) {
        const char *end = row == 0 ? text_of(&ends[0]) : row + 1 == HEIGHT ? text_of(&ends[1]) : "";
        text_printf(out, "%*s%s %s", LABEL - (int)wrap_width(end), "", end, pen_of()->tick);
        for (int column = 0; column < canvas->width; column++) {
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

static void print_axis(const struct store_query *query, const struct scale *x, int width,
                       struct text *out)
{
    char low[FIELD], high[FIELD], name[2 * FIELD];
    snprintf(low, sizeof low, "%.4g", x->low);
    snprintf(high, sizeof high, "%.4g", x->high);
    snprintf(name, sizeof name, "%s%s", query->x, x->logarithm ? ", log scale" : "");
    text_printf(out, "%*s%s", LABEL + 1, "", pen_of()->corner);
    for (int i = 0; i < width; i++)
        text_add(out, pen_of()->base);
    int middle = width - (int)strlen(low) - (int)strlen(high);
    int before = (middle - (int)strlen(name)) / 2;
    before = before > 1 ? before : 1;
    int after = middle - before - (int)strlen(name);
    text_printf(out, "\n%*s%s%*s%s%*s%s\n", LABEL + 2, "", low, before, "", name,
                after > 1 ? after : 1, "", high);
}

static void print_legend(const struct store_query *query, const struct store_mark *mark,
                         const char *sign, struct text *out)
{
    struct text name = {0}, lead = {0};
    text_printf(&lead, "%*s%s ", LABEL + 2, "", sign);
    add_name(&name, query, mark, query->group_count);
    wrap_add(out, text_of(&lead), text_of(&name), wrap_screen());
    out->failed |= name.failed || lead.failed;
    text_free(&name);
    text_free(&lead);
}

static enum status draw_lines(const struct drawing *drawing, struct text *out)
{
    const struct store_query *query = drawing->query;
    const struct store_chart *chart = drawing->chart;
    struct scale x = {(double)INFINITY, -(double)INFINITY, false}, y = x;
    struct canvas canvas = {.width = drawing_width(LABEL + 3)};
    struct text legend = {0};
    size_t series = 0;
    for (size_t i = 0; i < chart->count; i++) {
        widen(&x, (double)store_mark_number(&chart->marks[i], query));
        widen(&y, chart->marks[i].y);
    }
    settle(&x, drawing->log_x);
    settle(&y, drawing->log_y);
    print_measure(query, &y, out);
    struct spot before = {0};
    for (size_t i = 0; i < chart->count; i++) {
        const struct store_mark *mark = &chart->marks[i];
        bool first = i == 0 || !store_same_series(mark, mark - 1, query);
        struct spot spot = spot_of(&canvas, &x, &y, mark, (double)store_mark_number(mark, query));
        series += first;
        const char *sign = pen_of()->signs[(series - 1) % SIGNS];
        if (!first)
            join(&canvas, before, spot);
        canvas.signs[HEIGHT - 1 - spot.y / 4][spot.x / 2] = sign;
        before = spot;
        if (first)
            print_legend(query, mark, sign, &legend);
    }
    print_canvas(&canvas, metric_find(query->y), &y, out);
    print_axis(query, &x, canvas.width, out);
    text_add(out, text_of(&legend));
    enum status status = text_done(&legend);
    text_free(&legend);
    return status;
}

/* "x", "y", "xy", "none" or "auto". */
static enum status read_log(const char *text, struct drawing *drawing)
{
    static const struct {
        const char *name;
        enum log_choice x, y;
    } choices[] = {{"auto", LOG_AUTO, LOG_AUTO},
                   {"none", LOG_OFF, LOG_OFF},
                   {"x", LOG_ON, LOG_OFF},
                   {"y", LOG_OFF, LOG_ON},
                   {"xy", LOG_ON, LOG_ON}};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (strcmp(text, choices[i].name) == 0) {
            drawing->log_x = choices[i].x;
            drawing->log_y = choices[i].y;
            return STATUS_OK;
        }
    FAIL(STATUS_INPUT, "--log: found \"%s\", expected x, y, xy, none or auto", text);
}

enum status query_draw(const struct store_query *query, const struct store_chart *chart,
                       const char *how, const char *log, struct text *out)
{
    struct drawing drawing = {.query = query, .chart = chart};
    bool numbers = store_key_kind(query->x) == AXIS_INT;
    bool lines = strcmp(how, "line") == 0 || (strcmp(how, "auto") == 0 && numbers);
    TRY(read_log(log, &drawing));
    if (!lines && strcmp(how, "bar") && strcmp(how, "none") && strcmp(how, "auto"))
        FAIL(STATUS_INPUT, "--draw: found \"%s\", expected bar, line, none or auto", how);
    if (lines && !numbers)
        FAIL(STATUS_INPUT, "--draw line: found \"%s\", which is no number, as x; use bar",
             query->x);
    if (chart->count == 0 || strcmp(how, "none") == 0)
        return STATUS_OK;
    text_add_char(out, '\n');
    if (lines)
        return draw_lines(&drawing, out);
    draw_bars(&drawing, out);
    return STATUS_OK;
}
