/* cmd_glossary.c: `prony glossary [TERM]`: what a word means; the rows are in record/glossary.def.
 */
#include "cli/commands.h"
#include "record/glossary.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 80, INDENT = 2 };

/* How many columns a word takes: bytes of UTF-8 but those that go on with a character. */
static size_t columns_of(const char *word, size_t length)
{
    size_t columns = 0;
    for (size_t i = 0; i < length; i++)
        columns += ((unsigned char)word[i] & 0xc0) != 0x80;
    return columns;
}

/* The text below its term, in lines of WIDTH columns at most. */
static void add_term(struct text *out, const struct term *term)
{
    size_t column = WIDTH;
    text_printf(out, "%s%s", out->length ? "\n" : "", term->term);
    for (const char *at = term->text; *at;) {
        const size_t length = strcspn(at, " "), wide = columns_of(at, length);
        const bool fits = column + 1 + wide <= WIDTH;
        text_printf(out, fits ? " " : "\n%*s", fits ? 0 : INDENT, "");
        text_add_bytes(out, at, length);
        column = fits ? column + 1 + wide : INDENT + wide;
        at += length;
        at += strspn(at, " ");
    }
    text_add_char(out, '\n');
}

enum status cli_explain_term(const char *word)
{
    const char *near;
    struct text text = {0};
    const struct term *found = word ? glossary_find(word, &near) : NULL;
    if (word && !found && near)
        FAIL(STATUS_INPUT, "the glossary has no \"%s\"; did you mean \"%s\"?", word, near);
    if (word && !found)
        FAIL(STATUS_INPUT, "the glossary has no \"%s\"; prony glossary lists its terms", word);
    for (size_t i = 0; i < TERM_COUNT; i++)
        if (!found || found == &glossary[i])
            add_term(&text, &glossary[i]);
    enum status status = text_done(&text);
    if (status == STATUS_OK)
        fputs(text_of(&text), stdout);
    text_free(&text);
    return status;
}

static enum status run_glossary(struct cli *cli, void *options)
{
    struct text word = {0};
    (void)options;
    for (int i = 0; i < cli->found.count; i++) /* prony glossary replica batch */
        text_printf(&word, "%s%s", i ? " " : "", cli->found.positional[i]);
    enum status status = text_done(&word);
    if (status == STATUS_OK)
        status = cli_explain_term(cli->found.count ? text_of(&word) : NULL);
    text_free(&word);
    return status;
}

const struct command cmd_glossary = {
    .summary = "what a word means: floor, batch, roofline …",
    .run = run_glossary,
    .args = {.command = "prony glossary",
             .usage = "[TERM]",
             .summary = "Explains a term, or all of them, in a sentence or two.",
             .most = -1,
             .examples = "  prony glossary roofline\n"
                         "  prony help batch\n"},
};
