/* step_source.h: how long one worker takes for a step, for a simulation: from results in the store,
 * or where there are none the least time that this CPU allows. */
#ifndef PRONY_CLI_STEP_SOURCE_H
#define PRONY_CLI_STEP_SOURCE_H

#include "core/program.h"
#include "estimate/calibrate.h"
#include "store/store.h"

/* What is asked for; texts may be NULL. */
struct step_wish {
    const char *model, *unit, *backend, *precision, *optimiser, *server;
};

struct step_known {
    int32_t batch;
    double seconds;
};

enum { STEP_KNOWN = 64 };

struct step_source {
    struct record record; /* the quickest: who computes, on which machine; in the arena */
    struct step_known known[STEP_KNOWN]; /* by batch; none: the least time is taken */
    int count;
    double shares[PART_COUNT]; /* of a step's time; 0: not known */
    struct ceilings ceilings;  /* of this CPU, where nothing is known */
    struct step_wish wish;
};

/* Looks for results in the store, NULL where there is none. Of those that fit, all are taken of the
 * unit, backend and precision with the highest throughput. */
enum status step_source_find(struct store *store, const struct step_wish *wish, struct arena *arena,
                             struct step_source *out);
/* As simulate_request.seconds: between two batches in proportion, beyond them by the nearest. */
double step_seconds(const void *source, int32_t batch);
/* "computing: measured on …": one sentence. */
void step_source_tell(const struct step_source *source, struct text *out);

#endif
