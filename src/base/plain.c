/* plain.c: see plain.h. */
#include "base/plain.h"

#include "base/text.h"

#include <stdint.h>
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
    return character < 0x20 || (character >= 0x7F && character < 0xA0) ||
           (character >= 0x200E && character <= 0x200F) ||
           (character >= 0x2028 && character <= 0x202E) ||
           (character >= 0x2066 && character <= 0x2069);
}

static void make(char *string, bool lines)
{
    size_t length = strlen(string), size;
    for (char *at = string, *end = string + length; at < end; at += size) {
        size_t valid = text_utf8(at, (size_t)(end - at));
        size = valid ? valid : 1;
        if ((lines && *at == '\n') || (valid && !is_obeyed(character_of(at, valid))))
            continue;
        memset(at, '?', size);
    }
}

void plain_make(char *string)
{
    make(string, false);
}

void plain_make_lines(char *string)
{
    make(string, true);
}
