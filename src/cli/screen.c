/* screen.c: see screen.h. The streams of the C library are replaced by ones that filter.
 *
 * The status is drawn on stderr, and the cursor parked at the start of its first line, so that one
 * sequence takes it away whatever it was: "\r\033[J". Each drawing is one write over the one
 * before, which is why it does not flicker. */
#include "cli/screen.h"

#include "base/plain.h"
#include "base/text.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* One of the two. What was cut off a character at the end of a write waits for its rest. */
struct screen {
    int fd;
    bool exact;
    _Atomic bool gone; /* the reader closed it; logs of any thread ask */
    char rest[4];
    size_t rest_length;
};
static bool ascii; /* our marks are shown as ASCII */
static struct screen out = {.fd = STDOUT_FILENO}, error = {.fd = STDERR_FILENO};

enum { STATUS_BYTES = 4 * SCREEN_WIDE + 64 };
/* What is at the bottom. Streams are written by several threads. */
static struct {
    pthread_mutex_t lock;
    char drawing[STATUS_BYTES]; /* "" when there is none */
    size_t length;
} status_line = {.lock = PTHREAD_MUTEX_INITIALIZER};
static volatile sig_atomic_t status_shown;
static const char status_erase[] = "\r\033[J";

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

/* Takes the status away, writes, and puts it back below the end of a line. A reader that left is
 * served no more. */
static bool write_above(struct screen *screen, const char *bytes, size_t length)
{
    if (screen->gone || length == 0)
        return true;
    pthread_mutex_lock(&status_line.lock);
    const bool over = status_line.length && (screen->fd == STDERR_FILENO || isatty(screen->fd));
    if (over && status_shown)
        write_all(STDERR_FILENO, status_erase, sizeof status_erase - 1);
    if (over)
        status_shown = 0;
    bool good = write_all(screen->fd, bytes, length);
    int reason = errno;
    if (over && good && bytes[length - 1] == '\n') {
        write_all(STDERR_FILENO, status_line.drawing, status_line.length);
        status_shown = 1;
    }
    pthread_mutex_unlock(&status_line.lock);
    screen->gone = !good && reason == EPIPE;
    errno = reason;
    return good || screen->gone;
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

/* As wide as the mark, so that columns stay: of "± 2 %" the blank goes. */
static const char *ascii_of(const char *mark)
{
    static const struct {
        const char *mark, *shown;
    } table[] = {{"×", "x"}, {"±", "+-"}, {"÷", "/"},   {"…", "..."}, {"–", "-"},    {"—", "-"},
                 {"−", "-"}, {"µ", "u"},  {"·", "."},   {"≤", "<="},  {"≥", ">="},   {"→", "->"},
                 {"²", "2"}, {"³", "3"},  {"½", "1/2"}, {"≈", "~"},   {"√", "sqrt"}, {"Σ", "sum"},
                 {"†", "+"}, {"‡", "#"},  {"§", "$"},   {"¶", "&"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].mark, mark) == 0)
            return table[i].shown;
    return mark;
}

static ssize_t write_guarded(void *context, const char *bytes, size_t length)
{
    struct screen *screen = context;
    struct text all = {0}, shown = {0};
    if (screen->exact)
        return write_above(screen, bytes, length) ? (ssize_t)length : 0;
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
        text_add(&shown, ascii ? ascii_of(character) : character);
        if (ascii && strcmp(character, "±") == 0 && at < all.length && all.data[at] == ' ')
            at++;
    }
    bool good = !all.failed && !shown.failed && write_above(screen, text_of(&shown), shown.length);
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

static int number_of(const FILE *stream)
{
    return stream == stderr ? STDERR_FILENO : STDOUT_FILENO;
}

void screen_control(FILE *stream, const char *sequence)
{
    fflush(stream);
    write_all(number_of(stream), sequence, strlen(sequence));
}

void screen_exact(void)
{
    fflush(stdout);
    out.exact = !isatty(STDOUT_FILENO);
}

bool screen_reader_left(void)
{
    return out.gone;
}

