/* section.c: see section.h. Works on lines; what is in them is the reader's business. */
#include "nn/section.h"

#include <string.h>

enum { NAME_MOST = SECTION_NAME - 1 };

#define BYTE_ORDER_MARK "\xEF\xBB\xBF"

#define BAD(sections, line, column, ...)                                                           \
    return (status_fail(STATUS_INPUT, __FILE__, __LINE__, __VA_ARGS__),                            \
            status_prefix(STATUS_INPUT, "%s:%d:%d", (sections)->file, (line), (column)))

/* How many characters from `at` to the end of the line are blank. */
static size_t blanks(const char *at)
{
    return strspn(at, " \t\r");
}

/* When the line at `at` begins with the word `network`, where that word ends; else NULL. */
static const char *after_keyword(const char *at)
{
    at += blanks(at);
    if (!text_starts(at, "network") || !strchr(" \t\r\n#", at[7]))
        return NULL;
    return at + 7;
}

/* Reads the name after the keyword; is it the wanted one? */
static enum status read_name(struct sections *sections, const char *line, int number,
                             const char *after, const char *wanted, bool *same)
{
    const char *from = after + blanks(after);
    size_t length = strcspn(from, " \t\r\n#");
    int column = (int)(from - line) + 1;
    const char *rest = from + length + blanks(from + length);
    if (!length || length > NAME_MOST)
        BAD(sections, number, column, "found a network's name of %zu characters, expected 1 to %d",
            length, NAME_MOST);
    if (!strchr("\n#", *rest))
        BAD(sections, number, (int)(rest - line) + 1, "found '%.*s', expected the end of the line",
            (int)strcspn(rest, " \t\r\n"), rest);
    if (sections->count == SECTIONS_MOST)
        BAD(sections, number, column, "found more than %d networks", SECTIONS_MOST);
    char *name = sections->names[sections->count];
    memcpy(name, from, length);
    for (int i = 0; i < sections->count; i++)
        if (!strcmp(sections->names[i], name))
            BAD(sections, number, column, "the network '%s' is there twice", name);
    sections->lines[sections->count++] = number;
    *same = wanted && !strcmp(name, wanted);
    return STATUS_OK;
}

static enum status refuse(const struct sections *sections, const char *wanted)
{
    const char *names[SECTIONS_MOST];
    struct text known = {0};
    for (int i = 0; i < sections->count; i++) {
        names[i] = sections->names[i];
        text_printf(&known, "%s%s", i ? ", " : "", names[i]);
    }
    enum status status;
    if (!sections->count)
        status = status_fail(STATUS_INPUT, __FILE__, __LINE__,
                             "%s holds one network without a name, expected a line 'network %s'",
                             sections->file, wanted);
    else if (!wanted)
        status = status_fail(STATUS_INPUT, __FILE__, __LINE__,
                             "%s holds several networks: %s; expected one of them, as in %s:%s",
                             sections->file, text_of(&known), sections->file, names[0]);
    else
        status = status_fail(STATUS_INPUT, __FILE__, __LINE__,
                             "there is no network '%s' in %s; there are: %s", wanted,
                             sections->file, text_of(&known));
    text_free(&known);
    return status;
}

enum status section_take(const char *file, const char *wanted, struct text *text)
{
    struct sections sections = {.file = file};
    bool keep = true, found = false;
    const char *line = text_of(text), *end = line + text->length;
    char *to = text->data;
    if (text_starts(line, BYTE_ORDER_MARK))
        line += strlen(BYTE_ORDER_MARK);
    for (int number = 1; line < end; number++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((newline ? newline : end) - line);
        const char *after = after_keyword(line);
        if (after) {
            TRY(read_name(&sections, line, number, after, wanted, &keep));
            found = found || keep;
        } else if (keep) {
            memmove(to, line, length);
            to += length;
        }
        if (newline)
            *to++ = '\n';
        line += length + (newline != NULL);
    }
    if (text->data) {
        text->length = (size_t)(to - text->data);
        *to = 0;
    }
    return found || (!wanted && !sections.count) ? STATUS_OK : refuse(&sections, wanted);
}

enum status section_list(const char *file, const struct text *text, struct sections *out)
{
    const char *line = text_of(text), *end = line + text->length;
    bool same;
    *out = (struct sections){.file = file};
    if (text_starts(line, BYTE_ORDER_MARK))
        line += strlen(BYTE_ORDER_MARK);
    for (int number = 1; line < end; number++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *after = after_keyword(line);
        if (after)
            TRY(read_name(out, line, number, after, NULL, &same));
        line = newline ? newline + 1 : end;
    }
    return STATUS_OK;
}
