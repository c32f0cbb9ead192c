/* status.c: the per-thread record of the last failure. */
#include "base/status.h"

#include "base/plain.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local struct error own_error;

static struct error *own_last(void)
{
    return &own_error;
}

static struct error *(*last)(void) = own_last;

void status_share(struct error *(*host_last)(void))
{
    last = host_last;
}

struct error *status_last(void)
{
    return last();
}

const char *status_message(void)
{
    return last()->message;
}

/* A longer message keeps its start and its end: a quotation may be long, and the expectation
 * follows it. */
enum { LONGEST = 8192 };

/* Plain here already: the library's messages reach the terminals of other programs. */
static void keep(struct error *error, const char *message)
{
    static const char gap[] = " … ";
    const size_t room = sizeof error->message;
    if (plain_end(message, room) == message) {
        plain_copy(error->message, room, message);
        return;
    }
    size_t used = plain_copy(error->message, room / 2, message);
    used += plain_copy(error->message + used, room - used, gap);
    plain_copy(error->message + used, room - used, plain_end(message, room - used));
}

enum status status_fail(enum status code, const char *file, int line, const char *format, ...)
{
    struct error *error = last();
    char message[LONGEST]; /* the arguments may point into the old message */
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    keep(error, message);
    error->code = code;
    error->file = file;
    error->line = line;
    return code;
}

enum status status_prefix(enum status code, const char *format, ...)
{
    struct error *error = last();
    char text[LONGEST];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (length < 0)
        return code;
    size_t used = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    snprintf(text + used, sizeof text - used, ": %s", error->message);
    keep(error, text);
    return code;
}

const char *status_name(enum status code)
{
    switch (code) {
    case STATUS_OK: return "ok";
    case STATUS_INPUT: return "input";
    case STATUS_UNSUPPORTED: return "unsupported";
    case STATUS_MEMORY: return "memory";
    case STATUS_IO: return "io";
    case STATUS_DEVICE: return "device";
    case STATUS_WRONG: return "wrong";
    case STATUS_INTERRUPTED: return "interrupted";
    case STATUS_TIMEOUT: return "timeout";
    }
    return "unknown";
}
