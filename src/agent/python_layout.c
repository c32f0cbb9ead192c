/* python_layout.c: see python_layout.h. Offsets are those of the structures in
 * Include/internal/pycore_{runtime,interp,frame}.h and Include/cpython/{pystate,code}.h. */
#include "agent/python_layout.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OWNED_BY_C = 3, VERSION_3_13 = 0x030d };

static const struct python_layout known[] = {
    {.version = 0x030b,
     .runtime_interpreters = 40,
     .interpreter_next = 0,
     .interpreter_threads = 16,
     .thread_next = 8,
     .thread_native_id = 160,
     .thread_frame = 56,
     .frame_indirect = true,
     .cframe_current = 8,
     .frame_code = 32,
     .frame_previous = 48,
     .frame_instruction = 56,
     .frame_owner = 69,
     .frame_entry = 68,
     .code_name = 128, /* the qualified one */
     .code_file = 112,
     .code_table = 136,
     .code_first_line = 72,
     .code_instructions = 184,
     .ascii_bytes = 48,
     .compact_bytes = 72},
    {.version = 0x030c,
     .runtime_interpreters = 40,
     .interpreter_next = 0,
     .interpreter_threads = 72,
     .thread_next = 8,
     .thread_native_id = 144,
     .thread_frame = 56,
     .frame_indirect = true,
     .cframe_current = 0,
     .frame_code = 0,
     .frame_previous = 8,
     .frame_instruction = 56,
     .frame_owner = 70,
     .code_name = 128,
     .code_file = 112,
     .code_table = 136,
     .code_first_line = 68,
     .code_instructions = 192,
     .ascii_bytes = 40,
     .compact_bytes = 56},
};

enum { NOWHERE = 4096 }; /* nothing is mapped below */

bool python_read(pid_t process, uint64_t address, void *to, size_t bytes)
{
    if (!process && address >= NOWHERE)
        memcpy(to, (const void *)(uintptr_t)address, bytes);
    if (!process)
        return address >= NOWHERE;
    struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)address, bytes};
    return process_vm_readv(process, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

static uint64_t word_at(const unsigned char *bytes, size_t offset)
{
    uint64_t word;
    memcpy(&word, bytes + offset, sizeof word);
    return word;
}

static bool read_word(pid_t process, uint64_t address, uint64_t *word)
{
    return python_read(process, address, word, sizeof *word);
}

/* The first part of _Py_DebugOffsets of 3.13, which stands at the start of its runtime. */
struct published {
    char cookie[8];
    uint64_t version, free_threaded;
    uint64_t runtime_size, finalizing, interpreters_head;
    uint64_t interpreter_size, id, next, threads_head, gc, modules, sysdict, builtins, gil[5];
    uint64_t thread_size, thread_prev, thread_next, thread_interp, current_frame, thread_id,
        native_thread_id, datastack, thread_status;
    uint64_t frame_size, previous, executable, instr_ptr, localsplus, owner;
    uint64_t code_size, filename, name, qualname, linetable, firstlineno, argcount, names, kinds,
        instructions;
};

/* Of a frame and of a code object so many bytes are read at once. */
enum { FRAME_BYTES = 80, CODE_BYTES = 144, WORD = 8 };

static bool layout_fits(const struct published *said)
{
    const uint64_t in_frame[] = {said->executable, said->previous, said->instr_ptr, said->owner};
    const uint64_t in_code[] = {said->qualname, said->filename, said->linetable, said->firstlineno};
    const uint64_t elsewhere[] = {said->interpreters_head, said->next,          said->threads_head,
                                  said->thread_next,       said->current_frame, said->instructions,
                                  said->native_thread_id};
    for (size_t i = 0; i < sizeof in_frame / sizeof *in_frame; i++)
        if (in_frame[i] > FRAME_BYTES - WORD || in_code[i] > CODE_BYTES - WORD)
            return false;
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (elsewhere[i] > UINT16_MAX)
            return false;
    return true;
}

static bool layout_published(pid_t process, uint64_t runtime, struct python_layout *layout)
{
    struct published said;
    if (!runtime || !python_read(process, runtime, &said, sizeof said) ||
        memcmp(said.cookie, "xdebugpy", sizeof said.cookie) != 0 || said.free_threaded ||
        !layout_fits(&said))
        return false;
    *layout = (struct python_layout){.version = VERSION_3_13,
                                     .runtime_interpreters = (uint16_t)said.interpreters_head,
                                     .interpreter_next = (uint16_t)said.next,
                                     .interpreter_threads = (uint16_t)said.threads_head,
                                     .thread_next = (uint16_t)said.thread_next,
                                     .thread_native_id = (uint16_t)said.native_thread_id,
                                     .thread_frame = (uint16_t)said.current_frame,
                                     .frame_code = (uint16_t)said.executable,
                                     .frame_previous = (uint16_t)said.previous,
                                     .frame_instruction = (uint16_t)said.instr_ptr,
                                     .frame_owner = (uint16_t)said.owner,
                                     .code_name = (uint16_t)said.qualname,
                                     .code_file = (uint16_t)said.filename,
                                     .code_table = (uint16_t)said.linetable,
                                     .code_first_line = (uint16_t)said.firstlineno,
                                     .code_instructions = (uint16_t)said.instructions,
                                     .ascii_bytes = 40,
                                     .compact_bytes = 56};
    return true;
}

bool python_layout_find(uint32_t version, pid_t process, uint64_t runtime,
                        struct python_layout *layout)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].version == version >> 16) {
            *layout = known[i];
            return true;
        }
    return version >> 16 == VERSION_3_13 && layout_published(process, runtime, layout);
}

