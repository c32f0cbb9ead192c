/* Peers, good and bad. Whatever they do, the bench goes on, soon, and leaves no process behind. */
#include "check.h"

#include "base/clock.h"
#include "base/memory.h"
#include "bench/measure.h"
#include "bench/peer/job_peer.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static enum status compare_values(void *context, const struct json *const *answers, double *error)
{
    const struct json *values = json_get(answers[0], "values");
    *error = 0.25;
    *(size_t *)context = values ? values->count : 0;
    return STATUS_OK;
}

static size_t values_seen;

static struct job *open_peer(const char *path)
{
    const struct peer_work work = {.path = path,
                                   .prepare = "{\"do\":\"prepare\"}",
                                   .checks = {"{\"do\":\"check\"}"},
                                   .compare = compare_values,
                                   .context = &values_seen,
                                   .patience_ns = 1000000000};
    struct job *job = NULL;
    CHECK_OK(job_peer_open(&work, &job));
    return job;
}

/* Does a process of this group still run? (Zombies that nobody waits for do not count.) */
static bool group_runs(pid_t group)
{
    DIR *folder = opendir("/proc");
    bool runs = false;
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        char path[300], text[1000] = "", state;
        int found;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        size_t length = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        text[length] = '\0';
        const char *fields = strrchr(text, ')');
        if (fields && sscanf(fields, ") %c %*d %d", &state, &found) == 2 && found == group &&
            state != 'Z' && state != 'X')
            runs = true;
    }
    if (folder)
        closedir(folder);
    return runs;
}

/* Closes within a few seconds, and the process is gone: not there, and not a zombie of ours. */
static void close_peer(struct job *job)
{
    pid_t process = job_peer_process(job);
    uint64_t start_ns = clock_ns();
    job->kind->close(job);
    CHECK(clock_ns() - start_ns < 4000000000);
    if (!process)
        return;
    CHECK(waitpid(process, NULL, WNOHANG) < 0 && errno == ECHILD);
    for (int i = 0; i < 100 && group_runs(process); i++)
        clock_sleep_ns(10000000); /* a kill takes a moment */
    CHECK(!group_runs(process));
}

TEST(a_good_peer_is_timed_by_its_own_clock)
{
    struct job *job = open_peer("tests/peers/good/peer");
    double error = 0;
    uint64_t elapsed_ns = 0;
    CHECK_OK(job->kind->prepare(job));
    CHECK(job_peer_process(job) > 0);
    CHECK_OK(job->kind->check(job, &error));
    CHECK_NEAR(error, 0.25, 0);
    CHECK_EQUAL_INT(values_seen, 2);
    CHECK_OK(job->kind->run(job, 2, &elapsed_ns));
    CHECK_EQUAL_INT(elapsed_ns, 2000000);

    struct arena arena = {0};
    struct job_info info;
    CHECK_OK(job->kind->describe(job, &arena, &info));
    CHECK_EQUAL_INT(info.software->count, 1);
    CHECK_EQUAL_TEXT(json_text(info.software, "sh", ""), "1");
    CHECK(!info.handicap);
    CHECK_EQUAL_TEXT(json_text(info.tuning, "weights", ""), "[in][out]");
    CHECK_EQUAL_TEXT(info.unit_name, "a shell");
    arena_free(&arena);
    close_peer(job);
}

/* Prepared, asked once, closed: the process that did it. */
static pid_t use_once(const char *path, struct peer_bank *bank, enum status expected)
{
    struct job *job = NULL;
    double error;
    const struct peer_work work = {.path = path,
                                   .prepare = "{\"do\":\"prepare\"}",
                                   .checks = {"{\"do\":\"check\"}"},
                                   .compare = compare_values,
                                   .context = &values_seen,
                                   .patience_ns = 1000000000,
                                   .bank = bank};
    if (!CHECK_OK(job_peer_open(&work, &job)))
        return 0;
    enum status status = job->kind->prepare(job);
    if (status == STATUS_OK)
        status = job->kind->check(job, &error);
    CHECK_EQUAL_INT(status, expected);
    pid_t process = job_peer_process(job);
    job->kind->close(job);
    return process;
}

