/* answer_trials.c: what `prony answer NETWORK` measures: batches, threads, other frameworks. Each
 * trial is a bench of what the store lacks. Time that is given ends with a framework, never within
 * one. */
#include "cli/answer_trials.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/machine/cpu.h"
#include "bench/peer/peers.h"
#include "bench/sweep/done.h"
#include "cli/bench_run.h"
#include "cli/peer_folder.h"
#include "nn/network.h"
#include "record/names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCHES = 4, NAMES = 256 };
static const char *const batches[BATCHES] = {"1", "8", "64", "256"};
enum { TWO = 2, THREADS = 3 }; /* batches beside others; numbers of threads, at most */
enum { RIVALS_LEAST = 3 };     /* measured however short the time is */
static const double SECONDS_LEAST = 0.3, SECONDS_MOST = 3; /* of a configuration */
static const double SECONDS_TO_START = 4;                  /* a framework, and to check it */

/* Those of the unit that is asked about that can be opened here, with commas between, but the
 * reference, which is not meant to be fast; a GPU's take no threads. */
static enum status list_backends(const struct cli *cli, const char *unit, bool gpu, char out[NAMES],
                                 int *count)
{
    struct text names = {0};
    *count = 0;
    for (int i = 0; i < cli->registry->count; i++) {
        const struct backend *backend = cli->registry->list[i].backend;
        bool is_gpu = backend && strcmp(backend->unit, "cpu") != 0;
        bool asked = backend && (!unit || strcmp(backend->unit, unit) == 0);
        if (asked && strcmp(backend->name, "ref") != 0 && is_gpu == gpu &&
            backend->probe() == STATUS_OK)
            text_printf(&names, "%s%s", (*count)++ ? "," : "", backend->name);
    }
    snprintf(out, NAMES, "%s", text_of(&names));
    enum status status = text_done(&names);
    text_free(&names);
    return status;
}

/* One bench, of which what the store has already is left out. `frameworks`: NULL is prony alone.
 * What fails is in the store and is told at the end: the others go on. */
struct trial {
    const char *name; /* for whoever waits */
    const char *frameworks, *backend, *batch, *threads;
};

/* All of them: one bar for the person who waits. */
struct trials {
    const struct cli *cli;
    const struct answer_options *options;
    double seconds;  /* of a configuration */
    uint64_t end_ns; /* no framework more after it */
    int left;        /* configurations of the trials that follow, at most */
    struct arena arena;
    const char **rivals;
    int rival_count;
    struct text *untried;
    char best[POINT_NUMBER]; /* the best batch so far */
    struct bench_part part;
};

static enum status measure_some(struct trials *trials, const struct trial *trial, int points)
{
    const struct answer_options *options = trials->options;
    struct bench_request request, *list = &request;
    struct bench_output output = {.style = OUTPUT_NOTHING, .part = &trials->part};
    struct arena arena = {0};
    enum status status;
    trials->left -= points;
    trials->part.name = trial->name;
    trials->part.after_s = trials->left * trials->seconds;
    bench_request_start(&request);
    request.axis_text[AXIS_phase] = options->phase;
    request.axis_text[AXIS_framework] = trial->frameworks;
    request.axis_text[AXIS_backend] = trial->backend;
    request.axis_text[AXIS_batch] = trial->batch;
    request.axis_text[AXIS_threads] = trial->threads;
    request.seconds = trials->seconds;
    TRY_OR(done, bench_request_sweep(&request, &options->network, 1, &arena));
    TRY_OR(done, bench_output_use(&output, options->store));
    TRY_OR(done, cli_bench(trials->cli, &list, 1, &output, true));
done:
    bench_output_close(&output);
    arena_free(&arena);
    return status == STATUS_WRONG ? STATUS_OK : status;
}

/* A file may have been another network when it was measured, and so may one of that name in another
 * folder: only what computed the same counts. */
