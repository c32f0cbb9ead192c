/* remark.c: see remark.h. */
#include "cli/remark.h"

#include <string.h>

/* The '#' lines at the start as one line. */
static void join(const char *file, struct text *out)
{
    for (; *file == '#'; file += *file == '\n') {
        file += 1 + strspn(file + 1, " ");
        const size_t length = strcspn(file, "\r\n");
        text_add(out, out->length ? " " : "");
        text_add_bytes(out, file, length);
        file += length;
        file += *file == '\r';
    }
}

/* Where the sentence ends: at a full stop, or before an example. */
static size_t sentence(const char *line)
{
    static const char *const ends[] = {". ", ": `"};
    size_t length = strlen(line);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const char *end = strstr(line, ends[i]);
        if (end && (size_t)(end - line) < length)
            length = (size_t)(end - line);
    }
    return length && line[length - 1] == '.' ? length - 1 : length;
}

/* Without "; 4,389 parameters", which has a column of its own. */
static size_t without_count(const char *line, size_t length)
{
    static const char word[] = " parameters";
    const size_t tail = sizeof word - 1;
    if (length < tail || memcmp(line + length - tail, word, tail) != 0)
        return length;
    size_t cut = length - tail;
    while (cut && strchr("0123456789,", line[cut - 1]))
        cut--;
    while (cut && strchr(" ,:;", line[cut - 1]))
        cut--;
    return cut;
}

void remark_first(const char *file, struct text *out)
{
    struct text line = {0};
    join(file, &line);
    const char *all = text_of(&line);
    text_add_bytes(out, all, without_count(all, sentence(all)));
    out->failed |= line.failed;
    text_free(&line);
}
