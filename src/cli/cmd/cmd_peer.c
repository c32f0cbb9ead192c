/* cmd_peer.c: prony peer: requests come on standard input, a line each; answers go to standard
 * output. */
#include "bench/peer/peer_session.h"
#include "cli/commands.h"

#include <stdio.h>

static enum status answer_line(struct peer_session *session, const struct text *line)
{
    struct text out = {0};
    enum status status = peer_session_answer(session, text_of(line), line->length, &out);
    puts(text_of(&out));
    text_free(&out);
    return status == STATUS_OK ? cli_flush() : status;
}

static enum status run_peer(struct cli *cli, void *options)
{
    struct peer_session session = {.registry = cli->registry};
    struct text line = {0};
    enum status status = STATUS_OK;
    (void)options;
    for (int c; status == STATUS_OK && (c = getchar()) != EOF;) {
        if (c != '\n') {
            text_add_char(&line, (char)c);
            continue;
        }
        status = text_done(&line);
        if (status == STATUS_OK)
            status = answer_line(&session, &line);
        text_clear(&line);
    }
    text_free(&line);
    peer_session_close(&session);
    return status;
}

const struct command cmd_peer = {
    .summary = "answer the requests of another prony's bench",
    .run = run_peer,
    .args = {.command = "prony peer",
             .usage = "",
             .summary =
                 "Answers the requests of another prony's bench (docs/peers.md), so that two "
                 "builds can be\ncompared: prony bench large --against ../before/build/prony"},
};
