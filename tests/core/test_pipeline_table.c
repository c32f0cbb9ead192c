/* test_pipeline_table.c: who computes what when, and how long everybody waits, without a word being
 * sent. */
#include "check.h"
#include "core/pass/pipeline_table.h"

#include <math.h>

enum { STAGES = 7, MICROS = 19 };

/* Calls body for every schedule, number of stages and of micro-batches. */
static void each(void (*body)(enum pipeline_schedule, int32_t stages, int32_t micros))
{
    for (int schedule = 0; schedule < PIPELINE_SCHEDULES; schedule++)
        for (int32_t stages = 1; stages <= STAGES; stages++)
            for (int32_t micros = 1; micros <= MICROS; micros++)
                body((enum pipeline_schedule)schedule, stages, micros);
}

/* Every micro-batch goes forward once and then back once, both in order, and no slot is taken
 * twice. */
static void check_turns(enum pipeline_schedule schedule, int32_t stages, int32_t micros)
{
    for (int32_t stage = 0; stage < stages; stage++) {
        struct pipeline_turn turns[2 * MICROS];
        int32_t in_slot[MICROS], forwards = 0, backwards = 0, most = 0;
        int32_t slots = pipeline_alive(schedule, stages, stage, micros);
        for (int32_t i = 0; i < MICROS; i++)
            in_slot[i] = -1;
        pipeline_table(schedule, stages, stage, micros, turns);
        for (int32_t i = 0; i < 2 * micros; i++) {
            const struct pipeline_turn *turn = &turns[i];
            if (!CHECK(turn->slot >= 0 && turn->slot < slots))
                return;
            CHECK_EQUAL_INT(turn->micro, turn->backward ? backwards : forwards);
            CHECK_EQUAL_INT(in_slot[turn->slot], turn->backward ? turn->micro : -1);
            in_slot[turn->slot] = turn->backward ? -1 : turn->micro;
            *(turn->backward ? &backwards : &forwards) += 1;
            most = forwards - backwards > most ? forwards - backwards : most;
        }
        CHECK_EQUAL_INT(forwards, micros);
        CHECK_EQUAL_INT(backwards, micros);
        CHECK_EQUAL_INT(most, slots);
        if (schedule == PIPELINE_1F1B)
            CHECK(most <= stages);
    }
}

TEST(every_micro_batch_goes_forward_and_back_once)
{
    each(check_turns);
}

/* What one stage and what all together take is known where all take as long. */
static void check_bubble(enum pipeline_schedule schedule, int32_t stages, int32_t micros)
{
    double forward_s[STAGES], backward_s[STAGES], step_s, bubble;
    for (int32_t s = 0; s < stages; s++) {
        forward_s[s] = 1;
        backward_s[s] = 2.5;
    }
    if (!CHECK_OK(pipeline_play(schedule, stages, micros, forward_s, backward_s, &step_s, &bubble)))
        return;
    const double expected = (double)(stages - 1) / (double)(micros + stages - 1);
    if (!CHECK(fabs(bubble - expected) < 1e-12) ||
        !CHECK(fabs(step_s - 3.5 * (double)(micros + stages - 1)) < 1e-9))
        printf("    %s, %d stages, %d micro-batches: a bubble of %g, expected %g\n",
               pipeline_schedule_name(schedule), stages, micros, bubble, expected);
}

TEST(the_bubble_is_the_known_one)
{
    each(check_bubble);
}

TEST(the_slowest_stage_sets_the_pace)
{
    const double forward_s[] = {1, 4, 1}, backward_s[] = {2, 8, 2};
    double step_s, bubble;
    CHECK_OK(pipeline_play(PIPELINE_1F1B, 3, 100, forward_s, backward_s, &step_s, &bubble));
    CHECK(step_s >= 1200 && step_s < 1200 * 1.02);
    CHECK(fabs(bubble - (1 - 1800 / (3 * step_s))) < 1e-12);
}

TEST(schedules_have_names)
{
    enum pipeline_schedule schedule = PIPELINE_GPIPE;
    CHECK_OK(pipeline_schedule_read("1f1b", &schedule));
    CHECK_EQUAL_INT(schedule, PIPELINE_1F1B);
    CHECK_STATUS(STATUS_INPUT, pipeline_schedule_read("1F1B!", &schedule));
    CHECK_MESSAGE("--pipeline: found '1F1B!', expected 1f1b or gpipe");
}

/* The largest sum over all cuts, by trying each. */
static double try_cuts(const double *costs, int32_t count, int32_t stages)
{
    double least = HUGE_VAL;
    if (stages == 1) {
        double sum = 0;
        for (int32_t i = 0; i < count; i++)
            sum += costs[i];
        return sum;
    }
    double first = 0;
    for (int32_t i = 0; i < count - stages + 1; i++) {
        first += costs[i];
        least = fmin(least, fmax(first, try_cuts(costs + i + 1, count - i - 1, stages - 1)));
    }
    return least;
}

TEST(stages_are_balanced)
{
    enum { GROUPS = 9 };
    unsigned seed = 1;
    for (int round = 0; round < 50; round++) {
        double costs[GROUPS];
        for (int i = 0; i < GROUPS; i++) {
            seed = seed * 1664525u + 1013904223u;
            costs[i] = (double)(seed >> 8) / (1 << 24);
        }
        for (int32_t stages = 1; stages <= GROUPS; stages++) {
            int32_t stage_of[GROUPS];
            double sums[GROUPS] = {0}, most = 0;
            CHECK_OK(pipeline_balance(costs, GROUPS, stages, stage_of));
            for (int i = 0; i < GROUPS; i++) {
                CHECK(!i || stage_of[i] == stage_of[i - 1] || stage_of[i] == stage_of[i - 1] + 1);
                sums[stage_of[i]] += costs[i];
                most = fmax(most, sums[stage_of[i]]);
            }
            CHECK_EQUAL_INT(stage_of[0], 0);
            CHECK_EQUAL_INT(stage_of[GROUPS - 1], stages - 1);
            CHECK(most <= try_cuts(costs, GROUPS, stages) * (1 + 1e-12));
        }
    }
}

CHECK_MAIN
