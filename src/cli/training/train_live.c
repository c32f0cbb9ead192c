/* train_live.c: see train_live.h. */
#include "cli/training/train_live.h"

#include "base/log.h"
#include "base/text.h"
#include "cli/show/curve_svg.h"
#include "cli/store_file.h"

#include <math.h>
#include <unistd.h>

static const uint64_t pause_ns = 1000 * 1000 * 1000;

enum status train_live_open(struct train_live *live, const char *path)
{
    *live = (struct train_live){0};
    if (!path)
        return STATUS_OK;
    clock_stamp(live->started);
    return store_file_open(path, STORE_WRITE, &live->store);
}

bool train_live_due(const struct train_live *live)
{
    return live->store && clock_ns() - live->told_ns > pause_ns;
}

static void add_loss(struct text *out, double loss)
{
    if (isfinite(loss))
        text_printf(out, ",%.6g", loss);
    else
        text_add(out, ",null");
}

/* As struct store_running has it; of many epochs each n-th, and the last. */
static void write_curve(const struct curve *curve, struct text *out)
{
    enum { POINTS_MOST = 200 };
    const int64_t stride = curve->count / POINTS_MOST + 1;
    text_add(out, "[");
    for (int64_t i = 0; i < curve->count; i++) {
        const struct curve_point *point = &curve->points[i];
        if (i % stride && i + 1 < curve->count)
            continue;
        text_printf(out, "%s[%lld", i ? "," : "", (long long)point->epoch);
        add_loss(out, point->loss);
        add_loss(out, point->held_out);
        text_add(out, "]");
    }
    text_add(out, "]");
}

void train_live_tell(struct train_live *live, const char *what, int64_t done, int64_t total,
                     double left_s, const struct curve *curve)
{
    struct text points = {0};
    char server[256] = "";
    gethostname(server, sizeof server - 1);
    write_curve(curve, &points);
    const struct store_running running = {.process = getpid(),
                                          .server = server,
                                          .started = live->started,
                                          .done = done,
                                          .total = total,
                                          .current = what,
                                          .left_s = left_s,
                                          .curve = text_of(&points)};
    if (store_run(live->store, &running) != STATUS_OK)
        log_warning("%s", status_message()); /* what is learnt matters more */
    text_free(&points);
    live->told_ns = clock_ns();
}

void train_live_close(struct train_live *live)
{
    if (live->store)
        store_run_end(live->store, getpid());
    store_close(live->store);
    *live = (struct train_live){0};
}
