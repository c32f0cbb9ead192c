/* accuracy.h: what a precision costs a network: how far its outputs move from those in fp32, and
 * how many right answers are lost. It is found through the library (prony.h), on the backend that
 * is timed, once a run for each precision: batch and threads change neither. */
#ifndef PRONY_BENCH_CHECK_ACCURACY_H
#define PRONY_BENCH_CHECK_ACCURACY_H

#include "base/arena.h"
#include "base/status.h"
#include "record/point.h"

#include <stdbool.h>

struct accuracy_options {
    const char *data; /* its rows that came as a test set, else all; NULL: what the file names */
    bool outputs;     /* also how far they move; of a network without data on random samples */
    double flop;      /* that a sample needs: how many random ones are worth it */
};

/* What was found; NaN: not known. */
struct accuracy {
    double share, lost; /* of right answers; of those in fp32 */
    double error;       /* the largest difference of an output ÷ the largest output in fp32 */
    const char *why;    /* there is no share although data was named; or NULL */
};

/* Everything that was found in a run. Zeroed: nothing yet. */
struct accuracies {
    struct arena arena;
    struct accuracy_kept *kept;
};

/* Does the model come with weights: a saved network, or an ONNX file? */
bool accuracy_is_trained(const char *model);

/* Of the point's model, backend and precision, in inference. Fails when memory is out or it was
 * stopped; any other failure is the answer's `why`. */
enum status accuracy_find(struct accuracies *all, const struct point *point,
                          const struct accuracy_options *options, struct accuracy *out);
void accuracies_free(struct accuracies *all);

#endif
