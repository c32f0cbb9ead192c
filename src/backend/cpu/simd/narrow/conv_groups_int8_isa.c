/* conv_groups_int8_isa.c: convolutions of 8 bits in groups, depthwise ones above all, and their
 * row.
 *
 * A group has few inputs and outputs, so pixels are in lanes: 16 neighbouring ones of one output. A
 * word of an image has four neighbouring taps of one pixel; the word of weights that it meets is
 * broadcast. First a band of the source becomes such words, padding included, in the order of the
 * target's pixels. So the taps of neighbouring pixels are neighbouring words, also from row to row,
 * whatever the stride: rows of the source lie by their remainder of it. Then each output of the
 * group passes over the band, which stays in the cache, in tiles of OUTS × LINES sums.
 *
 * A 3 × 3 kernel takes three words a pixel, so three instructions with VNNI; a sum's way back to 8
 * bits takes longer. */
#include "backend/cpu/conv_relation.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/narrow/narrow_shared.h"
#include "backend/cpu/simd/narrow/vec_requantise.h"
#include "backend/cpu/simd/workspace.h"
#include "backend/cpu/team.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

#ifdef __AVX512VNNI__
enum { OUTS = 4, LINES = 4, PARTS = 1 };
typedef __m512i part, taps;
typedef struct {
    __m512i of[PARTS];
} pixels;
INLINE part part_set(int32_t value)
{
    return _mm512_set1_epi32(value);
}
INLINE void part_store(int32_t *to, part sum)
{
    _mm512_store_si512(to, sum);
}
INLINE taps taps_set(uint32_t word)
{
    return _mm512_set1_epi32((int32_t)word);
}
INLINE pixels pixels_load(const uint32_t *from)
{
    return (pixels){{_mm512_loadu_si512(from)}};
}
INLINE void dot(part *sum, pixels x, taps w)
{
    *sum = _mm512_dpbusd_epi32(*sum, x.of[0], w);
}
#elif defined(__AVX2__)
enum { PARTS = 2 };
typedef __m256i part;
INLINE part part_set(int32_t value)
{
    return _mm256_set1_epi32(value);
}
INLINE void part_store(int32_t *to, part sum)
{
    _mm256_store_si256((__m256i *)(void *)to, sum);
}
INLINE __m256i words_load(const uint32_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}
#ifdef __AVXVNNI__
enum { OUTS = 2, LINES = 2 };
typedef __m256i taps;
typedef struct {
    __m256i of[PARTS];
} pixels;
INLINE taps taps_set(uint32_t word)
{
    return _mm256_set1_epi32((int32_t)word);
}
INLINE pixels pixels_load(const uint32_t *from)
{
    return (pixels){{words_load(from), words_load(from + 8)}};
}
INLINE void dot(part *sum, pixels x, taps w)
{
    for (int h = 0; h < PARTS; h++)
        sum[h] = _mm256_dpbusd_avx_epi32(sum[h], x.of[h], w);
}
#else
enum { OUTS = 2, LINES = 2 };
typedef struct {
    __m256i even, odd; /* bytes, in 16 bits each (tile_int8_isa.c) */
} taps;
typedef struct {
    __m256i even[PARTS], odd[PARTS];
} pixels;
INLINE taps taps_set(uint32_t word)
{
    __m256i w = _mm256_set1_epi32((int32_t)word);
    return (taps){_mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8), _mm256_srai_epi16(w, 8)};
}
INLINE pixels pixels_load(const uint32_t *from)
{
    const __m256i low = _mm256_set1_epi16(0xFF);
    pixels x;
    for (int h = 0; h < PARTS; h++) {
        __m256i words = words_load(from + 8 * h);
        x.even[h] = _mm256_and_si256(words, low);
        x.odd[h] = _mm256_srli_epi16(words, 8);
    }
    return x;
}
INLINE void dot(part *sum, pixels x, taps w)
{
    for (int h = 0; h < PARTS; h++) {
        sum[h] = _mm256_add_epi32(sum[h], _mm256_madd_epi16(x.even[h], w.even));
        sum[h] = _mm256_add_epi32(sum[h], _mm256_madd_epi16(x.odd[h], w.odd));
    }
}
#endif
#else
enum { OUTS = 1, LINES = 1, PARTS = NARROW_LANES };
typedef int32_t part;
typedef struct {
    int8_t of[4];
} taps;
typedef struct {
    uint8_t of[PARTS][4];
} pixels;
INLINE part part_set(int32_t value)
{
    return value;
}
INLINE void part_store(int32_t *to, part sum)
{
    *to = sum;
}
INLINE taps taps_set(uint32_t word)
{
    taps w;
    memcpy(&w, &word, sizeof w);
    return w;
}
INLINE pixels pixels_load(const uint32_t *from)
{
    pixels x;
    memcpy(&x, from, sizeof x);
    return x;
}
INLINE void dot(part *sum, pixels x, taps w)
{
    for (int lane = 0; lane < PARTS; lane++)
        for (int k = 0; k < 4; k++)
            sum[lane] += x.of[lane][k] * w.of[k];
}
#endif

