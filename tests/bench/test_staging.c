/* What was watched of gathering, copying and computing, made into figures that add up. */
#include "bench/meter/staging.h"
#include "check.h"

/* Milliseconds. */
static void tell(struct staging_seen *seen, enum lane lane, double from, double to)
{
    const struct event event = {.op = -1,
                                .kernel = "",
                                .lane = lane,
                                .start_ns = (uint64_t)(from * 1e6),
                                .end_ns = (uint64_t)(to * 1e6)};
    staging_event(seen, &event);
}

static double idle_of(const struct staging *found)
{
    return found->iteration - found->gather * (1 - found->gather_overlap / 100) -
           found->copy * (1 - found->copy_overlap / 100) - found->compute;
}

/* One after the other, the way `direct` goes: nothing is beside anything. */
TEST(what_waits_for_each_other_does_not_overlap)
{
    struct staging_seen seen = {0};
    struct staging found;
    tell(&seen, LANE_COPY, 1, 4);
    tell(&seen, LANE_COMPUTE, 4, 5);
    tell(&seen, LANE_COPY, 5, 8);
    tell(&seen, LANE_COMPUTE, 8, 9);
    tell(&seen, LANE_ALL, 0.5, 9.5);
    if (!CHECK(staging_of(&seen, &found)))
        return;
    CHECK_NEAR(found.iteration, 4.5e6, 1e-3);
    CHECK_NEAR(found.gather, 0, 0);
    CHECK_NEAR(found.gather_overlap, 0, 0);
    CHECK_NEAR(found.copy, 3e6, 1e-3);
    CHECK_NEAR(found.copy_overlap, 0, 0);
    CHECK_NEAR(found.compute, 1e6, 1e-3);
    CHECK_NEAR(idle_of(&found), 0.5e6, 1e-3);
}

/* `pinned`: copies and steps take turns, but the next rows are gathered beside a step. */
TEST(gathering_may_be_beside_what_copying_is_not)
{
    struct staging_seen seen = {0};
    struct staging found;
    tell(&seen, LANE_GATHER, 0, 4);
    tell(&seen, LANE_COPY, 4, 6);
    tell(&seen, LANE_COMPUTE, 6, 9);
    tell(&seen, LANE_GATHER, 6, 10);
    tell(&seen, LANE_COPY, 10, 12);
    tell(&seen, LANE_COMPUTE, 12, 15);
    tell(&seen, LANE_ALL, 0, 16);
    if (!CHECK(staging_of(&seen, &found)))
        return;
    CHECK_NEAR(found.copy_overlap, 0, 0);
    CHECK_NEAR(found.gather_overlap, 100 * 3 / 8.0, 1e-9);
    CHECK_NEAR(idle_of(&found), 0.5e6, 1e-3);
}

/* `overlapped`: what is beside both is counted once. */
TEST(what_is_beside_two_is_hidden_once)
{
    struct staging_seen seen = {0};
    struct staging found;
    tell(&seen, LANE_GATHER, 0, 2);
    tell(&seen, LANE_COPY, 2, 4);
    tell(&seen, LANE_GATHER, 2, 6);
    tell(&seen, LANE_COMPUTE, 4, 9);
    tell(&seen, LANE_COPY, 6, 8);
    tell(&seen, LANE_GATHER, 7, 9);
    tell(&seen, LANE_COMPUTE, 9, 13);
    tell(&seen, LANE_COPY, 10, 14);
    tell(&seen, LANE_COMPUTE, 14, 15);
    tell(&seen, LANE_ALL, 0, 15);
    if (!CHECK(staging_of(&seen, &found)))
        return;
    CHECK_NEAR(found.iteration, 5e6, 1e-3);
    CHECK_NEAR(found.copy_overlap, 100 * 5 / 8.0, 1e-9);
    CHECK_NEAR(found.gather_overlap, 100 * 6 / 8.0, 1e-9);
    CHECK_NEAR(idle_of(&found), 0, 1e-3);
}

TEST(what_is_not_told_is_not_made_up)
{
    struct staging_seen seen = {0};
    struct staging found;
    CHECK(!staging_of(&seen, &found));
    tell(&seen, LANE_COMPUTE, 4, 5);
    tell(&seen, LANE_ALL, 0, 6);
    CHECK(!staging_of(&seen, &found));
    tell(&seen, LANE_COPY, 2, 4);
    CHECK(staging_of(&seen, &found));
}

CHECK_MAIN
