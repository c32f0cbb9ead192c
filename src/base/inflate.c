/* inflate.c: see inflate.h.
 *
 * * Codes are looked up whole in a table of 2^15 entries, indexed by the next bits of the input. An
 * entry holds the symbol and the length of its code. A table is filled once per block, which is
 * cheap beside what a block holds. */
#include "base/inflate.h"

#include "base/memory.h"

#include <stdint.h>
#include <string.h>

enum {
    CODE_BITS = 15, /* of the longest code */
    LITERALS = 288,
    DISTANCES = 32,
    LENGTH_CODES = 19,
    END_OF_BLOCK = 256,
    TRAILER_BYTES = 8,
    WINDOW = 1 << 15, /* the longest distance */
};

struct huffman {
    uint16_t codes[1 << CODE_BITS]; /* symbol × 16 + bits, by the next bits; 0: no such code */
};

struct inflate {
    const char *name;
    const unsigned char *in;
    size_t in_length, in_next;
    uint64_t bits; /* taken from `in`, the next one lowest */
    int bit_count;
    unsigned char *out;
    size_t out_length, out_room, limit;
    inflate_look *look; /* NULL once it was asked */
    size_t member; /* where the current member's output begins: distances do not reach before */
    inflate_sink *sink; /* NULL: all of the output is kept */
    void *context;
    size_t sent, summed;    /* bytes of `out` that were handed on; that `crc` holds */
    uint32_t crc;           /* over the member so far … */
    uint64_t member_length; /* … and its length */
    uint32_t crc_table[256];
    struct huffman literals, distances;
};

static enum status refuse(const struct inflate *state, const char *found)
{
    FAIL(STATUS_INPUT, "%s: found %s at byte %zu of %zu, expected a complete gzip file",
         state->name, found, state->in_next, state->in_length);
}

/* At least `count` bits are there afterwards; behind the end of the input they are zeros, which
 * take_bits notices. */
static void fill_bits(struct inflate *state, int count)
{
    for (; state->bit_count < count && state->in_next < state->in_length; state->bit_count += 8)
        state->bits |= (uint64_t)state->in[state->in_next++] << state->bit_count;
}

static enum status take_bits(struct inflate *state, int count, unsigned *out)
{
    *out = 0;
    fill_bits(state, count);
    if (state->bit_count < count)
        return refuse(state, "the end");
    *out = (unsigned)(state->bits & ((1u << count) - 1));
    state->bits >>= count;
    state->bit_count -= count;
    return STATUS_OK;
}

static unsigned reverse(unsigned code, int bits)
{
    unsigned reversed = 0;
    for (int i = 0; i < bits; i++)
        reversed |= (code >> i & 1) << (bits - 1 - i);
    return reversed;
}

/* Canonical codes from their lengths (0: the symbol is not used). A set of codes may be incomplete,
 * as for a single distance; an over-full one is refused. */
static enum status make_codes(struct inflate *state, struct huffman *huffman,
                              const unsigned char *lengths, int count)
{
    int per_length[CODE_BITS + 1] = {0};
    unsigned next[CODE_BITS + 2] = {0};
    for (int i = 0; i < count; i++)
        per_length[lengths[i]]++;
    per_length[0] = 0;
    for (int bits = 1; bits <= CODE_BITS; bits++) {
        next[bits + 1] = (next[bits] + (unsigned)per_length[bits]) << 1;
        if (next[bits] + (unsigned)per_length[bits] > 1u << bits)
            return refuse(state, "more codes than there are");
    }
    memset(huffman->codes, 0, sizeof huffman->codes);
    for (int symbol = 0; symbol < count; symbol++) {
        int bits = lengths[symbol];
        if (!bits)
            continue;
        unsigned code = reverse(next[bits]++, bits);
        for (; code < 1u << CODE_BITS; code += 1u << bits)
            huffman->codes[code] = (uint16_t)(symbol << 4 | bits);
    }
    return STATUS_OK;
}

