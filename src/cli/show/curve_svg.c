/* curve_svg.c: see curve_svg.h. The axis of the loss is logarithmic where it falls to a tenth or
 * less, as it mostly does. */
#include "cli/show/curve_svg.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/plain.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum {
    WIDTH = 800,
    HEIGHT = 480,
    LEFT = 70,
    RIGHT = 110,
    TOP = 50,
    BOTTOM = 60,
    POINTS_MOST = 1000,
    TICKS = 6
};

enum status curve_add(struct curve *curve, struct curve_point point)
{
    if (curve->count == curve->room) {
        const int64_t room = curve->room ? 2 * curve->room : 64;
        struct curve_point *points = mem_grow(curve->points, (size_t)room, sizeof *points);
        NEED(points);
        curve->points = points;
        curve->room = room;
    }
    curve->points[curve->count++] = point;
    return STATUS_OK;
}

void curve_free(struct curve *curve)
{
    mem_free(curve->points);
    *curve = (struct curve){0};
}

/* What the picture shows of the numbers, and where. */
struct frame {
    int64_t first, last; /* epochs */
    double low, high;    /* of the loss */
    bool logarithmic;
    int64_t stride; /* every so many points are drawn */
};

static void widen(struct frame *frame, double loss)
{
    if (isfinite(loss)) {
        frame->low = fmin(frame->low, loss);
        frame->high = fmax(frame->high, loss);
    }
}

static struct frame find_frame(const struct curve *curve)
{
    struct frame frame = {.low = (double)INFINITY, .high = -(double)INFINITY};
    for (int64_t i = 0; i < curve->count; i++) {
        widen(&frame, curve->points[i].loss);
        widen(&frame, curve->points[i].held_out);
    }
    if (!(frame.low <= frame.high))
        frame.low = frame.high = 0;
    frame.first = curve->count ? curve->points[0].epoch : 0;
    frame.last = curve->count ? curve->points[curve->count - 1].epoch : 0;
    frame.logarithmic = frame.low > 0 && frame.high / frame.low >= 10;
    if (!frame.logarithmic && frame.low > 0)
        frame.low = 0;
    if (frame.high <= frame.low)
        frame.high = frame.low + 1;
    frame.stride = curve->count / POINTS_MOST + 1;
    return frame;
}

static double place_x(const struct frame *frame, int64_t epoch)
{
    const double epochs = (double)(frame->last - frame->first);
    const double share = epochs > 0 ? (double)(epoch - frame->first) / epochs : 0.5;
    return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static double place_y(const struct frame *frame, double loss)
{
    const double share = frame->logarithmic ? log(loss / frame->low) / log(frame->high / frame->low)
                                            : (loss - frame->low) / (frame->high - frame->low);
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
}

/* Text of a user, in XML: what XML or a viewer could obey is replaced. */
static void add_escaped(struct text *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<': text_add(out, "&lt;"); break;
        case '&': text_add(out, "&amp;"); break;
        default: text_add_char(out, (unsigned char)*text < ' ' ? ' ' : *text);
        }
}

static void add_label(struct text *out, double x, double y, const char *anchor, const char *label)
{
    text_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    add_escaped(out, label);
    text_add(out, "</text>\n");
}

static void add_axes(struct text *out, const struct frame *frame)
{
    char label[40];
    for (int i = 0; i < TICKS; i++) {
        const double share = (double)i / (TICKS - 1);
        const double loss = frame->logarithmic ? frame->low * pow(frame->high / frame->low, share)
                                               : frame->low + share * (frame->high - frame->low);
        const double y = place_y(frame, loss);
        text_printf(out, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", LEFT, y, WIDTH - RIGHT);
        snprintf(label, sizeof label, "%.3g", loss);
        add_label(out, LEFT - 8, y + 4, "end", label);
    }
    const int64_t epochs = frame->last - frame->first, step = (epochs + TICKS - 2) / (TICKS - 1);
    for (int64_t epoch = frame->first; epoch <= frame->last; epoch += step ? step : 1) {
        snprintf(label, sizeof label, "%" PRId64, epoch);
        add_label(out, place_x(frame, epoch), HEIGHT - BOTTOM + 20, "middle", label);
    }
    add_label(out, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, "middle", "epoch");
    add_label(out, LEFT, TOP - 8, "middle", frame->logarithmic ? "loss (log)" : "loss");
}

/* One line with its name at its end. */
static void add_line(struct text *out, const struct curve *curve, const struct frame *frame,
                     bool held_out, const char *colour)
{
    double x = 0, y = 0;
    int64_t drawn = 0;
    text_printf(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"", colour);
    for (int64_t i = 0; i < curve->count; i++) {
        const struct curve_point *point = &curve->points[i];
        const double loss = held_out ? point->held_out : point->loss;
        if (!isfinite(loss) || (i % frame->stride && i < curve->count - 1))
            continue;
        x = place_x(frame, point->epoch);
        y = place_y(frame, loss);
        text_printf(out, "%c%.1f %.1f", drawn++ ? 'L' : 'M', x, y);
    }
    text_add(out, drawn == 1 ? "h2\"/>\n" : "\"/>\n");
    if (drawn) {
        text_printf(out, "<g fill=\"%s\">", colour);
        add_label(out, x + 6, y + (held_out ? -4 : 12), "start",
                  held_out ? "held out" : "training");
        text_add(out, "</g>\n");
    }
}

static void add_best(struct text *out, const struct frame *frame, int64_t epoch)
{
    char label[60];
    if (epoch < frame->first || epoch > frame->last)
        return;
    const double x = place_x(frame, epoch);
    snprintf(label, sizeof label, "best: epoch %" PRId64, epoch);
    text_printf(out, "<path d=\"M%.1f %dV%d\" stroke=\"#888\" stroke-dasharray=\"4 4\"/>\n", x, TOP,
                HEIGHT - BOTTOM);
    add_label(out, x, TOP - 8, "middle", label);
}

static void draw(const struct curve *curve, const char *title, int64_t best_epoch, struct text *out)
{
    const struct frame frame = find_frame(curve);
    text_printf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n"
                "<title>",
                WIDTH, HEIGHT, WIDTH, HEIGHT);
    add_escaped(out, title);
    text_add(out, "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    add_label(out, WIDTH / 2, 22, "middle", title);
    add_axes(out, &frame);
    if (best_epoch)
        add_best(out, &frame, best_epoch);
    add_line(out, curve, &frame, false, "#1f6fb4");
    add_line(out, curve, &frame, true, "#c2510c");
    text_add(out, "</svg>\n");
}

enum status curve_write(const struct curve *curve, const char *path, const char *title,
                        int64_t best_epoch)
{
    struct text out = {0};
    draw(curve, title, best_epoch, &out);
    enum status status = text_done(&out);
    if (status == STATUS_OK)
        status = file_write(path, out.data, out.length);
    text_free(&out);
    return status;
}
