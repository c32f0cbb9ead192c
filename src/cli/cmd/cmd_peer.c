/* cmd_peer.c: prony peer: requests come on standard input, a line each; answers go to standard
 * output. Of several workers the first reads and answers; what it was asked, all of them do. */
#include "bench/peer/peer_session.h"
#include "cli/commands.h"
#include "cli/training/workers.h"
#include "core/comm.h"

#include <stdio.h>

/* Between two requests to it, a peer waits for as long as others compute. A worker that dies is
 * noticed all the same, and one that hangs by whoever asks. */
static const double patience_s = 1e6;

struct peer_flags {
    int32_t workers;
};

static enum status answer_line(struct peer_session *session, const struct text *line)
{
    struct text out = {0};
    enum status status = peer_session_answer(session, text_of(line), line->length, &out);
    puts(text_of(&out));
    text_free(&out);
    return status == STATUS_OK ? cli_flush() : status;
}

/* Reads a line, without its end; *ended: there is none left. */
static enum status read_line(struct text *line, bool *ended)
{
    int c;
    text_clear(line);
    while ((c = getchar()) != EOF && c != '\n')
        text_add_char(line, (char)c);
    *ended = c == EOF;
    return text_done(line);
}

/* The first worker's line goes to all. */
static enum status share_line(const struct worker *worker, struct text *line, bool *ended)
{
    struct comm *comm = worker->comm;
    struct message {
        uint64_t length;
        bool ended;
    } message = {line->length, *ended};
    if (!comm)
        return STATUS_OK;
    TRY(comm_broadcast(comm, 0, &message, sizeof message));
    *ended = message.ended;
    if (worker->rank > 0)
        text_clear(line);
    while (line->length < message.length)
        text_add_char(line, ' ');
    TRY(text_done(line));
    return message.length ? comm_broadcast(comm, 0, line->data, message.length) : STATUS_OK;
}

static enum status serve(const struct worker *worker, void *context)
{
    const struct cli *cli = context;
    struct peer_session session = {.registry = cli->registry, .comm = worker->comm};
    struct text line = {0};
    enum status status = STATUS_OK;
    for (bool ended = false; status == STATUS_OK && !ended;) {
        if (worker->rank == 0)
            status = read_line(&line, &ended);
        if (status == STATUS_OK)
            status = share_line(worker, &line, &ended);
        if (status == STATUS_OK && !ended)
            status = answer_line(&session, &line);
    }
    text_free(&line);
    peer_session_close(&session);
    return status;
}

static enum status run_peer(struct cli *cli, void *options)
{
    const struct peer_flags *flags = options;
    return workers_run(cli->folder, flags->workers, patience_s, serve, cli);
}

#define AT(field) ARG(struct peer_flags, field)
static const struct arg rows[] = {
    {AT(workers), "N", "compute by N processes (1; under mpirun its ranks)", ARG_FROM(1, 256)},
    ARG_END,
};

const struct command cmd_peer = {
    .summary = "answer the requests of another prony's bench",
    .run = run_peer,
    .bytes = sizeof(struct peer_flags),
    .args = {.command = "prony peer",
             .usage = "[options]",
             .summary =
                 "Answers the requests of another prony's bench (docs/peers.md), so that two "
                 "builds can be\ncompared: prony bench large --against ../before/build/prony",
             .lists = {{rows, 0}}},
};
