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

struct frame {
    const char *function, *file;
    uint32_t line;
};

/* A thread that stands there at each of the looks from … to: the innermost frame first, up to one
 * without a function. */
static void add_stack(struct trace *trace, int thread, enum span_kind kind,
                      const struct frame *frames, int from, int to)
{
    struct span span = {.kind = (uint8_t)kind};
    const struct lane lane = {.kind = LANE_THREAD, .group = 1, .number = thread};
    size_t count = 0;
    while (frames[count].function)
        count++;
    CHECK_OK(trace_text(trace, frames->function, strlen(frames->function), &span.name));
    while (count--) {
        const struct frame *frame = &frames[count];
        struct site site = {.line = frame->line, .caller = span.site};
        CHECK_OK(trace_text(trace, frame->function, strlen(frame->function), &site.function));
        CHECK_OK(trace_text(trace, frame->file, strlen(frame->file), &site.file));
        CHECK_OK(trace_site(trace, &site, &span.site));
    }
    CHECK_OK(trace_lane(trace, &lane, &span.lane));
    for (int i = from; i < to; i++) {
        span.start_ns = i * look_ns;
        span.end_ns = (i + 1) * look_ns;
        CHECK_OK(trace_add(trace, &span));
    }
}

static void add(struct trace *trace, int thread, enum span_kind kind, const char *name,
                const char *file, uint32_t line, int from, int to)
{
    add_stack(trace, thread, kind, (const struct frame[]){{name, file, line}, {NULL, "", 0}}, from,
              to);
}

