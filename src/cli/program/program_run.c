/* program_run.c: see program_run.h. The program keeps its standard output: the report goes to
 * standard error, as that of time and strace does. With --json the object goes to standard output,
 * and the program's output to standard error. */
#include "cli/program/program_run.h"

#include "advise/advise.h"
#include "base/machine/cpu.h"
#include "cli/program/agents.h"
#include "cli/program/keep_profile.h"
#include "cli/program/program_gpu.h"
#include "cli/program/program_report.h"
#include "cli/program/prove_program.h"
#include "cli/program/trace_command.h"
#include "cli/program/trace_output.h"
#include "cli/screen.h"
#include "cli/table/wrap.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* All that a run gives. */
struct program_seen {
    const char *command; /* as it is typed */
    struct running_end unwatched;
    struct watched watched;
    struct trace trace;
};

static void seen_free(struct program_seen *seen)
{
    watched_free(&seen->watched);
    trace_free(&seen->trace);
}

static enum status find_agents(const struct cli *cli, struct arena *arena,
                               struct watching_options *options)
{
    TRY(agent_find(cli, AGENT_OF_CPU, arena, &options->agent));
    if (!options->agent)
        FAIL(STATUS_UNSUPPORTED,
             "%s: found none beside prony, nor in ../lib/prony: it looks into programs, and make "
             "builds it",
             AGENT_OF_CPU);
    return agent_find(cli, AGENT_OF_GPU, arena, &options->agent_gpu);
}

static enum status command_line(const struct cli *cli, struct arena *arena, const char **out)
{
    struct text typed = {0};
    for (const char *const *word = cli->found.program; *word; word++) {
        if (typed.length)
            text_add_char(&typed, ' ');
        text_add_word(&typed, *word);
    }
    enum status status = text_done(&typed);
    if (status == STATUS_OK && !(*out = arena_text(arena, text_of(&typed))))
        status = status_fail(STATUS_MEMORY, __FILE__, __LINE__, "out of memory");
    text_free(&typed);
    return status;
}

static enum status add_number(struct trace *trace, const char *key, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.0f", value);
    return trace_add_fact(trace, key, text);
}

/* Faults of its threads so far: pages that a process has at most fault once each, those beyond come
 * again. */
static double faults_again(const struct watched *watched, size_t first)
{
    const pid_t process = watched->threads[first].process;
    double faults = 0;
    for (size_t i = 0; i < watched->thread_count; i++) {
        if (watched->threads[i].process != process)
            continue;
        if (i < first) /* it was counted there */
            return 0;
        faults += watched->threads[i].faults;
    }
    const double pages = watched->end.peak_bytes / (double)sysconf(_SC_PAGESIZE);
    return faults > pages ? faults - pages : 0;
}

/* What the samples do not say. */
static enum status add_facts(const struct program_flags *flags,
                             const struct watching_options *options, struct program_seen *seen)
{
    struct cpu cpu;
    double on_core_ns = 0, ready_ns = 0, system_ns = 0, faults = 0, again = 0;
    cpu_detect(&cpu);
    for (size_t i = 0; i < seen->watched.thread_count; i++) {
        const struct seen_thread *thread = &seen->watched.threads[i];
        on_core_ns += thread->ran_ns > 0 ? thread->ran_ns : 0;
        ready_ns += thread->runnable_ns > 0 ? thread->runnable_ns : 0;
        system_ns += thread->system_ns;
        faults += thread->faults;
        again += faults_again(&seen->watched, i);
    }
    TRY(trace_add_fact(&seen->trace, "command", seen->command));
    TRY(add_number(&seen->trace, "cores", cpu.cores));
    TRY(add_number(&seen->trace, "on_core_ns", on_core_ns));
    TRY(add_number(&seen->trace, "ready_ns", ready_ns));
    TRY(add_number(&seen->trace, "system_ns", system_ns));
    TRY(add_number(&seen->trace, "faults", faults));
    TRY(add_number(&seen->trace, "faults_again", again));
    TRY(program_gpu_facts(&seen->watched, &seen->trace, &seen->watched.notes));
    return flags->once ? STATUS_OK
                       : program_unwatched(options, &seen->unwatched, &seen->watched, &seen->trace);
}

/* Runs it: unwatched, unless once is enough, then watched. */
static enum status see_program(struct cli *cli, const struct program_flags *flags,
                               struct program_seen *seen)
{
    struct watching_options options = {
        .program = {.words = cli->found.program, .aside = flags->json},
        .rate = flags->rate,
        .seconds = flags->seconds,
        .stopped = cli_interrupted};
    *seen = (struct program_seen){.command = ""};
    TRY(find_agents(cli, &cli->arena, &options));
    TRY(command_line(cli, &cli->arena, &seen->command));
    if (!flags->once)
        TRY(watching_unwatched(&options, &seen->unwatched));
    if (cli_interrupted())
        FAIL(STATUS_INTERRUPTED, "stopped in the run that is not watched: nothing was seen");
    TRY(watching_run(&options, &seen->trace, &seen->watched));
    TRY(add_facts(flags, &options, seen));
    cli_exit_as(running_exit_status(&seen->watched.end));
    const struct trace_wish files = {
        .chrome = flags->trace, .callgrind = flags->callgrind, .folded = flags->folded};
    TRY(trace_write_files(&seen->trace, &files));
    return flags->out ? trace_write(&seen->trace, flags->out) : STATUS_OK;
}

static enum status tell(struct text *out, bool json)
{
    enum status status = text_done(out);
    if (status == STATUS_OK)
        fputs(text_of(out), json ? stdout : stderr);
    text_free(out);
    return status;
}

