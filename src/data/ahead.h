/* ahead.h: inside data/: a thread that reads the rows which are needed next, while others are used.
 *
 * One request at a time: ahead_ask hands it over and returns at once, ahead_take waits for it. What
 * went wrong in the thread comes out of ahead_take. All functions are called from one thread. */
#ifndef PRONY_DATA_AHEAD_H
#define PRONY_DATA_AHEAD_H

#include "base/status.h"

struct ahead;

/* Does the work of one request, in the thread. */
typedef enum status ahead_work(void *context);

enum status ahead_open(struct ahead **out);
void ahead_close(struct ahead *ahead); /* waits; NULL is fine */

/* There must be no request that was not taken. */
void ahead_ask(struct ahead *ahead, ahead_work *work, void *context);
/* Waits for what was asked and gives its status; STATUS_OK when nothing was. */
enum status ahead_take(struct ahead *ahead);

#endif
