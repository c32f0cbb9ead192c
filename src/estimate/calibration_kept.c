/* calibration_kept.c: see calibration_kept.h. */
#include "estimate/calibration_kept.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>

enum status calibration_open(struct calibration *calibration)
{
    struct text path = {0};
    enum status status = calibration_path(&path);
    if (status == STATUS_OK)
        status = calibration_read(calibration, text_of(&path));
    text_free(&path);
    return status == STATUS_MEMORY ? status : STATUS_OK;
}

void calibration_close(struct calibration *calibration)
{
    struct text path = {0};
    const struct error why = *status_last(); /* of what came before, which may be told yet */
    enum status status = calibration_path(&path);
    if (status == STATUS_OK)
        status = calibration_keep(calibration, text_of(&path));
    if (status != STATUS_OK)
        log_info("the calibration is not kept: %s", status_message());
    *status_last() = why;
    text_free(&path);
    calibration_free(calibration);
}

static void add_peaks(const struct calibration *calibration, struct text *out)
{
    text_printf(out, "  %-10s %-8s %8s %14s\n", "precision", "isa", "threads", "GFLOP/s");
    for (size_t i = 0; i < calibration->count; i++) {
        const struct ceiling_row *row = &calibration->rows[i];
        if (ceiling_is_flop(row->ceiling) && !row->unit[0])
            text_printf(out, "  %-10s %-8s %8d %14.1f\n", ceiling_name(row->ceiling),
                        isa_name(row->isa), row->threads,
                        calibration_best(calibration, row) * 1e-9);
    }
}

/* 16 KB, 24 KB, 32 KB …, as a calibration has them: the sets of networks lie in between, and would
 * fill pages. */
static bool is_round(uint64_t set_bytes)
{
    uint64_t digits = set_bytes % 3 == 0 ? set_bytes / 3 : set_bytes;
    return digits && (digits & (digits - 1)) == 0;
}

/* The next larger round working set that was measured with so many threads; 0: there is none. */
static uint64_t next_set(const struct calibration *calibration, int threads, uint64_t after)
{
    uint64_t next = 0;
    for (size_t i = 0; i < calibration->count; i++) {
        const struct ceiling_row *row = &calibration->rows[i];
        if (row->threads == threads && row->set_bytes > after && is_round(row->set_bytes) &&
            (!next || row->set_bytes < next))
            next = row->set_bytes;
    }
    return next;
}

/* A column of 11; what was never measured is no rate. */
static void add_rate(struct text *out, int decimals, double bytes_per_s)
{
    if (bytes_per_s > 0)
        text_printf(out, " %10.*f", decimals, bytes_per_s * 1e-9);
    else
        text_printf(out, " %9s–", "");
}

static void add_curve(const struct calibration *calibration, int threads, struct text *out)
{
    text_printf(out, "\n  GB/s, %d thread%s\n  %-12s", threads, threads == 1 ? "" : "s",
                "working set");
    for (int ceiling = CEILING_READ; ceiling_is_memory((enum ceiling)ceiling); ceiling++)
        for (int pages = PAGES_COUNT - 1; pages >= 0; pages--)
            text_printf(out, " %7s %s", ceiling_name((enum ceiling)ceiling),
                        pages_name((enum pages)pages));
    text_add(out, "\n");
    for (uint64_t set = 0; (set = next_set(calibration, threads, set)) != 0;) {
        struct text size = {0};
        text_add_size(&size, (double)set);
        text_printf(out, "  %-12s", text_of(&size));
        text_free(&size);
        for (int ceiling = CEILING_READ; ceiling_is_memory((enum ceiling)ceiling); ceiling++)
            for (int pages = PAGES_COUNT - 1; pages >= 0; pages--)
                add_rate(out, 1,
                         calibration_best(calibration,
                                          &(struct ceiling_row){.ceiling = (enum ceiling)ceiling,
                                                                .isa = ISA_BEST,
                                                                .threads = threads,
                                                                .pages = (enum pages)pages,
                                                                .set_bytes = set}));
        text_add(out, "\n");
    }
}

/* The unit that the rows after this one are the first to have; NULL: there is none. */
static const char *next_unit(const struct calibration *calibration, const char *after)
{
    const char *next = NULL;
    for (size_t i = 0; i < calibration->count; i++) {
        const char *unit = calibration->rows[i].unit;
        if (strcmp(unit, after) > 0 && (!next || strcmp(unit, next) < 0))
            next = unit;
    }
    return next;
}

static double unit_best(const struct calibration *calibration, const char *unit,
                        enum ceiling ceiling, uint64_t set_bytes)
{
    struct ceiling_row like = {.ceiling = ceiling, .set_bytes = set_bytes};
    snprintf(like.unit, sizeof like.unit, "%s", unit);
    return calibration_best(calibration, &like);
}

