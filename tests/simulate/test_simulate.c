/* test_simulate.c: simulated steps beside what latencies and rates make of them, on platforms so
 * small that it can be told. */
#include "check.h"

#include "nn/network.h"
#include "simulate/simulate.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

static double linear(const void *context, int32_t batch)
{
    return *(const double *)context * batch;
}

struct trial {
    const char *network, *platform;
    double sample_s; /* that one worker takes for a sample */
    struct simulate_request request;
};

/* The plugin lies in the folder above the tests'. */
static enum status find_folder(char folder[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 4);
    if (length < 0)
        FAIL(STATUS_IO, "cannot find the folder of this test");
    folder[length] = '\0';
    memcpy(strrchr(folder, '/'), "/..", sizeof "/..");
    return STATUS_OK;
}

static enum status try_step(const struct trial *trial, struct simulate_result *out)
{
    char folder[PATH_MAX];
    struct platform platform;
    struct network *network;
    struct simulate_request request = trial->request;
    TRY(find_folder(folder));
    TRY(platform_read("test.platform", trial->platform, &platform));
    TRY(network_open(trial->network, &network));
    request.platform = &platform;
    request.network = network;
    request.folder = folder;
    request.seconds = linear;
    request.context = &trial->sample_s;
    enum status status = simulate(&request, out);
    network_free(network);
    return status;
}

/* False, and the test is skipped, where there is no plugin. */
static bool step(const struct trial *trial, struct simulate_result *out)
{
    enum status status = try_step(trial, out);
    if (status == STATUS_UNSUPPORTED)
        check_skip("%s", status_message());
    else
        CHECK_OK(status);
    return status == STATUS_OK;
}

/* 1,002,001 parameters in one bucket. */
static const double bytes = 4 * 1002001.0;
#define NETWORK "mlp:1000-1000-1"

TEST(one_worker_only_computes)
{
    struct simulate_result result;
    const struct trial trial = {NETWORK, "outside 100 MB/s 1 ms", 0.25, {.workers = 1, .batch = 4}};
    if (!step(&trial, &result))
        return;
    CHECK_NEAR(result.step_s, 1, 1e-9);
    CHECK_NEAR(result.compute_s, 1, 1e-9);
    CHECK_NEAR(result.exposed_s, 0, 1e-9);
}

TEST(ring_takes_its_bytes_and_latencies)
{
    for (int workers = 2; workers <= 16; workers *= 2) {
        struct simulate_result result;
        const struct trial trial = {
            NETWORK, "outside 100 MB/s 1 ms", 0, {.workers = workers, .batch = 64}};
        const double expected = 2 * (workers - 1) * (bytes / workers / 100e6 + 1e-3);
        if (!step(&trial, &result))
            return;
        CHECK_NEAR(result.step_s / expected, 1, 1e-3);
        CHECK_NEAR(result.sent_bytes, 2 * (workers - 1) * bytes / workers, 1);
    }
}

/* With very many workers a ring would be latencies alone. */
TEST(many_workers_halve)
{
    struct simulate_result result;
    const struct trial trial = {
        NETWORK, "outside 100 MB/s 1 ms", 0, {.workers = 1024, .batch = 1024}};
    if (!step(&trial, &result))
        return;
    CHECK_NEAR(result.step_s, 2 * (10 * 1e-3 + bytes * 1023 / 1024 / 100e6), 2e-3);
}

TEST(links_inside_a_server_are_quicker)
{
    static const char platform[] = "units 4\ninside 1 GB/s 0 us\noutside 100 MB/s 0 us each\n";
    struct simulate_result near, far;
    const struct trial one_server = {NETWORK, platform, 0, {.workers = 4, .batch = 64}};
    const struct trial two_servers = {NETWORK, platform, 0, {.workers = 8, .batch = 64}};
    if (!step(&one_server, &near) || !step(&two_servers, &far))
        return;
    CHECK_NEAR(near.step_s, 2 * 0.75 * bytes / 1e9, 1e-6);
    CHECK_NEAR(far.step_s, 2 * 0.875 * bytes / 100e6, 1e-6);
}

/* Both units of a server send at once through one port: halving sends all of it from both. */
TEST(units_share_a_port)
{
    static const char shared[] = "units 2\ninside 10 GB/s 0 us\noutside 100 MB/s 0 us\n";
    static const char each[] = "units 2\ninside 10 GB/s 0 us\noutside 100 MB/s 0 us each\n";
    struct simulate_result slow, quick;
    struct trial trial = {"mlp:100-100-1", shared, 0, {.workers = 4, .batch = 64}};
    if (!step(&trial, &slow))
        return;
    trial.platform = each;
    if (!step(&trial, &quick))
        return;
    CHECK(slow.step_s > 1.5 * quick.step_s);
}

TEST(a_slow_line_between_clusters_counts)
{
    static const char platform[] = "outside 1 GB/s 0 us\nclusters 2\nbetween 10 MB/s 0 us\n";
    struct simulate_result result;
    const struct trial trial = {NETWORK, platform, 0, {.workers = 4, .batch = 64}};
    if (!step(&trial, &result))
        return;
    CHECK_NEAR(result.step_s, 2 * 0.75 * bytes / 10e6, 1e-3);
}

