/* conv_patches.c: see conv_patches.h. */
#include "backend/cpu/simd/conv/conv_patches.h"

static bool is_plain(const struct conv_axis *axis)
{
    return axis->kernel == 1 && axis->stride == 1 && axis->pad == 0 && axis->in == axis->out;
}

struct conv_relation patch_flat(const struct conv_relation *relation)
{
    struct conv_relation flat = *relation;
    if (!is_plain(&flat.down) || !is_plain(&flat.across))
        return flat;
    flat.across.in = flat.across.out = flat.across.steps = flat.down.in * flat.across.in;
    flat.down.in = flat.down.out = flat.down.steps = 1;
    return flat;
}

int64_t patch_phases(const struct conv_relation *relation)
{
    return relation->down.every * relation->across.every;
}

void patch_list(const struct conv_relation *relation, struct patch_phase *phases,
                struct patch_tap *taps)
{
    const struct conv_relation *r = relation;
    int64_t kernel = r->down.kernel * r->across.kernel, k = 0;
    for (int64_t i = 0; i < patch_phases(r); i++) {
        struct patch_phase *phase = &phases[i];
        struct patch_tap tap;
        *phase = (struct patch_phase){.down = i / r->across.every, .across = i % r->across.every};
        phase->rows = conv_axis_places(&r->down, phase->down);
        phase->columns = conv_axis_places(&r->across, phase->across);
        phase->first = k;
        for (tap.place = 0; tap.place < kernel; tap.place++)
            if (conv_axis_tap(&r->down, phase->down, tap.place / r->across.kernel, &tap.down) &&
                conv_axis_tap(&r->across, phase->across, tap.place % r->across.kernel, &tap.across))
                taps[k++] = tap;
        phase->count = k - phase->first;
    }
}

int64_t patch_runs(int64_t rows, int64_t columns, int64_t first, int64_t count, int64_t most,
                   struct patch_run *runs)
{
    int64_t found = 0;
    struct patch_run run = {
        .sample = first / (rows * columns),
        .row = first / columns % rows,
        .column = first % columns,
    };
    while (run.at < count) {
        run.length = columns - run.column;
        run.length = run.length < count - run.at ? run.length : count - run.at;
        run.length = run.length < most ? run.length : most;
        runs[found++] = run;
        run.at += run.length;
        run.column += run.length;
        if (run.column < columns)
            continue;
        run.column = 0;
        if (++run.row == rows) {
            run.row = 0;
            run.sample++;
        }
    }
    return found;
}

/* 16 bits, each twice as far up. */
static uint32_t spread(uint32_t bits)
{
    bits = (bits | bits << 8) & 0x00FF00FF;
    bits = (bits | bits << 4) & 0x0F0F0F0F;
    bits = (bits | bits << 2) & 0x33333333;
    return (bits | bits << 1) & 0x55555555;
}

/* What a tap finds for a run: where its first pixel's element is, or would be, and which of them
 * are no padding. */
static struct conv_piece piece_of(const struct conv_relation *r, const struct patch_tap *tap,
                                  const struct patch_run *run)
{
    struct conv_piece piece = {.at = run->at};
    int64_t move = r->across.move, row = run->row * r->down.move + tap->down;
    int64_t column = run->column * move + tap->across;
    if (row < 0 || row >= r->down.in || column >= r->across.in)
        return piece;
    int64_t from = column < 0 ? (move - 1 - column) / move : 0, to = run->length;
    if (column + (to - 1) * move >= r->across.in) /* divisions are dear */
        to = (r->across.in - column + move - 1) / move;
    if (from >= to)
        return piece;
    piece.mask = (1u << to) - (1u << from);
    if (move == 2)
        piece.mask = spread(piece.mask);
    piece.from = (run->sample * r->in * r->down.in + row) * r->across.in + column;
    return piece;
}

int64_t patch_pieces(const struct conv_relation *relation, const struct patch_phase *phase,
                     const struct patch_tap *taps, int64_t lanes, int64_t first, int64_t count,
                     int64_t width, struct conv_piece *pieces)
{
    struct patch_run runs[PATCH_PIXELS];
    int64_t found = patch_runs(phase->rows, phase->columns, first, count, lanes, runs);
    int64_t empty = (width - count + lanes - 1) / lanes;
    for (int64_t k = 0; k < phase->count; k++) {
        for (int64_t i = 0; i < found; i++)
            *pieces++ = piece_of(relation, &taps[phase->first + k], &runs[i]);
        for (int64_t i = 0; i < empty; i++)
            *pieces++ = (struct conv_piece){.at = count + i * lanes};
    }
    return found + empty;
}