/* The code object of one frame and the frame before it, which the system reads in one call. Without
 * a frame before, its bytes stay 0. */
static bool read_both(const struct python_place *place, uint64_t code, unsigned char *code_bytes,
                      uint64_t previous, unsigned char *frame_bytes)
{
    struct iovec here[2] = {{code_bytes, CODE_BYTES}, {frame_bytes, FRAME_BYTES}};
    struct iovec there[2] = {{(void *)(uintptr_t)code, CODE_BYTES},
                             {(void *)(uintptr_t)previous, FRAME_BYTES}};
    memset(frame_bytes, 0, FRAME_BYTES);
    if (!place->process)
        return python_read(0, code, code_bytes, CODE_BYTES) &&
               (!previous || python_read(0, previous, frame_bytes, FRAME_BYTES));
    ssize_t got =
        process_vm_readv(place->process, here, previous ? 2 : 1, there, previous ? 2 : 1, 0);
    return got == CODE_BYTES + (previous ? FRAME_BYTES : 0);
}

/* Is it a code object? Its type is the second word of every object. */
static bool is_code(const struct python_place *place, const unsigned char *code)
{
    return word_at(code, WORD) == place->code_type;
}

static void fill_frame(const struct python_layout *layout, uint64_t code,
                       const unsigned char *bytes, uint64_t instruction, struct python_frame *out)
{
    uint64_t start = code + layout->code_instructions;
    memcpy(&out->first_line, bytes + layout->code_first_line, sizeof out->first_line);
    out->code = code;
    out->name = word_at(bytes, layout->code_name);
    out->file = word_at(bytes, layout->code_file);
    out->table = word_at(bytes, layout->code_table);
    out->instruction = instruction > start ? (uint32_t)(instruction - start) : 0;
    out->entry = false;
}

static bool first_frame(const struct python_place *place, uint64_t thread_state, uint64_t *frame)
{
    const struct python_layout *layout = &place->layout;
    if (!read_word(place->process, thread_state + layout->thread_frame, frame))
        return false;
    return !layout->frame_indirect || !*frame ||
           read_word(place->process, *frame + layout->cframe_current, frame);
}

size_t python_walk(const struct python_place *place, uint64_t thread_state,
                   struct python_frame *frames, size_t most, bool *torn, bool *cut)
{
    const struct python_layout *layout = &place->layout;
    unsigned char frame[FRAME_BYTES], next[FRAME_BYTES], code[CODE_BYTES];
    uint64_t address;
    size_t count = 0;
    *cut = false;
    *torn = !first_frame(place, thread_state, &address) ||
            (address && !python_read(place->process, address, frame, sizeof frame));
    while (!*torn && address) {
        uint64_t executable = word_at(frame, layout->frame_code) & ~(uint64_t)7;
        uint64_t previous = word_at(frame, layout->frame_previous);
        *torn = !read_both(place, executable, code, previous, next);
        if (*torn)
            break;
        bool between = !layout->frame_entry && frame[layout->frame_owner] == OWNED_BY_C;
        if (between && count)
            frames[count - 1].entry = true;
        *torn = !between && !is_code(place, code);
        *cut = count == most;
        if (*torn || *cut)
            break;
        if (!between) {
            fill_frame(layout, executable, code, word_at(frame, layout->frame_instruction),
                       &frames[count]);
            frames[count++].entry = layout->frame_entry && frame[layout->frame_entry];
        }
        address = previous;
        memcpy(frame, next, sizeof frame);
    }
    return count;
}

bool python_innermost(const struct python_place *place, uint64_t thread_state, uint64_t seen[3])
{
    unsigned char frame[FRAME_BYTES];
    if (!first_frame(place, thread_state, &seen[0]) || !seen[0] ||
        !python_read(place->process, seen[0], frame, sizeof frame))
        return false;
    seen[1] = word_at(frame, place->layout.frame_code);
    seen[2] = word_at(frame, place->layout.frame_instruction);
    return true;
}

