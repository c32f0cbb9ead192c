/* progress.h: how far a command is, for the person who waits.
 *
 *     [#########-------------]  27 of 60   large, inference, batch 10, PyTorch
 *     1 min 10 s gone, about 1 min 20 s left
 *
 * On a terminal these two lines stay below whatever is printed (screen_status). Elsewhere a plain
 * line comes every half minute. Nothing is drawn from another thread: a command says how far it is
 * between two pieces of work, so that what is measured is left alone. */
#ifndef PRONY_CLI_PROGRESS_H
#define PRONY_CLI_PROGRESS_H

#include "base/text.h"

/* A plain value. */
struct progress {
    uint64_t start_ns, shown_ns;
    double share; /* the bar never goes back */
};

void progress_begin(struct progress *progress);
/* Is it time to show it again? Cheap: asked between two samples. */
bool progress_due(const struct progress *progress);
/* `share` is from 0 to 1; left_s < 0: not known. `count` is "27 of 60" or "epoch 3 of 20"; `label`
 * what is under way, or NULL. */
void progress_show(struct progress *progress, double share, double left_s, const char *count,
                   const char *label);
void progress_end(struct progress *progress); /* takes it off the screen */

/* For work that says its share only, and has nowhere to keep a progress: begins with the first
 * call, ends with a share of 1. */
void progress_share(const char *what, double share);

/* Adds "45 s", "1 min 20 s", "2 h 5 min". `about`: as round as a guess is. */
void progress_add_time(struct text *text, double seconds, bool about);

#endif