enum {
    PER_WORD = 4, /* taps */
    TILE_PIXELS = LINES * NARROW_LANES,
    PART_LANES = NARROW_LANES / PARTS,
    BAND_BYTES = 64 << 10, /* of an image of words; but … */
    BAND_REACHES = 4,      /* … so many times the rows that two bands share */
    LINE_SLACK = 64,       /* bytes behind a padded row that may be read */
    ROW_SLACK = 8,         /* words behind a plane that may be written */
};

struct groups {
    const struct call *call;
    struct conv_relation relation;
    int64_t across;       /* words of a row of taps */
    int64_t words;        /* of an output's taps */
    int64_t plane;        /* words of an image of one remainder, ROW_SLACK included */
    int64_t band, lines;  /* rows of the target; of the source, for each remainder */
    int64_t line_bytes;   /* of a padded row of the source, without its slack */
    int64_t member_bytes; /* of each thread's part of the workspace */
    int64_t *offsets;     /* [words]: from a pixel's first word */
    char *members;
};

/* A thread's part: words of the band, words of the group's weights, a padded row, one of padding.
 */
struct member {
    uint32_t *image, *weights;
    uint8_t *line, *blank;
};

static int64_t lay_out_member(const struct groups *groups, char *memory, struct member *out)
{
    const struct conv_relation *r = &groups->relation;
    const int64_t planes = r->in_group * groups->across * r->down.stride;
    uint64_t used = 0;
    out->image =
        workspace_take(memory, &used, planes * groups->plane + TILE_PIXELS, sizeof *out->image);
    out->weights =
        workspace_take(memory, &used, (r->out_group + OUTS) * groups->words, sizeof *out->weights);
    out->line = workspace_take(memory, &used, groups->line_bytes + LINE_SLACK, 1);
    out->blank = workspace_take(memory, &used, groups->line_bytes + LINE_SLACK, 1);
    return (int64_t)used;
}

static uint64_t lay_out(struct groups *groups, int threads, char *workspace)
{
    const struct conv_relation *r = &groups->relation;
    const struct conv_axis *down = &r->down, *across = &r->across;
    const int64_t reach = (down->kernel - 1) * down->dilation;
    uint64_t used = 0;
    struct member unused;
    groups->across = (across->kernel + PER_WORD - 1) / PER_WORD;
    groups->words = r->in_group * down->kernel * groups->across;
    int64_t row = r->in_group * groups->across * across->out * PER_WORD;
    int64_t most = BAND_BYTES / row / down->stride - reach / down->stride;
    int64_t least = BAND_REACHES * reach / down->stride + 1;
    groups->band = most > least ? most : least;
    groups->band = groups->band < down->out ? groups->band : down->out;
    groups->lines = groups->band + reach / down->stride;
    groups->plane = groups->lines * across->out + ROW_SLACK;
    groups->line_bytes =
        (across->out - 1) * across->stride + (PER_WORD * groups->across - 1) * across->dilation + 1;
    groups->member_bytes = lay_out_member(groups, NULL, &unused);
    groups->offsets = workspace_take(workspace, &used, groups->words, sizeof *groups->offsets);
    groups->members = workspace_take(workspace, &used, threads * groups->member_bytes, 1);
    return used;
}