uint64_t python_find_thread(const struct python_place *place, pid_t thread)
{
    enum { MOST = 4096 }; /* a chain that is changed under our hands may have no end */
    const struct python_layout *layout = &place->layout;
    uint64_t interpreter = 0, state = 0, number = 0;
    int left = MOST;
    if (!read_word(place->process, place->runtime + layout->runtime_interpreters, &interpreter))
        return 0;
    for (; interpreter && left > 0; left--) {
        if (!read_word(place->process, interpreter + layout->interpreter_threads, &state))
            return 0;
        for (; state && left > 0; left--) {
            if (!read_word(place->process, state + layout->thread_native_id, &number))
                return 0;
            if (number == (uint64_t)thread)
                return state;
            if (!read_word(place->process, state + layout->thread_next, &state))
                return 0;
        }
        if (!read_word(place->process, interpreter + layout->interpreter_next, &interpreter))
            return 0;
    }
    return 0;
}

static size_t add_utf8(char *to, size_t at, size_t room, uint32_t c)
{
    enum { SIX = 6, LOW = 0x3f };
    int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint32_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    if (at + (size_t)more >= room)
        return at;
    to[at++] = (char)(lead[more] | c >> (SIX * more));
    for (int i = more - 1; i >= 0; i--)
        to[at++] = (char)(0x80 | (c >> (SIX * i) & LOW));
    return at;
}

/* Characters of 1, 2 or 4 bytes. */
static size_t text_wide(const struct python_place *place, uint64_t from, size_t length, size_t kind,
                        char *to, size_t room)
{
    unsigned char bytes[1024];
    size_t at = 0;
    if (length > sizeof bytes / kind)
        length = sizeof bytes / kind;
    if (!python_read(place->process, from, bytes, length * kind))
        return 0;
    for (size_t i = 0; i < length; i++) {
        uint32_t c = 0;
        memcpy(&c, bytes + i * kind, kind);
        at = add_utf8(to, at, room, c);
    }
    return at;
}

size_t python_text(const struct python_place *place, uint64_t object, char *to, size_t room)
{
    enum { HEAD = 40, LENGTH = 16, STATE = 32 };
    unsigned char head[HEAD];
    uint32_t state;
    if (!python_read(place->process, object, head, sizeof head))
        return 0;
    memcpy(&state, head + STATE, sizeof state);
    size_t length = word_at(head, LENGTH), kind = state >> 2 & 7;
    bool compact = state >> 5 & 1, ascii = state >> 6 & 1;
    if (!compact || (kind != 1 && kind != 2 && kind != 4))
        return 0;
    if (!ascii)
        return text_wide(place, object + place->layout.compact_bytes, length, kind, to, room);
    length = length < room ? length : room;
    return python_read(place->process, object + place->layout.ascii_bytes, to, length) ? length : 0;
}

size_t python_bytes(const struct python_place *place, uint64_t object, void *to, size_t room)
{
    enum { SIZE = 16, BYTES = 32 };
    uint64_t length;
    if (!read_word(place->process, object + SIZE, &length) || length > room ||
        !python_read(place->process, object + BYTES, to, length))
        return 0;
    return length;
}

uint64_t python_key(const struct python_frame *frame)
{
    static const uint64_t spread = 0x9e3779b97f4a7c15;
    const uint64_t parts[] = {frame->code, frame->name, frame->file, frame->table,
                              (uint64_t)frame->first_line};
    uint64_t key = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        key = (key ^ parts[i]) * spread;
        key ^= key >> 29;
    }
    return key ? key : 1;
}

/* The next number of six bits a byte, the lowest first; *at moves on. */
static uint32_t table_number(const unsigned char *table, size_t bytes, size_t *at)
{
    uint32_t number = 0;
    for (int shift = 0; *at < bytes && shift < 30; shift += 6) {
        unsigned char byte = table[(*at)++];
        number |= (uint32_t)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return number;
}

static int32_t table_signed(const unsigned char *table, size_t bytes, size_t *at)
{
    uint32_t number = table_number(table, bytes, at);
    return number & 1 ? -(int32_t)(number >> 1) : (int32_t)(number >> 1);
}

/* How a location is written: the top four bits of its first byte. */
enum { LINE_ONE = 11, LINE_TWO = 12, LINE_ALONE = 13, LINE_LONG = 14, LINE_NONE = 15 };

/* By how many lines the entry moves on; *at is behind its first byte. */
static int32_t entry_lines(unsigned kind, const unsigned char *table, size_t bytes, size_t *at)
{
    if (kind == LINE_ALONE || kind == LINE_LONG)
        return table_signed(table, bytes, at);
    return kind == LINE_ONE ? 1 : kind == LINE_TWO ? 2 : 0;
}

int32_t python_line(const unsigned char *table, size_t bytes, int32_t first_line,
                    uint32_t instruction)
{
    enum { UNIT = 2 };
    int32_t line = first_line;
    uint32_t place = 0;
    for (size_t at = 0; at < bytes;) {
        unsigned kind = table[at] >> 3 & 15;
        uint32_t length = (uint32_t)(table[at] & 7) + 1;
        at++;
        line += entry_lines(kind, table, bytes, &at);
        place += length * UNIT;
        if (instruction < place)
            return kind == LINE_NONE ? 0 : line;
        while (at < bytes && !(table[at] & 128)) /* the columns: only first bytes have bit 7 */
            at++;
    }
    return 0;
}
