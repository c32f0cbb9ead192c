/* status.h: how functions that can fail report it.
 *
 * A function that can fail returns `enum status` and gives its results through its last pointer
 * arguments. FAIL records the code, the place and one message, once, where the failure happened;
 * TRY forwards it unchanged. Only cli/ prints the message.
 *
 * * Three kinds of trouble, never mixed: a caller's mistake is an assert; the environment (a file,
 * a flag, memory, a device) is a status. An absent capability is STATUS_UNSUPPORTED, which the
 * bench turns into a recorded skip.
 *
 * * The last error is kept per thread. A plugin is linked with its own copy of this file.
 * status_share() gives it the host's record when it is loaded, so that messages cross the boundary.
 */
#ifndef PRONY_BASE_STATUS_H
#define PRONY_BASE_STATUS_H

enum status {
    STATUS_OK = 0,
    STATUS_INPUT,       /* a file, flag or request is wrong; the message says what was expected */
    STATUS_UNSUPPORTED, /* this machine or backend cannot do it; the message says why */
    STATUS_MEMORY,      /* an allocation failed */
    STATUS_IO,          /* the system refused: open, read, write, fork … */
    STATUS_DEVICE,      /* an accelerator or a peer process failed */
    STATUS_WRONG,       /* it ran and the result is wrong: a failed check */
    STATUS_INTERRUPTED, /* the user asked to stop */
    STATUS_TIMEOUT,     /* it took longer than it was allowed to */
};

struct error {
    enum status code;
    const char *file; /* static string */
    int line;
    char message[1000];
};

/* Records an error for this thread and returns `code`. Never fails, allocates nothing. A message
 * that is too long loses its middle; characters that a terminal would obey become their numbers
 * (plain.h). */
enum status status_fail(enum status code, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Puts "TEXT: " before this thread's last message: context added on the way up (a file's name). */
enum status status_prefix(enum status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* This thread's last error; its message is valid until the next failure on the same thread. */
struct error *status_last(void);
const char *status_message(void);

/* One lower-case word for a code: "input", "unsupported" … */
const char *status_name(enum status code);

/* Called in a plugin's copy, with the host's status_last. */
void status_share(struct error *(*host_last)(void));

#define FAIL(code, ...) return status_fail((code), __FILE__, __LINE__, __VA_ARGS__)

#define TRY(call)                                                                                  \
    do {                                                                                           \
        enum status try_status_ = (call);                                                          \
        if (try_status_ != STATUS_OK)                                                              \
            return try_status_;                                                                    \
    } while (0)

/* For functions that own something: `status` is a local, `label` frees. */
#define TRY_OR(label, call)                                                                        \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != STATUS_OK)                                                                   \
            goto label;                                                                            \
    } while (0)

/* NEED(p = mem_alloc(n)): a failed allocation becomes a status. */
#define NEED(pointer)                                                                              \
    do {                                                                                           \
        if (!(pointer))                                                                            \
            FAIL(STATUS_MEMORY, "out of memory");                                                  \
    } while (0)

#define NEED_OR(label, pointer)                                                                    \
    do {                                                                                           \
        if (!(pointer)) {                                                                          \
            status = status_fail(STATUS_MEMORY, __FILE__, __LINE__, "out of memory");              \
            goto label;                                                                            \
        }                                                                                          \
    } while (0)

#endif