static enum status take_symbol(struct inflate *state, const struct huffman *huffman, unsigned *out)
{
    unsigned ignored;
    *out = 0;
    fill_bits(state, CODE_BITS);
    unsigned entry = huffman->codes[state->bits & ((1u << CODE_BITS) - 1)];
    if (!entry)
        return refuse(state, "an unknown code");
    *out = entry >> 4;
    return take_bits(state, (int)(entry & 15), &ignored);
}

/* Room for `count` more bytes and a NUL. */
static void sum_up(struct inflate *state)
{
    uint32_t crc = ~state->crc;
    for (size_t i = state->summed; i < state->out_length; i++)
        crc = crc >> 8 ^ state->crc_table[(crc ^ state->out[i]) & 0xFF];
    state->crc = ~crc;
    state->member_length += state->out_length - state->summed;
    state->summed = state->out_length;
}

/* Hands on what is new, and keeps as much as a distance can reach. */
static enum status hand_on(struct inflate *state)
{
    size_t keep = state->out_length < WINDOW ? state->out_length : WINDOW;
    size_t gone = state->out_length - keep;
    sum_up(state);
    TRY(state->sink(state->context, (const char *)state->out + state->sent,
                    state->out_length - state->sent));
    memmove(state->out, state->out + gone, keep);
    state->member -= state->member < gone ? state->member : gone;
    state->out_length = state->sent = state->summed = keep;
    return STATUS_OK;
}

static enum status make_room(struct inflate *state, size_t count)
{
    if (state->sink && state->out_length - state->sent + count > INFLATE_PIECE)
        TRY(hand_on(state));
    if (state->look && state->out_length >= INFLATE_BEGIN) {
        TRY(state->look(state->name, state->out, state->out_length, &state->limit));
        state->look = NULL;
    }
    if (state->out_length > state->limit || count > state->limit - state->out_length)
        FAIL(STATUS_INPUT, "%s: found more than %zu bytes when unpacked, expected at most that",
             state->name, state->limit);
    size_t needed = state->out_length + count + 1;
    if (needed <= state->out_room)
        return STATUS_OK;
    size_t room = needed < 4096 ? 4096 : needed + needed / 2;
    if (room > state->limit && state->limit >= needed - 1)
        room = state->limit + 1;
    unsigned char *out;
    NEED(out = mem_grow(state->out, room, 1));
    state->out = out;
    state->out_room = room;
    return STATUS_OK;
}

static enum status copy_stored(struct inflate *state)
{
    unsigned ignored, length, complement;
    TRY(take_bits(state, state->bit_count % 8, &ignored));
    TRY(take_bits(state, 16, &length));
    TRY(take_bits(state, 16, &complement));
    if (length != (~complement & 0xFFFF))
        return refuse(state, "a stored block of contradicting lengths");
    TRY(make_room(state, length));
    for (; length > 0; length--) {
        unsigned byte;
        TRY(take_bits(state, 8, &byte));
        state->out[state->out_length++] = (unsigned char)byte;
    }
    return STATUS_OK;
}

/* Copies what was put out before; it may overlap what is being put out. */
static enum status copy_match(struct inflate *state, unsigned symbol)
{
    static const unsigned short length_base[] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                                 15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                                 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const unsigned char length_extra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    enum { MATCHES = sizeof length_extra, DISTANCE_CODES = 30 };
    unsigned length, code, extra;
    if (symbol - (END_OF_BLOCK + 1) >= MATCHES)
        return refuse(state, "an unknown length");
    symbol -= END_OF_BLOCK + 1;
    TRY(take_bits(state, length_extra[symbol], &extra));
    length = length_base[symbol] + extra;
    TRY(take_symbol(state, &state->distances, &code));
    if (code >= DISTANCE_CODES)
        return refuse(state, "an unknown distance");
    int extra_bits = code < 2 ? 0 : (int)code / 2 - 1;
    TRY(take_bits(state, extra_bits, &extra));
    size_t distance = code < 2 ? code + 1 : ((2u + code % 2) << extra_bits) + 1u;
    distance += extra;
    if (distance > state->out_length - state->member)
        return refuse(state, "a distance to before the beginning");
    TRY(make_room(state, length));
    unsigned char *to = state->out + state->out_length;
    for (unsigned i = 0; i < length; i++)
        to[i] = to[(ptrdiff_t)i - (ptrdiff_t)distance];
    state->out_length += length;
    return STATUS_OK;
}

