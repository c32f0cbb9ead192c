/* glossary.c: see glossary.h. */
#include "record/words/glossary.h"

#include "base/text.h"

#include <ctype.h>
#include <string.h>

const struct term glossary[TERM_COUNT] = {
#define TERM(key, term, text) {#key, term, text},
#include "record/words/glossary.def"
};

/* Blanks, hyphens and underscores are the same; so are capitals and small letters. */
static int letter(char c)
{
    return c == '-' || c == '_' ? ' ' : tolower((unsigned char)c);
}

static bool is_part(const char *word, const char *part, size_t length)
{
    if (strlen(word) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (letter(word[i]) != letter(part[i]))
            return false;
    return true;
}

/* Is `word` this text, or one of its parts between commas? */
static bool is_named(const char *word, const char *text)
{
    for (;;) {
        const size_t length = strcspn(text, ",");
        if (is_part(word, text, length))
            return true;
        if (!text[length])
            return false;
        text += length + 1;
        text += strspn(text, " ");
    }
}

const struct term *glossary_find(const char *word, const char **near)
{
    const char *names[2 * TERM_COUNT];
    *near = NULL;
    for (size_t i = 0; i < TERM_COUNT; i++) {
        if (is_named(word, glossary[i].key) || is_named(word, glossary[i].term))
            return &glossary[i];
        names[2 * i] = glossary[i].key;
        names[2 * i + 1] = glossary[i].term;
    }
    *near = text_nearest(word, names, 2 * TERM_COUNT);
    return NULL;
}
