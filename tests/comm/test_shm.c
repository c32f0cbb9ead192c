/* Ranks that are processes: the same trials as threads, and what happens when one is killed at any
 * moment, stops, or never comes. */
#include "base/clock.h"
#include "check.h"
#include "comm/shm.h"
#include "comm_trials.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(collectives_are_right_and_the_same_everywhere)
{
    for (int i = 0; i < TRIALS_SIZES; i++)
        CHECK_OK(shm_run(trials_sizes[i], trials_run, NULL));
}

TEST(a_million_and_three_numbers)
{
    for (int size = 2; size <= 3; size++)
        CHECK_OK(shm_run(size, trials_run_long, NULL));
}

/* All sum for ever; `context` says after how long rank 1 kills itself, in microseconds. */
static enum status sum_until_killed(struct comm *comm, void *context)
{
    float data[5000] = {0};
    const uint64_t until = clock_ns() + *(const uint64_t *)context * 1000;
    for (;;) {
        if (comm->rank == 1 && clock_ns() > until)
            kill(getpid(), SIGKILL);
        TRY(comm_all_reduce(comm, data, 5000, DTYPE_F32));
    }
}

TEST(a_killed_rank_is_named_within_seconds)
{
    for (uint64_t after = 0; after < 60000; after = after * 3 + 100) {
        const uint64_t begun = clock_ns();
        CHECK_STATUS(STATUS_DEVICE, shm_run(3, sum_until_killed, &after));
        CHECK_MESSAGE("rank 1 (host ");
        CHECK_MESSAGE("killed by signal 9");
        CHECK(clock_ns() - begun < 5000000000u);
    }
}

/* The others notice it by themselves, too: nobody waits for the dead child here. */
TEST(ranks_notice_a_death_without_a_parent)
{
    struct shm *shm;
    struct comm *comm;
    char word;
    if (!CHECK_OK(shm_create(2, &shm)))
        return;
    pid_t child = fork();
    if (child == 0) {
        if (shm_join(shm, 1, &comm) == STATUS_OK)
            comm_send(comm, 0, "x", 1);
        kill(getpid(), SIGKILL);
    }
    if (!CHECK_OK(shm_join(shm, 0, &comm)))
        return;
    const uint64_t begun = clock_ns();
    CHECK_OK(comm_receive(comm, 1, &word, 1)); /* what it sent before it died arrives */
    CHECK_STATUS(STATUS_DEVICE, comm_receive(comm, 1, &word, 1));
    CHECK_MESSAGE("rank 1 (host ");
    CHECK_MESSAGE("died");
    CHECK(clock_ns() - begun < 5000000000u);
    CHECK_STATUS(STATUS_DEVICE, comm_barrier(comm)); /* and stays so */
    comm_close(comm);
    waitpid(child, NULL, 0);
    shm_free(shm);
}

static enum status stop_one(struct comm *comm, void *context)
{
    (void)context;
    comm->patience_ns = 400000000;
    if (comm->rank == 1)
        kill(getpid(), SIGSTOP);
    return comm_barrier(comm);
}

TEST(a_stopped_rank_is_named_and_ended)
{
    const uint64_t begun = clock_ns();
    CHECK_STATUS(STATUS_TIMEOUT, shm_run(3, stop_one, NULL));
    CHECK_MESSAGE("has not answered for 0.4 s");
    CHECK(clock_ns() - begun < 8000000000u);
}

static enum status disagree(struct comm *comm, void *context)
{
    float data[100] = {0};
    (void)context;
    TRY(comm_all_reduce(comm, data, comm->rank == 1 ? 99 : 100, DTYPE_F32));
    return comm_barrier(comm);
}

TEST(ranks_that_disagree_are_told)
{
    CHECK(shm_run(3, disagree, NULL) != STATUS_OK);
    CHECK_MESSAGE("do not run the same program");
}

static enum status refuse(struct comm *comm, void *context)
{
    (void)context;
    if (comm->rank == 2)
        FAIL(STATUS_INPUT, "house.csv is empty");
    return comm_barrier(comm);
}

TEST(the_message_of_a_rank_is_that_of_all)
{
    CHECK(shm_run(3, refuse, NULL) != STATUS_OK);
    CHECK_MESSAGE("rank 2 (host ");
    CHECK_MESSAGE("house.csv is empty");
}

/* A parent that is killed takes its ranks with it: each has inherited the writing end of a pipe,
 * which reads as ended when the last is gone. */
static enum status sleep_long(struct comm *comm, void *context)
{
    (void)context;
    TRY(comm_barrier(comm));
    clock_sleep_ns(60000000000);
    return STATUS_OK;
}

TEST(nothing_is_left_when_the_parent_is_killed)
{
    int ends[2];
    char byte;
    if (!CHECK(pipe(ends) == 0))
        return;
    pid_t parent = fork();
    if (parent == 0) {
        close(ends[0]);
        shm_run(3, sleep_long, NULL);
        _exit(0);
    }
    close(ends[1]);
    clock_sleep_ns(300000000);
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    alarm(10);
    CHECK_EQUAL_INT(read(ends[0], &byte, 1), 0);
    alarm(0);
    close(ends[0]);
}

TEST(a_number_of_ranks_that_cannot_be)
{
    struct shm *shm;
    CHECK_STATUS(STATUS_INPUT, shm_create(0, &shm));
    CHECK_STATUS(STATUS_INPUT, shm_create(SHM_MOST + 1, &shm));
    CHECK_MESSAGE("from 1 to 256");
}

CHECK_MAIN
