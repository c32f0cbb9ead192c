/* precision_sheet.c: see precision_sheet.h. */
#include "cli/show/precision_sheet.h"

#include "cli/table/show_figure.h"
#include "cli/table/show_record.h"
#include "cli/table/show_table.h"
#include "cli/table/wrap.h"

#include <math.h>
#include <string.h>

enum { FIGURES = 8 };

/* Axes in which precisions of one configuration differ. */
static const enum axis_index aside[] = {AXIS_precision, AXIS_isa,    AXIS_pages,
                                        AXIS_software,  AXIS_tuning, AXIS_unit_name};

static bool is_like(const struct record *a, const struct record *b)
{
    struct point one = a->point, other = b->point;
    for (size_t i = 0; i < sizeof aside / sizeof *aside; i++)
        if (point_set(&one, &axes[aside[i]], "") != STATUS_OK ||
            point_set(&other, &axes[aside[i]], "") != STATUS_OK)
            return false;
    return point_compare(&one, &other) == 0;
}

static bool is_fp32(const struct record *record)
{
    return point_is(&record->point, CHOICE_precision_fp32);
}

static bool is_timed(const struct record *record)
{
    return record->status == RECORD_OK && !isnan(record->time_ns.median);
}

static double figure_of(const struct record *record, enum metric_index metric)
{
    return record_metric(record, &metrics[metric]);
}

static bool has_kernel(const struct record *record, const char *part)
{
    for (size_t i = 0; i < record->kernel_count; i++)
        if (strstr(record->kernels[i], part))
            return true;
    return false;
}

/* An op that computes, by the plain kernel that all others are compared with; NULL: none is. */
static const char *plain_kernel(const struct record *record)
{
    static const char *const moves[] = {"rows", "load", "store", "tick", "quantise", "dequantise"};
    for (size_t i = 0; i < record->kernel_count; i++) {
        const char *name = record->kernels[i], *end = strstr(name, "_f32_ref");
        bool known = !end;
        for (size_t k = 0; !known && k < sizeof moves / sizeof *moves; k++)
            known = strncmp(name, moves[k], (size_t)(end - name)) == 0 && !moves[k][end - name];
        if (!known)
            return name;
    }
    return NULL;
}

/* What its kernels lack on a CPU. */
static const char *missing_kernel(const struct record *record, const struct record *real)
{
    const struct point *point = &record->point;
    if (strcmp(point->unit, "cpu") != 0)
        return NULL;
    if (point_is(point, CHOICE_precision_int8) && !has_kernel(record, "vnni"))
        return "no VNNI: its kernels widen 8 bits to 16 before they multiply";
    if (has_kernel(real, "stack_f32") && !has_kernel(record, "stack"))
        return "fp32 computes all layers in one kernel, this type has one kernel a layer";
    if (has_kernel(record, "_rounded"))
        return "some layers round their factors and multiply in fp32";
    if (point_is(point, CHOICE_precision_bf16) && !has_kernel(record, "avx512bf16"))
        return "no AVX-512 BF16: its kernels widen to fp32 before they multiply";
    return NULL;
}

/* Why a smaller type is no faster, as far as the record shows. */
static void add_reason(struct text *out, const struct record *record, const struct record *real)
{
    static const double MANY = 15, FAR = 4;
    const struct point *point = &record->point;
    const double converting = figure_of(record, METRIC_conversions);
    const char *missing = missing_kernel(record, real), *plain = plain_kernel(record);
    if (missing)
        text_add(out, missing);
    else if (converting > MANY)
        text_printf(out, "converting to and from fp32 takes %.0f %% of its time", converting);
    else if (plain)
        text_printf(out, "%s has no vector instructions", plain);
    else if (strcmp(point->unit, "cpu") != 0 && record->times_floor > FAR)
        text_printf(out, "it is bound by launches: %.0f × the time that its work needs",
                    record->times_floor);
    else
        text_printf(out, "not known; prony profile %s --precision %s shows its ops", point->model,
                    point->precision);
}

static void add_share(struct text *out, double share, int digits)
{
    if (!isnan(share))
        text_printf(out, "%.*f %%", digits, 100 * share);
}