static void list_offsets(const struct groups *groups)
{
    const struct conv_relation *r = &groups->relation;
    const int64_t stride = r->down.stride;
    int64_t *to = groups->offsets;
    for (int64_t i = 0; i < r->in_group; i++)
        for (int64_t ky = 0; ky < r->down.kernel; ky++)
            for (int64_t t = 0; t < groups->across; t++) {
                int64_t row = ky * r->down.dilation;
                *to++ = ((i * groups->across + t) * stride + row % stride) * groups->plane +
                        row / stride * r->across.out;
            }
}

/* to[block of OUTS][word][output] of the group's weights; taps and outputs beyond the last are 0.
 */
static void pack_weights(const struct groups *groups, int64_t group, uint32_t *to)
{
    const struct conv_relation *r = &groups->relation;
    const int64_t kernel = r->across.kernel, rows = r->in_group * r->down.kernel;
    const int8_t *w =
        (const int8_t *)groups->call->data[AT_conv_int8_w] + group * r->out_group * rows * kernel;
    for (int64_t o = 0; o < r->out_group; o += OUTS)
        for (int64_t row = 0; row < rows; row++)
            for (int64_t t = 0; t < kernel; t += PER_WORD)
                for (int64_t k = o; k < o + OUTS; k++, to++) {
                    int64_t have = kernel - t < PER_WORD ? kernel - t : PER_WORD;
                    *to = 0;
                    if (k < r->out_group)
                        memcpy(to, w + (k * rows + row) * kernel + t, (size_t)have);
                }
}

/* Words of neighbouring pixels: their bytes are `stride` apart, taps `dilation`. Up to ROW_SLACK of
 * them are written behind the last. */
static void line_words(const uint8_t *line, int64_t stride, int64_t dilation, int64_t count,
                       uint32_t *to)
{
#ifdef __AVX2__
    /* Four words of 16 bytes, and four of the 16 from the fifth word on. */
    if (3 * stride + 3 * dilation < 16) {
        uint8_t places[16];
        for (int64_t k = 0; k < 16; k++)
            places[k] = (uint8_t)(k / 4 * stride + k % 4 * dilation);
        const __m256i order =
            _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)places));
        for (int64_t q = 0; q < count; q += 8, line += 8 * stride) {
            __m128i low = _mm_loadu_si128((const __m128i *)(const void *)line);
            __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(line + 4 * stride));
            __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
            _mm256_storeu_si256((__m256i *)(void *)(to + q), _mm256_shuffle_epi8(both, order));
        }
        return;
    }
#endif
    for (int64_t q = 0; q < count; q++, line += stride)
        to[q] = (uint32_t)line[0] | (uint32_t)line[dilation] << 8 |
                (uint32_t)line[2 * dilation] << 16 | (uint32_t)line[3 * dilation] << 24;
}

/* A row of a plane, which may lie beyond it, with its padding. `line` has that at its sides. */
static const uint8_t *pad_line(const struct groups *groups, const uint8_t *plane, int64_t row,
                               const struct member *member)
{
    const struct conv_axis *across = &groups->relation.across;
    const int64_t left = groups->line_bytes - across->pad;
    if (row < 0 || row >= groups->relation.down.in || left <= 0)
        return member->blank;
    memcpy(member->line + across->pad, plane + row * across->in,
           (size_t)(left < across->in ? left : across->in));
    return member->line;
}

