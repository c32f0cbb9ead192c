/* test_beats.c: steps timed by one call: of a host that waits in each step, and of one that runs
 * ahead of its GPU. */
#include "check.h"
#include "watch/beats.h"

enum { STEPS = 100, KERNELS = 3, STEP_NS = 1000000 };

static uint32_t number; /* of the last call, which a kernel has too */

static void add(struct trace *trace, enum span_kind kind, const char *name, uint16_t lane,
                int64_t start_ns, int64_t ns)
{
    struct span span = {.kind = (uint8_t)kind,
                        .lane = lane,
                        .start_ns = start_ns,
                        .end_ns = start_ns + ns,
                        .correlation = kind == SPAN_call ? ++number : number};
    CHECK_OK(trace_text(trace, name, strlen(name), &span.name));
    CHECK_OK(trace_add(trace, &span));
}

/* A step launches kernels and copies once. The host comes to a step each `host_ns`, and waits every
 * `wait_every` steps; the GPU takes STEP_NS for each. */
static void make(struct trace *trace, int64_t host_ns, int wait_every, bool with_gpu)
{
    static const char *const kernels[KERNELS] = {"one", "two", "three"};
    uint16_t host, gpu;
    *trace = (struct trace){0};
    CHECK_OK(trace_lane(trace, &(struct lane){.kind = LANE_THREAD, .number = 1}, &host));
    CHECK_OK(trace_lane(trace, &(struct lane){.kind = LANE_STREAM, .number = 7}, &gpu));
    int64_t now = 0, done = 0;
    for (int step = 0; step < STEPS; step++) {
        add(trace, SPAN_call, "cudaMemcpyAsync", host, now, 10);
        done = (done > now ? done : now) + STEP_NS;
        for (int k = 0; k < KERNELS; k++) {
            add(trace, SPAN_call, "cudaLaunchKernel", host, now + 100 + k, 1);
            if (with_gpu)
                add(trace, SPAN_kernel, kernels[k], gpu, done - STEP_NS + 1000 * k, 900);
        }
        now += host_ns;
        if (step % wait_every == wait_every - 1) {
            add(trace, SPAN_call, "cudaStreamSynchronize", host, now, done > now ? done - now : 1);
            now = (done > now ? done : now) + 5;
        }
    }
    CHECK_OK(trace_finish(trace, "it"));
}

static double step_of(int64_t host_ns, int wait_every, struct beat beat, bool *known)
{
    struct trace trace;
    double step_ns = 0, spread_ns;
    make(&trace, host_ns, wait_every, false);
    *known = beat_times(&trace, &beat, &step_ns, &spread_ns);
    CHECK(!*known || spread_ns <= 0.02 * step_ns + 1 || wait_every > STEPS);
    trace_free(&trace);
    return step_ns;
}

TEST(takes_the_rarest_call_of_each_step)
{
    struct trace trace;
    struct steps steps;
    make(&trace, STEP_NS / 10, 10, true);
    CHECK_OK(steps_find(&trace, &steps));
    CHECK(steps.count >= STEPS - 2 && steps.period == KERNELS);
    steps.start_ns =
        0; /* calls come before their kernels: of a host that runs ahead, long before */
    const struct beat beat = beat_choose(&trace, &steps);
    CHECK(beat.name && strcmp(beat.name, "cudaMemcpyAsync") == 0);
    CHECK(beat.a_step == 1 && beat.all == STEPS);
    steps_free(&steps);
    trace_free(&trace);
}

TEST(times_steps)
{
    const struct beat beat = {"cudaMemcpyAsync", 1, STEPS},
                      three = {"cudaLaunchKernel", 3, 3 * STEPS};
    bool known;
    CHECK_NEAR(step_of(2 * STEP_NS, 1, beat, &known), 2 * STEP_NS, 0.01 * STEP_NS);
    CHECK_NEAR(step_of(STEP_NS / 10, 1, beat, &known), STEP_NS, 0.01 * STEP_NS);
    CHECK_NEAR(step_of(STEP_NS / 10, 1, three, &known), STEP_NS, 0.01 * STEP_NS);
    /* far ahead: from wait to wait */
    CHECK_NEAR(step_of(STEP_NS / 10, 25, beat, &known), STEP_NS, 0.02 * STEP_NS);
    CHECK(known);
    /* no wait at all: the pace of the host is all there is */
    CHECK_NEAR(step_of(2 * STEP_NS, 2 * STEPS, beat, &known), 2 * STEP_NS, 0.01 * STEP_NS);
}

TEST(says_when_it_is_another_program)
{
    const struct beat more = {"cudaMemcpyAsync", 1, 2 * STEPS}, none = {"cudaMemset", 1, 10};
    bool known;
    (void)step_of(STEP_NS, 1, more, &known);
    CHECK(!known);
    (void)step_of(STEP_NS, 1, none, &known);
    CHECK(!known);
}

CHECK_MAIN
