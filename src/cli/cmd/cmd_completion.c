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

static void add_bash(struct text *out, const struct command *command)
{
    const struct arg *arg;
    text_printf(out, "    %s) words='", command_name(command));
    for (size_t i = 0; (arg = args_at(&command->args, i)); i++)
        text_printf(out, "--%s ", arg->name);
    text_add(out, "--help' ;;\n");
}

static void write_bash(struct text *out)
{
    text_add(out, "# bash completion of prony, written by `prony completion bash`\n"
                  "_prony()\n{\n"
                  "    local word=${COMP_WORDS[COMP_CWORD]} words=\n"
                  "    case ${COMP_WORDS[1]} in\n");
    for (int i = 0; i < COMMANDS; i++)
        add_bash(out, cli_commands[i]);
    text_add(out, "    esac\n    COMPREPLY=()\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                  "        words='help");
    for (int i = 0; i < COMMANDS; i++)
        text_printf(out, " %s", command_name(cli_commands[i]));
    text_add(out, "'\n    elif [[ $word != -* ]]; then\n        return\n    fi\n"
                  "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
                  "complete -o default -F _prony prony\n");
}

static void add_fish(struct text *out, const struct command *command)
{
    const struct arg *arg;
    for (size_t i = 0; (arg = args_at(&command->args, i)); i++) {
        text_printf(out, "complete -c prony -n '__fish_seen_subcommand_from %s' -l %s%s -d ",
                    command_name(command), arg->name, arg->kind == ARG_FLAG ? "" : " -r");
        add_quoted(out, arg->help, "\\'");
        text_add_char(out, '\n');
    }
}

static void write_fish(struct text *out)
{
    text_add(out, "# fish completion of prony, written by `prony completion fish`\n");
    for (int i = 0; i < COMMANDS; i++) {
        text_printf(out, "complete -c prony -n __fish_use_subcommand -f -a %s -d ",
                    command_name(cli_commands[i]));
        add_quoted(out, cli_commands[i]->summary, "\\'");
        text_add_char(out, '\n');
    }
    for (int i = 0; i < COMMANDS; i++)
        add_fish(out, cli_commands[i]);
}

static void add_zsh(struct text *out, const struct command *command)
{
    const struct arg *arg;
    text_printf(out, "%s)\n    _arguments -S", command_name(command));
    for (size_t i = 0; (arg = args_at(&command->args, i)); i++)
        text_printf(out, " '--%s%s'", arg->name, arg->kind == ARG_FLAG ? "" : "=:value:_files");
    text_add(out, " '--help' '*:file:_files'\n    ;;\n");
}

static void write_zsh(struct text *out)
{
    text_add(out, "#compdef prony\n# zsh completion of prony, written by `prony completion zsh`\n"
                  "if ((CURRENT == 2)); then\n    local -a commands\n    commands=(");
    for (int i = 0; i < COMMANDS; i++) {
        struct text row = {0};
        text_printf(&row, "%s:%s", command_name(cli_commands[i]), cli_commands[i]->summary);
        text_add_char(out, ' ');
        add_quoted(out, text_of(&row), "'\\''");
        text_free(&row);
    }
    text_add(out, ")\n    _describe command commands\n    return\nfi\n"
                  "local command=$words[2]\n"
                  "words=(\"${(@)words[2,-1]}\")\n((CURRENT--))\n"
                  "case $command in\n");
    for (int i = 0; i < COMMANDS; i++)
        add_zsh(out, cli_commands[i]);
    text_add(out, "esac\n");
}

static const struct {
    const char *name;
    void (*write)(struct text *out);
} shells[] = {{"bash", write_bash}, {"fish", write_fish}, {"zsh", write_zsh}};

static enum status run_completion(struct cli *cli, void *options)
{
    const char *shell = cli->found.positional[0];
    (void)options;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        struct text out = {0};
        if (!text_equal(shell, shells[i].name))
            continue;
        shells[i].write(&out);
        enum status status = text_done(&out);
        if (status == STATUS_OK)
            fputs(text_of(&out), stdout);
        text_free(&out);
        return status;
    }
    FAIL(STATUS_INPUT, "found the shell '%s', expected bash, fish or zsh", shell);
}

const struct command cmd_completion = {
    .summary = "print the completion of arguments for a shell",
    .run = run_completion,
    .args = {.command = "prony completion",
             .usage = "bash|fish|zsh",
             .summary = "Prints what a shell needs to complete prony's commands and options.",
             .examples = "  eval \"$(prony completion bash)\"\n",
             .least = 1,
             .most = 1},
};
