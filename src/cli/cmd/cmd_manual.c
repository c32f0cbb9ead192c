/* cmd_manual.c: `prony manual`: the manual page in man's own language, written from the same tables
 * as --help, so that it cannot fall behind. */
#include "cli/commands.h"
#include "record/version.h"

#include <stdio.h>
#include <string.h>

/* Text as troff takes it: a backslash and a hyphen are written out, and a line that begins with a
 * dot or a quote is no request. */
static void add_plain(struct text *out, const char *string)
{
    bool start = true;
    for (; *string; string++) {
        if (start && strchr(".'", *string))
            text_add(out, "\\&");
        if (*string == '\\')
            text_add(out, "\\e");
        else if (*string == '-')
            text_add(out, "\\-");
        else
            text_add_char(out, *string);
        start = *string == '\n';
    }
}

static void add_option(struct text *out, const struct arg *arg)
{
    text_add(out, ".TP\n\\fB\\-\\-");
    add_plain(out, arg->name);
    text_add(out, "\\fR");
    if (arg->kind != ARG_FLAG) {
        text_add(out, " \\fI");
        add_plain(out, arg->meaning);
        text_add(out, "\\fR");
    }
    text_add_char(out, '\n');
    add_plain(out, arg->help);
    text_add_char(out, '\n');
}

static void add_command(struct text *out, const struct args *args)
{
    struct text summary = {0};
    const struct arg *arg;
    args_summary(args, &summary);
    text_add(out, ".SS ");
    add_plain(out, args->command);
    text_add_char(out, ' ');
    add_plain(out, args->usage);
    text_add_char(out, '\n');
    add_plain(out, text_of(&summary));
    text_add_char(out, '\n');
    text_free(&summary);
    for (size_t i = 0; (arg = args_at(args, i)); i++)
        add_option(out, arg);
    if (args->examples) {
        text_add(out, ".PP\n.nf\n");
        add_plain(out, args->examples);
        text_add(out, ".fi\n");
    }
}

static enum status write_manual(struct text *out)
{
    text_printf(out, ".TH PRONY 1 \"\" \"prony %s\" \"User Commands\"\n", version_number);
    text_add(out, ".SH NAME\nprony \\- measures what a neural network really delivers\n.SH "
                  "SYNOPSIS\n\\fBprony\\fR \\fICOMMAND\\fR [arguments]\n.SH DESCRIPTION\nprony "
                  "trains neural networks and predicts with them. It measures how fast that is\non "
                  "this machine, and how far from the limit of the hardware. It keeps the "
                  "results\nand shows them.\n.SH COMMANDS\n");
    for (int i = 0; i < COMMANDS; i++)
        add_command(out, &cli_commands[i]->args);
    text_add(out, ".SH EXIT STATUS\n0 when all went well, 2 when an argument or a file is wrong,\n"
                  "130 when it was interrupted, else 1. One line on standard error says what was\n"
                  "found and what was expected.\n"
                  ".SH ENVIRONMENT\n.TP\n\\fBXDG_DATA_HOME\\fR\nThe store is in its folder prony\n"
                  "(~/.local/share).\n");
    return text_done(out);
}

static enum status run_manual(struct cli *cli, void *options)
{
    (void)cli, (void)options;
    struct text out = {0};
    enum status status = write_manual(&out);
    if (status == STATUS_OK)
        fputs(text_of(&out), stdout);
    text_free(&out);
    return status;
}

const struct command cmd_manual = {
    .summary = "print the manual page, as man reads it",
    .run = run_manual,
    .args = {.command = "prony manual",
             .usage = "",
             .summary = "Prints the manual page, as man reads it.",
             .examples = "  prony manual | man -l -\n"},
};
