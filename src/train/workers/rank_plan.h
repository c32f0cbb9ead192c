/* rank_plan.h: one rank's program of a split (core/pass/split_ranks.h) at work: its parameters on a
 * device, its plan, its data. */
#ifndef PRONY_TRAIN_RANK_PLAN_H
#define PRONY_TRAIN_RANK_PLAN_H

#include "core/pass/split_ranks.h"
#include "train/engine.h"

struct rank_plan {
    struct engine *engine;
    struct split_ranks split;
    struct split_rank *own;
    struct program *program; /* its own, fused */
    int slots;               /* of the plan */
    struct params
        *given_up; /* the whole, whose values are dropped until they are gathered; or NULL */
    struct plan *plan;
};

/* Takes over the split. The comm's rank gets values of its own: those of `whole`, or where they are
 * bare its initial ones, by the seed of the control block. The engine is open and has no parameters
 * yet, or those of another split of the same network, whose entries are the same: then both plans
 * work on these. */
enum status rank_plan_open(struct rank_plan *rank, struct engine *engine, struct split_ranks *split,
                           const struct params *whole, const struct plan_options *options);
/* The same; where ranks have all of `whole`, its values are dropped once this one has its own. */
enum status rank_plan_open_alone(struct rank_plan *rank, struct engine *engine,
                                 struct split_ranks *split, struct params *whole,
                                 const struct plan_options *options);
void rank_plan_close(struct rank_plan *rank); /* before its engine; zeroed is fine */

/* Rows of a tensor, by its name. */
struct named_view {
    enum role role;
    const char *name;
    void *data;
    int64_t rows;
};
/* Binds those of the views that this rank loads or stores. The order must be given: samples have
 * the same numbers on all ranks. */
enum status rank_plan_bind(struct rank_plan *rank, const struct named_view *views, int32_t count,
                           const struct binding *rest);
/* What it takes of its device: parameters, gradients, activations of all slots. */
uint64_t rank_plan_bytes(const struct rank_plan *rank);
/* Takes its values out of `whole` again. */
enum status rank_plan_take(struct rank_plan *rank, const struct params *whole);
/* Copies the parameters back, to rank->own->params, which have no values before. What was gathered
 * before is given up again. */
enum status rank_plan_download(struct rank_plan *rank);
/* Brings the parameters of all ranks together on rank 0, in `whole`; all of them call it, after
 * rank_plan_download. rank->own->params have no values afterwards. */
enum status rank_plan_gather(struct rank_plan *rank, struct comm *comm, struct params *whole);

#endif
