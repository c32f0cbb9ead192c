/* profile.c: see profile.h. */
#include "profile/profile.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum status profile_open(struct profile *profile, const struct program *program)
{
    size_t ops = (size_t)program->op_count;
    *profile = (struct profile){.program = program};
    profile->ops = mem_array(ops, sizeof *profile->ops);
    profile->taken_ns = mem_array(ops * PROFILE_STEPS, sizeof *profile->taken_ns);
    profile->step_ns = mem_array(ops, sizeof *profile->step_ns);
    profile->events = mem_array(PROFILE_EVENTS, sizeof *profile->events);
    if (!profile->ops || !profile->taken_ns || !profile->step_ns || !profile->events) {
        profile_free(profile);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    for (size_t o = 0; o < ops; o++) {
        profile->ops[o] = (struct profile_op){"", (double)NAN, (double)NAN};
        profile->step_ns[o] = -1;
    }
    return STATUS_OK;
}

void profile_free(struct profile *profile)
{
    mem_free(profile->ops);
    mem_free(profile->taken_ns);
    mem_free(profile->step_ns);
    mem_free(profile->events);
    *profile = (struct profile){0};
}

/* An op may have several events in one step: it has several kernels, or lanes that follow each
 * other. */
static void profile_event(void *context, const struct event *event)
{
    struct profile *profile = context;
    if (event->op < 0)
        return;
    double *step_ns = &profile->step_ns[event->op];
    *step_ns = fmax(*step_ns, 0) + (double)(event->end_ns - event->start_ns);
    profile->ops[event->op].kernel = event->kernel;
    if (profile->event_count == PROFILE_EVENTS)
        profile->full = true;
    if (!profile->full)
        profile->events[profile->event_count++] = *event;
}

struct observer profile_observer(struct profile *profile)
{
    return (struct observer){OBSERVE_OPS, profile_event, profile};
}

void profile_step(struct profile *profile, bool keep)
{
    keep = keep && profile->steps < PROFILE_STEPS;
    for (int32_t o = 0; o < profile->program->op_count; o++) {
        if (keep)
            profile->taken_ns[o * PROFILE_STEPS + profile->steps] = profile->step_ns[o];
        profile->step_ns[o] = -1;
    }
    profile->steps += keep;
    if (keep && !profile->full)
        profile->step_from[++profile->kept_steps] = profile->event_count;
    else
        profile->event_count = profile->step_from[profile->kept_steps];
}

static int order_of(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* The mean of the middle half: as deaf to outliers as the median, and finer than a clock whose
 * readings are tens of nanoseconds apart. */
static double middle_of(double *values, int32_t count)
{
    int32_t from = count / 4, to = count - from;
    double sum = 0;
    qsort(values, (size_t)count, sizeof *values, order_of);
    for (int32_t i = from; i < to; i++)
        sum += values[i];
    return sum / (to - from);
}

void profile_finish(struct profile *profile)
{
    for (int32_t o = 0; profile->steps && o < profile->program->op_count; o++) {
        double ns = middle_of(profile->taken_ns + o * PROFILE_STEPS, profile->steps);
        profile->ops[o].ns = ns < 0 ? (double)NAN : ns;
    }
}

double profile_part_ns(const struct profile *profile, enum part part)
{
    double sum = 0;
    for (int32_t o = profile->program->parts[part].from; o < profile->program->parts[part].to; o++)
        if (!isnan(profile->ops[o].ns))
            sum += profile->ops[o].ns;
    return sum;
}

double profile_step_ns(const struct profile *profile)
{
    double sum = 0;
    for (int part = 0; part < PART_COUNT; part++)
        sum += profile_part_ns(profile, (enum part)part);
    return sum;
}
