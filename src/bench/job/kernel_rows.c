/* kernel_rows.c: see kernel_rows.h. Cells are made once; each format prints them in its way. */
#include "bench/job/kernel_rows.h"

#include "base/json.h"
#include "estimate/floor.h"

#include <math.h>
#include <string.h>

enum column {
    COLUMN_OP,
    COLUMN_SIZES,
    COLUMN_BACKEND,
    COLUMN_THREADS,
    COLUMN_KERNEL,
    COLUMN_TIME,
    COLUMN_SPREAD,
    COLUMN_FLOP,
    COLUMN_BYTES,
    COLUMN_FLOOR,
    COLUMN_CHECK,
    COLUMN_NOTE,
    COLUMNS
};

static const struct {
    const char *name, *plain; /* plain: in CSV, where numbers have no unit beside them */
    int width;
    const char *unit; /* of table_figure; NULL: it is a text */
} columns[COLUMNS] = {
    [COLUMN_OP] = {"op", "op", 0, NULL},
    [COLUMN_SIZES] = {"sizes", "sizes", 0, NULL},
    [COLUMN_BACKEND] = {"backend", "backend", 7, NULL},
    [COLUMN_THREADS] = {"threads", "threads", 7, NULL},
    [COLUMN_KERNEL] = {"kernel", "kernel", 0, NULL},
    [COLUMN_TIME] = {"time", "time_ns", 9, "ns"},
    [COLUMN_SPREAD] = {"±", "half_interval_percent", 7, "%"},
    [COLUMN_FLOP] = {"GFLOP/s", "gflop_per_s", 8, "x"},
    [COLUMN_BYTES] = {"GB/s", "gb_per_s", 8, "x"},
    [COLUMN_FLOOR] = {"× floor", "times_floor", 7, "x"},
    [COLUMN_CHECK] = {"check", "check", 5, NULL},
    [COLUMN_NOTE] = {"note", "note", 0, NULL},
};

enum status kernel_rows_format(struct kernel_rows *rows, const char *format)
{
    rows->json = text_equal(format, "json");
    if (format && !rows->json && !table_format_parse(format, &rows->format))
        FAIL(STATUS_INPUT, "--format: found \"%s\", expected table, json, csv or md", format);
    return STATUS_OK;
}

void kernel_rows_sizes(const struct op_case *op_case, struct text *out)
{
    bool both = *op_case->sizes && *op_case->attributes;
    text_printf(out, "%s%s%s", op_case->sizes, both ? " " : "", op_case->attributes);
    if (!out->length)
        text_add(out, "usual");
    if (*op_case->absent)
        text_printf(out, ", without %s", op_case->absent);
}

static double times_floor(const struct kernel_row *row)
{
    return row->floor_ns >= FLOOR_LEAST_NS ? row->time_ns.median / row->floor_ns : (double)NAN;
}

/* What is done in a ns is what is done, in billions, in a second. */
static double giga_per_s(double amount, const struct kernel_row *row)
{
    return amount > 0 ? amount / row->time_ns.median : (double)NAN;
}

static void add_figure(struct text *cell, enum column column, double value, bool plain)
{
    struct json_writer writer;
    if (!isfinite(value)) {
        text_add(cell, plain ? "" : "–");
    } else if (plain) {
        json_begin(&writer, cell);
        json_add_real(&writer, value);
    } else {
        table_figure(cell, value, columns[column].unit);
    }
}

static void make_cells(const struct kernel_row *row, bool plain, struct text cells[COLUMNS])
{
    const struct stats *time_ns = &row->time_ns;
    double half_ns = (time_ns->ci_high - time_ns->ci_low) / 2;

    text_add(&cells[COLUMN_OP], op_name(row->op_case->kind));
    kernel_rows_sizes(row->op_case, &cells[COLUMN_SIZES]);
    text_add(&cells[COLUMN_BACKEND], row->backend);
    text_printf(&cells[COLUMN_THREADS], "%d", row->threads);
    text_add(&cells[COLUMN_KERNEL], row->kernel ? row->kernel : "");
    add_figure(&cells[COLUMN_TIME], COLUMN_TIME, time_ns->median, plain);
    add_figure(&cells[COLUMN_SPREAD], COLUMN_SPREAD, 100 * half_ns / time_ns->median, plain);
    add_figure(&cells[COLUMN_FLOP], COLUMN_FLOP, giga_per_s(row->flop, row), plain);
    add_figure(&cells[COLUMN_BYTES], COLUMN_BYTES, giga_per_s(row->bytes, row), plain);
    add_figure(&cells[COLUMN_FLOOR], COLUMN_FLOOR, times_floor(row), plain);
    text_add(&cells[COLUMN_CHECK], row->check);
    text_add(&cells[COLUMN_NOTE], text_of(&row->note));
}

static int column_width(const struct kernel_rows *rows, enum column column)
{
    if (column == COLUMN_OP)
        return rows->op_width;
    if (column == COLUMN_SIZES)
        return rows->sizes_width;
    if (column == COLUMN_KERNEL)
        return rows->op_width + (int)strlen("_f32_avx512_depthwise");
    return columns[column].width;
}

/* Leaves out columns, the least important first, until the others fit; then sizes are cut. The note
 * has lines of its own. */