bool screen_is_terminal(FILE *stream)
{
    const char *kind = getenv("TERM");
    return isatty(number_of(stream)) && kind && strcmp(kind, "dumb") != 0;
}

bool screen_has_colour(FILE *stream)
{
    const char *refused = getenv("NO_COLOR"); /* no-color.org: any text but an empty one */
    return screen_is_terminal(stream) && !(refused && *refused);
}

/* UTF-8 is what everybody has: only a locale that names another says no. */
static bool is_unicode(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *locale = getenv(variables[i]);
        if (locale && *locale)
            return strstr(locale, "UTF-8") || strstr(locale, "utf8") || strstr(locale, "UTF8") ||
                   strstr(locale, "utf-8");
    }
    return true;
}

bool screen_has_drawing(FILE *stream)
{
    return screen_is_terminal(stream) && is_unicode();
}

void screen_for_person(void)
{
    ascii = !is_unicode();
}

int screen_width(FILE *stream)
{
    struct winsize size;
    const char *said = getenv("COLUMNS");
    int64_t width = SCREEN_USUAL;
    if (isatty(number_of(stream)) && ioctl(number_of(stream), TIOCGWINSZ, &size) == 0 &&
        size.ws_col > 0)
        width = size.ws_col;
    else if (said && !text_to_int(said, &width))
        width = SCREEN_USUAL;
    return width < SCREEN_NARROW ? SCREEN_NARROW : width > SCREEN_WIDE ? SCREEN_WIDE : (int)width;
}

void screen_style(FILE *stream, enum screen_style style)
{
    static const char *const sequences[] = {
        [SCREEN_PLAIN] = "\033[0m", [SCREEN_BOLD] = "\033[1m",      [SCREEN_DIM] = "\033[2m",
        [SCREEN_GOOD] = "\033[32m", [SCREEN_DOUBTFUL] = "\033[33m", [SCREEN_BAD] = "\033[31m"};
    if (screen_has_colour(stream))
        screen_control(stream, sequences[style]);
}

/* As many characters of a line as fit, without what a terminal obeys. Returns where it ends. */
static const char *add_cut(struct text *drawing, const char *line, int width)
{
    const size_t length = strcspn(line, "\n");
    char shown[PLAIN_MOST];
    int used = 0;
    for (size_t at = 0; at < length && used < width;) {
        at += plain_show(line + at, length - at, false, shown);
        used += (int)(shown[0] == '\\' && shown[1] ? strlen(shown) : 1);
        if (used <= width)
            text_add(drawing, shown);
    }
    text_add(drawing, "\033[K");
    return line + length;
}

static void draw(const struct text *drawing)
{
    const bool fits = !drawing->failed && drawing->length < STATUS_BYTES;
    pthread_mutex_lock(&status_line.lock);
    if (status_shown && !(fits && drawing->length))
        write_all(STDERR_FILENO, status_erase, sizeof status_erase - 1);
    status_line.length = fits ? drawing->length : 0;
    memcpy(status_line.drawing, text_of(drawing), status_line.length);
    if (status_line.length)
        write_all(STDERR_FILENO, status_line.drawing, status_line.length);
    status_shown = status_line.length > 0;
    pthread_mutex_unlock(&status_line.lock);
}

void screen_status(const char *lines)
{
    struct text drawing = {0};
    if (!screen_is_terminal(stderr))
        return;
    const int width = screen_width(stderr) - 1; /* the last column may wrap */
    fflush(stdout);
    if (lines && *lines) {
        text_add(&drawing, "\r");
        lines = add_cut(&drawing, lines, width);
        if (*lines) {
            text_add(&drawing, "\n");
            add_cut(&drawing, lines + 1, width);
            text_add(&drawing, "\033[A");
        }
        text_add(&drawing, "\r");
    }
    draw(&drawing);
    text_free(&drawing);
}

void screen_status_drop(void)
{
    if (!status_shown)
        return;
    ssize_t written = write(STDERR_FILENO, status_erase, sizeof status_erase - 1);
    (void)written; /* nothing can be done about it here */
}
