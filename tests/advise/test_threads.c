/* What each thread of a watched program did: running, waiting and the rest sum to the window. */
#include "check.h"

#include "advise/budget.h"

static void look(struct trace *trace, enum span_kind kind, uint16_t lane, int64_t start_ns,
                 int64_t ns, const char *name)
{
    uint32_t text = 0;
    CHECK_OK(trace_text(trace, name, strlen(name), &text));
    CHECK_OK(trace_add(trace, &(struct span){.kind = (uint8_t)kind,
                                             .lane = lane,
                                             .start_ns = start_ns,
                                             .end_ns = start_ns + ns,
                                             .name = text}));
}

TEST(each_nanosecond_of_a_thread_counts_once)
{
    struct trace trace = {0};
    struct steps steps;
    struct budget_thread threads[4];
    size_t count = 0;
    uint16_t first = 0, second = 0;
    CHECK_OK(trace_lane(&trace, &(struct lane){.kind = LANE_THREAD, .number = 1}, &first));
    CHECK_OK(trace_lane(&trace, &(struct lane){.kind = LANE_THREAD, .number = 2}, &second));
    look(&trace, SPAN_sleep, first, 0, 1000, "read");
    look(&trace, SPAN_sleep, first, 500, 1000, "futex"); /* 500 of it are new */
    look(&trace, SPAN_sample, second, 0, 300, "main");
    look(&trace, SPAN_sample, second, 200, 300, "main");
    look(&trace, SPAN_sleep, second, 600, 100, "read");
    look(&trace, SPAN_op, second, 0, 2000, "an op is no look");
    CHECK_OK(trace_finish(&trace, "made"));
    CHECK_OK(steps_find(&trace, &steps));
    if (CHECK_OK(budget_threads(&trace, &steps, threads, 4, &count)) && CHECK_EQUAL_INT(count, 2)) {
        CHECK_EQUAL_INT(threads[0].lane, second); /* it ran longest */
        CHECK_EQUAL_INT(threads[0].ran_ns, 500);
        CHECK_EQUAL_INT(threads[0].waited_ns, 100);
        CHECK_EQUAL_INT(threads[1].ran_ns, 0);
        CHECK_EQUAL_INT(threads[1].waited_ns, 1500);
        CHECK_EQUAL_TEXT(trace_word(&trace, threads[1].call), "read");
        CHECK_EQUAL_INT(threads[1].call_ns, 1000);
    }
    CHECK_OK(budget_threads(&trace, &steps, threads, 1, &count));
    CHECK_EQUAL_INT(count, 1);
    steps_free(&steps);
    trace_free(&trace);
}

CHECK_MAIN
