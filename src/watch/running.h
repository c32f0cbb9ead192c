/* running.h: starts a program of the user's, waits for it, and says how it ended.
 *
 * Its input, output, terminal and process group are ours, so that pipes and Ctrl-C work as if it
 * ran alone. One thread at a time. */
#ifndef PRONY_WATCH_RUNNING_H
#define PRONY_WATCH_RUNNING_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct running_options {
    const char *const *words;       /* the command, up to NULL; found by PATH */
    const char *const *environment; /* NAME=VALUE in addition, up to NULL; or NULL */
    bool aside;                     /* its output goes to our standard error */
    bool silent;                    /* it reads nothing, and what it writes is lost */
};

struct running {
    pid_t process; /* 0: none */
    uint64_t start_ns;
};

/* How it ended, and what it and its children used. */
struct running_end {
    bool ended;
    int code;   /* its exit status … */
    int signal; /* … or what killed it; 0: nothing did */
    double wall_ns, user_ns, system_ns;
    double peak_bytes; /* of the largest process */
    double page_faults, storage_faults, switches, preemptions;
};

/* STATUS_INPUT, with the reason, where there is nothing to run. */
enum status running_start(struct running *program, const struct running_options *options);
/* Has it ended? Then *end says how, and it is reaped. */
bool running_ended(struct running *program, struct running_end *end);
/* Waits until it ends; it is stopped when `stopped` gives true, or after `limit_ns` (0: no limit).
 */
void running_wait(struct running *program, bool (*stopped)(void), uint64_t limit_ns,
                  struct running_end *end);
/* Asks it to end (SIGINT, as Ctrl-C does), then makes it (SIGTERM, SIGKILL), with all that it
 * started; `patience_ns` for each. `look` is called while it waits, or NULL. */
void running_stop(struct running *program, uint64_t patience_ns, void (*look)(void *context),
                  void *context, struct running_end *end);

/* Adds "ended with status 1", "was killed by signal 9 (Killed)"; nothing where it went well. */
void running_add_end(const struct running_end *end, struct text *out);
/* What a shell would say: its status, or 128 and the signal. */
int running_exit_status(const struct running_end *end);

#endif
