/* sample_file.c: see sample_file.h. */
#include "cli/show/sample_file.h"

#include "base/file.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NPY_ALIGN = 64, GAP = 1, WHITE = 255 };

static void write_csv(const struct samples *samples, struct text *out)
{
    const float *value = samples->values;
    for (int64_t row = 0; row < samples->rows; row++) {
        for (int64_t i = 0; i < samples->width; i++)
            text_printf(out, "%s%.9g", i ? "," : "", (double)*value++);
        text_add_char(out, '\n');
    }
}

/* Version 1: magic, version, length of the header, a header padded to a multiple of 64, data. */
static void write_npy(const struct samples *samples, struct text *out)
{
    struct text header = {0};
    text_printf(&header,
                "{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRId64 ", %" PRId64 "), }",
                samples->rows, samples->width);
    while ((10 + header.length + 1) % NPY_ALIGN)
        text_add_char(&header, ' ');
    text_add_char(&header, '\n');
    text_add_bytes(out, "\x93NUMPY\x01\x00", 8);
    text_add_char(out, (char)(header.length & 0xFF));
    text_add_char(out, (char)(header.length >> 8));
    text_add_bytes(out, text_of(&header), header.length);
    text_add_bytes(out, samples->values,
                   (size_t)(samples->rows * samples->width) * sizeof *samples->values);
    out->failed = out->failed || header.failed;
    text_free(&header);
}

/* One row of the sheet's pixels: of `across` pictures side by side, from picture `first` on. */
static void write_line(const struct samples *samples, int64_t first, int64_t across, int64_t line,
                       const float range[2], struct text *out)
{
    for (int64_t k = first; k < first + across; k++) {
        for (int64_t column = 0; column < samples->wide + GAP; column++) {
            bool inside = k < samples->rows && column < samples->wide;
            const float *picture = samples->values + k * samples->width;
            float value = inside ? picture[line * samples->wide + column] : range[0];
            float shade = (value - range[0]) / (range[1] - range[0]) * WHITE;
            text_add_char(out, (char)(unsigned char)lrintf(shade));
        }
    }
}

/* A sheet as nearly square as may be, with a line of the darkest shade between pictures. */
static void write_pgm(const struct samples *samples, struct text *out)
{
    int64_t across = (int64_t)ceil(sqrt((double)samples->rows));
    int64_t down = (samples->rows + across - 1) / across;
    float range[2] = {samples->values[0], samples->values[0]};
    for (int64_t i = 0; i < samples->rows * samples->width; i++) {
        range[0] = fminf(range[0], samples->values[i]);
        range[1] = fmaxf(range[1], samples->values[i]);
    }
    if (!(range[1] > range[0]))
        range[1] = range[0] + 1;
    text_printf(out, "P5\n%" PRId64 " %" PRId64 "\n255\n", across * (samples->wide + GAP),
                down * (samples->high + GAP));
    for (int64_t row = 0; row < down; row++) {
        for (int64_t line = 0; line < samples->high; line++)
            write_line(samples, row * across, across, line, range, out);
        for (int64_t i = 0; i < across * (samples->wide + GAP); i++)
            text_add_char(out, 0);
    }
}

enum status sample_file_check(const char *path, const struct samples *samples)
{
    bool picture = text_ends(path, ".pgm");
    if (picture && samples->high * samples->wide != samples->width)
        FAIL(STATUS_INPUT,
             "%s: found samples of %" PRId64
             " numbers, expected pictures; --shape HxW says how high "
             "and wide they are",
             path, samples->width);
    if (!picture && !text_ends(path, ".csv") && !text_ends(path, ".npy"))
        FAIL(STATUS_INPUT, "%s: found another ending, expected .csv, .npy or .pgm", path);
    struct file_writer writer;
    TRY(file_begin(&writer, path));
    file_abort(&writer);
    return STATUS_OK;
}

enum status sample_file_write(const char *path, const struct samples *samples)
{
    struct text text = {0};
    if (text_ends(path, ".csv"))
        write_csv(samples, &text);
    else if (text_ends(path, ".npy"))
        write_npy(samples, &text);
    else
        write_pgm(samples, &text);
    enum status status = text_done(&text);
    if (status == STATUS_OK)
        status = file_write(path, text_of(&text), text.length);
    text_free(&text);
    return status;
}