/* 4 units ask for 1000 numbers a sample, 4 bytes each, and 1 to be learnt, from one host. */
TEST(units_share_what_feeds_them)
{
    static const char platform[] =
        "units 4\ninside 100 GB/s 0 us\noutside 100 GB/s 0 us\nfeed 1 MB/s\n";
    struct simulate_result result;
    const struct trial trial = {NETWORK, platform, 0, {.workers = 4, .batch = 400}};
    if (!step(&trial, &result))
        return;
    CHECK_NEAR(result.step_s, 400 * 4 * 1001 / 1e6, 1e-2);
    CHECK(result.input_s > 0.9 * result.step_s);
}

TEST(a_pipeline_has_its_bubble)
{
    enum { STAGES = 4, MICROS = 8 };
    struct simulate_result result;
    const struct trial trial = {
        "mlp:64-64-64-64-64",
        "outside 1000 GB/s 0 us",
        1,
        {.parallelism = PARALLEL_PIPELINE, .workers = STAGES, .batch = 64, .micros = MICROS}};
    if (!step(&trial, &result))
        return;
    const double bubble = 1 - result.compute_s / result.step_s;
    CHECK_NEAR(bubble, (STAGES - 1.0) / (MICROS + STAGES - 1), 0.1);
}

TEST(a_model_is_shared_out)
{
    struct simulate_result result;
    const struct trial trial = {"mlp:64-4096-64",
                                "outside 1000 GB/s 0 us",
                                1,
                                {.parallelism = PARALLEL_MODEL, .workers = 4, .batch = 8}};
    if (!step(&trial, &result))
        return;
    CHECK_NEAR(result.step_s, 2, 0.5);
}

/* Sums of one bucket go on while the next is computed. */
TEST(sums_hide_behind_computing)
{
    struct simulate_result result;
    const struct trial trial = {"mlp:1000-1000-1000-1000-1000-1",
                                "outside 100 MB/s 10 us",
                                0.5,
                                {.workers = 2, .batch = 4, .bucket_bytes = 1000000}};
    if (!step(&trial, &result))
        return;
    CHECK(result.hidden_s > 0.6 * (result.hidden_s + result.exposed_s));
    CHECK(result.step_s < result.compute_s + 0.06);
}

/* On one server the CPU would copy and compute at once, so that training sums in between. */
TEST(sums_of_one_server_hide_on_gpus_alone)
{
    struct simulate_result on_cpus, on_gpus;
    struct trial trial = {"mlp:1000-1000-1000-1000-1000-1",
                          "units 2\ninside 100 MB/s 10 us\noutside 1 MB/s 1 ms\n",
                          0.5,
                          {.workers = 2, .batch = 4, .bucket_bytes = 1000000}};
    if (!step(&trial, &on_cpus))
        return;
    CHECK(on_cpus.hidden_s == 0);
    CHECK_NEAR(on_cpus.step_s, on_cpus.compute_s + on_cpus.exposed_s, 1e-6);
    trial.request.on_gpus = true;
    if (!step(&trial, &on_gpus))
        return;
    CHECK(on_gpus.hidden_s > 0.6 * (on_gpus.hidden_s + on_gpus.exposed_s));
    CHECK(on_gpus.step_s < on_cpus.step_s);
}

TEST(refuses_what_cannot_be)
{
    struct simulate_result result;
    struct trial trial = {NETWORK, "outside 1 GB/s 1 us", 0, {.workers = 8, .batch = 4}};
    CHECK_STATUS(STATUS_INPUT, try_step(&trial, &result));
    CHECK_MESSAGE("8 workers and batches of 4 samples");
    trial.request.workers = 0;
    CHECK_STATUS(STATUS_INPUT, try_step(&trial, &result));
    CHECK_MESSAGE("--workers: found 0");
    trial.request =
        (struct simulate_request){.parallelism = PARALLEL_PIPELINE, .workers = 64, .batch = 64};
    CHECK_STATUS(STATUS_INPUT, try_step(&trial, &result));
    CHECK_MESSAGE("stages");
}

TEST(platforms_say_what_is_wrong)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "found no link between servers"},
        {"outside 5", "x:1: outside: found '5', expected a rate"},
        {"outside 5 MB/s", "expected a latency"},
        {"outside 5 MB/s 3 weeks", "found '3 weeks'"},
        {"outside 0 MB/s 3 us", "found a rate of 0"},
        {"outside -5 MB/s 3 us", "found '-5 MB/s'"},
        {"outside 5 MB/s 3 us twice", "found 'twice' behind it"},
        {"# all well\nunits 0\n", "x:2: units: found '0', expected 1 to 64"},
        {"units 8 9", "found '9' behind it"},
        {"units 8\noutside 5 MB/s 3 us", "no link inside a server"},
        {"clusters 2\noutside 5 MB/s 3 us", "no line between them"},
        {"outsid 5 MB/s 3 us", "found 'outsid', expected outside"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct platform platform;
        CHECK_STATUS(STATUS_INPUT, platform_read("x", rows[i].text, &platform));
        CHECK_MESSAGE(rows[i].message);
    }
}

TEST(all_that_ship_can_be_read)
{
    for (int i = 0; platform_shipped(i); i++) {
        char name[PLATFORM_TEXT];
        struct platform platform;
        struct text text = {0};
        snprintf(name, sizeof name, "%s", platform_shipped(i));
        *strrchr(name, '.') = '\0';
        CHECK_OK(platform_open(name, &platform));
        CHECK_OK(platform_write(&platform, 100, &text));
        text_free(&text);
    }
    struct platform platform;
    CHECK_STATUS(STATUS_INPUT, platform_open("ethernet-2g", &platform));
    CHECK_MESSAGE("ethernet-25g");
}

CHECK_MAIN
