/* prove_program.c: see prove_program.h. */
#include "cli/program/prove_program.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/screen.h"
#include "cli/store_file.h"
#include "cli/table/wrap.h"
#include "record/record.h"
#include "watch/watching.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool prove_possible(const char *rule, const char *lever)
{
    for (size_t i = 0; i < lever_count; i++)
        if (strcmp(levers[i].rule, rule) == 0 &&
            (lever ? !strcmp(levers[i].key, lever) : !levers[i].asked))
            return true;
    return false;
}

enum status prove_lever(const char *key, const struct lever **out)
{
    const char *keys[32];
    size_t count = 0;
    for (size_t i = 0; i < lever_count; i++) {
        if (strcmp(levers[i].key, key) == 0) {
            *out = &levers[i];
            return STATUS_OK;
        }
        if (count < sizeof keys / sizeof *keys)
            keys[count++] = levers[i].key;
    }
    const char *near = text_nearest(key, keys, count);
    FAIL(STATUS_INPUT, "--lever: found \"%s\", expected one that prony advise --rules lists%s%s",
         key, near ? "; did you mean " : "", near ? near : "");
}

void prove_tell(void *context, int64_t done, int64_t all)
{
    (void)context;
    char line[80];
    snprintf(line, sizeof line, "proving: run %lld of at most %lld", (long long)done,
             (long long)all);
    screen_status(line);
}

static void add_gain(double gain, struct text *out)
{
    text_printf(out, gain < 9.95 ? "%.2f ×" : "%.1f ×", gain);
}

/* "proved", or why not. */
static void add_verdict(const struct proof *proof, const struct prove_promise *promise,
                        struct text *out)
{
    const enum verdict verdict = proof->found.verdict;
    if (verdict != VERDICT_FASTER) {
        text_printf(out, "%s%s", *promise->rule ? "not proved: " : "", verdict_name(verdict));
        if (verdict == VERDICT_UNKNOWN && proof->found.instances < COMPARE_INSTANCES)
            text_printf(out, " from %d rounds; %d or more may", (int)proof->found.instances,
                        COMPARE_INSTANCES);
        return;
    }
    text_add(out, *promise->rule ? "proved" : "faster");
    if (*promise->rule && (proof->low > promise->high || proof->high < promise->low))
        text_printf(out, ", outside the expected range (%.2f to %.2f ×)", promise->low,
                    promise->high);
}

void prove_add_line(const struct proof *proof, const struct prove_promise *promise,
                    struct text *line)
{
    if (*promise->rule) {
        text_printf(line, "%s ", rule_word_name(promise->word));
        add_gain(promise->expected, line);
        text_add(line, " · ");
    }
    text_add(line, "measured ");
    add_gain(proof->gain, line);
    if (isfinite(proof->low) && isfinite(proof->high))
        text_printf(line, " ± %.0f %%", 50 * (proof->high - proof->low) / proof->gain);
    text_add(line, " · ");
    add_verdict(proof, promise, line);
}

static void print_proof(const struct proof *proof, const struct prove_promise *promise)
{
    struct text line = {0}, out = {0};
    prove_add_line(proof, promise, &line);
    wrap_add(&out, "", text_of(&line), screen_width(stderr));
    screen_status(NULL);
    fputs(text_of(&out), stderr);
    text_free(&line);
    text_free(&out);
}

/* Files it; a store that is not there is no reason to lose what was measured: it is said. */
enum status prove_keep(const struct prove_wish *wish, const struct prove_promise *promise,
                       const char *change, const struct proof *proof)
{
    struct store *store;
    char at[CLOCK_STAMP];
    struct arena arena = {0};
    struct record record;
    struct text line = {0};
    const struct proof_line kept = {.rule = promise->rule,
                                    .command = wish->command,
                                    .change = change,
                                    .expected = promise->expected,
                                    .low = promise->low,
                                    .high = promise->high,
                                    .measured = proof->gain,
                                    .measured_low = proof->low,
                                    .measured_high = proof->high,
                                    .rounds = proof->found.rounds,
                                    .verdict = proof->found.verdict};
    clock_stamp(at);
    proof_line_write(&kept, NULL, at, &line);
    enum status status = store_file_open(wish->store, STORE_WRITE, &store);
    if (status == STATUS_OK) {
        status = record_read(&arena, "the proof", 1, text_of(&line), line.length, &record);
        if (status == STATUS_OK)
            status = store_keep(store, text_of(&line), &record);
        store_close(store);
    }
    if (status == STATUS_UNSUPPORTED) { /* no SQLite */
        log_warning("the proof is not kept: %s", status_message());
        status = STATUS_OK;
    }
    text_free(&line);
    arena_free(&arena);
    return status;
}

/* The program after the change, and what the change is called. NULL: there is none that helps. */
static enum status find_change(struct cli *cli, const struct prove_wish *wish,
                               const struct prove_promise *promise, const char *folder,
                               struct running_options *after, const char **change)
{
    const struct lever *lever = NULL;
    if (wish->against) {
        const char **words;
        NEED(words = arena_array(&cli->arena, 4, sizeof *words));
        words[0] = "/bin/sh";
        words[1] = "-c";
        NEED(words[2] = arena_format(&cli->arena, "exec %s", wish->against));
        after->words = words;
        *change = wish->against;
        return STATUS_OK;
    }
    if (wish->lever)
        TRY(prove_lever(wish->lever, &lever));
    else
        TRY(prove_choose(after, promise->rule, folder, cli_interrupted, &cli->arena, &lever));
    *change = NULL;
    if (lever)
        NEED(*change = strchr(lever->environment, '@')
                           ? arena_format(&cli->arena, "lever %s", lever->key)
                           : lever->environment);
    return lever ? lever_environment(lever, folder, &cli->arena, &after->environment) : STATUS_OK;
}