static enum status add_programs(const struct answer_options *options, struct arena *arena,
                                struct store_filter *filters, size_t *count)
{
    char program[DONE_PROGRAM];
    struct point point;
    point_start(&point);
    TRY(point_set(&point, &axes[AXIS_model], options->network));
    TRY(point_set(&point, &axes[AXIS_phase], options->phase));
    for (int i = 0; i < BATCHES && !network_built_in(options->network); i++) {
        TRY(point_set(&point, &axes[AXIS_batch], batches[i]));
        TRY(done_program(&point, program));
        filters[*count].key = "program";
        NEED(filters[*count].value = arena_text(arena, program));
        *count += *program != '\0';
    }
    return STATUS_OK;
}

/* What there is to know of this network on this machine. */
enum status answer_look(struct store *store, const struct answer_options *options,
                        struct arena *arena, struct finding_about *about)
{
    char server[POINT_TEXT] = "";
    struct store_filter *filters;
    size_t count = 2;
    gethostname(server, sizeof server - 1);
    NEED(filters = arena_array(arena, 4 + BATCHES, sizeof *filters));
    filters[0] = (struct store_filter){"model", options->network};
    filters[1] = (struct store_filter){"phase", options->phase};
    if (options->unit)
        filters[count++] = (struct store_filter){"unit", options->unit};
    if (options->minutes > 0) { /* of any machine when nothing is measured */
        filters[count].key = "server";
        NEED(filters[count++].value = arena_text(arena, server));
    }
    TRY(add_programs(options, arena, filters, &count));
    return finding_about(store, arena, (struct store_where){filters, count}, about);
}

/* The batch that was best so far, for threads and other frameworks to be tried at. */
static enum status best_batch(const struct answer_options *options, char out[POINT_NUMBER])
{
    struct store *store;
    struct arena arena = {0};
    struct finding_about about;
    TRY(store_open(options->store, STORE_READ, &store));
    enum status status = answer_look(store, options, &arena, &about);
    if (status == STATUS_OK)
        snprintf(out, POINT_NUMBER, "%lld",
                 about.best_id ? (long long)about.best.batch : (long long)64);
    store_close(store);
    arena_free(&arena);
    return status;
}

/* Frameworks that people ask for first; all of them may be more than there is time for. */
static const char *const asked_first[] = {"pytorch", "onnxruntime", "numpy", "onednn", "jax"};

static size_t rank_of(const char *name)
{
    size_t rank = 0;
    while (rank < sizeof asked_first / sizeof *asked_first && strcmp(asked_first[rank], name) != 0)
        rank++;
    return rank;
}

static int by_rank(const void *a, const void *b)
{
    const char *one = *(const char *const *)a, *other = *(const char *const *)b;
    const size_t rank = rank_of(one), its = rank_of(other);
    return rank != its ? (rank > its) - (rank < its) : strcmp(one, other);
}

/* The other frameworks that are installed with prony, but those that loop over weights in Python:
 * an iteration of theirs may take minutes. */
static enum status list_rivals(struct trials *trials)
{
    const char *folder, *const *names;
    size_t found = 0;
    TRY(cli_peers(trials->cli, &trials->arena, &folder));
    TRY(peers_list(folder, &trials->arena, &names, &found));
    NEED(trials->rivals = arena_array(&trials->arena, found, sizeof *trials->rivals));
    for (size_t i = 0; i < found; i++)
        if (!text_starts(names[i], "python-"))
            trials->rivals[trials->rival_count++] = names[i];
    qsort(trials->rivals, (size_t)trials->rival_count, sizeof *trials->rivals, by_rank);
    return STATUS_OK;
}

/* "prony,pytorch,numpy": as many as there is time for, a few at least; the others become `untried`.
 */
static enum status choose_rivals(struct trials *trials, struct text *chosen)
{
    const double left = ((double)trials->end_ns - (double)clock_ns()) / 1e9;
    const int room = (int)(left / (TWO * trials->seconds + SECONDS_TO_START));
    struct text *untried = trials->untried;
    text_add(chosen, "prony");
    for (int i = 0; i < trials->rival_count; i++) {
        const char *name = trials->rivals[i];
        if (i < RIVALS_LEAST || i < room)
            text_printf(chosen, ",%s", name);
        else
            text_printf(untried, "%s%s", i > RIVALS_LEAST && i > room ? ", " : "",
                        framework_title(name));
    }
    if (text_of(untried)[0])
        text_add(untried, ": a longer --minutes measures them, too");
    TRY(text_done(untried));
    return text_done(chosen);
}

