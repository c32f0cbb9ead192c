/* python_layout.c: see python_layout.h. Offsets are those of the structures in
 * Include/internal/pycore_{runtime,interp,frame}.h and Include/cpython/{pystate,code}.h. */
#include "agent/python_layout.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OWNED_BY_C = 3, VERSION_3_13 = 0x030d, VERSION_3_14 = 0x030e, TEXT_SHIFT = 2 };

/* Where glibc keeps a thread's number of the system in what pthread_t points to. */
#if defined(__x86_64__)
enum { PTHREAD_ID = 720 };
#else
enum { PTHREAD_ID = 208 };
#endif

/* 3.8 to 3.10: frames are objects, one for each call. */
#define OLD_LAYOUT(minor, instruction, unit, table)                                                \
    {                                                                                              \
        .version = 0x0300 | (minor), .runtime_interpreters = 32, .interpreter_next = 0,            \
        .interpreter_threads = 8, .thread_next = 8, .thread_native_id = 176, .thread_frame = 24,   \
        .frame_code = 32, .frame_previous = 24, .frame_instruction = (instruction),                \
        .code_name = 112, .code_file = 104, .code_table = 120, .code_first_line = 40,              \
        .ascii_bytes = 48, .compact_bytes = 72, .text_shift = TEXT_SHIFT, .lines = (table),        \
        .instruction_unit = (unit), .entries = true, .pthread_id = PTHREAD_ID                      \
    }

static const struct python_layout known[] = {
    OLD_LAYOUT(8, 104, 1, PYTHON_LINES_OLD),
    OLD_LAYOUT(9, 104, 1, PYTHON_LINES_OLD),
    OLD_LAYOUT(10, 96, 2, PYTHON_LINES_3_10),
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
     .compact_bytes = 72,
     .text_shift = TEXT_SHIFT},
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
     .compact_bytes = 56,
     .text_shift = TEXT_SHIFT},
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

/* The first part of _Py_DebugOffsets, which stands at the start of the runtime. 3.14 has more
 * fields of interpreters and frames, behind those that are needed. */
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
enum { MORE_OF_INTERPRETERS = 3, MORE_OF_FRAMES = 2 /* words, of 3.14 */ };

static bool read_published(uint32_t version, pid_t process, uint64_t runtime,
                           struct published *said)
{
    const size_t thread = offsetof(struct published, thread_size);
    const size_t code = offsetof(struct published, code_size);
    unsigned char bytes[sizeof *said + (MORE_OF_INTERPRETERS + MORE_OF_FRAMES) * sizeof(uint64_t)];
    const bool more = version >= VERSION_3_14;
    const size_t first = more ? MORE_OF_INTERPRETERS * sizeof(uint64_t) : 0;
    const size_t second = first + (more ? MORE_OF_FRAMES * sizeof(uint64_t) : 0);
    if (!runtime || !python_read(process, runtime, bytes, sizeof *said + second))
        return false;
    memcpy(said, bytes, sizeof *said);
    memcpy((unsigned char *)said + thread, bytes + thread + first, code - thread);
    memcpy((unsigned char *)said + code, bytes + code + second, sizeof *said - code);
    return memcmp(said->cookie, "xdebugpy", sizeof said->cookie) == 0;
}

/* Of a frame and of a code object so many bytes are read at once. */
enum { FRAME_BYTES = 80, CODE_BYTES = 144, WORD = 8 };
/* Old frames are longer, and end where no page ends. */
enum { OLD_FRAME_BYTES = 112 };

static size_t frame_bytes(const struct python_layout *layout)
{
    return layout->entries ? OLD_FRAME_BYTES : FRAME_BYTES;
}

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

static bool layout_published(uint32_t version, pid_t process, uint64_t runtime,
                             struct python_layout *layout)
{
    enum { INTERNED_3_14 = 16 }; /* bits */
    struct published said;
    if (!read_published(version, process, runtime, &said) || said.version >> 16 != version ||
        said.free_threaded || !layout_fits(&said))
        return false;
    *layout =
        (struct python_layout){.version = version,
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
                               .compact_bytes = 56,
                               .text_shift = version >= VERSION_3_14 ? INTERNED_3_14 : TEXT_SHIFT};
    return true;
}

uint32_t python_version(void)
{
    enum { MAJOR = 24, MINOR = 16 };
    const unsigned long *number = dlsym(RTLD_DEFAULT, "Py_Version"); /* since 3.11 */
    const char *(*text)(void) = NULL;
    char *rest;
    *(void **)(void *)&text = dlsym(RTLD_DEFAULT, "Py_GetVersion");
    if (number || !text)
        return number ? (uint32_t)*number : 0;
    const unsigned long major = strtoul(text(), &rest, 10);
    const unsigned long minor = *rest == '.' ? strtoul(rest + 1, NULL, 10) : 0;
    return (uint32_t)(major << MAJOR | (minor & 255) << MINOR);
}

bool python_layout_find(uint32_t version, pid_t process, uint64_t runtime,
                        struct python_layout *layout)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].version == version >> 16) {
            *layout = known[i];
            return true;
        }
    version >>= 16;
    return (version == VERSION_3_13 || version == VERSION_3_14) &&
           layout_published(version, process, runtime, layout);
}

