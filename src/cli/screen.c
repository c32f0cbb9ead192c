/* screen.c: see screen.h. The streams of the C library are replaced by ones that filter. */
#include "cli/screen.h"

#include "base/plain.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* One of the two. What was cut off a character at the end of a write waits for its rest. */
struct screen {
    int fd;
    bool exact;
    char rest[4];
    size_t rest_length;
};
static struct screen out = {.fd = STDOUT_FILENO}, error = {.fd = STDERR_FILENO};

static bool write_all(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t written = write(fd, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        bytes += written;
        length -= (size_t)written;
    }
    return true;
}

/* Could more bytes make these a character? */
static bool is_begun(const char *bytes, size_t length)
{
    unsigned char first = (unsigned char)*bytes;
    size_t whole = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 1;
    for (size_t i = 1; i < length; i++)
        if (((unsigned char)bytes[i] & 0xC0) != 0x80)
            return false;
    return length < whole && first < 0xF5;
}

static ssize_t write_guarded(void *context, const char *bytes, size_t length)
{
    struct screen *screen = context;
    struct text all = {0}, shown = {0};
    if (screen->exact)
        return write_all(screen->fd, bytes, length) ? (ssize_t)length : 0;
    text_add_bytes(&all, screen->rest, screen->rest_length);
    text_add_bytes(&all, bytes, length);
    screen->rest_length = 0;
    for (size_t at = 0; !all.failed && at < all.length;) {
        const char *next = all.data + at;
        char character[PLAIN_MOST];
        size_t left = all.length - at;
        if (is_begun(next, left)) {
            screen->rest_length = left;
            memcpy(screen->rest, next, left);
            break;
        }
        at += plain_show(next, left, true, character);
        text_add(&shown, character);
    }
    bool good =
        !all.failed && !shown.failed && write_all(screen->fd, text_of(&shown), shown.length);
    int reason = errno;
    text_free(&all);
    text_free(&shown);
    errno = reason;
    return good ? (ssize_t)length : 0;
}

static FILE *guard(struct screen *screen, FILE *stream, int buffering)
{
    FILE *guarded = fopencookie(screen, "w", (cookie_io_functions_t){.write = write_guarded});
    if (!guarded)
        return stream;
    setvbuf(guarded, NULL, buffering, 0);
    return guarded;
}

void screen_guard(void)
{
    stdout = guard(&out, stdout, _IOLBF); /* who reads a pipe or a file sees each line at once */
    stderr = guard(&error, stderr, _IONBF);
}

void screen_control(FILE *stream, const char *sequence)
{
    fflush(stream);
    write_all(stream == stderr ? STDERR_FILENO : STDOUT_FILENO, sequence, strlen(sequence));
}

void screen_exact(void)
{
    fflush(stdout);
    out.exact = !isatty(STDOUT_FILENO);
}