/* How many times as fast it is. */
static void show_speed(struct text *out, const struct record *real, const struct record *record)
{
    if (is_fp32(real))
        text_printf(out, "%.2f", real->time_ns.median / record->time_ns.median);
    else
        text_add(out, "–");
}

static void add_columns(struct show_table *table)
{
    show_table_column(table, "precision", SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_column(table, "time   ", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(table, "× fp32", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(table, "memory", SHOW_RIGHT, 60, 0);
    show_table_column(table, "output error", SHOW_RIGHT, 80, 0);
    show_table_column(table, "accuracy", SHOW_RIGHT, 90, 0);
    show_table_column(table, "lost", SHOW_RIGHT, 90, 0);
    show_table_column(table, "result", SHOW_LEFT, SHOW_ALWAYS, 0);
}

static void add_row(struct show_table *table, const struct record *record,
                    const struct record *real)
{
    struct text cells[FIGURES] = {{0}};
    const char *row[FIGURES];
    const bool timed = is_timed(record);
    text_add(&cells[0], record->point.precision);
    show_interval(&cells[1], &record->time_ns);
    if (timed)
        show_speed(&cells[2], real, record);
    if (timed)
        show_scaled(&cells[3], record->bytes, "B");
    if (timed && !is_fp32(record))
        add_share(&cells[4], figure_of(record, METRIC_output_error), 2);
    if (timed)
        add_share(&cells[5], figure_of(record, METRIC_accuracy), 2);
    if (timed && !is_fp32(record))
        add_share(&cells[6], figure_of(record, METRIC_accuracy_lost), 2);
    show_record_result(table, record, &cells[7]);
    for (int i = 0; i < FIGURES; i++) {
        table->failed |= cells[i].failed;
        row[i] = text_of(&cells[i]);
    }
    show_table_row(table, row);
    for (int i = 0; i < FIGURES; i++)
        text_free(&cells[i]);
}

static void add_reasons(struct show_table *table, const struct table_row *rows, size_t count,
                        const struct record *real)
{
    for (size_t i = 0; i < count; i++) {
        const struct record *record = rows[i].record;
        struct text line = {0};
        if (!is_fp32(real) || is_fp32(record) || !is_timed(record) || !is_like(real, record) ||
            record->time_ns.median <= real->time_ns.median)
            continue;
        text_printf(&line, "%s is slower than fp32: ", record->point.precision);
        add_reason(&line, record, real);
        table->failed |= line.failed;
        show_table_foot(table, text_of(&line));
        text_free(&line);
    }
}

/* Of one configuration. */
static enum status print_one(const struct table_row *rows, size_t count, const struct record *real,
                             struct text *out)
{
    struct show_table table = {.width = wrap_screen()};
    bool told[AXIS_COUNT];
    for (int i = 0; i < AXIS_COUNT; i++)
        told[i] = i != AXIS_precision;
    show_record_title(real, told, &table.title);
    add_columns(&table);
    for (size_t i = 0; i < count; i++)
        if (is_like(real, rows[i].record))
            add_row(&table, rows[i].record, real);
    add_reasons(&table, rows, count, real);
    text_add_char(out, '\n');
    show_table_print(&table, out);
    enum status status = show_table_done(&table);
    show_table_free(&table);
    return status;
}

/* The configuration's record in fp32; without one the first of it. NULL: it was shown before. */
static const struct record *find_real(const struct table_row *rows, size_t count, size_t at)
{
    const struct record *real = rows[at].record;
    for (size_t i = 0; i < count; i++) {
        const struct record *record = rows[i].record;
        if (!is_timed(record) || !is_like(record, rows[at].record))
            continue;
        if (i < at)
            return NULL;
        if (is_fp32(record))
            real = record;
    }
    return is_timed(rows[at].record) ? real : NULL;
}

enum status precision_sheet_print(const struct table_row *rows, size_t count, struct text *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct record *real = find_real(rows, count, i);
        if (real)
            TRY(print_one(rows, count, real, out));
    }
    return text_done(out);
}
