/* main.c: the command table, signals, and the one place where an error is printed. */
#include "backend/cpu/cpu_backends.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/screen.h"
#include "cli/training/workers.h"
#include "comm/launcher.h"
#include "data/dataset.h"
#include "nn/network.h"
#include "record/version.h"
#include "record/words/glossary.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct command *const cli_commands[COMMANDS] = {
#define COMMAND(name) &cmd_##name,
#include "cli/commands.def"
};

static volatile sig_atomic_t interrupted;

static void on_signal(int signal_number)
{
    if (interrupted && signal_number != SIGHUP) { /* of which a closed terminal sends several */
        screen_status_drop();
        _exit(128 + signal_number);
    }
    interrupted = 1;
    alarm(1);
}

/* It still runs, a second after it was asked to stop: whoever did should know what it waits for. */
static void on_alarm(int signal_number)
{
    static const char message[] = "prony: stopping after this step; Ctrl-C again stops at once\n";
    (void)signal_number;
    screen_status_drop();
    ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);
    (void)written; /* nothing can be done about it here */
}

static int program_status; /* of a program that a command ran */

void cli_exit_as(int status)
{
    program_status = status;
}

bool cli_interrupted(void)
{
    return interrupted;
}

/* On a terminal in lines that fit, indented below the first; elsewhere one line, for programs. */
static void print_message(const char *kind, const char *message)
{
    struct text whole = {0}, lines = {0};
    text_printf(&whole, "prony: %s%s", kind, message);
    if (screen_is_terminal(stderr))
        text_add_wrapped(&lines, text_of(&whole), 0, 2, screen_width(stderr));
    else
        text_add(&lines, text_of(&whole));
    fprintf(stderr, "%s\n", text_done(&lines) == STATUS_OK ? text_of(&lines) : message);
    text_free(&whole);
    text_free(&lines);
}

/* What was said last is not said again: several steps of a command may read the same file. */
static void print_log(void *context, enum log_level level, const char *message)
{
    static char last[1000];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    (void)context;
    pthread_mutex_lock(&lock);
    bool again = !strcmp(last, message);
    snprintf(last, sizeof last, "%s", message);
    pthread_mutex_unlock(&lock);
    if (again || screen_reader_left())
        return;
    print_message(level == LOG_WARNING ? "warning: " : "", message);
}

enum status cli_shape(struct cli *cli, const char *shape)
{
    bool any = false;
    for (int i = 0; shape && i < cli->found.count; i++) {
        const char **name = &cli->found.positional[i];
        if (!text_ends(*name, ".onnx"))
            continue;
        NEED(*name = arena_format(&cli->arena, "%s:%s", *name, shape));
        any = true;
    }
    if (shape && !any)
        FAIL(STATUS_INPUT, "--shape needs a FILE.onnx: only such networks leave sizes open");
    return STATUS_OK;
}

bool cli_has_weights(const char *network)
{
    return network_onnx_end(network) != NULL;
}

enum status cli_keep_network(const char *out, const char *network)
{
    return network_built_in(network) ? STATUS_OK : file_check_apart(out, network);
}

enum status cli_keep_data(const char *out, const char *data)
{
    return data && dataset_built_in(data) ? STATUS_OK : file_check_apart(out, data);
}

static void print_usage(FILE *out)
{
    static const char *const lines[] = {
#define GROUP(title) title,
#define COMMAND(name) NULL,
#include "cli/commands.def"
    };
    fputs("prony measures what a neural network really delivers: how fast it trains and\npredicts "
          "here, how far that is from the limit, and why.\n\n  prony machine                       "
          "  what this machine is\n  prony bench large --batch 1,10,64     how fast a network is, "
          "in three batches\n  prony train small iris                train a network, see its "
          "accuracy\n",
          out);
    int command = 0;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (lines[i]) {
            fprintf(out, "\n%s\n", lines[i]);
            continue;
        }
        fprintf(out, "  %-11s %s\n", command_name(cli_commands[command]),
                cli_commands[command]->summary);
        command++;
    }
    fputs("\nusage: prony COMMAND [arguments]; prony COMMAND --help says more\n", out);
}

/* The folder the executable is in: plugins lie beside it. */
static enum status find_folder(char *folder, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", folder, size - 1);
    if (length <= 0)
        FAIL(STATUS_IO, "cannot read /proc/self/exe: is /proc mounted?");
    folder[length] = 0;
    *strrchr(folder, '/') = 0;
    return STATUS_OK;
}

static void print_help(const struct command *command, bool all)
{
    const int width = screen_width(stdout) < SCREEN_USUAL ? screen_width(stdout) : SCREEN_USUAL;
    struct text text = {0};
    args_help(&command->args, command->summary, all, width, &text);
    fputs(text_of(&text), stdout);
    text_free(&text);
}

/* What was typed, so that it can be pasted. */
static enum status keep_typed(struct cli *cli, const struct args *args, int argc,
                              const char *const *argv)
{
    struct text typed = {0};
    text_add(&typed, args->command);
    for (int i = 1; i < argc; i++) {
        text_add_char(&typed, ' ');
        text_add_word(&typed, argv[i]);
    }
    enum status status = text_done(&typed);
    if (status == STATUS_OK && !(cli->typed = arena_text(&cli->arena, text_of(&typed))))
        status = status_fail(STATUS_MEMORY, __FILE__, __LINE__, "out of memory");
    text_free(&typed);
    return status;
}

