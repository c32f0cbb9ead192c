/* Clocks go forward at the right pace; the log reaches its sink. */
#include "base/clock.h"
#include "base/log.h"
#include "check.h"

TEST(sleeps_at_least_that_long)
{
    uint64_t before = clock_ns();
    clock_sleep_ns(2000000);
    uint64_t slept = clock_ns() - before;
    CHECK(slept >= 2000000 && slept < 10000000000);
}

TEST(cpu_time_counts_work)
{
    uint64_t cpu = clock_cpu_ns(), used = 0;
    for (uint64_t start = clock_ns(); used < 2000000 && clock_ns() - start < 10000000000;)
        used = clock_cpu_ns() - cpu;
    CHECK(used >= 2000000);
}

TEST(cost_of_the_clock)
{
    uint64_t cost = clock_cost_ns();
    CHECK(cost >= 1 && cost < 100000);
    CHECK_EQUAL_INT(clock_cost_ns(), cost);
}

TEST(stamps)
{
    char stamp[CLOCK_STAMP];
    clock_stamp(stamp);
    int year, month, day, hour, minute, second, length = 0;
    int read = sscanf(stamp, "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &year, &month, &day, &hour, &minute,
                      &second, &length);
    CHECK_EQUAL_INT(read, 6);
    CHECK_EQUAL_INT(length, CLOCK_STAMP - 1);
    CHECK(year >= 2024 && month >= 1 && month <= 12 && day >= 1 && day <= 31 && hour < 24);
}

struct heard {
    int count;
    enum log_level level;
    char message[2000];
};

static void listen(void *context, enum log_level level, const char *message)
{
    struct heard *heard = context;
    heard->count++;
    heard->level = level;
    snprintf(heard->message, sizeof heard->message, "%s", message);
}

TEST(log_reaches_its_sink)
{
    struct heard heard = {0};
    log_info("nobody listens");
    log_to(listen, &heard, LOG_INFO);
    log_debug("below the least level");
    CHECK_EQUAL_INT(heard.count, 0);
    log_info("step %d", 3);
    CHECK_EQUAL_TEXT(heard.message, "step 3");
    CHECK_EQUAL_INT(heard.level, LOG_INFO);
    log_warning("%2000s", "long");
    CHECK_EQUAL_INT(heard.level, LOG_WARNING);
    CHECK_EQUAL_INT(strlen(heard.message), 999);
    log_to(NULL, NULL, LOG_INFO);
    log_warning("dropped");
    CHECK_EQUAL_INT(heard.count, 2);
}

CHECK_MAIN
