/* predictor.h: requests to a network, each of the same number of rows. They go from the caller's
 * arrays to the caller's arrays, by the plans that backends have for calls (enum answering).
 *
 * A CPU reads and writes the caller's arrays where they lie. Otherwise there is a ring of places. A
 * request is copied to the next one and scaled there if the model has a scale; its answer is copied
 * to the caller's array once it was waited for. The plan is bound once, to the ring, so that a unit
 * with memory of its own is not told anew where the rows are. */
#ifndef PRONY_TRAIN_PREDICTOR_H
#define PRONY_TRAIN_PREDICTOR_H

#include "train/model.h"

struct predictor_options {
    int32_t rows;  /* of a request */
    int32_t depth; /* requests that may wait for their answer; 0: one, which is answered at once */
    enum answering answering; /* but ANSWER_STEPS */
};

struct predictor {
    const struct engine *engine;
    const struct scaling *scaling; /* of inputs, the model's; NULL: they are taken as they come */
    const struct scaling *returns; /* of outputs; NULL: they are as the last layer gives them */
    const char *name;              /* the network's, for messages */
    struct recipe_step step;       /* of one program */
    struct plan *plan;
    int32_t rows;             /* of a request; 0: it is not open */
    int32_t x, y;             /* tensors of the program */
    int64_t inputs, outputs;  /* numbers of a request */
    uint64_t asked, answered; /* requests so far */
    const float *bound_x;     /* what the plan reads … */
    float *bound_y;           /* … and writes */
    uint64_t depth;           /* places of the ring; 0: there is none */
    float *ring_x, *ring_y;   /* [depth, inputs], [depth, outputs] */
    float **into;             /* [depth]: where the answer is to be copied */
};

/* A zeroed *predictor is filled; it is to be closed after a failure too. The model outlives it, and
 * stays on its device until it is closed. */
enum status predictor_open(struct predictor *predictor, struct model *model,
                           const struct predictor_options *options);
void predictor_close(struct predictor *predictor); /* zeroed is fine; what waits is dropped */

/* One request and its answer. After a failure it is to be closed. */
enum status predictor_call(struct predictor *predictor, const float *inputs, float *outputs);

/* With a depth: asks, of fewer requests than that which wait. Inputs are read by the end of it. */
enum status predictor_ask(struct predictor *predictor, const float *inputs, float *outputs);
/* Waits for all that was asked, and writes the outputs. */
enum status predictor_answer(struct predictor *predictor);

#endif
