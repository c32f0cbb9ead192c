/* A profile of known events: times, parts, timeline and call graph. */
#include "check.h"

#include "base/memory.h"
#include "nn/network.h"
#include "profile/profile.h"
#include "trace/export.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct subject {
    struct network *network;
    struct params params;
    struct program *program;
    struct profile profile;
};

static bool open_subject(struct subject *subject)
{
    const struct compile_options options = {.batch = 2, .use = USE_INFERENCE};
    *subject = (struct subject){0};
    params_init(&subject->params, DTYPE_F32);
    return CHECK_OK(network_open("mlp:3-4-2", &subject->network)) &&
           CHECK_OK(
               network_compile(subject->network, &subject->params, &options, &subject->program)) &&
           CHECK_OK(profile_open(&subject->profile, subject->program));
}

static void close_subject(struct subject *subject)
{
    profile_free(&subject->profile);
    program_free(subject->program);
    params_free(&subject->params);
    network_free(subject->network);
}

/* Every op but the last takes 100 ns × its place from 1; the last shows no event, as one that was
 * folded into another. In step number 3 everything takes a thousand times as long: it was
 * interrupted. */
static void play(struct subject *subject, int steps)
{
    struct observer observer = profile_observer(&subject->profile);
    uint64_t now = 5000;
    for (int step = 0; step <= steps; step++) {
        for (int32_t o = 0; o + 1 < subject->program->op_count; o++) {
            uint64_t took = 100 * (uint64_t)(o + 1) * (step == 3 ? 1000 : 1);
            struct event event = {.op = o,
                                  .part = (int32_t)subject->program->ops[o].part,
                                  .kernel = "kernel",
                                  .start_ns = now,
                                  .end_ns = now + took};
            observer.event(observer.context, &event);
            now += took + 10;
        }
        profile_step(&subject->profile, step > 0);
    }
    profile_finish(&subject->profile);
}

TEST(times_are_those_of_the_middle_half)
{
    struct subject subject;
    if (open_subject(&subject)) {
        int32_t last = subject.program->op_count - 1;
        play(&subject, 20);
        CHECK_EQUAL_INT(subject.profile.steps, 20);
        double sum = 0;
        for (int32_t o = 0; o < last; o++) {
            CHECK_NEAR(subject.profile.ops[o].ns, 100.0 * (o + 1), 1e-9);
            CHECK_EQUAL_TEXT(subject.profile.ops[o].kernel, "kernel");
            sum += 100.0 * (o + 1);
        }
        CHECK(isnan(subject.profile.ops[last].ns));
        CHECK_EQUAL_TEXT(subject.profile.ops[last].kernel, "");
        CHECK_NEAR(profile_step_ns(&subject.profile), sum, 1e-9);
        CHECK_NEAR(profile_part_ns(&subject.profile, PART_PREPARE) +
                       profile_part_ns(&subject.profile, PART_FORWARD),
                   sum, 1e-9);
    }
    close_subject(&subject);
}

TEST(only_whole_steps_are_kept_of_the_timeline)
{
    struct subject subject;
    if (open_subject(&subject)) {
        struct observer observer = profile_observer(&subject.profile);
        struct event event = {.op = 0, .kernel = "kernel", .end_ns = 1};
        for (int step = 0; step < 3; step++) {
            for (int i = 0; i < PROFILE_EVENTS / 2 - 10; i++)
                observer.event(observer.context, &event);
            profile_step(&subject.profile, true);
        }
        CHECK_EQUAL_INT(subject.profile.event_count, 2 * (PROFILE_EVENTS / 2 - 10));
        CHECK_EQUAL_INT(subject.profile.kept_steps, 2);
        CHECK(subject.profile.full);
        CHECK_EQUAL_INT(subject.profile.steps, 3);
    }
    close_subject(&subject);
}

/* A span for each event, a mark for each step; nothing between two steps. */
TEST(events_become_spans)
{
    struct subject subject;
    struct trace trace = {0};
    if (open_subject(&subject)) {
        const size_t ops = (size_t)subject.program->op_count - 1;
        play(&subject, 4);
        if (CHECK_OK(profile_spans(&subject.profile, 1, false, &trace)) &&
            CHECK_OK(trace_finish(&trace, "test"))) {
            CHECK_EQUAL_INT(trace.span_count, 3 * (ops + 1)); /* without the third */
            CHECK_EQUAL_INT(trace.spans[0].kind, SPAN_step);
            const struct span *first = &trace.spans[1], *next = &trace.spans[ops + 1];
            CHECK_EQUAL_INT(first->start_ns, 0);
            CHECK_EQUAL_INT(span_ns(first), 100);
            CHECK_EQUAL_INT(next->kind, SPAN_step);
            CHECK_EQUAL_INT(next->start_ns, trace.spans[ops].end_ns);
            CHECK_EQUAL_TEXT(trace_word(&trace, trace.lanes[first->lane].process),
                             subject.program->name);
        }
    }
    trace_free(&trace);
    close_subject(&subject);
}

/* The cost of the program is that of its parts, theirs that of their ops. */
TEST(a_call_graph_adds_up)
{
    struct subject subject;
    struct trace trace = {0};
    struct text text = {0};
    if (open_subject(&subject)) {
        play(&subject, 2);
        if (CHECK_OK(profile_spans(&subject.profile, 1, false, &trace)) &&
            CHECK_OK(trace_finish(&trace, "test")) &&
            CHECK_OK(trace_export_callgrind(&trace, "test", &text))) {
            char fn[100];
            long long sum = 0;
            snprintf(fn, sizeof fn, "fn=%s\ncfi=", subject.program->name);
            for (const char *at = text_of(&text); (at = strstr(at, fn)); at++) {
                long long cost;
                const char *calls = strstr(at, "calls=1 ");
                if (CHECK(calls && sscanf(calls, "calls=1 %*d\n%*d %lld", &cost) == 1))
                    sum += cost;
            }
            CHECK_EQUAL_INT(sum, 2 * (long long)profile_step_ns(&subject.profile));
            CHECK(strstr(text_of(&text), "fn=dense1 dense [kernel]\n") != NULL);
        }
    }
    trace_free(&trace);
    text_free(&text);
    close_subject(&subject);
}

/* What has a clock of its own follows the program before it. */
TEST(programs_follow_each_other)
{
    struct subject first, second;
    struct trace trace = {0};
    if (open_subject(&first) && open_subject(&second)) {
        struct profile both[2];
        play(&first, 3);
        play(&second, 3);
        both[0] = first.profile;
        both[1] = second.profile;
        if (CHECK_OK(profile_spans(both, 2, false, &trace)) &&
            CHECK_OK(trace_finish(&trace, "test"))) {
            const size_t ops = (size_t)first.program->op_count - 1;
            CHECK_EQUAL_INT(trace.lane_count, 2);
            CHECK_EQUAL_INT(trace.spans[ops + 1].lane, 1);
            CHECK_EQUAL_INT(trace.spans[ops + 1].start_ns, trace.spans[ops].end_ns);
        }
    }
    trace_free(&trace);
    close_subject(&first);
    close_subject(&second);
}

TEST(no_memory_is_said)
{
    struct subject subject;
    if (open_subject(&subject))
        for (long nth = 1; nth <= 4; nth++) {
            struct profile profile;
            memory_fail_at(nth);
            CHECK_STATUS(STATUS_MEMORY, profile_open(&profile, subject.program));
            memory_fail_at(0);
        }
    close_subject(&subject);
}

CHECK_MAIN
