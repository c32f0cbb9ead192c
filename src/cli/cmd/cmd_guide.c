/* cmd_guide.c: prony guide, the web explorer of stored results. */
#include "base/clock.h"
#include "cli/commands.h"
#include "cli/store_file.h"
#include "cli/zoo_shelf.h"
#include "guide/guide.h"

#include <stdio.h>

struct options {
    const char *store, *listen, *view;
    int64_t port;
};

static void print_address(const struct guide *guide, const struct options *options,
                          const char *store)
{
    const char *token = guide_token(guide);
    printf("The guide is at http://%s:%u/%s%s with the results of %s.\n",
           options->listen ? options->listen : "localhost", guide_port(guide),
           *token ? "?token=" : "", *token ? token : options->view, store);
    if (*token)
        printf("Other machines can reach it: anyone with this address can read it.\n");
    printf("Ctrl-C stops it.\n");
    fflush(stdout);
}

/* A store that is not there yet is made, with the results that come with prony; it has the zoo. */
static enum status serve(const struct options *options, const char *path)
{
    struct http_place place = {options->listen, (uint16_t)options->port};
    struct store *made;
    struct guide *guide;
    TRY(store_open(path, STORE_SHIPPED, &made));
    enum status status = zoo_shelf_fill(made);
    store_close(made);
    TRY(status);
    TRY(guide_start(path, &place, &guide));
    print_address(guide, options, path);
    while (!cli_interrupted())
        clock_sleep_ns(100 * 1000 * 1000);
    guide_stop(guide);
    return STATUS_OK;
}

static enum status find_and_serve(const struct options *options)
{
    struct text path = {0};
    enum status status = store_file_path(options->store, &path);
    if (status == STATUS_OK)
        status = serve(options, text_of(&path));
    text_free(&path);
    return status;
}

static enum status run_guide(struct cli *cli, void *options)
{
    (void)cli;
    return find_and_serve(options);
}

static const struct arg rows[] = {
    {ARG(struct options, port), "N", "where to listen (default: 8080); 0 takes any that is free",
     ARG_FROM(0, 65535), "8080"},
    {CLI_STORE(struct options)},
    {ARG(struct options, listen), "ADDRESS",
     "let other machines in, with a token, at this IPv4 address (0.0.0.0: all)"},
    {ARG(struct options, view), "QUERY",
     "open the explorer on this view: ?x=batch&y=throughput&model=large", .otherwise = ""},
    ARG_END,
};

const struct command cmd_guide = {
    .summary = "serve the web explorer of stored results",
    .run = run_guide,
    .alone = true,
    .bytes = sizeof(struct options),
    .args = {.command = "prony guide",
             .usage = "[options]",
             .summary = "Serves the web explorer of stored results to browsers on this machine. "
                        "--listen lets other\nmachines in.",
             .examples = "  prony guide\n  prony guide --port 0 --store results.db\n"
                         "  prony guide --listen 0.0.0.0\n",
             .lists = {{rows, 0}}},
};
