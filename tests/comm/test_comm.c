/* Ranks that are threads: every collective against a serial sum, the same bits everywhere, and what
 * happens when a rank is not there. */
#include "base/clock.h"
#include "comm_trials.h"
#include "ranks.h"

static bool run_well(int size, enum status (*run)(struct comm *comm, void *context), void *context)
{
    struct ranks_one ones[RANKS_MOST];
    if (!ranks_threads(size, run, context, ones))
        return false;
    bool well = true;
    for (int i = 0; i < size; i++)
        if (ones[i].status != STATUS_OK)
            well = check_fail(__FILE__, __LINE__, "rank %d of %d: %s", i, size, ones[i].message);
    return well;
}

TEST(collectives_are_right_and_the_same_everywhere)
{
    for (int i = 0; i < TRIALS_SIZES; i++)
        run_well(trials_sizes[i], trials_run, NULL);
}

TEST(a_million_and_three_numbers)
{
    for (int size = 2; size <= 3; size++)
        run_well(size, trials_run_long, NULL);
}

/* Rank 1 does something else than the others; all must end, and say why. */
static void check_all_fail(enum status (*run)(struct comm *comm, void *context), int except,
                           enum status code, const char *part)
{
    struct ranks_one ones[RANKS_MOST];
    const uint64_t begun = clock_ns();
    if (!ranks_threads(3, run, NULL, ones))
        return;
    CHECK(clock_ns() - begun < 5000000000u);
    for (int i = 0; i < 3; i++) {
        if (i == except)
            continue;
        if (code != STATUS_OK)
            CHECK_EQUAL_INT(ones[i].status, code);
        CHECK(ones[i].status != STATUS_OK);
        if (!strstr(ones[i].message, part))
            check_fail(__FILE__, __LINE__, "rank %d says \"%s\", expected \"…%s…\"", i,
                       ones[i].message, part);
    }
}

static enum status leave_early(struct comm *comm, void *context)
{
    (void)context;
    return comm->rank == 1 ? STATUS_OK : comm_barrier(comm);
}

TEST(a_rank_that_leaves_is_named)
{
    check_all_fail(leave_early, 1, STATUS_DEVICE, "rank 1 (host ");
}

/* Rank 2 has nothing more to do and goes, while 0 waits for 1, which takes its time. */
static enum status end_well(struct comm *comm, void *context)
{
    (void)context;
    int word = comm->rank;
    if (comm->rank == 2)
        return comm_send(comm, 0, &word, sizeof word);
    if (comm->rank == 1) {
        clock_sleep_ns(700000000);
        return comm_send(comm, 0, &word, sizeof word);
    }
    TRY(comm_receive(comm, 1, &word, sizeof word));
    return comm_receive(comm, 2, &word, sizeof word);
}

TEST(a_rank_that_is_done_may_go)
{
    run_well(3, end_well, NULL);
}

static enum status hang(struct comm *comm, void *context)
{
    (void)context;
    comm->patience_ns = 300000000;
    if (comm->rank == 1)
        clock_sleep_ns(1500000000);
    return comm_barrier(comm);
}

TEST(a_rank_that_hangs_is_named)
{
    check_all_fail(hang, 1, STATUS_OK, "has not answered for 0.3 s");
}

static enum status send_too_few(struct comm *comm, void *context)
{
    (void)context;
    float data[100] = {0};
    TRY(comm_all_reduce(comm, data, comm->rank == 1 ? 99 : 100, DTYPE_F32));
    return comm_barrier(comm);
}

TEST(ranks_that_disagree_are_told)
{
    check_all_fail(send_too_few, -1, STATUS_OK, "do not run the same program");
}

static enum status give_up(struct comm *comm, void *context)
{
    (void)context;
    if (comm->rank != 1)
        return comm_barrier(comm);
    status_fail(STATUS_INPUT, __FILE__, __LINE__, "no such file");
    return comm_abandon(comm, STATUS_INPUT);
}

TEST(a_rank_that_gives_up_says_why_to_all)
{
    check_all_fail(give_up, -1, STATUS_OK, "no such file");
}

static enum status fail_twice(struct comm *comm, void *context)
{
    (void)context;
    comm->patience_ns = 100000000;
    if (comm->rank == 1) {
        clock_sleep_ns(500000000);
        return STATUS_OK;
    }
    float data[3] = {0};
    if (comm_barrier(comm) == STATUS_OK)
        FAIL(STATUS_WRONG, "it went well");
    return comm_all_reduce(comm, data, 3, DTYPE_F32);
}

TEST(what_broke_stays_broken)
{
    check_all_fail(fail_twice, 1, STATUS_OK, "has not answered");
}

CHECK_MAIN