/* Words for the target's rows from `first` on, of which there are `rows`. */
static void build_band(const struct groups *groups, const uint8_t *x, int64_t first, int64_t rows,
                       const struct member *member)
{
    const struct conv_relation *r = &groups->relation;
    const struct conv_axis *down = &r->down, *across = &r->across;
    const int64_t all = (rows - 1) * down->stride + (down->kernel - 1) * down->dilation + 1;
    for (int64_t i = 0; i < r->in_group; i++)
        for (int64_t row = 0; row < all; row++) {
            const uint8_t *line = pad_line(groups, x + i * down->in * across->in,
                                           first * down->stride + row - down->pad, member);
            for (int64_t t = 0; t < groups->across; t++) {
                int64_t plane = (i * groups->across + t) * down->stride + row % down->stride;
                line_words(line + t * PER_WORD * across->dilation, across->stride, across->dilation,
                           across->out,
                           member->image + plane * groups->plane +
                               row / down->stride * across->out);
            }
        }
}

/* sums[output][pixel] of a tile, from the biases. */
INLINE void tile(const struct groups *groups, const uint32_t *image, const uint32_t *weights,
                 const int32_t *bias, int32_t *sums, const int outs, const int lines)
{
    part sum[OUTS * LINES * PARTS];
#pragma GCC unroll 4
    for (int o = 0; o < outs; o++)
#pragma GCC unroll 16
        for (int l = 0; l < lines * PARTS; l++)
            sum[o * lines * PARTS + l] = part_set(bias[o]);
    for (int64_t k = 0; k < groups->words; k++, weights += OUTS) {
        const uint32_t *x = image + groups->offsets[k];
        taps w[OUTS];
#pragma GCC unroll 4
        for (int o = 0; o < outs; o++)
            w[o] = taps_set(weights[o]);
#pragma GCC unroll 4
        for (int l = 0; l < lines; l++) {
            pixels some = pixels_load(x + l * NARROW_LANES);
#pragma GCC unroll 4
            for (int o = 0; o < outs; o++)
                dot(&sum[(o * lines + l) * PARTS], some, w[o]);
        }
    }
#pragma GCC unroll 16
    for (int k = 0; k < outs * lines * PARTS; k++)
        part_store(sums + k * PART_LANES, sum[k]);
}

/* The sums of one output's neighbouring pixels to their places. */
static void store(const struct call *call, const int32_t *sums, int64_t o, int64_t count,
                  int64_t at)
{
    const union attributes *attr = &call->op->attr;
    const uint8_t *table = call->data[AT_conv_int8_table];
    if (!call->data[AT_conv_int8_multiplier]) {
        memcpy((int32_t *)call->data[AT_conv_int8_y] + at, sums, (size_t)count * sizeof *sums);
        return;
    }
    const struct requantise_lanes lanes =
        requantise_lanes_all(((const int32_t *)call->data[AT_conv_int8_multiplier])[o],
                             ((const int32_t *)call->data[AT_conv_int8_shift])[o],
                             attr->conv_int8.zero, attr->conv_int8.low, attr->conv_int8.high);
    uint8_t bytes[TILE_PIXELS];
    for (int64_t k = 0; k < count; k += REQUANTISE_LANES)
        requantise_16(sums + k, &lanes, bytes + k);
    if (table)
        for (int64_t k = 0; k < count; k++)
            bytes[k] = table[bytes[k]];
    memcpy((uint8_t *)call->data[AT_conv_int8_y] + at, bytes, (size_t)count);
}

/* The group's outputs from `o` on, OUTS of them at most, for the band's pixels. */
static void multiply(const struct groups *groups, const struct member *member, int64_t first,
                     int64_t left, int64_t o, int64_t count, int64_t at)
{
    const int64_t image = groups->relation.down.out * groups->relation.across.out;
    const uint32_t *weights = member->weights + o * groups->words;
    const int outs = left < OUTS ? (int)left : OUTS;
    int32_t bias[OUTS] = {0};
    _Alignas(64) int32_t sums[OUTS * TILE_PIXELS];
    memcpy(bias, (const int32_t *)groups->call->data[AT_conv_int8_b] + first + o,
           (size_t)outs * sizeof *bias);
    for (int64_t p = 0, some; p < count; p += some) {
        const bool few = count - p <= NARROW_LANES;
        const int64_t width = few ? NARROW_LANES : TILE_PIXELS;
        some = count - p < width ? count - p : width;
        if (outs == 1 && few)
            tile(groups, member->image + p, weights, bias, sums, 1, 1);
        else if (outs == 1)
            tile(groups, member->image + p, weights, bias, sums, 1, LINES);
        else if (few)
            tile(groups, member->image + p, weights, bias, sums, OUTS, 1);
        else
            tile(groups, member->image + p, weights, bias, sums, OUTS, LINES);
        for (int k = 0; k < outs; k++)
            store(groups->call, sums + k * width, first + o + k, some, at + k * image + p);
    }
}