/* Other frameworks at the best batch and at 1, beside prony with as many threads. */
static enum status measure_rivals(struct trials *trials, const char *chosen, const char *backends,
                                  const char *threads)
{
    char two[NAMES];
    snprintf(two, sizeof two, strcmp(trials->best, "1") ? "1,%s" : "%s", trials->best);
    return measure_some(trials, &(struct trial){"other frameworks", chosen, backends, two, threads},
                        TWO * trials->rival_count);
}

/* On the GPU and on the CPU. */
static enum status measure_beside(struct trials *trials, const char *gpus, const char *cpus,
                                  const char *cores)
{
    struct text chosen = {0};
    enum status status = choose_rivals(trials, &chosen);
    if (status == STATUS_OK && *gpus && trials->rival_count)
        status = measure_rivals(trials, text_of(&chosen), gpus, NULL);
    if (status == STATUS_OK && *cpus && trials->rival_count)
        status = measure_rivals(trials, text_of(&chosen), cpus, cores);
    text_free(&chosen);
    return status;
}

/* Of each backend its batches, the two beside others, and on a CPU its threads; of each rival two.
 */
static int count_points(const struct trials *trials, int cpus, int gpus)
{
    return (BATCHES + TWO) * (cpus + gpus) + THREADS * cpus +
           TWO * trials->rival_count * ((cpus > 0) + (gpus > 0));
}

/* Batches with all cores, then at the best batch other numbers of threads and other frameworks. */
static enum status measure_trials(struct trials *trials)
{
    const struct answer_options *options = trials->options;
    char cpus[NAMES], gpus[NAMES], all[NAMES] = "", cores[NAMES], threads[NAMES];
    const char *named = NULL;
    struct cpu cpu;
    int cpu_count, gpu_count;
    cpu_detect(&cpu);
    TRY(cli_unit(trials->cli, options->unit, &named)); /* one that is not here says why */
    TRY(list_backends(trials->cli, options->unit, false, cpus, &cpu_count));
    TRY(list_backends(trials->cli, options->unit, true, gpus, &gpu_count));
    TRY(list_rivals(trials));
    for (int i = 0; i < BATCHES; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? "," : "", batches[i]);
    trials->left = count_points(trials, cpu_count, gpu_count);
    const double each = options->minutes * 60 / (trials->left + 1);
    trials->seconds = fmin(fmax(each, SECONDS_LEAST), SECONDS_MOST);
    snprintf(cores, sizeof cores, "%d", cpu.cores);
    snprintf(threads, sizeof threads, cpu.cores > 3 ? "1,%d,%d" : "1,%d",
             cpu.cores > 3 ? cpu.cores / 2 : cpu.cores, cpu.cores);
    if (cpu_count)
        TRY(measure_some(trials, &(struct trial){"batches", NULL, cpus, all, cores},
                         BATCHES * cpu_count));
    if (gpu_count)
        TRY(measure_some(trials, &(struct trial){"batches, GPU", NULL, gpus, all, NULL},
                         BATCHES * gpu_count));
    TRY(best_batch(options, trials->best));
    if (cpu_count)
        TRY(measure_some(trials, &(struct trial){"threads", NULL, cpus, trials->best, threads},
                         THREADS * cpu_count));
    return measure_beside(trials, gpus, cpus, cores);
}

enum status answer_measure(const struct cli *cli, const struct answer_options *options,
                           struct text *untried)
{
    struct trials trials = {.cli = cli,
                            .options = options,
                            .untried = untried,
                            .end_ns = clock_ns() + (uint64_t)(options->minutes * 60e9)};
    enum status status = measure_trials(&trials);
    progress_end(&trials.part.progress);
    arena_free(&trials.arena);
    return status;
}
