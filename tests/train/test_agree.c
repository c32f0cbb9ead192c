/* test_agree.c: workers that would not compute the same thing refuse to begin, and all say why. */
#include "comm/shm.h"
#include "ranks.h"
#include "train/workers/agree.h"

#include <string.h>

enum { WORKERS = 3 };

/* What the last worker says otherwise than the others. */
struct saying {
    const char *batch, *file;
    uint64_t hash;
    bool more; /* a fact that the others do not have */
};

static enum status say(struct comm *comm, void *context)
{
    static const struct saying usual = {"8", "a.csv", 7, false};
    const struct saying *saying = comm->rank == WORKERS - 1 ? context : &usual;
    struct text facts = {0};
    agree_fact(&facts, "the setting epochs", "%d", 3);
    agree_fact(&facts, "the setting batch", "%s", saying->batch);
    agree_hashed(&facts, "the data", saying->hash, saying->file);
    if (saying->more)
        agree_fact(&facts, "the moon", "full");
    enum status status = agree(comm, &facts);
    text_free(&facts);
    return status;
}

static void check_refused(struct saying *saying, const char *part)
{
    struct ranks_one ones[RANKS_MOST];
    if (!ranks_threads(WORKERS, say, saying, ones))
        return;
    for (int i = 0; i < WORKERS; i++) {
        CHECK_EQUAL_INT(ones[i].status, STATUS_INPUT);
        if (!strstr(ones[i].message, part))
            check_fail(__FILE__, __LINE__, "worker %d says \"%s\", expected \"…%s…\"", i,
                       ones[i].message, part);
    }
    CHECK_STATUS(STATUS_INPUT, shm_run(WORKERS, say, saying));
    CHECK_MESSAGE(part);
}

TEST(the_worker_and_both_values_are_named)
{
    check_refused(&(struct saying){"9", "a.csv", 7, false},
                  "in the setting batch: found 9, expected 8: start the same command");
    check_refused(&(struct saying){"8", "b.csv", 6, false},
                  "in the data: found 0000000000000006 b.csv, expected 0000000000000007 a.csv:");
    check_refused(&(struct saying){"8\nx", "a.csv", 7, false}, "found 8?x, expected 8:");
    check_refused(&(struct saying){"8", "a.csv", 7, true}, "in the moon: found full, expected");
}

TEST(the_same_files_may_be_called_otherwise)
{
    struct saying saying = {"8", "elsewhere/b.csv", 7, false};
    CHECK_OK(shm_run(WORKERS, say, &saying));
    CHECK_OK(shm_run(WORKERS, say, &(struct saying){"8", "a.csv", 7, false}));
}

TEST(one_worker_agrees_with_itself)
{
    struct text facts = {0};
    CHECK_OK(agree(NULL, &facts));
}

CHECK_MAIN
