/* cmd_advise.c: prony advise: what would make a program faster, and by how much. */
#include "advise/advise.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/program/advise_network.h"
#include "cli/program/program_run.h"
#include "cli/program/prove_program.h"
#include "cli/program/trace_command.h"
#include "cli/table/prose.h"
#include "nn/network.h"

#include <stdio.h>
#include <string.h>

struct advise_flags {
    const char *against, *lever, *out, *store;
    const char *phase, *backend, *unit, *precision, *data, *ingestion, *shape; /* of a network */
    double seconds, rate;
    int64_t rounds, batch, threads;
    bool json, rules, once, prove, no_fusion;
};

enum { HANG = 9 }; /* where a line of --rules goes on */

/* What the proofs in the store say of it. */
static void print_record(const struct rule *rule, const struct proof_history *history)
{
    double low = rule->low, high = rule->high;
    if (!history->proofs)
        return;
    proof_history_correct(history, &low, &high);
    prose_printf(HANG,
                 "       proofs: %lld, faster in %lld, as expected in %lld; of a gain g the range "
                 "is 1 + %.2f (g - 1) to 1 + %.2f (g - 1)",
                 (long long)history->proofs, (long long)history->faster, (long long)history->held,
                 low, high);
}

static enum status print_rules(const char *store)
{
    struct proof_history *histories;
    TRY(prove_histories(store, &histories));
    for (int i = 0; i < RULES; i++) {
        prose_printf(HANG, "%-4s %s", rules[i].id, rules[i].title);
        for (size_t j = 0; j < lever_count; j++)
            if (strcmp(levers[j].rule, rules[i].id) == 0)
                prose_printf(HANG, "       lever %s%s: %s", levers[j].key,
                             levers[j].asked ? " (only where --lever names it)" : "",
                             levers[j].help);
        print_record(&rules[i], &histories[i]);
    }
    for (int i = 0; i < NOTICES; i++)
        printf("%-4s %s\n", notices[i].id, notices[i].title);
    mem_free(histories);
    return STATUS_OK;
}

/* Of our own networks the changes are measured. */
static enum status run_network(struct cli *cli, const struct advise_flags *flags)
{
    static const double SECONDS = 0.3;
    TRY(cli_shape(cli, flags->shape));
    const char *network = cli->found.positional[0];
    if (flags->against || flags->lever || flags->out)
        FAIL(STATUS_INPUT, "--against, --lever and --out: found one of them, expected it with a "
                           "COMMAND or a trace");
    return advise_network(
        cli, &(struct network_flags){.network = network,
                                     .phase = flags->phase               ? flags->phase
                                              : cli_has_weights(network) ? "inference"
                                                                         : "training",
                                     .backend = flags->backend,
                                     .unit = flags->unit,
                                     .precision = flags->precision,
                                     .data = flags->data,
                                     .ingestion = flags->ingestion,
                                     .store = flags->store,
                                     .batch = flags->batch,
                                     .threads = flags->threads,
                                     .rounds = flags->rounds,
                                     .seconds = flags->seconds > 0 ? flags->seconds : SECONDS,
                                     .no_fusion = flags->no_fusion,
                                     .prove = flags->prove,
                                     .json = flags->json});
}

/* A network of the zoo or a file of one; a word without '.' and '/' is meant to be one. */
static bool is_network(const char *name)
{
    return network_built_in(name) || network_onnx_end(name) || text_ends(name, ".net") ||
           strstr(name, ".net:") || !strpbrk(name, "./");
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
    if (cli->found.count && is_network(cli->found.positional[0]))
        return run_network(cli, flags);
    if (flags->json && flags->against)
        FAIL(STATUS_INPUT,
             "--json and --against: found both, expected one: the object has no proof");
    if (flags->prove)
        FAIL(STATUS_INPUT,
             "--prove is given, expected it with a network or a program: prony advise "
             "--prove -- COMMAND");
    if (!cli->found.count)
        FAIL(STATUS_INPUT, "found nothing, expected a network, a trace or -- COMMAND; prony advise "
                           "--help says more");
    return trace_show_file(&(struct trace_wish){.path = cli->found.positional[0],
                                                .advice = true,
                                                .json = flags->json,
                                                .store = flags->store,
                                                .against = flags->against});
}

#define AT(field) ARG(struct advise_flags, field)
static const struct arg rows[] = {
    {AT(prove), NULL, "run it with and without the change, in turns"},
    {AT(against), "'COMMAND'",
     "prove with the program after your change; of a trace, with its FILE"},
    {AT(lever), "NAME",
     "prove with this one, of those that --rules lists (the best in a run each)"},
    {AT(rounds), "N", "at most N rounds of four runs each (8)", ARG_FROM(2, PROVE_ROUNDS_MOST),
     "8"},
    {AT(rules), NULL, "list what is looked for, its levers and how often it was right, and stop"},
    {AT(batch), "N", "samples per step of a NETWORK (64)", ARG_FROM(1, 1 << 24), "64"},
    {AT(phase), "PHASE", "training or inference (training; for an ONNX file inference)"},
    {AT(threads), "N", "(1)", ARG_FROM(1, POOL_MOST), "1"},
    {AT(backend), "NAME", "the backend that runs it (the bench's default)"},
    {CLI_UNIT(struct advise_flags)},
    {AT(precision), "P", "type of products: fp32, tf32, bf16 … (fp32)"},
    {AT(data), "DATA", "where samples lie: synthetic, real/dram … (synthetic)"},
    {AT(ingestion), "WAY", "on a GPU: resident, direct, pinned, overlapped (resident)"},
    {ARG_NAMED("no-fusion", struct advise_flags, no_fusion), NULL,
     "the ops before they are merged"},
    {CLI_SHAPE(struct advise_flags)},
    {AT(seconds), "S", "for each configuration of a NETWORK (0.3); a COMMAND is stopped then",
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
    .alone = true,
    .bytes = sizeof(struct advise_flags),
    .args = {.command = "prony advise",
             .usage = "[options] NETWORK | TRACE | -- COMMAND…",
             .summary =
                 "A NETWORK is measured with other threads, batches, backends, types, fusion and "
                 "ingestion. The best change\nis kept and the others are measured on top of it, "
                 "until none is worth 5 %.\n\n"
                 "A TRACE says what would make the program faster: the line, what was "
                 "seen there,\nand the gain of the whole program. The gain comes from a replay "
                 "of the trace with only this\nchange. Gains below 5 % or within the noise are "
                 "left out.\n\n"
                 "After -- stands a program: it runs unwatched, then watched. --prove runs it in "
                 "turns, with and without a\nchange of its environment. It says whether the "
                 "expected gain is there; the store keeps each proof.",
             .examples = "  prony advise large --batch 10 --prove\n"
                         "  prony advise trace.json.gz            a trace of torch.profiler\n"
                         "  prony advise old.json --against new.json\n"
                         "  prony advise run.trace --json         one of prony, for a program\n"
                         "  prony advise -- python3 train.py      a program, as it is\n"
                         "  prony advise --prove -- python3 train.py\n"
                         "  prony advise --against 'python3 better.py' -- python3 train.py\n"
                         "  prony advise --rules                  what is looked for\n",
             .often = "prove against batch phase threads backend seconds json store rules",
             .lists = {{rows, 0}},
             .least = 0,
             .most = 1,
             .program = true},
};