/* The code object of one frame and the frame before it, which the system reads in one call. Without
 * a frame before, its bytes stay 0. */
static bool read_both(const struct python_place *place, uint64_t code, unsigned char *code_bytes,
                      uint64_t previous, unsigned char *frame)
{
    const size_t bytes = frame_bytes(&place->layout);
    struct iovec here[2] = {{code_bytes, CODE_BYTES}, {frame, bytes}};
    struct iovec there[2] = {{(void *)(uintptr_t)code, CODE_BYTES},
                             {(void *)(uintptr_t)previous, bytes}};
    memset(frame, 0, bytes);
    if (!place->process)
        return python_read(0, code, code_bytes, CODE_BYTES) &&
               (!previous || python_read(0, previous, frame, bytes));
    ssize_t got =
        process_vm_readv(place->process, here, previous ? 2 : 1, there, previous ? 2 : 1, 0);
    return got == (ssize_t)(CODE_BYTES + (previous ? bytes : 0));
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
    if (layout->instruction_unit) { /* -1 before the first */
        const int32_t at = (int32_t)(uint32_t)instruction;
        start = 0;
        instruction = at > 0 ? (uint64_t)at * layout->instruction_unit : 0;
    }
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
    unsigned char frame[OLD_FRAME_BYTES], next[OLD_FRAME_BYTES], code[CODE_BYTES];
    const size_t bytes = frame_bytes(layout);
    uint64_t address;
    size_t count = 0;
    *cut = false;
    *torn = !first_frame(place, thread_state, &address) ||
            (address && !python_read(place->process, address, frame, bytes));
    while (!*torn && address) {
        uint64_t executable = word_at(frame, layout->frame_code) & ~(uint64_t)7;
        uint64_t previous = word_at(frame, layout->frame_previous);
        *torn = !read_both(place, executable, code, previous, next);
        if (*torn)
            break;
        bool between =
            !layout->frame_entry && !layout->entries && frame[layout->frame_owner] >= OWNED_BY_C;
        if (between && count)
            frames[count - 1].entry = true;
        *torn = !between && !is_code(place, code);
        *cut = count == most;
        if (*torn || *cut)
            break;
        if (!between) {
            fill_frame(layout, executable, code, word_at(frame, layout->frame_instruction),
                       &frames[count]);
            frames[count++].entry =
                layout->entries || (layout->frame_entry && frame[layout->frame_entry]);
        }
        address = previous;
        memcpy(frame, next, bytes);
    }
    return count;
}

bool python_innermost(const struct python_place *place, uint64_t thread_state, uint64_t seen[3])
{
    unsigned char frame[OLD_FRAME_BYTES];
    if (!first_frame(place, thread_state, &seen[0]) || !seen[0] ||
        !python_read(place->process, seen[0], frame, frame_bytes(&place->layout)))
        return false;
    seen[1] = word_at(frame, place->layout.frame_code);
    seen[2] = word_at(frame, place->layout.frame_instruction);
    return true;
}

/* A number of 32 bits; 0 where it cannot be read. */
static uint64_t number_of(pid_t process, uint64_t address)
{
    uint32_t number;
    return python_read(process, address, &number, sizeof number) ? number : 0;
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
            if (layout->pthread_id)
                number = number_of(place->process, number + layout->pthread_id);
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
    state >>= place->layout.text_shift;
    size_t length = word_at(head, LENGTH), kind = state & 7;
    bool compact = state >> 3 & 1, ascii = state >> 4 & 1;
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

/* PEP 626: for each stretch its bytes, and by how many lines it moves on; -128: it has none. */
static int32_t line_3_10(const unsigned char *table, size_t bytes, int32_t first_line,
                         uint32_t instruction)
{
    int32_t line = first_line;
    uint32_t end = 0;
    for (size_t at = 0; at + 1 < bytes; at += 2) {
        const int8_t more = (int8_t)table[at + 1];
        end += table[at];
        line += more == INT8_MIN ? 0 : more;
        if (instruction < end)
            return more == INT8_MIN ? 0 : line;
    }
    return 0;
}

/* Before: how many bytes on, by how many lines then. */
static int32_t line_old(const unsigned char *table, size_t bytes, int32_t first_line,
                        uint32_t instruction)
{
    int32_t line = first_line;
    uint32_t place = 0;
    for (size_t at = 0; at + 1 < bytes && (place += table[at]) <= instruction; at += 2)
        line += (int8_t)table[at + 1];
    return line;
}

/* PEP 657. */
static int32_t line_3_11(const unsigned char *table, size_t bytes, int32_t first_line,
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

int32_t python_line(enum python_lines lines, const unsigned char *table, size_t bytes,
                    int32_t first_line, uint32_t instruction)
{
    return lines == PYTHON_LINES_OLD    ? line_old(table, bytes, first_line, instruction)
           : lines == PYTHON_LINES_3_10 ? line_3_10(table, bytes, first_line, instruction)
                                        : line_3_11(table, bytes, first_line, instruction);
}
