/* simulated.h: curves of simulated steps: a row and a record for each number of workers. */
#ifndef PRONY_CLI_SIMULATED_H
#define PRONY_CLI_SIMULATED_H

#include "cli/show/bench_output.h"
#include "cli/simulate/step_source.h"
#include "cli/simulate/verdict.h"
#include "cli/table/show_table.h"
#include "simulate/simulate.h"

enum { SIMULATED_POINTS = 512 }; /* that a verdict looks at */

struct simulated {
    const char *model, *folder, *optimiser, *pipeline;
    const struct network *network;
    int32_t batch, bucket_bytes;
    int64_t micros;
    struct step_source source;
    struct bench_output *output;
    bool tables; /* people read it */
    /* Of one curve. */
    struct platform platform;
    struct sharing sharing;
    bool weak;
    struct show_table table;
    int points; /* that could be simulated */
    struct text first_problem;
    double first_rate; /* of one worker alone; 0: not known */
    /* Of all curves that can be compared: of one platform and scaling. */
    struct verdict_point known[SIMULATED_POINTS];
    size_t known_count;
    int curve;
};

enum status simulated_platform(struct simulated *simulated, const char *name);
void simulated_begin(struct simulated *simulated);
/* What cannot be shared out so is a row with its reason. */
enum status simulated_point(struct simulated *simulated, int32_t workers);
/* Prints what the curves since the last call say. */
enum status simulated_tell(struct simulated *simulated);
/* Prints the curve; fails with the first reason where no point could be simulated. */
enum status simulated_end(struct simulated *simulated);

#endif
