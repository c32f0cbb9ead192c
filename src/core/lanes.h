/* lanes.h: events for an observer that looks at no step from inside (OBSERVE_NOTHING) and yet has
 * an `event`. They say when the samples of each step were gathered, when they were copied to the
 * unit and when it computed. The steps run as they do when nobody looks, with all that runs beside
 * something else. One event a stage and step, `lane` says which; once they are synced, a last one
 * for all of them together. Nothing is told of data that lie where they are computed on. */
#ifndef PRONY_CORE_LANES_H
#define PRONY_CORE_LANES_H

enum lane {
    LANE_GATHER,  /* threads bring rows together where they are copied from; direct copies have none
                   */
    LANE_COPY,    /* the unit's copies of them, by its clock */
    LANE_COMPUTE, /* the step itself, by its clock */
    LANE_ALL,     /* from the first step's beginning until the last one's results are there */
    LANE_COUNT
};

#endif