static void leave_out(struct kernel_rows *rows)
{
    static const enum column order[] = {COLUMN_NOTE,   COLUMN_BYTES,   COLUMN_KERNEL,
                                        COLUMN_FLOP,   COLUMN_THREADS, COLUMN_BACKEND,
                                        COLUMN_SPREAD, COLUMN_FLOOR};
    const int note = (int)strlen(columns[COLUMN_NOTE].name);
    int total = note;
    for (int c = 0; c < COLUMNS; c++)
        total += column_width(rows, (enum column)c) + (c ? 2 : 0);
    for (size_t i = 0; i < sizeof order / sizeof *order && rows->width && total > rows->width;
         i++) {
        const bool who = order[i] == COLUMN_THREADS || order[i] == COLUMN_BACKEND;
        if (who && rows->contested)
            continue;
        rows->left_out |= 1u << order[i];
        total -= column_width(rows, order[i]) + 2 + (order[i] == COLUMN_NOTE ? note : 0);
    }
    if (rows->width && total > rows->width && rows->sizes_width > total - rows->width)
        rows->sizes_width -= total - rows->width;
}

/* Under its row, in lines that fit. */
static void add_note(const struct kernel_rows *rows, const char *note, struct text *out)
{
    enum { INDENT = 2 };
    const size_t room = (size_t)rows->width - INDENT;
    while (*note) {
        size_t length = strlen(note), blank = length;
        for (size_t i = 0; length > room && i <= room; i++)
            blank = note[i] == ' ' ? i : blank;
        text_printf(out, "%*s%.*s\n", INDENT, "", (int)blank, note);
        note += blank + strspn(note + blank, " ");
    }
}

static void add_aligned(const struct kernel_rows *rows, enum column column, const char *cell,
                        struct text *out)
{
    int width = column_width(rows, column), used = (int)table_width(cell);
    if (rows->left_out & 1u << column)
        return;
    if (column == COLUMN_SIZES && rows->width && used > width) { /* ASCII; JSON has it whole */
        text_printf(out, "  %.*s…", width - 1, cell);
        return;
    }
    int room = width > used ? width - used : 0;
    bool right = columns[column].unit || column == COLUMN_THREADS;
    text_printf(out, "%s%*s%s%*s", column ? "  " : "", right ? room : 0, "", cell, right ? 0 : room,
                "");
}

static void add_line(const struct kernel_rows *rows, const char *const cells[COLUMNS],
                     struct text *out)
{
    for (int c = 0; c < COLUMNS; c++) {
        switch (rows->format) {
        case TABLE_ALIGNED: add_aligned(rows, (enum column)c, cells[c], out); break;
        case TABLE_CSV:
            text_add(out, c ? "," : "");
            table_csv_cell(cells[c], out);
            break;
        case TABLE_MARKDOWN:
            text_add(out, "| ");
            table_markdown_cell(cells[c], out);
            text_add(out, c + 1 < COLUMNS ? " " : " |");
            break;
        }
    }
    while (out->length && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
    text_add(out, "\n");
}

static void add_heading(const struct kernel_rows *rows, struct text *out)
{
    const char *names[COLUMNS];
    for (int c = 0; c < COLUMNS; c++)
        names[c] = rows->format == TABLE_CSV ? columns[c].plain : columns[c].name;
    add_line(rows, names, out);
    for (int c = 0; c < COLUMNS && rows->format == TABLE_MARKDOWN; c++)
        text_add(out, columns[c].unit || c == COLUMN_THREADS ? "|---:" : "|---");
    text_add(out, rows->format == TABLE_MARKDOWN ? "|\n" : "");
}

static void add_json(const struct kernel_row *row, struct text *out)
{
    struct json_writer json;
    json_begin(&json, out);
    json_object(&json);
    json_put_text(&json, "op", op_name(row->op_case->kind));
    json_put_text(&json, "sizes", row->op_case->sizes);
    json_put_text(&json, "attributes", row->op_case->attributes);
    json_put_text(&json, "absent", row->op_case->absent);
    json_put_text(&json, "backend", row->backend);
    json_put_real(&json, "threads", row->threads);
    json_put_text(&json, "kernel", row->kernel);
    json_put_real(&json, "ns", row->time_ns.median);
    json_put_real(&json, "least_ns", row->time_ns.min);
    json_put_real(&json, "low_ns", row->time_ns.ci_low);
    json_put_real(&json, "high_ns", row->time_ns.ci_high);
    json_put_real(&json, "flop", row->flop);
    json_put_real(&json, "bytes", row->bytes);
    json_put_real(&json, "floor_ns", row->floor_ns);
    json_put_real(&json, "times_floor", times_floor(row));
    json_put_text(&json, "check", row->check);
    json_put_real(&json, "error", row->error);
    json_put_text(&json, "note", row->note.length ? text_of(&row->note) : NULL);
    json_end(&json);
    text_add(out, "\n");
}

void kernel_rows_add(struct kernel_rows *rows, const struct kernel_row *row, struct text *out)
{
    struct text cells[COLUMNS] = {{0}};
    const char *texts[COLUMNS];

    if (rows->json) {
        add_json(row, out);
        return;
    }
    if (!rows->begun && rows->format == TABLE_ALIGNED)
        leave_out(rows);
    if (!rows->begun)
        add_heading(rows, out);
    rows->begun = true;
    make_cells(row, rows->format == TABLE_CSV, cells);
    for (int c = 0; c < COLUMNS; c++)
        texts[c] = text_of(&cells[c]);
    add_line(rows, texts, out);
    if (rows->left_out & 1u << COLUMN_NOTE)
        add_note(rows, texts[COLUMN_NOTE], out);
    for (int c = 0; c < COLUMNS; c++) {
        out->failed |= cells[c].failed;
        text_free(&cells[c]);
    }
}
