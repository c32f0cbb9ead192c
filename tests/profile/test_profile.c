/* A profile of known events: times, parts, timeline and call graph. */
#include "check.h"

#include "base/json.h"
#include "base/memory.h"
#include "nn/network.h"
#include "profile/profile.h"

#include <math.h>

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
 * folded into another. In step number 3 everything takes a thousand times as long. */
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
        CHECK(subject.profile.full);
        CHECK_EQUAL_INT(subject.profile.steps, 3);
    }
    close_subject(&subject);
}

TEST(a_trace_is_json_with_the_events)
{
    struct subject subject;
    struct arena arena = {0};
    struct text text = {0};
    struct json *tree;
    if (open_subject(&subject)) {
        play(&subject, 2);
        profile_trace(&subject.profile, 1, &text);
        if (CHECK_OK(json_parse(&arena, "trace", text_of(&text), text.length, &tree))) {
            const struct json *events = json_get(tree, "traceEvents");
            /* the process, its lane, then the events of two steps */
            CHECK_EQUAL_INT(events->count, 2 + 2 * (size_t)(subject.program->op_count - 1));
            const struct json *first = events->first->next->next;
            CHECK_EQUAL_TEXT(json_text(first, "ph", ""), "X");
            CHECK_NEAR(json_real(first, "ts", -1), 0, 0);
            CHECK_NEAR(json_real(first, "dur", -1), 0.1, 1e-12);
            CHECK_EQUAL_TEXT(json_text(json_get(first, "args"), "kernel", ""), "kernel");
        }
    }
    text_free(&text);
    arena_free(&arena);
    close_subject(&subject);
}

/* The cost of the step is that of its parts, theirs that of their ops. */
TEST(a_call_graph_adds_up)
{
    struct subject subject;
    struct text text = {0};
    if (open_subject(&subject)) {
        play(&subject, 4);
        profile_callgrind(&subject.profile, 1, "test", &text);
        const char *step = strstr(text_of(&text), "fn=step\n");
        long long sum = 0;
        for (const char *at = step; at && (at = strstr(at, "calls=1 ")); at++) {
            int line;
            long long cost;
            if (CHECK(sscanf(at, "calls=1 %d\n%d %lld", &line, &line, &cost) == 3))
                sum += cost;
        }
        CHECK_EQUAL_INT(sum, (long long)profile_step_ns(&subject.profile));
        CHECK(strstr(text_of(&text), "events: ns\n") != NULL);
        CHECK(strstr(text_of(&text), "fn=dense1 dense [kernel]\n") != NULL);
    }
    text_free(&text);
    close_subject(&subject);
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
