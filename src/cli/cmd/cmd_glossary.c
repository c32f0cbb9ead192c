/* cmd_glossary.c: `prony glossary [TERM]`: what a word means; the rows are in
 * record/words/glossary.def.
 */
#include "cli/commands.h"
#include "cli/table/wrap.h"
#include "record/words/glossary.h"

#include <stdio.h>

/* The text below its term, as wide as the screen but no wider than one reads with ease. */
static void add_term(struct text *out, const struct term *term)
{
    enum { WIDEST = 100 };
    const int screen = wrap_screen();
    text_printf(out, "%s%s\n", out->length ? "\n" : "", term->term);
    wrap_add(out, "  ", term->text, screen < WIDEST ? screen : WIDEST);
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
    .summary = "explain a term: floor, batch, roofline …",
    .run = run_glossary,
    .args = {.command = "prony glossary",
             .usage = "[TERM]",
             .summary = "Explains a term, or all of them, in a sentence or two.",
             .most = -1,
             .examples = "  prony glossary roofline\n"
                         "  prony help batch\n"},
};