enum status profile_program(struct cli *cli, const struct program_flags *flags)
{
    struct program_seen seen;
    struct advice advice = {0};
    struct text out = {0};
    enum status status = see_program(cli, flags, &seen);
    if (status == STATUS_OK)
        status = advise_budget(&seen.trace, &advice);
    const struct program_report report = {.command = seen.command,
                                          .unwatched = flags->once ? NULL : &seen.unwatched,
                                          .watched = &seen.watched,
                                          .trace = &seen.trace,
                                          .advice = &advice,
                                          .width = screen_width(stderr)};
    if (status == STATUS_OK)
        status =
            flags->json ? program_report_json(&report, &out) : program_report_text(&report, &out);
    if (status == STATUS_OK)
        status = tell(&out, flags->json);
    if (status == STATUS_OK && flags->keep)
        status = profile_keep(&seen.trace, &(struct keep_wish){.store = flags->store,
                                                               .title = seen.command,
                                                               .command = seen.command,
                                                               .here = true});
    text_free(&out);
    advice_free(&advice);
    seen_free(&seen);
    return status;
}

static enum status tell_advice(const struct program_flags *flags, const struct program_seen *seen,
                               const struct advice *advice)
{
    const int width = screen_width(stderr);
    struct text out = {0};
    if (!flags->json && !seen->watched.stopped)
        program_report_end(&seen->watched.end, width, &out);
    enum status status = flags->json
                             ? traced_json(&seen->trace, advice, seen->command, &out)
                             : advised_text(&seen->trace, advice, seen->command, width, &out);
    for (const char *note = text_of(&seen->watched.notes);
         status == STATUS_OK && *note && !flags->json; note += strcspn(note, "\n") + 1) {
        struct text line = {0};
        text_add_bytes(&line, note, strcspn(note, "\n"));
        wrap_add(&out, "", text_of(&line), width);
        text_free(&line);
    }
    if (status == STATUS_OK)
        return tell(&out, flags->json);
    text_free(&out);
    return status;
}

/* Levers that have to be named, since they may change results. */
static void list_asked(const struct advice *advice)
{
    for (size_t i = 0; i < advice->count; i++)
        for (size_t k = 0; k < lever_count; k++)
            if (levers[k].asked && !strcmp(levers[k].rule, advice->findings[i].rule->id))
                fprintf(stderr, "%s can be proved with --lever %s: %s\n", levers[k].rule,
                        levers[k].key, levers[k].help);
}

/* Whole runs are timed, and a gain is none of the start-up. */
static double whole_gain(double gain, double part)
{
    return gain > 0 ? 1 / (1 - part * (1 - 1 / gain)) : gain;
}

static void promise_whole(const struct advice *advice, struct prove_promise *promise)
{
    const double window = (double)advice->budget.window_ns;
    const double part = window / (window + (double)advice->steps.startup_ns);
    if (!advice->steps.startup_ns || window <= 0)
        return;
    promise->expected = whole_gain(promise->expected, part);
    promise->low = whole_gain(promise->low, part);
    promise->high = whole_gain(promise->high, part);
    fprintf(stderr, "with its start-up %.2f × is %s\n", promise->expected,
            promise->word == RULE_EXPECTED ? "expected" : "the bound");
}

/* With a command to compare with, it stands for the first finding; else each finding that has a
 * lever is proved by it. */
static enum status prove_findings(struct cli *cli, const struct program_flags *flags,
                                  const struct program_seen *seen, const struct advice *advice)
{
    struct prove_wish wish = {.words = cli->found.program,
                              .command = seen->command,
                              .beat = beat_choose(&seen->trace, &advice->steps),
                              .against = flags->against,
                              .lever = flags->lever,
                              .store = flags->store,
                              .rounds = flags->rounds};
    bool any = false;
    TRY(agent_find(cli, AGENT_OF_GPU, &cli->arena, &wish.agent_gpu));
    for (size_t i = 0; i < advice->count && !(any && flags->against); i++) {
        const struct finding_of_trace *finding = &advice->findings[i];
        struct prove_promise promise = {finding->rule->id, finding->gain, finding->low,
                                        finding->high, finding->rule->word};
        promise_whole(advice, &promise);
        if (!flags->against && !prove_possible(finding->rule->id, flags->lever))
            continue;
        any = true;
        fprintf(stderr, "\nproving %s: %s\n", finding->rule->id, finding->rule->title);
        TRY(prove_program(cli, &wish, &promise));
    }
    if (!any && flags->against)
        return prove_program(cli, &wish, &(struct prove_promise){.rule = ""});
    if (!flags->lever && !flags->against)
        list_asked(advice);
    if (!any)
        fputs("\nnothing was found that a lever could prove; --against 'COMMAND' compares with a "
              "program that you changed\n",
              stderr);
    return STATUS_OK;
}

enum status advise_program(struct cli *cli, const struct program_flags *flags)
{
    struct program_seen seen;
    struct advice advice = {0};
    const struct lever *lever;
    if (flags->lever)
        TRY(prove_lever(flags->lever, &lever));
    enum status status = see_program(cli, flags, &seen);
    if (status == STATUS_OK)
        status = prove_advise(&seen.trace, flags->store, &advice);
    if (status == STATUS_OK)
        status = tell_advice(flags, &seen, &advice);
    if (status == STATUS_OK && (flags->prove || flags->against))
        status = prove_findings(cli, flags, &seen, &advice);
    advice_free(&advice);
    seen_free(&seen);
    return status;
}
