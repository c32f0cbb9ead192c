/* python_layout.h: the frames of a CPython thread, read from its memory.
 *
 * CPython publishes no way to look at a thread from outside, nor from a signal handler. So its
 * structures are read as bytes, at offsets that differ from version to version. Each step is a read
 * that may fail, and a check that the result is a code object. A frame that is just being made or
 * freed ends the walk instead of the program. Nothing here allocates or locks. */
#ifndef PRONY_AGENT_PYTHON_LAYOUT_H
#define PRONY_AGENT_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Offsets in bytes. */
struct python_layout {
    uint32_t version; /* 0x030b: 3.11 */
    uint16_t runtime_interpreters, interpreter_next, interpreter_threads;
    uint16_t thread_next, thread_native_id, thread_frame;
    bool frame_indirect;     /* thread_frame points to a structure … */
    uint16_t cframe_current; /* … in which the frame is */
    uint16_t frame_code, frame_previous, frame_instruction, frame_owner;
    uint16_t frame_entry; /* a flag: called from C; 0: frames of owner 3 stand between instead */
    uint16_t code_name, code_file, code_table, code_first_line, code_instructions;
    uint16_t ascii_bytes, compact_bytes; /* of the heads of texts */
    uint8_t text_shift;                  /* of the bits of a text's state: behind "interned" */
    uint8_t lines;                       /* enum python_lines */
    uint8_t instruction_unit; /* frame_instruction is a number of so many bytes; 0: an address */
    bool entries;             /* each frame has an evaluation loop of its own */
    uint16_t pthread_id; /* thread_native_id is a pthread_t, whose number of the system is there */
};

/* How a line table is written. */
enum python_lines { PYTHON_LINES_3_11, PYTHON_LINES_3_10, PYTHON_LINES_OLD };

/* Where it is: this process, or one that we may read. Process 0 is this one, whose memory is read
 * as it is, unchecked: for a thread that stands in its own frames, with a layout that has proved
 * right.
 */
struct python_place {
    pid_t process;
    struct python_layout layout;
    uint64_t runtime, code_type;
};

struct python_frame {
    uint64_t code, name, file, table; /* addresses of objects */
    int32_t first_line;
    uint32_t instruction; /* bytes */
    bool entry;
};

/* Reads memory of a process; false where not all of it can be read. */
bool python_read(pid_t process, uint64_t address, void *to, size_t bytes);

/* The version of the interpreter in this process, as 0x030b02f0; 0: it does not say. */
uint32_t python_version(void);
/* Fills *layout for such a version; from 3.13 on from what its runtime says of itself. False: this
 * version is not known. */
bool python_layout_find(uint32_t version, pid_t process, uint64_t runtime,
                        struct python_layout *layout);

/* The frames of a thread state, the innermost first; how many. *torn: the walk ended at something
 * that is no frame. *cut: there are more. */
size_t python_walk(const struct python_place *place, uint64_t thread_state,
                   struct python_frame *frames, size_t most, bool *torn, bool *cut);

/* What tells whether a thread has moved on: its innermost frame, what that runs, and where it is in
 * it. False: it has none. */
bool python_innermost(const struct python_place *place, uint64_t thread_state, uint64_t seen[3]);

/* The state of the thread with this number of the system; 0: Python knows no such thread. */
uint64_t python_find_thread(const struct python_place *place, pid_t thread);

/* The bytes of a text object as UTF-8, or of a bytes object; how many. */
size_t python_text(const struct python_place *place, uint64_t object, char *to, size_t room);
size_t python_bytes(const struct python_place *place, uint64_t object, void *to, size_t room);

/* A name for the function that no other has, though addresses are used again. */
uint64_t python_key(const struct python_frame *frame);

/* The line of an instruction, from a table that is written so; 0: none. */
int32_t python_line(enum python_lines lines, const unsigned char *table, size_t bytes,
                    int32_t first_line, uint32_t instruction);

#endif