/* Times the steps of the program, with its start and end left out. */
struct step_runner {
    const struct running_options *before, *after;
    const struct prove_wish *wish;
};

static enum status run_steps(void *context, bool after, double *ns)
{
    const struct step_runner *runner = context;
    const struct watching_options options = {.program = after ? *runner->after : *runner->before,
                                             .agent_gpu = runner->wish->agent_gpu,
                                             .stopped = cli_interrupted};
    struct running_end end;
    struct text how = {0};
    double spread_ns;
    bool known;
    TRY(watching_beats(&options, &runner->wish->beat, &known, ns, &spread_ns, &end));
    if (cli_interrupted())
        FAIL(STATUS_INTERRUPTED, "stopped");
    if (known)
        return STATUS_OK;
    if (!end.code && !end.signal)
        FAIL(STATUS_UNSUPPORTED, "the steps of the program cannot be timed");
    running_add_end(&end, &how);
    enum status status = status_fail(STATUS_DEVICE, __FILE__, __LINE__,
                                     "%s %s: nothing can be proved with a run that fails",
                                     runner->wish->words[0], text_of(&how));
    text_free(&how);
    return status;
}

/* By its steps, or where the changed program has others, by whole runs. */
static enum status prove_by(const struct prove_wish *wish, struct prove_options *options,
                            struct proof *proof)
{
    struct step_runner runner = {&options->before, &options->after, wish};
    if (wish->beat.name && wish->agent_gpu) {
        options->run = run_steps;
        options->runner = &runner;
        const enum status status = prove_run(options, proof);
        if (status != STATUS_UNSUPPORTED)
            return status;
        options->run = NULL;
        screen_status(NULL);
        fputs("its steps cannot be timed: whole runs are, start and end included\n", stderr);
    }
    return prove_run(options, proof);
}

/* With the files of levers in the folder. */
static enum status prove_with(struct cli *cli, const struct prove_wish *wish,
                              const struct prove_promise *promise, const char *folder)
{
    struct prove_options options = {.before = {.words = wish->words, .silent = true},
                                    .after = {.words = wish->words, .silent = true},
                                    .rounds = wish->rounds,
                                    .stopped = cli_interrupted,
                                    .tell = prove_tell};
    struct proof proof;
    const char *change = NULL;
    screen_status("proving: one run with each lever");
    TRY(find_change(cli, wish, promise, folder, &options.after, &change));
    screen_status(NULL);
    if (!change) {
        fprintf(stderr, "not proved: no lever made it faster in a run each\n");
        return STATUS_OK;
    }
    struct text line = {0}, out = {0};
    text_printf(&line, "%s%s: up to %lld runs of each, in turns, unwatched, without output",
                wish->against ? "against " : "with ", change, (long long)(2 * wish->rounds));
    wrap_add(&out, "", text_of(&line), screen_width(stderr));
    fputs(text_of(&out), stderr);
    text_free(&line);
    text_free(&out);
    TRY(prove_by(wish, &options, &proof));
    print_proof(&proof, promise);
    enum status status = *promise->rule ? prove_keep(wish, promise, change, &proof) : STATUS_OK;
    proof_free(&proof);
    return status;
}

enum status prove_program(struct cli *cli, const struct prove_wish *wish,
                          const struct prove_promise *promise)
{
    char folder[PATH_MAX];
    TRY(lever_folder_make(folder, sizeof folder));
    enum status status = prove_with(cli, wish, promise, folder);
    lever_folder_remove(folder);
    return status;
}

static enum status add_proof(void *context, int64_t id, const char *line, size_t length)
{
    struct proof_history *histories = context;
    struct arena arena = {0};
    struct record record;
    struct proof_line proof;
    (void)id;
    if (record_read(&arena, "the store", 1, line, length, &record) == STATUS_OK &&
        record.kind == RECORD_PROOF && proof_line_read(record.proof, &proof) == STATUS_OK)
        for (int i = 0; i < RULES; i++)
            if (strcmp(proof.rule, rules[i].id) == 0)
                proof_history_add(&histories[i], &proof);
    arena_free(&arena);
    return STATUS_OK;
}

enum status prove_histories(const char *store, struct proof_history **histories)
{
    struct store *opened;
    NEED(*histories = mem_array(RULES, sizeof **histories));
    if (store_file_open(store, STORE_READ, &opened) != STATUS_OK)
        return STATUS_OK;
    enum status status = store_export(opened, "proof", add_proof, *histories);
    store_close(opened);
    if (status != STATUS_OK)
        mem_free(*histories);
    return status;
}

enum status prove_ranges(const char *store, struct rule_range *ranges)
{
    struct proof_history *histories;
    rule_ranges(ranges);
    TRY(prove_histories(store, &histories));
    for (int i = 0; i < RULES; i++) {
        proof_history_correct(&histories[i], &ranges[i].low, &ranges[i].high);
        ranges[i].proofs = (int64_t)histories[i].factor_count;
    }
    mem_free(histories);
    return STATUS_OK;
}

enum status prove_advise(const struct trace *trace, const char *store, struct advice *advice)
{
    struct rule_range ranges[RULES];
    TRY(prove_ranges(store, ranges));
    return advise(trace, ranges, advice);
}