static void groups_member(void *context, int member, int members)
{
    const struct groups *groups = context;
    const struct conv_relation *r = &groups->relation;
    const int64_t source = r->in_group * r->down.in * r->across.in;
    const int64_t image = r->down.out * r->across.out;
    struct member own;
    long from, to;
    lay_out_member(groups, groups->members + member * groups->member_bytes, &own);
    memset(own.line, groups->call->op->attr.conv_int8.zero_x, (size_t)groups->line_bytes);
    memset(own.blank, groups->call->op->attr.conv_int8.zero_x, (size_t)groups->line_bytes);
    pool_share(r->batch * r->groups, 1, member, members, &from, &to);
    for (int64_t unit = from; unit < to; unit++) { /* a group of a sample */
        const int64_t first = unit % r->groups * r->out_group;
        pack_weights(groups, unit % r->groups, own.weights);
        for (int64_t p = 0; p < r->down.out; p += groups->band) {
            int64_t rows = r->down.out - p < groups->band ? r->down.out - p : groups->band;
            build_band(groups, (const uint8_t *)groups->call->data[AT_conv_int8_x] + unit * source,
                       p, rows, &own);
            for (int64_t o = 0; o < r->out_group; o += OUTS)
                multiply(groups, &own, first, r->out_group - o, o, rows * r->across.out,
                         (unit * r->out_group + o) * image + p * r->across.out);
        }
    }
}

static struct groups groups_of(const struct shape *x, const struct shape *w, const struct shape *y,
                               const union attributes *attr)
{
    return (struct groups){.relation = conv_relation_of(x, w, y, attr, false)};
}

static bool takes(const struct program *program, const struct op *op)
{
    const struct shape *x = &program->tensors[op_input(program, op, AT_conv_int8_x)].shape;
    const struct shape *w = &program->tensors[op_input(program, op, AT_conv_int8_w)].shape;
    return x->dim[1] != w->dim[1];
}

static uint64_t conv_workspace(const struct program *program, const struct op *op, int threads)
{
    struct groups groups = groups_of(&program->tensors[op_input(program, op, AT_conv_int8_x)].shape,
                                     &program->tensors[op_input(program, op, AT_conv_int8_w)].shape,
                                     &program->tensors[op_output(program, op, 0)].shape, &op->attr);
    return lay_out(&groups, threads, NULL);
}

static void run_conv_groups(const struct call *call)
{
    struct groups groups =
        groups_of(&call->tensors[AT_conv_int8_x]->shape, &call->tensors[AT_conv_int8_w]->shape,
                  &call->tensors[AT_conv_int8_y]->shape, &call->op->attr);
    const struct conv_relation *r = &groups.relation;
    groups.call = call;
    lay_out(&groups, pool_at_once(call->pool), call->workspace);
    list_offsets(&groups);
    int64_t sums = r->batch * r->out * r->down.out * r->across.out, units = r->batch * r->groups;
    pool_run(call->pool, team_for_flop(call->pool, 2 * sums * r->taps, units), groups_member,
             &groups);
}

static const struct kernel rows[] = {
    {.op = OP_conv_int8,
     .name = "conv_groups_int8_" ISA_NAME,
     .takes = takes,
     .workspace = conv_workspace,
     .run = run_conv_groups},
};

const struct kernel_list ISA(conv_groups_int8_list) = KERNEL_LIST(rows);