static enum status copy_coded(struct inflate *state)
{
    for (;;) {
        unsigned symbol;
        TRY(take_symbol(state, &state->literals, &symbol));
        if (symbol == END_OF_BLOCK)
            return STATUS_OK;
        if (symbol > END_OF_BLOCK) {
            TRY(copy_match(state, symbol));
            continue;
        }
        TRY(make_room(state, 1));
        state->out[state->out_length++] = (unsigned char)symbol;
    }
}

static enum status make_fixed_codes(struct inflate *state)
{
    unsigned char lengths[LITERALS];
    memset(lengths, 8, 144);
    memset(lengths + 144, 9, 112);
    memset(lengths + 256, 7, 24);
    memset(lengths + 280, 8, 8);
    TRY(make_codes(state, &state->literals, lengths, LITERALS));
    memset(lengths, 5, DISTANCES);
    return make_codes(state, &state->distances, lengths, DISTANCES);
}

/* The lengths of both sets of codes, themselves coded (with state->literals). */
static enum status take_lengths(struct inflate *state, unsigned char *lengths, unsigned total)
{
    static const struct {
        int bits, base;
    } repeats[] = {{2, 3}, {3, 3}, {7, 11}}; /* symbols 16, 17, 18 */
    for (unsigned at = 0; at < total;) {
        unsigned symbol, extra;
        TRY(take_symbol(state, &state->literals, &symbol));
        if (symbol < 16) {
            lengths[at++] = (unsigned char)symbol;
            continue;
        }
        TRY(take_bits(state, repeats[symbol - 16].bits, &extra));
        unsigned times = extra + (unsigned)repeats[symbol - 16].base;
        if (times > total - at || (symbol == 16 && at == 0))
            return refuse(state, "a repetition that does not fit");
        memset(lengths + at, symbol == 16 ? lengths[at - 1] : 0, times);
        at += times;
    }
    return STATUS_OK;
}

static enum status make_dynamic_codes(struct inflate *state)
{
    static const unsigned char order[LENGTH_CODES] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    unsigned char lengths[LITERALS + DISTANCES] = {0};
    unsigned literals, distances, codes, length;
    TRY(take_bits(state, 5, &literals));
    TRY(take_bits(state, 5, &distances));
    TRY(take_bits(state, 4, &codes));
    literals += 257;
    distances += 1;
    if (literals > LITERALS)
        return refuse(state, "more codes than there are");
    for (unsigned i = 0; i < codes + 4; i++) {
        TRY(take_bits(state, 3, &length));
        lengths[order[i]] = (unsigned char)length;
    }
    TRY(make_codes(state, &state->literals, lengths, LENGTH_CODES));
    memset(lengths, 0, sizeof lengths);
    TRY(take_lengths(state, lengths, literals + distances));
    if (!lengths[END_OF_BLOCK])
        return refuse(state, "a block that cannot end");
    TRY(make_codes(state, &state->literals, lengths, (int)literals));
    return make_codes(state, &state->distances, lengths + literals, (int)distances);
}

static enum status unpack_blocks(struct inflate *state)
{
    unsigned last = 0, kind;
    while (!last) {
        TRY(take_bits(state, 1, &last));
        TRY(take_bits(state, 2, &kind));
        switch (kind) {
        case 0: TRY(copy_stored(state)); continue;
        case 1: TRY(make_fixed_codes(state)); break;
        case 2: TRY(make_dynamic_codes(state)); break;
        default: return refuse(state, "a block of unknown kind");
        }
        TRY(copy_coded(state));
    }
    state->in_next -= (size_t)state->bit_count / 8; /* whole bytes that were taken too many */
    state->bits = 0;
    state->bit_count = 0;
    return STATUS_OK;
}

static void make_crc_table(struct inflate *state)
{
    for (uint32_t i = 0; i < 256; i++) {
        state->crc_table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            state->crc_table[i] =
                state->crc_table[i] >> 1 ^ (state->crc_table[i] & 1 ? 0xEDB88320u : 0);
    }
}

