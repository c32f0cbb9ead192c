/* plain.c: see plain.h. */
#include "base/plain.h"

#include "base/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The character at the start of valid UTF-8 of that size. */
static uint32_t character_of(const char *at, size_t size)
{
    unsigned char first = (unsigned char)*at;
    uint32_t character = size == 1 ? first : first & (0x7Fu >> size);
    for (size_t i = 1; i < size; i++)
        character = character << 6 | ((unsigned char)at[i] & 0x3F);
    return character;
}

static bool is_obeyed(uint32_t character)
{
    return character < 0x20 || (character >= 0x7F && character < 0xA0) || character == 0x061C ||
           (character >= 0x200E && character <= 0x200F) ||
           (character >= 0x2028 && character <= 0x202E) ||
           (character >= 0x2066 && character <= 0x2069);
}

size_t plain_show(const char *bytes, size_t length, bool lines, char shown[PLAIN_MOST])
{
    size_t size = text_utf8(bytes, length);
    uint32_t character = size ? character_of(bytes, size) : 0;
    bool stays = lines && (*bytes == '\n' || *bytes == '\t');
    if (!size)
        snprintf(shown, PLAIN_MOST, "\\x%02x", (unsigned)(unsigned char)*bytes);
    else if (is_obeyed(character) && !stays)
        snprintf(shown, PLAIN_MOST, "\\u%04x", (unsigned)(character & 0xFFFF));
    else {
        memcpy(shown, bytes, size);
        shown[size] = '\0';
    }
    return size ? size : 1;
}

size_t plain_copy(char *to, size_t room, const char *text)
{
    char shown[PLAIN_MOST];
    size_t used = 0;
    for (size_t left = strlen(text), size; left; left -= size, text += size) {
        size = plain_show(text, left, false, shown);
        size_t bytes = strlen(shown);
        if (used + bytes >= room)
            break;
        memcpy(to + used, shown, bytes);
        used += bytes;
    }
    to[used] = '\0';
    return used;
}

/* How many bytes it takes to show the text. */
static size_t shown_bytes(const char *text)
{
    char shown[PLAIN_MOST];
    size_t bytes = 0;
    for (size_t left = strlen(text), size; left; left -= size, text += size) {
        size = plain_show(text, left, false, shown);
        bytes += strlen(shown);
    }
    return bytes;
}

const char *plain_end(const char *text, size_t room)
{
    char shown[PLAIN_MOST];
    size_t bytes = shown_bytes(text);
    for (size_t left = strlen(text), size; bytes >= room; left -= size, text += size) {
        size = plain_show(text, left, false, shown);
        bytes -= strlen(shown);
    }
    return text;
}
