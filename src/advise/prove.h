/* prove.h: is the program faster with a change? Both are run in turns, unwatched, forth and back,
 * as `prony bench --against` does it: whatever the machine does hits both alike. The unit is the
 * round, the verdict comes from the 99 % interval of the ratio (record/compare.h). */
#ifndef PRONY_ADVISE_PROVE_H
#define PRONY_ADVISE_PROVE_H

#include "base/arena.h"
#include "record/compare.h"
#include "watch/running.h"

/* A change of the environment that may end a finding. */
struct lever {
    const char *rule; /* "R10" */
    const char *key;
    bool asked; /* only where it is named: it may change results */
    const char *environment, *help;
};
extern const struct lever levers[];
extern const size_t lever_count;
/* Puts the files of levers into a folder of their own; lever_folder_remove ends it. */
enum status lever_folder_make(char *folder, size_t room);
void lever_folder_remove(const char *folder);
/* The environment of a lever as a list up to NULL, in the arena. */
enum status lever_environment(const struct lever *lever, const char *folder, struct arena *arena,
                              const char *const **out);

enum { PROVE_ROUNDS = 8, PROVE_ROUNDS_MOST = 64 };

struct prove_options {
    struct running_options before, after;
    /* In the place of these programs: runs the work once, changed or not, and gives its time. NULL:
     * the programs are run. */
    enum status (*run)(void *runner, bool after, double *ns);
    void *runner;
    int64_t rounds; /* each is four runs */
    bool (*stopped)(void);
    void (*tell)(void *context, int64_t done, int64_t all); /* a run is over; or NULL */
    void *context;
};

struct proof {
    struct comparison found;      /* of the time after ÷ the time before */
    double gain, low, high;       /* the time before ÷ after, and its interval; NaN: not known */
    double *before_ns, *after_ns; /* of each run; mem_free frees them */
    size_t runs;                  /* of each */
};
void proof_free(struct proof *proof);

/* Runs both. STATUS_DEVICE when a run fails: then nothing is proved. Stopped early, what there is
 * is compared. */
enum status prove_run(const struct prove_options *options, struct proof *proof);

/* Runs the program once with each lever of the rule that need not be named, and once without: the
 * one with the shortest time. NULL: none is shorter. */
enum status prove_choose(const struct running_options *program, const char *rule,
                         const char *folder, bool (*stopped)(void), struct arena *arena,
                         const struct lever **best);

#endif
