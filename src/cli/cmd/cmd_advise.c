/* cmd_advise.c: prony advise: what would make a program faster, and by how much. */
#include "advise/advise.h"
#include "cli/commands.h"
#include "cli/program/program_run.h"
#include "cli/program/prove_program.h"
#include "cli/program/trace_command.h"

#include <stdio.h>
#include <string.h>

struct advise_flags {
    const char *against, *lever, *out, *store;
    double seconds, rate;
    int64_t rounds;
    bool json, rules, once, prove;
};

/* What the proofs in the store say of it. */
static enum status print_record(const struct rule *rule, const char *store)
{
    struct proof_history history;
    double low = rule->low, high = rule->high;
    TRY(prove_history(store, rule->id, &history));
    if (!history.proofs)
        return STATUS_OK;
    proof_history_correct(&history, &low, &high);
    printf("       proofs: %lld, faster in %lld, as expected in %lld; of a gain g the range is "
           "1 + %.2f (g - 1) to 1 + %.2f (g - 1)\n",
           (long long)history.proofs, (long long)history.faster, (long long)history.held, low,
           high);
    return STATUS_OK;
}

static enum status print_rules(const char *store)
{
    for (int i = 0; i < RULES; i++) {
        printf("%-4s %s\n", rules[i].id, rules[i].title);
        for (size_t j = 0; j < lever_count; j++)
            if (strcmp(levers[j].rule, rules[i].id) == 0)
                printf("       lever %s: %s\n", levers[j].key, levers[j].help);
        TRY(print_record(&rules[i], store));
    }
    return STATUS_OK;
}

static enum status run_advise(struct cli *cli, void *options)
{
    const struct advise_flags *flags = options;
    if (flags->rules)
        return print_rules(flags->store);
    if (cli->found.program)
        return advise_program(cli, &(struct program_flags){.out = flags->out,
                                                           .rate = flags->rate,
                                                           .seconds = flags->seconds,
                                                           .once = flags->once,
                                                           .json = flags->json,
                                                           .prove = flags->prove,
                                                           .against = flags->against,
                                                           .lever = flags->lever,
                                                           .store = flags->store,
                                                           .rounds = flags->rounds});
    if (flags->json && flags->against)
        FAIL(STATUS_INPUT,
             "--json and --against: found both, expected one: the object has no proof");
    if (flags->prove)
        FAIL(STATUS_INPUT, "--prove is given, expected it with a program: prony advise --prove -- "
                           "COMMAND");
    if (!cli->found.count)
        FAIL(STATUS_INPUT, "found no FILE, expected a trace; prony advise --help says more");
    return trace_show_file(&(struct trace_wish){.path = cli->found.positional[0],
                                                .advice = true,
                                                .json = flags->json,
                                                .against = flags->against});
}

#define AT(field) ARG(struct advise_flags, field)
static const struct arg rows[] = {
    {AT(prove), NULL, "run a COMMAND with and without the change, in turns"},
    {AT(against), "'COMMAND'",
     "prove with the program after your change; of a trace, with its FILE"},
    {AT(lever), "NAME",
     "prove with this one, of those that --rules lists (the best in a run each)"},
    {AT(rounds), "N", "at most N rounds of four runs each (8)", ARG_FROM(2, PROVE_ROUNDS_MOST),
     "8"},
    {AT(rules), NULL, "list what is looked for, its levers and how often it was right, and stop"},
    {AT(seconds), "S", "stop a COMMAND after S seconds (it runs to its end)",
     ARG_FROM(0.01, 86400)},
    {AT(rate), "HZ", "samples per second of a COMMAND (100)", ARG_FROM(1, 1000), "100"},
    {AT(once), NULL, "run a COMMAND once, watched"},
    {AT(out), "FILE", "keep the samples of a COMMAND, for prony profile FILE"},
    {AT(json), NULL, "one JSON object"},
    {CLI_STORE(struct advise_flags)},
    ARG_END,
};

const struct command cmd_advise = {
    .summary = "say what would make a program faster, and by how much",
    .run = run_advise,
    .bytes = sizeof(struct advise_flags),
    .args = {.command = "prony advise",
             .usage = "[options] FILE | -- COMMAND…",
             .summary =
                 "Reads a trace and says what would make the program faster: the line, what was "
                 "seen there,\nand the gain of the whole program. The gain comes from a replay "
                 "of the trace with only this\nchange. Gains below 5 % or within the noise are "
                 "left out.\n\n"
                 "After -- stands a program: it runs unwatched, then watched. --prove runs it in "
                 "turns, with and without a\nchange of its environment. It says whether the "
                 "expected gain is there; the store keeps each proof.",
             .examples = "  prony advise trace.json.gz            a trace of torch.profiler\n"
                         "  prony advise old.json --against new.json\n"
                         "  prony advise run.trace --json         one of prony, for a program\n"
                         "  prony advise -- python3 train.py      a program, as it is\n"
                         "  prony advise --prove -- python3 train.py\n"
                         "  prony advise --against 'python3 better.py' -- python3 train.py\n"
                         "  prony advise --rules                  what is looked for\n",
             .lists = {{rows, 0}},
             .least = 0,
             .most = 1,
             .program = true},
};