/* Each of several ranks would do all of it. A program of the user's may be one rank of several. */
static enum status check_alone(const struct cli *cli)
{
    struct launcher launcher;
    if (cli->found.program || !launcher_found(&launcher) || launcher.size == 1)
        return STATUS_OK;
    worker_silent(&launcher);
    FAIL(STATUS_INPUT,
         "%s says that %d ranks were started, expected one process for %s: start it without mpirun "
         "or srun; train, suite and comm are for ranks",
         launcher.by, launcher.size, cli->args->command);
}

/* With its arguments read: help, or what it does. */
static enum status run_with(struct cli *cli, const struct command *command, int argc,
                            const char *const *argv)
{
    void *options;
    NEED(cli->found.positional = arena_array(&cli->arena, (size_t)argc, sizeof(char *)));
    NEED(options = arena_alloc(&cli->arena, command->bytes));
    cli->args = &command->args;
    TRY(keep_typed(cli, cli->args, argc, argv));
    TRY(args_parse(cli->args, argc, argv, options, &cli->found));
    if (!cli->found.help && command->alone)
        TRY(check_alone(cli));
    if (!cli->found.help)
        return command->run(cli, options);
    print_help(command, cli->found.help_all);
    return STATUS_OK;
}

static enum status run_command(const struct command *command, int argc, const char *const *argv)
{
    char folder[4096];
    TRY(find_folder(folder, sizeof folder));
    struct registry registry = {0};
    struct cli cli = {.registry = &registry, .folder = folder};
    cpu_register(&registry);
    enum status status = registry_load(&registry, folder);
    if (status == STATUS_OK)
        status = run_with(&cli, command, argc, argv);
    registry_close(&registry);
    arena_free(&cli.arena);
    return status;
}

/* Its place in the table; COMMANDS: there is no such command. */
static int find_command(const char *name)
{
    int index = 0;
    while (index < COMMANDS && strcmp(name, command_name(cli_commands[index])))
        index++;
    return index;
}

enum status cli_flush(void)
{
    /* A line that could not be written is forgotten by fflush, not by ferror; the reason is, and
     * one more byte fails with the same. */
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        if (screen_reader_left())
            FAIL(STATUS_INTERRUPTED, "the reader of standard output closed it");
        return STATUS_OK;
    }
    if (write(STDOUT_FILENO, "\n", 1) == 1)
        FAIL(STATUS_IO, "cannot write to standard output: a part of it is lost");
    FAIL(STATUS_IO, "cannot write to standard output: %s", strerror(errno));
}

/* Says what went wrong, if anything; the exit status. A reader that closed its end has seen enough,
 * and is told nothing: the status is that of a program which SIGPIPE ends. */
static int end(enum status status)
{
    screen_status(NULL);
    if (status == STATUS_OK)
        status = cli_flush();
    if (screen_reader_left() && (status == STATUS_OK || status == STATUS_INTERRUPTED))
        return 128 + SIGPIPE;
    if (status == STATUS_OK)
        return program_status;
    print_message("", status_message());
    return status == STATUS_INPUT ? 2 : status == STATUS_INTERRUPTED ? 130 : 1;
}

static int unknown_command(const char *name)
{
    const char *names[COMMANDS];
    for (int i = 0; i < COMMANDS; i++)
        names[i] = command_name(cli_commands[i]);
    const char *near = text_nearest(name, names, COMMANDS);
    if (near)
        status_fail(STATUS_INPUT, __FILE__, __LINE__,
                    "there is no command '%s'; did you mean '%s'?", name, near);
    else
        status_fail(STATUS_INPUT, __FILE__, __LINE__,
                    "there is no command '%s'; prony help lists them", name);
    return end(STATUS_INPUT);
}

/* A file that is opened must not become a standard one that was closed: messages would go into it.
 * What is opened instead fails whoever reads from the input or writes to the output. */
static bool fill_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return false;
    return true;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* as nohup has it */
        sigaction(SIGHUP, &action, NULL);
    struct sigaction late = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &late, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* so that writing fails, and what was begun is taken back */
}

/* Is what it prints a file for programs: JSON, CSV, a protocol? */
static bool is_for_programs(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], "--json", 6) || !strcmp(argv[i], "export") ||
            !strcmp(argv[i], "show") || !strcmp(argv[i], "peer") ||
            (!strncmp(argv[i], "--format", 8) && !strstr(argv[i], "=table") &&
             !(i + 1 < argc && !strcmp(argv[i + 1], "table"))))
            return true;
    return false;
}

int main(int argc, char **argv)
{
    if (!fill_standard_files())
        return 1; /* and nowhere to say it */
    log_to(print_log, NULL, LOG_INFO);
    screen_guard();
    if (!is_for_programs(argc, argv))
        screen_for_person();
    catch_signals();

    if (argc < 2) {
        print_usage(stdout);
        return end(STATUS_OK);
    }
    bool help = !strcmp(argv[1], "help");
    if ((help && argc == 2) || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        print_usage(stdout);
        return end(STATUS_OK);
    }
    if (!strcmp(argv[1], "--version")) {
        printf("prony %s\n", version_number);
        return end(STATUS_OK);
    }
    const char *name = argv[help ? 2 : 1]; /* prony help COMMAND is prony COMMAND --help */
    int index = find_command(name);
    const char *near;
    if (index == COMMANDS && help && glossary_find(name, &near))
        return end(cli_explain_term(name));
    if (index == COMMANDS)
        return unknown_command(name);
    if (help) {
        const char *const words[] = {name, "--help", argc > 3 ? argv[3] : ""};
        return end(run_command(cli_commands[index], 3, words));
    }
    return end(run_command(cli_commands[index], argc - 1, (const char *const *)argv + 1));
}
