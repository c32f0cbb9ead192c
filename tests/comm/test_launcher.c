/* What launchers leave in the environment; and, when mpirun started this very test, the trials of
 * every transport over MPI: tests/comm/mpirun.sh does. */
#include "base/clock.h"
#include "check.h"
#include "comm/launcher.h"
#include "comm_trials.h"
#include "launched.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const names[] = {
    "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PMIX_RANK",
    "SLURM_PROCID",         "SLURM_STEP_NUM_TASKS"};

/* Everything that a launcher may have left is taken away, and put back by the end. */
static char *kept[sizeof names / sizeof *names];

static void forget_launcher(void)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        kept[i] = value ? mem_copy_text(value) : NULL;
        unsetenv(names[i]);
    }
}

static void recall_launcher(void)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        unsetenv(names[i]);
        if (kept[i])
            setenv(names[i], kept[i], 1);
        mem_free(kept[i]);
    }
}

static void check_launch(const char *rank, const char *size, const char *library)
{
    struct launcher launch = {0};
    forget_launcher();
    setenv(rank, "2", 1);
    CHECK(!launcher_found(&launch));
    setenv(size, "4", 1);
    if (CHECK(launcher_found(&launch))) {
        CHECK_EQUAL_TEXT(launch.library, library);
        CHECK_EQUAL_INT(launch.rank, 2);
        CHECK_EQUAL_INT(launch.size, 4);
    }
    static const char *const bad[] = {"", "x", "-1", "2", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv(size, bad[i], 1);
        CHECK(!launcher_found(&launch));
    }
    recall_launcher();
}

TEST(launchers_are_recognised)
{
    check_launch("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "openmpi");
    check_launch("PMI_RANK", "PMI_SIZE", "mpich");
    check_launch("PMIX_RANK", "SLURM_STEP_NUM_TASKS", "openmpi");
    check_launch("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "openmpi");
}

TEST(nobody_launched_us)
{
    struct launcher launch;
    forget_launcher();
    CHECK(!launcher_found(&launch));
    recall_launcher();
}

TEST(a_plugin_that_is_not_there_says_what_to_install)
{
    const struct comm_plugin *plugin;
    CHECK_STATUS(STATUS_UNSUPPORTED, launcher_plugin("/nowhere", "openmpi", &plugin));
    CHECK_MESSAGE("openmpi-bin libopenmpi-dev");
    CHECK_STATUS(STATUS_UNSUPPORTED, launcher_plugin("/nowhere", "mpich", &plugin));
    CHECK_MESSAGE("mpich libmpich-dev");
}

TEST(trials_over_mpi)
{
    struct comm *comm = open_launched();
    if (!comm)
        return;
    CHECK_OK(trials_run(comm, NULL));
    CHECK_OK(trials_run_long(comm, NULL));
    comm_close(comm);
}

TEST(ranks_that_disagree_over_mpi)
{
    struct comm *comm = open_launched();
    float data[100] = {0};
    if (!comm)
        return;
    comm->patience_ns = 2000000000;
    enum status status = comm_all_reduce(comm, data, comm->rank == 1 ? 99 : 100, DTYPE_F32);
    if (status == STATUS_OK)
        status = comm_barrier(comm);
    CHECK(status != STATUS_OK);
    comm_close(comm);
}

TEST(a_rank_that_hangs_over_mpi)
{
    struct comm *comm = open_launched();
    if (!comm)
        return;
    comm->patience_ns = 300000000;
    if (comm->rank == 1) {
        clock_sleep_ns(2000000000);
        return;
    }
    CHECK_STATUS(STATUS_TIMEOUT, comm_barrier(comm));
    CHECK_MESSAGE("rank 1 (host ");
    CHECK_MESSAGE("has not answered for 0.3 s");
    comm_close(comm);
}

TEST(a_rank_that_is_killed_over_mpi)
{
    struct comm *comm = open_launched();
    float data[1000] = {0};
    if (!comm)
        return;
    for (int turn = 0;; turn++) {
        if (comm->rank == 1 && turn == 100)
            kill(getpid(), SIGKILL);
        if (!CHECK_OK(comm_all_reduce(comm, data, 1000, DTYPE_F32)))
            return;
    }
}

CHECK_MAIN
