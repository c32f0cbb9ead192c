/* lap_split.h: a lap over a network that is split between workers: model parallelism and pipelines.
 * A worker then has parameters of its own on the device; the model's are as they were when it
 * began, until they are gathered. */
#ifndef PRONY_TRAIN_LAP_SPLIT_H
#define PRONY_TRAIN_LAP_SPLIT_H

#include "train/lap.h"

/* The leg's whole program, for options->batch samples of a step. */
enum status lap_split_compile(struct lap *lap, struct leg *leg, const struct network *network,
                              struct params *params, const struct compile_options *options);
/* This worker's part of both legs, with its values out of `params`. */
enum status lap_split_prepare(struct lap *lap, const struct params *params);
void lap_split_close(struct lap *lap);

enum status lap_split_run(struct lap *lap, const struct leg *leg, int64_t steps);
/* Brings lap->stale up to date, on all workers. */
enum status lap_split_add_stale(struct lap *lap);
/* Does this worker tell the loss of the lap? One of them does. */
bool lap_split_tells(const struct lap *lap, const struct leg *leg);
/* Drops the values of the whole until they are gathered, where ranks have all of them. */
void lap_split_give_up(struct lap *lap);
/* What this worker's part takes of its unit. */
uint64_t lap_split_bytes(const struct lap *lap);
/* Takes this worker's values out of `params` again. */
enum status lap_split_take(struct lap *lap, const struct params *params);
/* Brings the parameters of all workers together in those of worker 0 or, for all of them, also what
 * is learnt in everyone's. All workers call it. */
enum status lap_split_gather(struct lap *lap, struct params *params, bool for_all);

#endif
