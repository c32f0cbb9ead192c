/* ring.h: prony's side of the agent's file (agent/agent_ring.h): one process of the program, as it
 * tells of itself. The program may have written anything there: every record is checked. */
#ifndef PRONY_WATCH_RING_H
#define PRONY_WATCH_RING_H

#include "agent/agent_ring.h"
#include "agent/python_layout.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct ring {
    struct agent_head *head; /* NULL: closed */
    uint64_t freed;
    struct python_place python; /* of the process, as it can be read from outside … */
    bool python_readable;       /* … where its layout is known */
};

/* Maps the file. STATUS_UNSUPPORTED: it is no ring of this build, or not ready yet. */
enum status ring_open(struct ring *ring, const char *path);
void ring_close(struct ring *ring);

/* Hands on the records that are whole, one after the other, and frees them. */
typedef enum status ring_visit(void *context, const struct agent_record *record, uint32_t kind);
enum status ring_read(struct ring *ring, ring_visit *visit, void *context);

/* Do the counts of a record lie within its bytes? */
bool ring_sample_fits(const struct agent_sample *sample);
bool ring_code_fits(const struct agent_code *code);

#endif
