/* bench_run.c: see bench_run.h. */
#include "cli/bench_run.h"

#include "cli/peer_folder.h"
#include "cli/screen.h"

#include <stdio.h>
#include <unistd.h>

static void begin_rows(void *context, const struct sweep *sweep)
{
    struct bench_output *output = context;
    bench_table_start(&output->rows, sweep);
}

/* For the person who waits, and for who looks at the store. */
static void show_progress(void *context, const struct point *next, int done, int total,
                          double left_ns)
{
    struct bench_output *output = context;
    struct text left = {0};

    /* how long an iteration takes, and so six of them, is not known yet */
    text_add(&left, done ? "about " : "");
    text_add_time(&left, left_ns);
    text_add(&left, done ? "" : " or more");
    if (isatty(STDERR_FILENO)) { /* the next row writes over it */
        screen_control(stderr, "\r\033[K");
        fprintf(stderr, "[%d/%d] %s, %s, batch %lld … %s left", done + 1, total, next->model,
                next->phase, (long long)next->batch, text_of(&left));
        screen_control(stderr, "\r");
    }
    text_free(&left);
    bench_output_tell(output, next, done, total, left_ns / 1e9);
}

/* Prints what was finished, however the run ended: a disk that is full must not lose it. What went
 * wrong first is told. */
static enum status finish(const struct bench *bench, struct bench_output *output,
                          enum status status)
{
    struct error first = *status_last();
    enum status printed = bench_output_finish(output);
    if (status != STATUS_OK) {
        *status_last() = first;
        return status;
    }
    TRY(printed);
    if (bench->failed)
        FAIL(STATUS_WRONG, "%d of %d configurations failed", bench->failed,
             bench->ok + bench->skipped + bench->failed);
    return STATUS_OK;
}

enum status cli_bench(const struct cli *cli, struct bench_request *const *requests, int count,
                      struct bench_output *output, bool resume)
{
    const struct bench_watcher watcher = {begin_rows, show_progress, output};
    struct arena arena = {0};
    struct done done = {0};
    struct bench bench = {.registry = cli->registry,
                          .measure = {.target = 0.01, .stopped = cli_interrupted},
                          .done = resume ? &done : NULL,
                          .sink = bench_output_sink(output),
                          .unread = bench_output_is_plain(output)};
    enum status status = cli_peers(cli, &arena, &bench.peers);
    if (status == STATUS_OK)
        status = bench_output_done(output, resume ? &done : NULL);
    if (status == STATUS_OK)
        status = finish(&bench, output, bench_request_run(&bench, requests, count, &watcher));
    done_free(&done);
    arena_free(&arena);
    return status;
}