/* The first finding's rule ("": none), its gain, and what bounds the program. */
static void expect(struct trace *trace, const char *rule, double gain, const char *bound)
{
    struct advice advice;
    CHECK_OK(trace_finish(trace, "made"));
    if (CHECK_OK(advise(trace, NULL, &advice))) {
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

/* Stacks as they come from Debian's Python, whose program holds the interpreter, and from one in a
 * library: half of the looks are in the interpreter, the C library included. */
static void expect_python(const char *program, const struct frame *inner, const char *rule)
{
    struct trace trace;
    const struct frame *const tops[] = {(const struct frame[]){{NULL, "", 0}},
                                        inner}; /* the evaluation loop is the line itself */
    begin(&trace, "2");
    for (int i = 0; i < LOOKS; i++) {
        struct frame frames[8] = {{NULL, "", 0}};
        size_t count = 0;
        for (const struct frame *top = tops[i % 2]; top->function; top++)
            frames[count++] = *top;
        frames[count++] = (struct frame){"batch", "/srv/train.py", 12};
        frames[count++] = (struct frame){"train", "/srv/train.py", i % 4 < 2 ? 20 : 21};
        frames[count++] = (struct frame){"main", program, 0};
        add_stack(&trace, 1, SPAN_sample, frames, i, i + 1);
    }
    struct advice advice;
    CHECK_OK(trace_finish(&trace, "made"));
    if (CHECK_OK(advise(&trace, NULL, &advice))) {
        CHECK_EQUAL_TEXT(advice.count ? advice.findings[0].rule->id : "", rule);
        if (advice.count) {
            CHECK_EQUAL_TEXT(trace_word(&trace, trace.sites[advice.findings[0].site].file),
                             "/srv/train.py");
            CHECK_EQUAL_INT(trace.sites[advice.findings[0].site].line, 12);
            CHECK_NEAR(advice.findings[0].gain, *rule ? 100 : 1, 1);
        }
        advice_free(&advice);
    }
    trace_free(&trace);
}

TEST(the_interpreter_is_known_by_the_name_of_its_file)
{
    static const char *const programs[] = {"python3.11", "python", "libpython3.12.so.1.0",
                                           "/usr/bin/python3"};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        const struct frame allocates[] = {{"libc.so.6+0x9a3e0", "libc.so.6", 0},
                                          {"malloc", "libc.so.6", 0},
                                          {"python3.11+0x1234", programs[i], 0},
                                          {NULL, "", 0}};
        expect_python(programs[i], allocates, "R11");
    }
    const struct frame draws[] = {
        {"_random_Random_random", "_random.cpython-312-x86_64-linux-gnu.so", 0}, {NULL, "", 0}};
    expect_python("python3.12", draws, "R11");
}

/* What else Python calls is work that no call on arrays replaces. */
static void expect_work(const struct frame *work)
{
    struct trace trace;
    struct frame frames[8] = {{NULL, "", 0}};
    size_t count = 0;
    begin(&trace, "2");
    for (; work[count].function; count++)
        frames[count] = work[count];
    frames[count++] = (struct frame){"step", "train.py", 7};
    frames[count++] = (struct frame){"main", "python3.11", 0};
    add_stack(&trace, 1, SPAN_sample, frames, 0, LOOKS);
    expect(&trace, "", 1, "bound by the CPU");
}

TEST(work_that_python_calls_is_not_python_itself)
{
    expect_work((const struct frame[]){{"memcpy", "libc.so.6", 0},
                                       {"DOUBLE_add", "umath.cpython-311-x86_64.so", 0},
                                       {"python3.11+0x1234", "python3.11", 0},
                                       {NULL, "", 0}});
    expect_work((const struct frame[]){
        {"__read", "libc.so.6", 0}, {"python3.11+0x99", "python3.11", 0}, {NULL, "", 0}});
    expect_work((const struct frame[]){
        {"deflate", "libz.so.1", 0}, {"python3.11+0x99", "python3.11", 0}, {NULL, "", 0}});
}

/* Such a thread was read from outside: nobody knows whether C runs below its line. */
TEST(a_line_without_frames_of_c_is_not_python_itself)
{
    struct trace trace;
    begin(&trace, "2");
    add(&trace, 1, SPAN_sample, "step", "train.py", 7, 0, LOOKS);
    expect(&trace, "", 1, "bound by the CPU");
}

/* Half of the time at 60 looks is worth a word; a tenth may be chance, and is at 2,000 looks. */
static void expect_pages(int looks, int of, const char *rule)
{
    struct trace trace;
    struct advice advice;
    begin(&trace, "2");
    add(&trace, 1, SPAN_sleep, "futex", "wait.c", 0, 0, LOOKS);
    for (int i = 0; i < looks; i++)
        add(&trace, 1, SPAN_sample, i % of ? "work" : "munmap", "libc.so.6", 0, LOOKS + i,
            LOOKS + i + 1);
    CHECK_OK(trace_finish(&trace, "made"));
    if (CHECK_OK(advise(&trace, NULL, &advice)))
        CHECK_EQUAL_TEXT(advice.count ? advice.findings[0].rule->id : "", rule);
    advice_free(&advice);
    trace_free(&trace);
}

TEST(few_samples_need_a_larger_gain)
{
    expect_pages(60, 2, "R12");
    expect_pages(60, 10, "");
    expect_pages(2000, 10, "R12");
    expect_pages(ADVICE_SAMPLES_LEAST - 1, 2, "");
}

/* What proofs made of a rule's range is what is said, and how many they were. */
TEST(proofs_correct_the_range)
{
    struct trace trace;
    struct advice advice;
    struct rule_range ranges[RULES];
    rule_ranges(ranges);
    ranges[RULE_spin] = (struct rule_range){0.25, 0.5, 4};
    begin(&trace, "1");
    add(&trace, 1, SPAN_sample, "work", "program", 0, 0, LOOKS);
    add(&trace, 2, SPAN_sample, "do_spin", "program", 0, 0, LOOKS);
    CHECK_OK(trace_finish(&trace, "made"));
    if (CHECK_OK(advise(&trace, ranges, &advice)) && CHECK_EQUAL_INT(advice.count, 1)) {
        CHECK_EQUAL_TEXT(advice.findings[0].rule->id, "R10");
        CHECK_NEAR(advice.findings[0].low, 1.25, 0.01);
        CHECK_NEAR(advice.findings[0].high, 1.5, 0.01);
        CHECK_EQUAL_INT(advice.findings[0].proofs, 4);
    }
    advice_free(&advice);
    trace_free(&trace);
}

/* Python that imports for two seconds and computes for four. */
TEST(imports_are_no_part_of_what_is_judged)
{
    const struct frame importing[] = {{"unmarshal", "python3.11", 0},
                                      {"_load", "<frozen importlib._bootstrap>", 241},
                                      {"<module>", "train.py", 1},
                                      {"main", "python3.11", 0},
                                      {NULL, "", 0}};
    const struct frame computing[] = {{"sgemm_kernel", "libopenblas.so", 0},
                                      {"<module>", "train.py", 9},
                                      {"main", "python3.11", 0},
                                      {NULL, "", 0}};
    struct trace trace;
    struct advice advice;
    begin(&trace, "2");
    add_stack(&trace, 1, SPAN_sample, importing, 0, LOOKS / 2);
    add_stack(&trace, 1, SPAN_sample, computing, LOOKS / 2, 3 * LOOKS / 2);
    add_stack(&trace, 1, SPAN_sample, importing, 3 * LOOKS / 2, 3 * LOOKS / 2 + 9);
    CHECK_OK(trace_finish(&trace, "made"));
    if (CHECK_OK(advise(&trace, NULL, &advice))) {
        CHECK_EQUAL_INT(advice.count, 0);
        CHECK_EQUAL_INT(advice.samples, LOOKS + 9);
        CHECK_EQUAL_INT(advice.steps.startup_ns, LOOKS / 2 * look_ns);
        CHECK_EQUAL_INT(advice.budget.window_ns, (LOOKS + 9) * look_ns);
    }
    advice_free(&advice);
    trace_free(&trace);
}

/* A thread of Python that sleeps nine tenths of the time gains a tenth at most. */
TEST(python_that_mostly_waits_gains_little)
{
    const struct frame loop[] = {{"poll", "watch.py", 4}, {"main", "python3.11", 0}, {NULL, "", 0}};
    struct trace trace;
    begin(&trace, "2");
    for (int i = 0; i < 9 * LOOKS; i++)
        add_stack(&trace, 1, i % 10 ? SPAN_sleep : SPAN_sample, loop, i, i + 1);
    expect(&trace, "R11", 1 / 0.9, "bound by waiting");
}

/* Ten ops of 8 µs with one of 6 µs in each. */
TEST(ops_count_without_those_in_them)
{
    struct trace trace = {0};
    struct steps steps;
    struct budget_kernel ops[4];
    size_t count = 0;
    uint16_t lane;
    CHECK_OK(trace_lane(&trace, &(struct lane){.kind = LANE_THREAD, .number = 1}, &lane));
    for (int i = 0; i < 20; i++) {
        struct span span = {.kind = SPAN_op, .lane = lane, .start_ns = i / 2 * 10000 + i % 2};
        span.end_ns = span.start_ns + (i % 2 ? 6000 : 8000);
        CHECK_OK(trace_text(&trace, i % 2 ? "inner" : "outer", 5, &span.name));
        CHECK_OK(trace_add(&trace, &span));
    }
    CHECK_OK(trace_finish(&trace, "made"));
    if (CHECK_OK(steps_find(&trace, &steps)) &&
        CHECK_OK(budget_kernels(&trace, &steps, ops, 4, &count)) && CHECK_EQUAL_INT(count, 2)) {
        const double whole = (double)steps.count;
        CHECK_EQUAL_TEXT(trace_word(&trace, ops[0].name), "inner");
        CHECK_NEAR((double)ops[0].ns / whole, 6000, 1);
        CHECK_NEAR((double)ops[1].ns / whole, 2000, 1);
    }
    steps_free(&steps);
    trace_free(&trace);
}

CHECK_MAIN
