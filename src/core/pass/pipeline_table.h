/* pipeline_table.h: when each stage of a pipeline computes what: a list of turns per stage. In
 * every schedule forwards follow the order of the micro-batches, and so do backwards. So gradients
 * and running means add up as with one worker. */
#ifndef PRONY_CORE_PASS_PIPELINE_TABLE_H
#define PRONY_CORE_PASS_PIPELINE_TABLE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum pipeline_schedule {
    PIPELINE_1F1B,  /* as soon as a backward can run, it does: at most as many micro-batches are
                       alive in a stage as there are stages from it on */
    PIPELINE_GPIPE, /* all forwards, then all backwards: all of them are alive */
    PIPELINE_SCHEDULES
};

const char *pipeline_schedule_name(enum pipeline_schedule schedule);
enum status pipeline_schedule_read(const char *name, enum pipeline_schedule *out);

/* One turn of a stage: the forward or the backward of a micro-batch, in this slot of its plan. */
struct pipeline_turn {
    bool backward;
    int32_t micro, slot;
};

/* Writes the turns of a stage: 2 × `micros` of them. */
void pipeline_table(enum pipeline_schedule schedule, int32_t stages, int32_t stage, int32_t micros,
                    struct pipeline_turn *out);
/* Micro-batches that are alive in the stage at once at most: the slots that its plan needs. */
int32_t pipeline_alive(enum pipeline_schedule schedule, int32_t stages, int32_t stage,
                       int32_t micros);

/* Plays the tables through: a turn begins when its stage is free and what it waits for was computed
 * (communication takes no time). forward_s and backward_s: what one of them takes in each stage.
 * *step_s is when the last stage ends; the bubble is the share of it, over all stages, in which a
 * stage waits: (p-1)/(m+p-1) where all stages take as long. */
enum status pipeline_play(enum pipeline_schedule schedule, int32_t stages, int32_t micros,
                          const double *forward_s, const double *backward_s, double *step_s,
                          double *bubble);

/* Gives each of `count` groups in a row its stage: each stage has at least one group, and its
 * groups follow each other. The largest sum of costs is as small as can be. */
enum status pipeline_balance(const double *costs, int32_t count, int32_t stages, int32_t *stage_of);

#endif