TEST(a_process_that_waits_does_the_next_work)
{
    struct peer_bank bank = {0};
    pid_t first = use_once("tests/peers/good/peer", &bank, STATUS_OK);
    CHECK_EQUAL_INT(bank.count, 1);
    CHECK_EQUAL_INT(use_once("tests/peers/good/peer", &bank, STATUS_OK), first);
    kill(first, SIGKILL); /* one that died waiting is no harm */
    pid_t second = use_once("tests/peers/good/peer", &bank, STATUS_OK);
    CHECK(second != first);
    use_once("tests/peers/garbage/peer", &bank, STATUS_DEVICE); /* what failed does not stay */
    CHECK_EQUAL_INT(bank.count, 1);
    peer_bank_close(&bank);
    CHECK_EQUAL_INT(bank.count, 0);
    CHECK(!group_runs(second));
}

TEST(a_peer_that_lacks_something_is_unsupported)
{
    struct job *job = open_peer("tests/peers/absent/peer");
    CHECK_STATUS(STATUS_UNSUPPORTED, job->kind->prepare(job));
    CHECK_MESSAGE("libexample is not installed");
    close_peer(job);
}

TEST(a_peer_that_cannot_be_started_is_unsupported)
{
    struct job *job = open_peer("tests/peers/none/peer");
    CHECK_STATUS(STATUS_UNSUPPORTED, job->kind->prepare(job));
    CHECK_MESSAGE("No such file");
    close_peer(job);
}

TEST(a_peer_that_dies_leaves_its_last_words)
{
    struct job *job = open_peer("tests/peers/dies/peer");
    uint64_t elapsed_ns;
    CHECK_OK(job->kind->prepare(job));
    CHECK_STATUS(STATUS_DEVICE, job->kind->run(job, 1, &elapsed_ns));
    CHECK_MESSAGE("the process ended: out of luck");
    close_peer(job);
}

TEST(a_peer_that_is_killed_says_by_what)
{
    struct job *job = open_peer("tests/peers/killed/peer");
    uint64_t elapsed_ns;
    CHECK_OK(job->kind->prepare(job));
    CHECK_STATUS(STATUS_DEVICE, job->kind->run(job, 1, &elapsed_ns));
    CHECK_MESSAGE("the process ended by signal 9 (killed, as where memory is out)");
    close_peer(job);
}

TEST(a_peer_that_hangs_is_given_up)
{
    struct job *job = open_peer("tests/peers/hangs/peer");
    uint64_t elapsed_ns, start_ns = clock_ns();
    CHECK_OK(job->kind->prepare(job));
    CHECK_STATUS(STATUS_TIMEOUT, job->kind->run(job, 1, &elapsed_ns));
    CHECK(clock_ns() - start_ns < 4000000000);
    close_peer(job);
}

static bool at_once(void)
{
    return true;
}

/* Getting ready may take a minute: whoever stops the bench does not wait for it. */
TEST(a_peer_that_gets_ready_can_be_stopped)
{
    const struct peer_work work = {.path = "tests/peers/good/peer",
                                   .prepare = "{\"do\":\"prepare\"}",
                                   .patience_ns = 60000000000,
                                   .stopped = at_once};
    struct job *job = NULL;
    if (!CHECK_OK(job_peer_open(&work, &job)))
        return;
    CHECK_STATUS(STATUS_INTERRUPTED, job->kind->prepare(job));
    close_peer(job);
}

TEST(a_peer_that_talks_nonsense_is_a_failure)
{
    struct job *job = open_peer("tests/peers/garbage/peer");
    CHECK_STATUS(STATUS_DEVICE, job->kind->prepare(job));
    CHECK_MESSAGE("nonsense (\"Traceback");
    close_peer(job);
}

TEST(a_peer_that_floods_is_cut_off)
{
    struct job *job = open_peer("tests/peers/floods/peer");
    uint64_t elapsed_ns;
    CHECK_OK(job->kind->prepare(job));
    CHECK_STATUS(STATUS_DEVICE, job->kind->run(job, 1, &elapsed_ns));
    CHECK_MESSAGE("without a line end");
    close_peer(job);
}

/* Reading its complaints must not take the place of looking at the clock. */
TEST(a_peer_that_only_complains_is_hung)
{
    struct job *job = open_peer("tests/peers/complains/peer");
    CHECK_STATUS(STATUS_TIMEOUT, job->kind->prepare(job));
    CHECK_MESSAGE("no answer in time");
    close_peer(job);
}

TEST(a_peer_that_closes_its_output_is_a_failure)
{
    struct job *job = open_peer("tests/peers/closes/peer");
    uint64_t elapsed_ns;
    CHECK_OK(job->kind->prepare(job));
    CHECK_STATUS(STATUS_DEVICE, job->kind->run(job, 1, &elapsed_ns));
    CHECK_MESSAGE("the process ended");
    close_peer(job);
}

