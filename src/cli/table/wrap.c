/* wrap.c: see wrap.h. */
#include "cli/table/wrap.h"

#include "cli/screen.h"

#include <stdint.h>
#include <string.h>

int wrap_screen(void)
{
    return screen_width(stdout);
}

/* Sorted ranges of characters that are not one column wide. */
static const struct range {
    uint32_t from, to;
    size_t columns;
} ranges[] = {
    {0x0300, 0x036F, 0},   {0x1100, 0x115F, 2},   {0x200B, 0x200F, 0},   {0x20D0, 0x20FF, 0},
    {0x2E80, 0x303E, 2},   {0x3041, 0xA4CF, 2},   {0xAC00, 0xD7A3, 2},   {0xF900, 0xFAFF, 2},
    {0xFE00, 0xFE0F, 0},   {0xFE30, 0xFE6F, 2},   {0xFF00, 0xFF60, 2},   {0xFFE0, 0xFFE6, 2},
    {0x1F300, 0x1F64F, 2}, {0x1F680, 0x1F6FF, 2}, {0x1F900, 0x1F9FF, 2}, {0x20000, 0x3FFFD, 2}};

/* The character at the start of the text: its bytes, and its columns. */
static size_t next_character(const char *text, size_t *columns)
{
    static const unsigned char first[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    size_t bytes = text_utf8(text, strnlen(text, 4));
    *columns = 1;
    if (bytes < 2)
        return 1;
    uint32_t code = (unsigned char)text[0] & first[bytes];
    for (size_t i = 1; i < bytes; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3F);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i].from && code <= ranges[i].to)
            *columns = ranges[i].columns;
    return bytes;
}

size_t wrap_width(const char *text)
{
    size_t width = 0, columns;
    for (; *text; width += columns)
        text += next_character(text, &columns);
    return width;
}

size_t wrap_take(const char *text, size_t width, size_t *skip)
{
    const size_t begins = strspn(text, " ");
    size_t at = 0, used = 0, broken = 0, columns;
    while (text[at]) {
        size_t bytes = next_character(text + at, &columns);
        if (text[at] == ' ' && at > begins && text_may_break(text, at))
            broken = at;
        if (used + columns > width && at)
            break;
        used += columns;
        at += bytes;
    }
    size_t taken = text[at] && broken ? broken : at;
    *skip = strspn(text + taken, " ");
    return taken;
}

void wrap_pad(struct text *out, size_t columns)
{
    for (size_t i = 0; i < columns; i++)
        text_add_char(out, ' ');
}

static void add_lines(struct text *out, const char *lead, const char *text, int width,
                      const char *joint)
{
    size_t begins = wrap_width(lead), joint_width = wrap_width(joint), skip;
    size_t indent = joint_width ? begins + 2 : begins, room = (size_t)width;
    room = room > indent + joint_width + 8 ? room - indent : 8 + joint_width;
    text_add(out, lead);
    while (wrap_width(text) > room) {
        size_t taken = wrap_take(text, room - joint_width, &skip);
        text_add_bytes(out, text, taken);
        text += taken + skip;
        text_add(out, joint);
        text_add_char(out, '\n');
        wrap_pad(out, indent);
    }
    text_add(out, text);
    text_add_char(out, '\n');
}

void wrap_add(struct text *out, const char *lead, const char *text, int width)
{
    add_lines(out, lead, text, width, "");
}

void wrap_add_command(struct text *out, const char *lead, const char *command, int width)
{
    add_lines(out, lead, command, width, " \\");
}

void wrap_add_cut(struct text *out, const char *text, size_t width)
{
    size_t at = 0, used = 0, columns;
    if (wrap_width(text) <= width) {
        text_add(out, text);
        return;
    }
    while (text[at]) {
        size_t bytes = next_character(text + at, &columns);
        if (used + columns + 1 > width)
            break;
        used += columns;
        at += bytes;
    }
    text_add_bytes(out, text, at);
    text_add(out, "…");
}
