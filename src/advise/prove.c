/* prove.c: see prove.h. */
#include "advise/prove.h"

#include "base/embed.h"
#include "base/file.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct lever levers[] = {
#define LEVER(rule, key, asked, environment, help) {rule, #key, asked, environment, help},
#include "advise/levers.def"
};
const size_t lever_count = sizeof levers / sizeof *levers;

extern const struct embedded lever_files[];

enum status lever_folder_make(char *folder, size_t room)
{
    char path[PATH_MAX];
    snprintf(folder, room, "%s/prony.XXXXXX", file_temporary_folder());
    if (!mkdtemp(folder))
        FAIL(STATUS_IO, "%s: cannot make a folder for levers: %s", folder, strerror(errno));
    for (const struct embedded *file = lever_files; file->name; file++) {
        snprintf(path, sizeof path, "%s/%s", folder, file->name);
        enum status status = file_write(path, (const char *)file->bytes, file->length);
        if (status != STATUS_OK) {
            lever_folder_remove(folder);
            return status;
        }
    }
    return STATUS_OK;
}

static void remove_files(const char *folder)
{
    DIR *files = opendir(folder);
    for (struct dirent *entry; files && (entry = readdir(files)) != NULL;)
        if (*entry->d_name != '.')
            unlinkat(dirfd(files), entry->d_name, 0);
    if (files)
        closedir(files);
    rmdir(folder);
}

void lever_folder_remove(const char *folder)
{
    char compiled[PATH_MAX]; /* what Python leaves beside */
    snprintf(compiled, sizeof compiled, "%s/__pycache__", folder);
    remove_files(compiled);
    remove_files(folder);
}

/* "PYTHONPATH=@" with the folder, and what was there before. */
static const char *fill_folder(const char *word, size_t length, const char *folder,
                               struct arena *arena)
{
    const size_t name = strcspn(word, "=");
    if (!memchr(word, '@', length))
        return arena_bytes(arena, word, length);
    const char *variable = arena_bytes(arena, word, name);
    const char *before = variable ? getenv(variable) : NULL;
    return variable ? arena_format(arena, "%s=%s%s%s", variable, folder,
                                   before && *before ? ":" : "", before ? before : "")
                    : NULL;
}

enum status lever_environment(const struct lever *lever, const char *folder, struct arena *arena,
                              const char *const **out)
{
    enum { MOST = 8 };
    const char **list;
    size_t count = 0;
    NEED(list = arena_array(arena, MOST + 1, sizeof *list));
    for (const char *word = lever->environment; *word && count < MOST;) {
        size_t length = strcspn(word, " ");
        NEED(list[count++] = fill_folder(word, length, folder, arena));
        word += length + strspn(word + length, " ");
    }
    *out = list;
    return STATUS_OK;
}

void proof_free(struct proof *proof)
{
    mem_free(proof->before_ns);
    mem_free(proof->after_ns);
    *proof = (struct proof){0};
}

/* One run to its end: its time. */
static enum status run_once(const struct running_options *program, bool (*stopped)(void),
                            double *ns)
{
    struct running running;
    struct running_end end;
    TRY(running_start(&running, program));
    running_wait(&running, stopped, 0, &end);
    *ns = end.wall_ns;
    if (stopped && stopped())
        FAIL(STATUS_INTERRUPTED, "stopped");
    if (!end.code && !end.signal)
        return STATUS_OK;
    struct text how = {0};
    running_add_end(&end, &how);
    enum status status = status_fail(STATUS_DEVICE, __FILE__, __LINE__,
                                     "%s %s: nothing can be proved with a run that fails",
                                     program->words[0], text_of(&how));
    text_free(&how);
    return status;
}

/* A turn has one run of each; forth it begins with before, back with after. */
static enum status run_turn(const struct prove_options *options, struct proof *proof)
{
    const size_t turn = proof->runs;
    for (size_t i = 0; i < 2; i++) {
        const bool after = (turn + i) % 2 != 0;
        double *ns = after ? &proof->after_ns[turn] : &proof->before_ns[turn];
        TRY(options->run
                ? options->run(options->runner, after, ns)
                : run_once(after ? &options->after : &options->before, options->stopped, ns));
        if (options->tell)
            options->tell(options->context, (int64_t)(2 * turn + i + 1), 4 * options->rounds);
    }
    proof->runs++;
    return STATUS_OK;
}

/* Every run is a process of its own, so that each round is an instance. */
static enum status judge(struct proof *proof)
{
    size_t starts[2 * PROVE_ROUNDS_MOST], begins[PROVE_ROUNDS_MOST];
    const size_t rounds = proof->runs / 2;
    for (size_t i = 0; i < 2 * rounds; i++)
        starts[i] = i;
    for (size_t i = 0; i < rounds; i++)
        begins[i] = 2 * i;
    const struct turns before = {proof->before_ns, 2 * rounds, starts, 2 * rounds},
                       after = {proof->after_ns, 2 * rounds, starts, 2 * rounds};
    TRY(compare_turns(&after, &before, begins, rounds, COMPARE_MARGIN, &proof->found));
    proof->gain = 1 / proof->found.ratio;
    proof->low = 1 / proof->found.high;
    proof->high = 1 / proof->found.low;
    return STATUS_OK;
}

/* A difference may be said early only when it holds however often one looks (compare.h). */
static enum status run_rounds(const struct prove_options *options, struct proof *proof)
{
    for (int64_t round = 0; round < options->rounds; round++) {
        enum status status = run_turn(options, proof);
        if (status == STATUS_OK)
            status = run_turn(options, proof);
        if (status == STATUS_INTERRUPTED && proof->runs >= 2)
            break;
        TRY(status);
        TRY(judge(proof));
        if (proof->found.sure)
            break;
    }
    return judge(proof);
}

enum status prove_run(const struct prove_options *options, struct proof *proof)
{
    *proof = (struct proof){.gain = (double)NAN, .low = (double)NAN, .high = (double)NAN};
    const size_t room = 2 * PROVE_ROUNDS_MOST;
    enum status status;
    NEED_OR(done, proof->before_ns = mem_array(room, sizeof *proof->before_ns));
    NEED_OR(done, proof->after_ns = mem_array(room, sizeof *proof->after_ns));
    status = run_rounds(options, proof);
done:
    if (status != STATUS_OK)
        proof_free(proof);
    return status;
}

enum status prove_choose(const struct running_options *program, const char *rule,
                         const char *folder, bool (*stopped)(void), struct arena *arena,
                         const struct lever **best)
{
    double shortest_ns, ns;
    *best = NULL;
    TRY(run_once(program, stopped, &shortest_ns));
    for (size_t i = 0; i < lever_count; i++) {
        struct running_options changed = *program;
        if (strcmp(levers[i].rule, rule) != 0 || levers[i].asked)
            continue;
        TRY(lever_environment(&levers[i], folder, arena, &changed.environment));
        if (run_once(&changed, stopped, &ns) != STATUS_OK) {
            if (stopped && stopped())
                FAIL(STATUS_INTERRUPTED, "stopped");
            continue; /* the program does not bear it */
        }
        if (ns < shortest_ns) {
            shortest_ns = ns;
            *best = &levers[i];
        }
    }
    return STATUS_OK;
}