/* Its second answer is found before the next request is sent, or is still on its way then and found
 * before the one after. */
TEST(a_peer_that_answers_unasked_is_a_failure)
{
    struct job *job = open_peer("tests/peers/chatters/peer");
    uint64_t elapsed_ns;
    enum status status = job->kind->prepare(job);
    for (int i = 0; i < 3 && status == STATUS_OK; i++) {
        clock_sleep_ns(100000000);
        status = job->kind->run(job, 1, &elapsed_ns);
    }
    CHECK_EQUAL_INT(status, STATUS_DEVICE);
    CHECK_MESSAGE("before it was asked");
    close_peer(job);
}

TEST(a_peer_that_claims_the_impossible_is_a_failure)
{
    struct job *job = open_peer("tests/peers/boasts/peer");
    uint64_t elapsed_ns;
    CHECK_OK(job->kind->prepare(job));
    CHECK_STATUS(STATUS_DEVICE, job->kind->run(job, 1, &elapsed_ns));
    CHECK_MESSAGE("99999999999999");
    close_peer(job);
}

/* The process of that name in what the peer says of its software. */
static pid_t process_named(struct job *job, const char *name)
{
    struct arena arena = {0};
    struct job_info info;
    pid_t process = 0;
    if (CHECK_OK(job->kind->describe(job, &arena, &info)))
        process = (pid_t)strtol(json_text(info.software, name, "0"), NULL, 10);
    arena_free(&arena);
    return process;
}

/* Long runs tell; what is the same before every run does not grow with them. */
TEST(a_peer_that_claims_too_little_is_a_failure)
{
    struct job *job = open_peer("tests/peers/understates/peer");
    uint64_t elapsed_ns;
    CHECK_OK(job->kind->prepare(job));
    CHECK_OK(job->kind->run(job, 1, &elapsed_ns));
    CHECK_EQUAL_INT(elapsed_ns, 1000);
    enum status status = STATUS_OK;
    for (int i = 0; i < 12 && status == STATUS_OK; i++) /* the first was held up: a few more */
        status = job->kind->run(job, 60 << (i / 3), &elapsed_ns);
    CHECK_EQUAL_INT(status, STATUS_DEVICE);
    CHECK_MESSAGE("it must give the nanoseconds");
    close_peer(job);
}

TEST(a_peer_may_take_its_time_between_runs)
{
    struct job *job = open_peer("tests/peers/lingers/peer");
    uint64_t elapsed_ns;
    CHECK_OK(job->kind->prepare(job));
    for (int i = 0; i < 6; i++)
        CHECK_OK(job->kind->run(job, 10, &elapsed_ns));
    close_peer(job);
}

TEST(a_peer_leaves_nobody_behind)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) /* as under qemu-user */
        SKIP("orphans cannot become children of this process: %s", strerror(errno));
    struct job *job = open_peer("tests/peers/strays/peer"),
               *good = open_peer("tests/peers/good/peer");
    uint64_t elapsed_ns;
    CHECK_OK(job->kind->prepare(job));
    CHECK_OK(good->kind->prepare(good));
    pid_t child = process_named(job, "child"), orphan = process_named(job, "orphan");
    if (CHECK(child > 0 && orphan > 0)) {
        CHECK_EQUAL_INT(kill(child, 0), 0);
        CHECK_EQUAL_INT(kill(orphan, 0), 0);
    }
    close_peer(job);
    CHECK(kill(child, 0) != 0 && errno == ESRCH);
    CHECK(kill(orphan, 0) != 0 && errno == ESRCH);
    CHECK_OK(good->kind->run(good, 1, &elapsed_ns)); /* who is not closed is left alone */
    close_peer(good);
}

TEST(measure_times_a_peer_as_any_job)
{
    struct job *job = open_peer("tests/peers/boasts/peer"),
               *good = open_peer("tests/peers/good/peer");
    CHECK_OK(job->kind->prepare(job));
    CHECK_OK(good->kind->prepare(good));
    struct timing list[2] = {{.job = job}, {.job = good}};
    family_find(job_peer_process(job), &list[0].family);
    family_find(job_peer_process(good), &list[1].family);
    const struct measure_options options = {.target = 0.01, .limit_ns = 1000000000};
    if (CHECK_OK(measure(&options, list, 2))) {
        CHECK_EQUAL_INT(list[0].stop, MEASURE_FAILED);
        CHECK(list[1].count > 0);
    }
    timing_free(&list[0]);
    timing_free(&list[1]);
    close_peer(job);
    close_peer(good);
}

CHECK_MAIN
