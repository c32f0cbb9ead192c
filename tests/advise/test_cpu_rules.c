/* Rules that look at samples of the host, on made traces: whether threads that spin cost anything,
 * which waits are for storage, and what bounds a program that uses no GPU. */
#include "check.h"

#include "advise/advise.h"

enum { LOOKS = 400 };
static const int64_t look_ns = 10000000;

/* A program in the making: `cores` CPUs. */
static void begin(struct trace *trace, const char *cores)
{
    *trace = (struct trace){0};
    CHECK_OK(trace_add_fact(trace, "cores", cores));
}

/* A thread that does this at each of the looks from … to. */
static void add(struct trace *trace, int thread, enum span_kind kind, const char *name,
                const char *file, uint32_t line, int from, int to)
{
    struct site frame = {.line = line};
    struct span span = {.kind = (uint8_t)kind};
    const struct lane lane = {.kind = LANE_THREAD, .group = 1, .number = thread};
    CHECK_OK(trace_text(trace, name, strlen(name), &span.name));
    CHECK_OK(trace_text(trace, file, strlen(file), &frame.file));
    frame.function = span.name;
    CHECK_OK(trace_site(trace, &frame, &span.site));
    CHECK_OK(trace_lane(trace, &lane, &span.lane));
    for (int i = from; i < to; i++) {
        span.start_ns = i * look_ns;
        span.end_ns = (i + 1) * look_ns;
        CHECK_OK(trace_add(trace, &span));
    }
}

/* The first finding's rule ("": none), its gain, and what bounds the program. */
static void expect(struct trace *trace, const char *rule, double gain, const char *bound)
{
    struct advice advice;
    CHECK_OK(trace_finish(trace, "made"));
    if (CHECK_OK(advise(trace, &advice))) {
        CHECK(!advice.silent);
        CHECK_EQUAL_TEXT(advice.count ? advice.findings[0].rule->id : "", rule);
        if (advice.count)
            CHECK_NEAR(advice.findings[0].gain / gain, 1, 0.03);
        if (!CHECK(strstr(advice.bound, bound)))
            printf("found \"%s\", expected \"%s\"\n", advice.bound, bound);
        advice_free(&advice);
    }
    trace_free(trace);
}

/* Two threads on two cores: one that spins takes nothing from the other. */
TEST(threads_that_spin_cost_nothing_where_each_has_a_core)
{
    struct trace trace;
    begin(&trace, "2");
    add(&trace, 1, SPAN_sample, "sgemm_kernel", "libopenblas.so", 0, 0, LOOKS);
    add(&trace, 2, SPAN_sample, "sched_yield", "libc.so.6", 0, 0, LOOKS);
    expect(&trace, "", 1,
           "bound by the CPU: 2.0 threads at a time, on 2 cores; 50 % of their time");
}

/* Four on two: the two that compute have a core each once the others do not spin. */
TEST(threads_that_spin_take_cores_from_others)
{
    struct trace trace;
    begin(&trace, "2");
    for (int i = 1; i <= 2; i++) {
        add(&trace, i, SPAN_sample, "sgemm_kernel", "libopenblas.so", 0, 0, LOOKS);
        add(&trace, i + 2, SPAN_sample, "gomp_team_barrier_wait_end", "libgomp.so", 0, 0, LOOKS);
    }
    expect(&trace, "R10", 2, "bound by the CPU: 4.0 threads at a time, on 2 cores");
}

/* Half of the time they spin and half they do not. */
TEST(only_crowded_time_can_be_won)
{
    struct trace trace;
    begin(&trace, "1");
    add(&trace, 1, SPAN_sample, "work", "program", 0, 0, LOOKS);
    add(&trace, 2, SPAN_sample, "do_spin", "program", 0, 0, LOOKS / 2);
    expect(&trace, "R10", 4.0 / 3, "bound by the CPU");
}

/* Threads wait for pipes and other threads in the same calls. */
TEST(a_wait_for_a_pipe_is_not_one_for_storage)
{
    struct trace trace;
    begin(&trace, "2");
    add(&trace, 1, SPAN_sleep, "read", "pool.py", 7, 0, LOOKS);
    add(&trace, 2, SPAN_sample, "work", "pool", 0, 0, LOOKS);
    expect(&trace, "", 1,
           "bound by the CPU: 1.0 thread at a time, on 2 cores; 100 % of their time is work");
}

TEST(storage_costs_only_while_nothing_runs)
{
    struct trace trace;
    begin(&trace, "2");
    add(&trace, 1, SPAN_sleep, "read" TRACE_STORAGE, "load.py", 3, 0, LOOKS * 3 / 4);
    add(&trace, 2, SPAN_sample, "work", "load", 0, LOOKS / 2, LOOKS);
    expect(&trace, "R13", 2, "bound by");
}

TEST(a_program_that_waits_is_not_bound_by_the_cpu)
{
    struct trace trace;
    begin(&trace, "2");
    add(&trace, 1, SPAN_sleep, "clock_nanosleep", "wait.py", 3, 0, 4 * LOOKS);
    add(&trace, 1, SPAN_sample, "work", "wait", 0, 4 * LOOKS, 5 * LOOKS);
    expect(&trace, "", 1,
           "bound by waiting: no thread runs 80 % of the time; the first one waits in "
           "clock_nanosleep, mostly at wait.py:3");
}

/* Samples do not show what filling pages takes; counts of the system do. */
TEST(pages_that_come_again_are_found_without_samples)
{
    struct trace trace;
    begin(&trace, "2");
    CHECK_OK(trace_add_fact(&trace, "on_core_ns", "4000000000"));
    CHECK_OK(trace_add_fact(&trace, "system_ns", "3000000000"));
    CHECK_OK(trace_add_fact(&trace, "faults", "2000000"));
    CHECK_OK(trace_add_fact(&trace, "faults_again", "1000000"));
    add(&trace, 1, SPAN_sample, "DOUBLE_add", "umath.so", 0, 0, LOOKS);
    expect(&trace, "R12", 1.6, "bound by the CPU");
}

/* The system took that time for something else. */
TEST(faults_take_two_microseconds_at_most)
{
    struct trace trace;
    begin(&trace, "2");
    CHECK_OK(trace_add_fact(&trace, "on_core_ns", "4000000000"));
    CHECK_OK(trace_add_fact(&trace, "system_ns", "3000000000"));
    CHECK_OK(trace_add_fact(&trace, "faults", "50000"));
    CHECK_OK(trace_add_fact(&trace, "faults_again", "50000"));
    add(&trace, 1, SPAN_sample, "write", "libc.so.6", 0, 0, LOOKS);
    expect(&trace, "", 1, "bound by the CPU");
}

CHECK_MAIN
