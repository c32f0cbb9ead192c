/* progress.c: see progress.h. */
#include "cli/progress.h"

#include "base/clock.h"
#include "cli/screen.h"

#include <math.h>
#include <stdio.h>

enum { BAR_MOST = 24, BAR_LEAST = 8, BAR_SHARE = 4 }; /* of the width */
static const uint64_t drawn_every_ns = 250 * 1000 * 1000ull;
static const uint64_t told_every_ns = 30 * 1000 * 1000 * 1000ull;

void progress_begin(struct progress *progress)
{
    const uint64_t now_ns = clock_ns();
    *progress = (struct progress){.start_ns = now_ns};
    progress->shown_ns = screen_is_terminal(stderr) ? 0 : now_ns;
}

bool progress_due(const struct progress *progress)
{
    const uint64_t since_ns = clock_ns() - progress->shown_ns;
    return since_ns >= drawn_every_ns && (since_ns >= told_every_ns || screen_is_terminal(stderr));
}

void progress_add_time(struct text *text, double seconds, bool about)
{
    const double grain = !about || seconds < 20 ? 1 : seconds < 600 ? 5 : 60;
    const long whole = (long)(grain * fmax(round(fmin(seconds, 1e9) / grain), about ? 1 : 0));
    if (whole < 60)
        text_printf(text, "%ld s", whole);
    else if (whole < 3600 && whole % 60)
        text_printf(text, "%ld min %ld s", whole / 60, whole % 60);
    else if (whole < 3600)
        text_printf(text, "%ld min", whole / 60);
    else if (whole % 3600 / 60)
        text_printf(text, "%ld h %ld min", whole / 3600, whole % 3600 / 60);
    else
        text_printf(text, "%ld h", whole / 3600);
}

static void add_bar(struct text *text, double share)
{
    int width = screen_width(stderr) / BAR_SHARE;
    width = width > BAR_MOST ? BAR_MOST : width < BAR_LEAST ? BAR_LEAST : width;
    const int full = (int)(share * width);
    text_add_char(text, '[');
    for (int i = 0; i < width; i++)
        text_add_char(text, i < full ? '#' : '-');
    text_add_char(text, ']');
}

static void add_times(struct text *text, const struct progress *progress, double left_s)
{
    progress_add_time(text, (double)(clock_ns() - progress->start_ns) * 1e-9, false);
    text_add(text, " gone");
    if (left_s < 0)
        return;
    text_add(text, ", about ");
    progress_add_time(text, left_s, true);
    text_add(text, " left");
}

void progress_show(struct progress *progress, double share, double left_s, const char *count,
                   const char *label)
{
    struct text text = {0};
    const bool drawn = screen_is_terminal(stderr);
    progress->shown_ns = clock_ns();
    if (share > progress->share)
        progress->share = fmin(share, 1);
    if (drawn) {
        add_bar(&text, progress->share);
        text_printf(&text, "  %s%s%s\n", count, label ? "   " : "", label ? label : "");
        add_times(&text, progress, left_s);
        screen_status(text_of(&text));
    } else {
        text_printf(&text, "%s done, ", count);
        add_times(&text, progress, left_s);
        fprintf(stderr, "prony: %s\n", text_of(&text));
    }
    text_free(&text);
}

void progress_end(struct progress *progress)
{
    *progress = (struct progress){0};
    screen_status(NULL);
}

void progress_share(const char *what, double share)
{
    static struct progress only; /* there is one screen */
    struct text count = {0};
    if (only.start_ns == 0)
        progress_begin(&only);
    const double gone_s = (double)(clock_ns() - only.start_ns) * 1e-9;
    text_printf(&count, "%.0f %%", 100 * share);
    if (share >= 1)
        progress_end(&only);
    else if (progress_due(&only))
        progress_show(&only, share, share > 0.02 ? gone_s / share - gone_s : -1, text_of(&count),
                      what);
    text_free(&count);
}
