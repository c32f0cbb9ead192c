/* train_live.c: see train_live.h. */
#include "cli/training/train_live.h"

#include "base/log.h"
#include "cli/store_file.h"

#include <unistd.h>

static const uint64_t pause_ns = 1000 * 1000 * 1000;

enum status train_live_open(struct train_live *live, const char *path)
{
    *live = (struct train_live){0};
    if (!path)
        return STATUS_OK;
    clock_stamp(live->started);
    return store_file_open(path, STORE_WRITE, &live->store);
}

bool train_live_due(const struct train_live *live)
{
    return live->store && clock_ns() - live->told_ns > pause_ns;
}

void train_live_tell(struct train_live *live, const char *what, int64_t done, int64_t total,
                     double left_s)
{
    char server[256] = "";
    gethostname(server, sizeof server - 1);
    const struct store_running running = {.process = getpid(),
                                          .server = server,
                                          .started = live->started,
                                          .done = done,
                                          .total = total,
                                          .current = what,
                                          .left_s = left_s};
    if (store_run(live->store, &running) != STATUS_OK)
        log_warning("%s", status_message()); /* what is learnt matters more */
    live->told_ns = clock_ns();
}

void train_live_close(struct train_live *live)
{
    if (live->store)
        store_run_end(live->store, getpid());
    store_close(live->store);
    *live = (struct train_live){0};
}
