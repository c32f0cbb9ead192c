/* suite_ranks.c: see suite_ranks.h. A rank sends what its file has grown by. */
#include "cli/suite_ranks.h"

#include "base/file.h"
#include "base/memory.h"
#include "core/comm.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HOST = 64, WHY = 300 };
static const uint64_t FILE_MOST = 1ull << 30;

/* The ranks of this machine that come before and after this one. */
static enum status find_neighbours(struct comm *comm, struct suite *out)
{
    char own[HOST] = "", host[HOST];
    out->before = out->after = -1;
    gethostname(own, sizeof own - 1);
    for (int rank = 0; rank < comm->size; rank++) {
        memcpy(host, own, sizeof host);
        TRY(comm_broadcast(comm, rank, host, sizeof host));
        if (rank == comm->rank || strcmp(host, own) != 0)
            continue;
        if (rank < comm->rank)
            out->before = rank;
        else if (out->after < 0)
            out->after = rank;
    }
    return STATUS_OK;
}

/* The first rank's --out, or nothing where it is not there yet. */
static enum status share_file(struct comm *comm, const char *path, struct text *text)
{
    uint64_t length = 0;
    if (comm->rank == 0 && file_exists(path))
        TRY(file_read(path, FILE_MOST, text));
    length = text->length;
    TRY(comm_broadcast(comm, 0, &length, sizeof length));
    while (text->length < length)
        text_add_char(text, ' ');
    TRY(text_done(text));
    return length ? comm_broadcast(comm, 0, text->data, length) : STATUS_OK;
}

/* A file in the temporary folder that holds the text. */
static enum status make_file(struct suite *suite, const struct text *text)
{
    char *path =
        arena_format(&suite->arena, "%s/prony-rank-%d.jsonl", file_temporary_folder(), getpid());
    NEED(path);
    suite->output.file = path;
    return file_write(path, text_of(text), text->length);
}

static void keep_share(const struct comm *comm, struct suite *suite)
{
    int kept = 0;
    for (int i = comm->rank; i < suite->count; i += comm->size)
        suite->requests[kept++] = suite->requests[i];
    suite->count = kept;
}

enum status suite_ranks_begin(const struct worker *worker, struct suite *suite)
{
    struct comm *comm = worker->comm;
    struct text held = {0};
    char turn = 0;
    if (!comm)
        return STATUS_OK;
    if (!suite->output.file)
        FAIL(STATUS_INPUT,
             "found %d ranks and no --out, expected --out FILE.jsonl: the results of "
             "all go there",
             comm->size);
    keep_share(comm, suite);
    enum status status = share_file(comm, suite->output.file, &held);
    suite->held = held.length;
    if (status == STATUS_OK && comm->rank > 0) {
        suite->output = (struct output_flags){.format = "json"};
        status = make_file(suite, &held);
    }
    text_free(&held);
    TRY(status);
    TRY(find_neighbours(comm, suite));
    return suite->before < 0 ? STATUS_OK : comm_receive(comm, suite->before, &turn, sizeof turn);
}

/* What a rank says at its end, before its records. */
struct report {
    enum status status;
    char why[WHY];
    uint64_t length;
};

static enum status send_records(struct comm *comm, const struct suite *suite, enum status status)
{
    struct report report = {.status = status};
    struct text text = {0};
    if (status != STATUS_OK)
        snprintf(report.why, sizeof report.why, "%s", status_message());
    enum status sent = file_read(suite->output.file, FILE_MOST, &text);
    if (sent == STATUS_OK) {
        report.length = text.length - suite->held;
        sent = comm_send(comm, 0, &report, sizeof report);
    }
    if (sent == STATUS_OK && report.length)
        sent = comm_send(comm, 0, text.data + suite->held, report.length);
    unlink(suite->output.file);
    text_free(&text);
    return sent;
}

/* Files one line of another rank. */
static enum status file_line(void *context, const struct record *record, const char *line,
                             size_t length)
{
    struct bench_output *output = context;
    const struct sink sink = bench_output_sink(output);
    struct text copy = {0};
    text_add_bytes(&copy, line, length);
    enum status status = text_done(&copy);
    if (status == STATUS_OK)
        status = sink.write(sink.context, text_of(&copy), record);
    text_free(&copy);
    return status;
}

/* The records of one rank, as far as it came; *status becomes why it failed, where nobody did
 * before. */
static enum status take_records(struct comm *comm, int rank, struct bench_output *output,
                                enum status *status)
{
    struct report report;
    struct text text = {0};
    TRY(comm_receive(comm, rank, &report, sizeof report));
    while (text.length < report.length && !text.failed)
        text_add_char(&text, ' ');
    enum status taken = text_done(&text);
    if (taken == STATUS_OK && report.length)
        taken = comm_receive(comm, rank, text.data, report.length);
    if (taken == STATUS_OK)
        taken =
            record_read_all("results of a rank", text_of(&text), text.length, file_line, output);
    text_free(&text);
    if (report.status != STATUS_OK && *status == STATUS_OK)
        *status = status_fail(report.status, __FILE__, __LINE__, "rank %d: %.*s", rank, WHY - 1,
                              report.why);
    return taken;
}

enum status suite_ranks_end(const struct worker *worker, const struct suite *suite,
                            struct bench_output *output, enum status status)
{
    struct comm *comm = worker->comm;
    const char turn = 1;
    if (!comm)
        return status;
    if (suite->after >= 0)
        TRY(comm_send(comm, suite->after, &turn, sizeof turn));
    if (comm->rank > 0)
        return send_records(comm, suite, status);
    output->style = OUTPUT_NOTHING;
    for (int rank = 1; rank < comm->size; rank++)
        TRY(take_records(comm, rank, output, &status));
    if (status == STATUS_OK)
        printf("the results of %d ranks are in %s\n", comm->size, suite->output.file);
    return status;
}
