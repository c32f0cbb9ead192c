/* cmd_completion.c: `prony completion SHELL`: what a shell needs to complete prony's commands and
 * options, written from the same tables as --help. Other words are completed as files. */
#include "cli/commands.h"

#include <stdio.h>

/* A shell's single-quoted text; `escaped` is how it writes a quote within. */
static void add_quoted(struct text *out, const char *string, const char *escaped)
{
    text_add_char(out, '\'');
    for (; *string; string++) {
        if (*string == '\'')
            text_add(out, escaped);
        else
            text_add_char(out, *string);
    }
    text_add_char(out, '\'');
}

static void visit_bash(void *context, const struct command *command, const struct args *args)
{
    text_printf(context, "    %s) words='", command->name);
    for (size_t i = 0; i < args->count; i++)
        text_printf(context, "--%s ", args->list[i].name);
    text_add(context, "--help' ;;\n");
}

static enum status write_bash(struct cli *cli, struct text *out)
{
    text_add(out, "# bash completion of prony, written by `prony completion bash`\n"
                  "_prony()\n{\n"
                  "    local word=${COMP_WORDS[COMP_CWORD]} words=\n"
                  "    case ${COMP_WORDS[1]} in\n");
    TRY(cli_visit(cli, visit_bash, out));
    text_add(out, "    esac\n    COMPREPLY=()\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                  "        words='help");
    for (int i = 0; i < cli_command_count; i++)
        text_printf(out, " %s", cli_commands[i].name);
    text_add(out, "'\n    elif [[ $word != -* ]]; then\n        return\n    fi\n"
                  "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
                  "complete -o default -F _prony prony\n");
    return STATUS_OK;
}

static void visit_fish(void *context, const struct command *command, const struct args *args)
{
    for (size_t i = 0; i < args->count; i++) {
        text_printf(context, "complete -c prony -n '__fish_seen_subcommand_from %s' -l %s%s -d ",
                    command->name, args->list[i].name, args->list[i].kind == ARG_FLAG ? "" : " -r");
        add_quoted(context, args->list[i].help, "\\'");
        text_add_char(context, '\n');
    }
}

static enum status write_fish(struct cli *cli, struct text *out)
{
    text_add(out, "# fish completion of prony, written by `prony completion fish`\n");
    for (int i = 0; i < cli_command_count; i++) {
        text_printf(out, "complete -c prony -n __fish_use_subcommand -f -a %s -d ",
                    cli_commands[i].name);
        add_quoted(out, cli_commands[i].summary, "\\'");
        text_add_char(out, '\n');
    }
    return cli_visit(cli, visit_fish, out);
}

static void visit_zsh(void *context, const struct command *command, const struct args *args)
{
    text_printf(context, "%s)\n    _arguments -S", command->name);
    for (size_t i = 0; i < args->count; i++)
        text_printf(context, " '--%s%s'", args->list[i].name,
                    args->list[i].kind == ARG_FLAG ? "" : "=:value:_files");
    text_add(context, " '--help' '*:file:_files'\n    ;;\n");
}

static enum status write_zsh(struct cli *cli, struct text *out)
{
    text_add(out, "#compdef prony\n# zsh completion of prony, written by `prony completion zsh`\n"
                  "if ((CURRENT == 2)); then\n    local -a commands\n    commands=(");
    for (int i = 0; i < cli_command_count; i++) {
        struct text row = {0};
        text_printf(&row, "%s:%s", cli_commands[i].name, cli_commands[i].summary);
        text_add_char(out, ' ');
        add_quoted(out, text_of(&row), "'\\''");
        text_free(&row);
    }
    text_add(out, ")\n    _describe command commands\n    return\nfi\n"
                  "local command=$words[2]\n"
                  "words=(\"${(@)words[2,-1]}\")\n((CURRENT--))\n"
                  "case $command in\n");
    TRY(cli_visit(cli, visit_zsh, out));
    text_add(out, "esac\n");
    return STATUS_OK;
}

static const struct {
    const char *name;
    enum status (*write)(struct cli *cli, struct text *out);
} shells[] = {{"bash", write_bash}, {"fish", write_fish}, {"zsh", write_zsh}};

enum status cmd_completion(struct cli *cli, int argc, const char *const *argv)
{
    struct args args = {
        .command = "prony completion",
        .usage = "bash|fish|zsh",
        .summary = "Prints what a shell needs to complete prony's commands and options.",
        .examples = "  eval \"$(prony completion bash)\"\n",
        .least = 1,
        .most = 1,
        .positional = cli->positional,
    };
    TRY(cli_args(&args, argc, argv));
    if (args.help)
        return STATUS_OK;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        struct text out = {0};
        if (!text_equal(args.positional[0], shells[i].name))
            continue;
        enum status status = shells[i].write(cli, &out);
        if (status == STATUS_OK)
            status = text_done(&out);
        if (status == STATUS_OK)
            fputs(text_of(&out), stdout);
        text_free(&out);
        return status;
    }
    FAIL(STATUS_INPUT, "found the shell '%s', expected bash, fish or zsh", args.positional[0]);
}
