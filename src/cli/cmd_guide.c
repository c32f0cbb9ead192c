/* cmd_guide.c: prony guide, the web explorer of stored results. */
#include "cli/commands.h"
#ifdef PRONY_HAVE_GUIDE
#include "base/clock.h"
#include "base/file.h"
#include "guide/guide.h"
#include "store/store.h"
#endif

#include <stdio.h>

#ifdef PRONY_HAVE_GUIDE

static enum status serve(const char *store, uint16_t port)
{
    struct guide *guide;
    TRY(guide_start(store, port, &guide));
    printf("The guide is at http://localhost:%u with the results of %s.\n", guide_port(guide),
           store);
    if (!file_exists(store))
        printf("There are none yet: prony bench small --store %s adds some.\n", store);
    printf("Ctrl-C stops it.\n");
    fflush(stdout);
    while (!cli_interrupted())
        clock_sleep_ns(100 * 1000 * 1000);
    guide_stop(guide);
    return STATUS_OK;
}

/* `store` NULL: the user's own. */
static enum status find_and_serve(const char *store, uint16_t port)
{
    if (store)
        return serve(store, port);
    struct text path = {0};
    enum status status = store_path(&path);
    if (status == STATUS_OK)
        status = text_done(&path);
    if (status == STATUS_OK)
        status = serve(text_of(&path), port);
    text_free(&path);
    return status;
}

#else

static enum status find_and_serve(const char *store, uint16_t port)
{
    (void)store, (void)port;
    FAIL(STATUS_UNSUPPORTED, "this prony was built without the guide, which needs libmicrohttpd, "
                             "sqlite3 and npm (Debian: apt install libmicrohttpd-dev "
                             "libsqlite3-dev npm); install them and build again");
}

#endif

enum status cmd_guide(struct cli *cli, int argc, const char *const *argv)
{
    (void)cli;
    int64_t port = 8080;
    const char *store = NULL;
    struct arg list[] = {
        {"port", ARG_INT, &port, "N", "where to listen (default: 8080); 0 takes any that is free",
         0, 65535, false},
        {"store", ARG_TEXT, &store, "FILE",
         "the store (default: store.db in the user's data folder)", 0, 0, false},
    };
    struct args args = {
        .command = "prony guide",
        .usage = "[options]",
        .summary = "Serves the web explorer of stored results, to browsers on this machine only.",
        .examples = "  prony guide\n  prony guide --port 0 --store results.db\n",
        .list = list,
        .count = sizeof list / sizeof *list,
    };
    TRY(cli_args(&args, argc, argv));
    if (args.help)
        return STATUS_OK;
    return find_and_serve(store, (uint16_t)port);
}