/* A GPU's: rates by precision, launches, and what memory gives by working set. */
static void add_unit(const struct calibration *calibration, const char *unit, struct text *out)
{
    text_printf(out, "\n  %s\n", unit);
    for (int ceiling = 0; ceiling_is_flop((enum ceiling)ceiling); ceiling++) {
        double per_s = unit_best(calibration, unit, (enum ceiling)ceiling, 0);
        if (per_s > 0)
            text_printf(out, "  %-12s %10.1f TFLOP/s\n", ceiling_name((enum ceiling)ceiling),
                        per_s * 1e-12);
    }
    double launches = unit_best(calibration, unit, CEILING_LAUNCH, 0);
    if (launches > 0)
        text_printf(out, "  %-12s %10.2f µs\n", "launch", 1e6 / launches);
    text_printf(out, "  %-12s %10s %10s %10s GB/s\n", "working set", "read", "copy", "update");
    for (size_t i = 0; i < calibration->count; i++) {
        const struct ceiling_row *row = &calibration->rows[i];
        if (row->ceiling != CEILING_READ || strcmp(row->unit, unit) != 0)
            continue;
        struct text size = {0};
        text_add_size(&size, (double)row->set_bytes);
        text_printf(out, "  %-12s", text_of(&size));
        text_free(&size);
        for (int ceiling = CEILING_READ; ceiling_is_memory((enum ceiling)ceiling); ceiling++)
            add_rate(out, 0, unit_best(calibration, unit, (enum ceiling)ceiling, row->set_bytes));
        text_add(out, "\n");
    }
}

static int most_threads(const struct calibration *calibration)
{
    int most = 0;
    for (size_t i = 0; i < calibration->count; i++)
        most = calibration->rows[i].threads > most ? calibration->rows[i].threads : most;
    return most;
}

/* "  fp32             117.4 GFLOP/s, with 2 threads 234.8"; nothing where nothing is known. */
static void add_brief(const struct calibration *calibration, struct ceiling_row like,
                      const char *where, const char *unit, struct text *out)
{
    char name[32];
    const int most = most_threads(calibration);
    like.threads = 1;
    double one = calibration_best(calibration, &like);
    like.threads = most;
    double all = calibration_best(calibration, &like);
    if (all <= 0)
        return;
    snprintf(name, sizeof name, "%s%s", ceiling_name(like.ceiling), where);
    text_printf(out, "  %-16s ", name);
    if (one > 0)
        text_printf(out, "%.1f %s%s", one * 1e-9, unit, most > 1 ? ", " : "");
    if (most > 1)
        text_printf(out, "with %d threads %.1f%s%s", most, all * 1e-9, one > 0 ? "" : " ",
                    one > 0 ? "" : unit);
    text_add(out, "\n");
}

void calibration_brief(const struct calibration *calibration, const struct cpu *cpu,
                       struct text *out)
{
    const struct {
        const char *name;
        uint64_t set_bytes;
    } places[] = {{" L2", cpu->l2_bytes / 4},
                  {" L3", cpu->l3_bytes / 4},
                  {" memory", 8 * (cpu->l3_bytes ? cpu->l3_bytes : cpu->l2_bytes)}};

    text_add(out,
             "\nat best, as far as seen (prony machine --calibrate looks again, and shows all)\n");
    for (int ceiling = 0; ceiling_is_flop((enum ceiling)ceiling); ceiling++)
        add_brief(calibration,
                  (struct ceiling_row){.ceiling = (enum ceiling)ceiling, .isa = cpu->isa}, "",
                  "GFLOP/s", out);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        add_brief(calibration,
                  (struct ceiling_row){.ceiling = CEILING_READ,
                                       .isa = cpu->isa,
                                       .pages = PAGES_2M,
                                       .set_bytes = places[i].set_bytes},
                  places[i].name, "GB/s", out);
    for (const char *unit = ""; (unit = next_unit(calibration, unit)) != NULL;)
        add_unit(calibration, unit, out);
    if (!calibration->count)
        text_add(out, "  nothing yet\n");
}

void calibration_text(const struct calibration *calibration, struct text *out)
{
    const int most = most_threads(calibration);
    text_add(out, "\nthe best seen\n");
    if (most)
        add_peaks(calibration, out);
    for (int threads = 1; threads <= most; threads++)
        if (next_set(calibration, threads, 0))
            add_curve(calibration, threads, out);
    for (const char *unit = ""; (unit = next_unit(calibration, unit)) != NULL;)
        add_unit(calibration, unit, out);
}

void calibration_compare(const struct calibration *kept, const struct calibration *found,
                         struct text *out)
{
    static const double MUCH_LESS = 0.9;
    const struct ceiling_row *slowest = NULL;
    struct cpu cpu;
    double least = MUCH_LESS;

    cpu_detect(&cpu);
    for (size_t i = 0; i < found->count; i++) {
        const struct ceiling_row *row = &found->rows[i];
        if (row->ceiling != CEILING_READ || row->unit[0] || row->set_bytes <= cpu.l3_bytes)
            continue;
        double share = calibration_best(found, row) / calibration_best(kept, row);
        if (share < least) {
            least = share;
            slowest = row;
        }
    }
    if (!slowest)
        return;
    struct text size = {0};
    text_add_size(&size, (double)slowest->set_bytes);
    text_printf(out,
                "\n  Memory was slower this time than it has been: %.1f GB/s of %.1f (read, %s, %d "
                "thread%s, %s pages).\n  Others on this machine or its host use it; what floors "
                "rest on is the best ever seen, above.\n",
                1e-9 * calibration_best(found, slowest), 1e-9 * calibration_best(kept, slowest),
                text_of(&size), slowest->threads, slowest->threads == 1 ? "" : "s",
                pages_name(slowest->pages));
    text_free(&size);
}