static uint32_t read_u32(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static enum status skip_text(struct inflate *state)
{
    const unsigned char *from = state->in + state->in_next;
    const unsigned char *nul = memchr(from, 0, state->in_length - state->in_next);
    if (!nul)
        return refuse(state, "a header that does not end");
    state->in_next += (size_t)(nul - from) + 1;
    return STATUS_OK;
}

static enum status skip_bytes(struct inflate *state, size_t count)
{
    if (count > state->in_length - state->in_next)
        return refuse(state, "the end");
    state->in_next += count;
    return STATUS_OK;
}

static enum status skip_header(struct inflate *state)
{
    enum { HEADER_CHECK = 2, EXTRA = 4, NAME = 8, COMMENT = 16, RESERVED = 0xE0, DEFLATE = 8 };
    const unsigned char *header = state->in + state->in_next;
    size_t left = state->in_length - state->in_next;
    if (!inflate_is_gzip(header, left) || left < 10)
        return refuse(state, "no gzip header");
    if (header[2] != DEFLATE || header[3] & RESERVED)
        return refuse(state, "an unknown way of packing");
    TRY(skip_bytes(state, 10));
    if (header[3] & EXTRA) {
        const unsigned char *size = state->in + state->in_next;
        TRY(skip_bytes(state, 2));
        TRY(skip_bytes(state, (size_t)size[0] | (size_t)size[1] << 8));
    }
    if (header[3] & NAME)
        TRY(skip_text(state));
    if (header[3] & COMMENT)
        TRY(skip_text(state));
    return header[3] & HEADER_CHECK ? skip_bytes(state, 2) : STATUS_OK;
}

static enum status unpack_member(struct inflate *state)
{
    state->member = state->summed = state->out_length;
    state->crc = 0;
    state->member_length = 0;
    TRY(skip_header(state));
    TRY(unpack_blocks(state));
    const unsigned char *trailer = state->in + state->in_next;
    TRY(skip_bytes(state, TRAILER_BYTES));
    sum_up(state);
    if (state->crc != read_u32(trailer))
        FAIL(STATUS_INPUT, "%s: found the checksum %08x, expected %08x: the file is damaged",
             state->name, state->crc, read_u32(trailer));
    if ((uint32_t)state->member_length != read_u32(trailer + 4))
        FAIL(STATUS_INPUT, "%s: found %llu bytes when unpacked, expected %u", state->name,
             (unsigned long long)state->member_length, read_u32(trailer + 4));
    return STATUS_OK;
}

bool inflate_is_gzip(const void *bytes, size_t length)
{
    return length >= 2 && !memcmp(bytes, "\x1F\x8B", 2);
}

/* `state` is zeroed but for what says where the output goes. */
static enum status unpack(struct inflate *state, const char *name, const void *bytes, size_t length)
{
    enum status status;
    state->name = name;
    state->in = bytes;
    state->in_length = length;
    make_crc_table(state);
    do
        status = unpack_member(state);
    while (status == STATUS_OK && state->in_next < length);
    return status == STATUS_OK ? make_room(state, 0) : status;
}

enum status inflate_gzip(const char *name, const void *bytes, size_t length, size_t limit,
                         inflate_look *look, unsigned char **out, size_t *out_length)
{
    struct inflate *state;
    NEED(state = mem_alloc(sizeof *state));
    state->limit = limit;
    state->look = look;
    enum status status = unpack(state, name, bytes, length);
    if (status == STATUS_OK) {
        state->out[state->out_length] = 0;
        *out = state->out;
        *out_length = state->out_length;
    } else {
        mem_free(state->out);
    }
    mem_free(state);
    return status;
}

enum status inflate_pieces(const char *name, const void *bytes, size_t length, inflate_sink *sink,
                           void *context)
{
    struct inflate *state;
    NEED(state = mem_alloc(sizeof *state));
    state->limit = SIZE_MAX - 1;
    state->sink = sink;
    state->context = context;
    enum status status = unpack(state, name, bytes, length);
    if (status == STATUS_OK)
        status = hand_on(state);
    mem_free(state->out);
    mem_free(state);
    return status;
}
