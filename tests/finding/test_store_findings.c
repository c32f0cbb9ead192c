/* test_store_findings.c: each finding is computed from the store, and contrary records turn it
 * round. */
#include "findings.h"

TEST(cpu_or_gpu)
{
    struct store *store = fresh_store();
    add(store, "unit=cpu backend=simd batch=1 threads=2", 100, 2);
    add(store, "unit=cpu backend=simd batch=64 threads=2", 400, 2);
    expect(store, "unit", false, "measured on a CPU only");
    look(store, "", "unit", COMMAND, "prony", false); /* there is no GPU to be asked */
    add(store, "unit=gpu backend=cuda batch=1 server=far", 50, 2);
    add(store, "unit=gpu backend=cuda batch=64 server=far", 200, 2);
    expect(store, "unit", true, "The CPU of box trains `net` 2 × as fast as the GPU of far");
    expect(store, "unit", true, "(CPU: box; GPU: far.)");
    add(store, "unit=gpu backend=cuda batch=64 server=far", 900, 2);
    expect(
        store, "unit", true,
        "Up to batch 1 the CPU is faster; take the GPU from batch 64 on: it trains `net` 2.3 × as "
        "fast at batch 64");
    add(store, "unit=gpu backend=cuda batch=1 server=far", 500, 2);
    expect(store, "unit", true, "The GPU of far trains `net` 2.3 to 5 × as fast as the CPU of box");
    look(store, "", "unit", COMMAND, "prony bench net --phase training --unit cpu,gpu", true);
    add(store, "unit=cpu backend=simd batch=64 threads=2", 1800, 2);
    expect(store, "unit", true, "The GPU is faster for `net` at 1 of 2 batches");
    store_close(store);
}

static void add_cpu(struct store *store, int threads, int rate, const char *machine)
{
    static const char line[] =
        "{\"prony\":1,\"kind\":\"result\",\"point\":{\"framework\":\"prony\",\"backend\":\"simd\","
        "\"model\":\"net\",\"phase\":\"training\",\"precision\":\"fp32\",\"batch\":64,\"unit\":\"cpu\","
        "\"threads\":%d,\"server\":\"box\"},\"status\":\"ok\",\"result\":{\"time_ns\":{\"median\":9},"
        "\"throughput\":%d,\"check\":{\"verdict\":\"right\"}}%s}";
    char text[600];
    snprintf(text, sizeof text, line, threads, rate, machine);
    add_line(store, text);
}

static void add_gpu(struct store *store)
{
    add_line(store, "{\"prony\":1,\"kind\":\"result\",\"point\":{\"framework\":\"prony\","
                    "\"backend\":\"cuda\",\"model\":\"net\",\"phase\":\"training\",\"precision\":"
                    "\"fp32\",\"batch\":64,\"unit\":\"gpu\",\"server\":\"far\"},\"status\":\"ok\","
                    "\"result\":{\"time_ns\":{\"median\":1},\"throughput\":800,"
                    "\"check\":{\"verdict\":\"right\"}}}");
}

/* One thread of a CPU with two cores is not that CPU, and nobody knows about a CPU whose cores no
 * record counts. */
TEST(a_gpu_is_compared_with_a_whole_cpu)
{
    static const char unknown[] = "a GPU is compared with a whole CPU";
    struct store *store = fresh_store();
    add_gpu(store);
    add_cpu(store, 1, 200, ",\"machine\":{\"server\":\"box\",\"cores\":2}");
    look(store, "", "unit", SENTENCE, unknown, true);
    add_cpu(store, 4, 300, "");
    look(store, "", "unit", SENTENCE, unknown, true);
    add_cpu(store, 4, 300, ",\"machine\":{\"server\":\"box\"}");
    look(store, "", "unit", SENTENCE, unknown, true);
    add_cpu(store, 2, 100, ",\"machine\":{\"server\":\"box\",\"cores\":2}");
    look(store, "", "unit", SENTENCE, "trains `net` about 2.7 × as fast", true);
    store_close(store);
}

TEST(which_batch)
{
    struct store *store = fresh_store();
    add(store, "batch=1", 100, 2);
    expect(store, "batch", false, "Not known: no two batches of training `net`");
    add(store, "batch=64", 400, 2);
    expect(store, "batch", true, "batch 64 trains 4 × as many samples");
    expect(store, "batch", true, "a larger batch may bring more");
    add(store, "batch=1", 390, 2);
    expect(store, "batch", true, "Batch 1 is enough for training `net`: up to batch 64");
    add(store, "batch=16", 600, 2);
    expect(store, "batch", true, "batch 16 trains 1.5 ×");
    expect(store, "batch", true, "beyond 16 there is little more to gain");
    add(store, "batch=16 threads=2", 800, 2); /* with other threads it is no gain of the batch */
    expect(store, "batch", true, "batch 16 trains 1.5 ×");
    add(store, "batch=64 threads=2", 880, 2);
    expect(store, "batch", true, "batch 64 trains 1.1 ×");
    store_close(store);
}

/* The least that is as good as the best is advised, and intervals that meet are no gain. */
TEST(the_least_that_is_as_good)
{
    static const struct {
        const char *words;
        double rate, noise;
    } rows[] = {{"batch=1", 100, 0.01},           {"batch=8", 190, 0.2},
                {"batch=64", 220, 0.2},           {"batch=512", 224, 0.01},
                {"batch=8 threads=2", 300, 0.01}, {"batch=64", 90, 0.01},
                {"batch=8 threads=4", 310, 0.01}, {"batch=8 threads=8", 330, 0.2}};
    struct store *store = fresh_store();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        plant(store, &(struct planted){.words = rows[i].words,
                                       .rate = rows[i].rate,
                                       .times_floor = 2,
                                       .noise = rows[i].noise,
                                       .cores = 8});
    look(store, "threads=1", "batch", SENTENCE, "batch 8 trains about 1.9 ×", true);
    look(store, "threads=1", "batch", SENTENCE, "beyond 8 there is little", true);
    look(store, "batch=8", "threads", SENTENCE, "A second thread brings", true);
    store_close(store);
}

TEST(how_many_threads)
{
    struct store *store = fresh_store();
    add(store, "backend=simd batch=64 threads=1", 100, 2);
    expect(store, "threads", false, "one number of threads only");
    look(store, "", "threads", COMMAND, " --threads 1,2", true);
    add(store, "backend=simd batch=64 threads=2", 180, 2);
    expect(store, "threads", true, "A second thread brings 1.8 × in training `net` at batch 64");
    add(store, "backend=simd batch=64 threads=4", 360, 2);
    expect(store, "threads", true, "4 threads bring 3.6 × in training `net` at batch 64 over one");
    add(store, "backend=simd batch=64 threads=1", 400, 2);
    expect(store, "threads", true, "One thread is enough");
    look(store, "", "threads", COMMAND, ",4", false); /* it has two cores */
    store_close(store);
}

TEST(one_core_has_no_threads_to_choose)
{
    struct store *store = fresh_store();
    plant(store, &(struct planted){.words = "batch=64", .rate = 9, .times_floor = 2, .cores = 1});
    look(store, "", "threads", COMMAND, "prony", false);
    store_close(store);
}

/* What another program measured has no program's hash: prony need not know its model, nor who ran
 * it. */
TEST(commands_name_only_what_prony_opened)
{
    static const char line[] =
        "{\"prony\":1,\"kind\":\"result\",\"point\":{\"framework\":\"%s\",\"model\":\"%s\","
        "\"phase\":\"inference\",\"precision\":\"fp32\",\"batch\":%d,\"unit\":\"cpu\",\"threads\":1,"
        "\"server\":\"box\"},\"status\":\"ok\",\"result\":{\"time_ns\":{\"median\":9},"
        "\"throughput\":5000,\"check\":{\"verdict\":\"right\"}}}";
    struct store *store = fresh_store();
    char text[600];
    for (int batch = 1; batch <= 8; batch *= 8) {
        snprintf(text, sizeof text, line, "llama.cpp", "llama 7B", batch);
        add_line(store, text);
        snprintf(text, sizeof text, line, "tensorflow", "net", batch);
        add_line(store, text);
    }
    add(store, "phase=inference batch=1", 10, 2);
    for (size_t i = 0; i < FINDINGS; i++) {
        static const char *const names[FINDINGS] = {"limit", "batch",     "frameworks", "threads",
                                                    "unit",  "precision", "slowest",    "next",
                                                    "phase", "busy",      "workers"};
        look(store, "model='llama 7B'", names[i], COMMAND, "prony", false);
        look(store, "model=net", names[i], COMMAND, "tensorflow", false);
    }
    look(store, "model=net", "frameworks", COMMAND, "prony bench net", true);
    store_close(store);
}

/* What could not start on a machine is not suggested for it. */
TEST(commands_name_no_framework_that_cannot_start)
{
    static const char line[] =
        "{\"prony\":1,\"kind\":\"result\",\"point\":{\"framework\":\"pytorch\",\"model\":\"net\","
        "\"phase\":\"training\",\"batch\":64,\"unit\":\"cpu\",\"server\":\"box\"},"
        "\"status\":\"skipped\",\"reason\":\"no module named torch\"}";
    struct store *store = fresh_store();
    add(store, "batch=64", 100, 1.25);
    look(store, "", "frameworks", COMMAND, " --framework prony,pytorch,numpy", true);
    add_line(store, line);
    look(store, "", "frameworks", COMMAND, " --framework prony,numpy", true);
    store_close(store);
}

TEST(how_close_to_the_limit)
{
    struct store *store = fresh_store();
    add_bound(store, "batch=10", 100, 1.25, "flop");
    expect(store, "limit", true,
           "Training `net` at batch 10 with prony reaches 80 % of what one core of the CPU of box "
           "can do (± 1 %). Arithmetic sets the limit.");
    add_bound(store, "batch=10 threads=2", 140, 1.8, "flop");
    expect(store, "limit", true, "reaches 56 % of what the CPU of box can do");
    add_bound(store, "batch=64 threads=2", 150, 12, "flop");
    expect(store, "limit", true, "reaches only 8.3 % of what");
    add(store, "framework=numpy batch=64 threads=2", 500, 1.001);
    expect(store, "limit", true, "with NumPy reaches 100 % of what it can do");
    store_close(store);
}

TEST(which_framework_is_fastest)
{
    struct store *store = fresh_store();
    add(store, "framework=prony batch=10", 100, 1.25);
    expect(store, "frameworks", false, "Not known: no two frameworks");
    add(store, "framework=numpy batch=10", 10, 12.5);
    expect(store, "frameworks", true, "prony trains `net` 10 × as fast as NumPy at batch 10");
    add(store, "framework=numpy batch=10", 200, 1.1);
    expect(store, "frameworks", true, "NumPy trains `net` 2 × as fast as prony at batch 10");
    add(store, "framework=prony batch=1", 90, 1.1);
    add(store, "framework=numpy batch=1", 30, 1.1);
    expect(store, "frameworks", true, "; at batch 1 prony is fastest");
    add(store, "framework=python-list batch=10", 1, 900);
    expect(store, "frameworks", true, "2 × as fast as prony");
    look(store, "", "frameworks", CHART, "x=batch&y=throughput&aggregate=best&group=framework",
         true);
    store_close(store);
}

TEST(training_or_inference)
{
    struct store *store = fresh_store();
    add(store, "phase=training batch=10", 100, 2);
    expect(store, "phase", false, "not both measured");
    add(store, "phase=inference batch=10", 300, 2);
    expect(store, "phase", true, "Training `net` costs 3 × as much per sample as inference");
    look(store, "", "phase", CHART, "&batch=10&threads=1", true); /* two bars */
    add(store, "phase=training batch=10", 600, 2);
    expect(store, "phase", true, "Inference of `net` costs 2 × as much per sample as training");
    store_close(store);
}

TEST(which_precision)
{
    struct store *store = fresh_store();
    add(store, "unit=gpu backend=cuda batch=64", 100, 2);
    expect(store, "precision", false, "not measured in fp32 and another precision");
    look(store, "", "precision", COMMAND, " --precision fp32,tf32,bf16", true);
    add(store, "unit=gpu backend=cuda batch=64 precision=tf32", 210, 2);
    add(store, "unit=gpu backend=cuda batch=64 precision=bf16", 400, 2);
    expect(store, "precision", true, "bf16 trains `net` 4 × as fast as fp32 at batch 64");
    add(store, "unit=gpu backend=cuda batch=64", 395, 2);
    expect(store, "precision", true, "fp32 is enough for `net`");
    add(store, "unit=gpu backend=cuda batch=512 precision=tf32", 900,
        2); /* a series without fp32 */
    add(store, "unit=gpu backend=cuda batch=512 precision=bf16", 990, 2);
    expect(store, "precision", true, "fp32 is enough for `net`");
    store_close(store);
}

static void add_int8(struct store *store, double lost)
{
    static const char line[] =
        "{\"prony\":1,\"kind\":\"result\",\"point\":{\"framework\":\"prony\",\"backend\":\"simd\","
        "\"model\":\"net\",\"phase\":\"inference\",\"precision\":\"%s\",\"batch\":64,"
        "\"unit\":\"cpu\",\"threads\":1,\"server\":\"box\"},\"status\":\"ok\",\"result\":{"
        "\"time_ns\":{\"median\":9,\"ci_low\":9,\"ci_high\":9},\"throughput\":%d,"
        "\"check\":{\"verdict\":\"right\"},\"meters\":{\"accuracy\":0.9,\"accuracy_lost\":%g,"
        "\"output_error\":0.02}}}";
    char text[700];
    snprintf(text, sizeof text, line, "fp32", 100, 0.0);
    add_line(store, text);
    snprintf(text, sizeof text, line, "int8", 300, lost);
    add_line(store, text);
}

TEST(what_a_precision_costs)
{
    struct store *store = fresh_store();
    add_int8(store, 0.0012);
    look(store, "phase=inference", "precision", SENTENCE, "int8 runs `net` 3 × as fast as fp32",
         true);
    look(store, "phase=inference", "precision", SENTENCE, "It loses 0.12 % of the right answers.",
         true);
    store_close(store);
    store = fresh_store();
    add_int8(store, -0.001);
    look(store, "phase=inference", "precision", SENTENCE, "It loses no right answers.", true);
    store_close(store);
}

TEST(twice_the_machines)
{
    struct store *store = fresh_store();
    add(store, "workers=1 batch=64", 100, 2);
    expect(store, "workers", false, "one number of workers only");
    add(store, "workers=2 batch=64 scaling=weak", 200, 2);
    expect(store, "workers", true, "Twice the workers would bring about 2 ×");
    add(store, "workers=4 batch=64 scaling=weak", 210, 2);
    expect(store, "workers", true, "Twice the workers would bring about 1.2 ×");
    look(store, "", "workers", COMMAND, "prony", false); /* nothing here runs several */
    look(store, "", "limit", CHART, "&workers=1", true); /* the others are about one */
    look(store, "", "next", SENTENCE, "See where the time goes: no larger batch", false);
    add(store, "workers=1 batch=1", 10, 2);
    expect(store, "batch", true, "batch 64 trains 10 ×");
    store_close(store);
}

/* Measured here, in turns with one worker: what they brought in that run. */
TEST(what_workers_bring)
{
    static const struct {
        double speedup, noise;
        const char *sentence;
    } cases[] = {
        {1.7, 0.01,
         "2 workers bring 1.7 × in training `net` at batch 64 each, data parallel (± 1 %)."},
        {1.7, 0.1, "2 workers bring about 1.7 ×"},
        {1.04, 0.01, "2 workers bring nothing in training `net` at batch 64 each"},
        {1.2, 0.3, "2 workers bring nothing"},
        {0.4, 0.01, "2 workers bring nothing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct store *store = fresh_store();
        add(store, "workers=1 batch=64", 100, 2);
        plant(store, &(struct planted){.words = "workers=2 batch=64 scaling=weak parallelism=data",
                                       .rate = 150,
                                       .times_floor = 2,
                                       .noise = cases[i].noise,
                                       .speedup = cases[i].speedup});
        expect(store, "workers", true, cases[i].sentence);
        look(store, "", "workers", COMMAND, " --batch 64 --workers 1,2", true);
        store_close(store);
    }
}

TEST(what_next)
{
    struct store *store = fresh_store();
    add(store, "batch=64", 100, 1.3);
    expect(store, "next", true, "Try a larger batch for training `net` at batch 64: memory sets");
    look(store, "", "next", COMMAND, "--batch 64-512*2", true);
    add(store, "batch=128", 99, 1.3);
    expect(store, "next", true, "See where the time goes: no larger batch brings more");
    look(store, "", "next", COMMAND, "prony profile", true);
    add(store, "batch=64", 200, 5);
    expect(store, "next", true, "training `net` at batch 64 is far from the limit");
    add_bound(store, "batch=64", 300, 1.2, "flop");
    expect(store, "next", true, "Try both cores for training `net`");
    look(store, "", "next", COMMAND, " --batch 64 --threads 1,2", true);
    add_bound(store, "batch=64 threads=2", 600, 1.2, "flop");
    expect(store, "next", false, "Nothing is left to try here");
    look(store, "", "next", COMMAND, "gpu", false); /* there is none */
    store_close(store);
}

/* A GPU's advice is for a GPU, and its commands ask the same of it again. */
TEST(what_next_of_a_gpu)
{
    static const char usual[] = "backend=cuda unit=gpu batch=64";
    static const struct {
        const char *more, *bound;
        double times_floor;
        const char *sentence, *command;
    } cases[] = {
        {"precision=tf32", "flop", 3, "is far from the limit",
         "prony profile net --phase training --backend cuda --precision tf32 --batch 64 --unit gpu"},
        {"", "latency", 46, "launches", " --backend cuda --unit gpu --batch 64-512*2"},
        {"", "flop", 1.2, "Try bf16 for training `net` at batch 64: arithmetic",
         " --precision fp32,tf32,bf16"},
        {"precision=tf32", "flop", 1.2, "bf16 doubles it", " --precision tf32,bf16"},
        {"", "bytes", 1.2, "16 bits halve", " --precision fp32,bf16"},
        {"precision=fp16", "bytes", 1.2, "less often", " --precision fp16 --unit gpu --batch 64-"},
        {"ingestion=pinned data=real/dram", "flop", 3, "copied while the GPU computes",
         " --data real/dram --batch 64 --unit gpu --ingestion pinned,overlapped"},
        {"phase=inference scenario=queued", "flop", 3, "more samples in a call",
         " --unit gpu --scenario queued --batch 64-512*2"},
        {"framework=pytorch backend=graph", "flop", 3, "with PyTorch is far from",
         "prony profile net --phase training --batch 64 --unit gpu"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct store *store = fresh_store();
        char words[200];
        snprintf(words, sizeof words, "%s %s", usual, cases[i].more);
        add_bound(store, words, 100, cases[i].times_floor, cases[i].bound);
        look(store, "", "next", SENTENCE, cases[i].sentence, true);
        look(store, "", "next", COMMAND, cases[i].command, true);
        look(store, "", "next", COMMAND, "--threads", false);
        store_close(store);
    }
}

/* A batch that cannot be doubled is asked for as it is. */
TEST(what_next_of_a_batch_beyond_reason)
{
    struct store *store = fresh_store();
    add_bound(store, "batch=9223372036854775807", 100, 1.2, "bytes");
    look(store, "", "next", COMMAND, "--batch 9223372036854775807-9223372036854775807*2", true);
    store_close(store);
}

/* Precisions and scenarios are not held against each other. */
TEST(only_like_things_are_compared)
{
    struct store *store = fresh_store();
    add(store, "framework=prony unit=gpu backend=cuda batch=64 precision=fp32", 50, 3);
    add(store, "framework=prony unit=gpu backend=cuda batch=64 precision=tf32", 90, 8);
    add(store, "framework=pytorch unit=gpu backend=graph batch=64 precision=tf32", 80, 9);
    expect(store, "frameworks", true,
           "prony trains `net` 1.1 × as fast as PyTorch at batch 64 in tf32");
    look(store, "", "frameworks", CHART, "&precision=tf32", true);
    look(store, "", "frameworks", COMMAND, " --precision tf32 ", true);
    add(store, "framework=prony unit=gpu backend=cuda batch=1024 precision=bf16", 900, 2);
    expect(store, "batch", false, "with all else alike");
    look(store, "", "batch", COMMAND, " --backend cuda --precision bf16 --unit gpu --batch 1-",
         true);
    add(store, "framework=prony unit=gpu backend=cuda batch=256 precision=tf32", 270, 6);
    expect(store, "batch", true, "batch 256 trains 3 ×");
    look(store, "", "batch", CHART, "&precision=tf32", true);
    look(store, "", "batch", CHART, "fusion", false); /* PyTorch is to be seen, too */
    add(store, "phase=inference unit=gpu backend=cuda batch=256 precision=tf32 scenario=queued",
        600, 6);
    expect(store, "phase", false, "not both measured");
    add(store, "phase=inference unit=gpu backend=cuda batch=256 precision=tf32", 540, 6);
    expect(store, "phase", true, "Training `net` costs 2 ×");
    store_close(store);
}

/* The limit that is spoken of is that of the unit that is best. */
TEST(the_hardware_is_the_best_unit)
{
    struct store *store = fresh_store();
    add(store, "unit=cpu backend=simd batch=10", 10, 1.25);
    add(store, "unit=gpu backend=cuda batch=10 unit_name='NVIDIA H200'", 90, 5);
    expect(store, "limit", true, "reaches only 20 % of what the NVIDIA H200 can do");
    look(store, "unit=cpu", "limit", SENTENCE, "80 % of what one core of the CPU of box", true);
    look(store, "unit=gpu", "threads", SENTENCE, "None to choose", true);
    look(store, "unit=cpu", "threads", SENTENCE, "one number of threads only", true);
    store_close(store);
}

/* A GPU is held against the CPU beside it, in the same precision. */
TEST(units_of_one_machine_are_compared)
{
    struct store *store = fresh_store();
    add(store, "unit=gpu backend=cuda batch=10 precision=tf32", 9000, 2);
    add(store, "unit=cpu backend=simd batch=10 threads=2 server=far", 10, 2);
    expect(store, "unit", false, "measured on both, but not at one batch and all else alike");
    add(store, "unit=gpu backend=cuda batch=10", 900, 2);
    expect(store, "unit", true, "trains `net` 90 × as fast as the CPU of far at batch 10");
    add(store, "unit=cpu backend=simd batch=10 threads=2", 30, 2);
    expect(store, "unit", true, "trains `net` 30 × as fast as the CPU of box at batch 10");
    look(store, "", "unit", SENTENCE, "(CPU:", false);
    look(store, "", "unit", CHART, "&precision=fp32", true);
    store_close(store);
}

/* A limit that is passed was computed from ceilings that are too low: nothing is said by it. */
TEST(what_is_faster_than_its_limit_says_nothing)
{
    struct store *store = fresh_store();
    add(store, "batch=10", 100, 0.004);
    expect(store, "limit", false, "can be compared with the limit");
    expect(store, "next", true, "faster than its limit, so the limit was measured too low");
    look(store, "", "next", COMMAND, "prony bench net --phase training --batch 10", true);
    add(store, "batch=1", 10, 0.98);
    expect(store, "limit", true, "at batch 1 with prony reaches 100 % of");
    store_close(store);
}

/* Where there are own results, those that came with prony only say what these cannot. */
TEST(own_results_before_those_that_came_with_prony)
{
    struct store *store = fresh_store();
    add(store, "unit=cpu batch=1 threads=2", 100, 2);
    add(store, "unit=cpu batch=64 threads=2", 400, 2);
    add(store, "unit=cpu batch=64 threads=4 server=far", 9000, 2);
    add(store, "unit=cpu batch=64 server=far", 4000, 2);
    add(store, "unit=gpu batch=64 server=far", 1200, 2);
    store = ship_far(store);
    expect(store, "unit", true, "3 × as fast as the CPU of box at batch 64");
    expect(store, "unit", true, "(CPU: box; GPU: far, shipped with prony.)");
    expect(store, "batch", true, "batch 64 trains 4 ×");
    expect(store, "threads", true, "On 2 cores (shipped with prony): 4 threads bring");
    store_close(store);
}

/* A machine of one's own that has the name of one that came with prony is not that one. */
TEST(machines_of_one_name)
{
    struct store *store = fresh_store();
    add(store, "server=far threads=2 batch=64", 100, 2);
    store = ship_far(store);
    add(store, "server=far threads=16 batch=64", 50, 2);
    expect(store, "threads", false, "one number of threads only");
    add(store, "server=far unit=gpu batch=64", 500, 2);
    expect(store, "unit", true, "10 × as fast");
    store_close(store);
}

/* The newest result is of a machine that cannot know; an older one's can. */
TEST(another_machine_may_know)
{
    struct store *store = fresh_store();
    add(store, "framework=prony backend=simd batch=64 threads=1", 1000, 2);
    add(store, "framework=prony backend=simd batch=64 threads=2", 1800, 2);
    add(store, "framework=prony backend=cuda unit=gpu batch=64 server=far", 90000, 2);
    expect(store, "threads", true, "A second thread brings 1.8 ×");
    expect(store, "threads", true, "On 2 cores: A second thread brings 1.8 ×");
    store_close(store);
}

TEST(commands_are_safe_to_paste)
{
    struct store *store = fresh_store();
    struct arena arena = {0};
    struct finding_about about;
    add(store, "model='net;reboot' batch=1", 100, 2);
    CHECK_OK(finding_about(store, &arena, (struct store_where){0}, &about));
    for (size_t i = 0; i < FINDINGS; i++) {
        struct finding found;
        CHECK_OK(finding_ask(&about, i, &found));
        CHECK(!found.command.length || strstr(text_of(&found.command), " 'net;reboot' --phase "));
        CHECK(!strstr(text_of(&found.command), "--workers"));
        finding_free(&found);
    }
    arena_free(&arena);
    store_close(store);
}

/* No sentence rests on a handicapped result, and one says so. */
TEST(handicapped_results_are_named)
{
    static const struct planted lame = {.words = "framework=pytorch batch=64 threads=1",
                                        .rate = 50,
                                        .times_floor = 20,
                                        .handicap = "reference BLAS (netlib)"};
    static const char why[] = "(Left out as handicapped: pytorch: reference BLAS (netlib).)";
    struct store *store = fresh_store();
    plant(store, &lame);
    expect(store, "next", false, why);
    expect(store, "frameworks", false, why);
    add(store, "backend=simd batch=64 threads=1", 1000, 1.1);
    expect(store, "frameworks", false, why);
    look(store, "", "next", SENTENCE, "Left out", false); /* it is said once */
    add(store, "framework=pytorch batch=64 threads=1", 500, 2.2);
    expect(store, "frameworks", true, "prony trains `net` 2 × as fast as PyTorch");
    store_close(store);
}

TEST(without_results)
{
    struct store *store = fresh_store();
    struct arena arena = {0};
    struct finding_about about;
    CHECK_STATUS(STATUS_INPUT, finding_about(store, &arena, (struct store_where){0}, &about));
    CHECK_MESSAGE("there is no result yet; to add some: prony bench small --store ");
    add(store, "batch=1 phase=inference scenario=server", 100, 2);
    look(store, "model=net", "batch", COMMAND, " --scenario server --bound p99=", true);
    const struct store_filter asked[] = {{"model", "it's, mine"}, {"phase", "inference"},
                                         {"precision", "tf32"},   {"precision", "bf16"},
                                         {"server", "box"},       {"program", "0123"}};
    const struct store_where where = {asked, sizeof asked / sizeof *asked};
    CHECK_STATUS(STATUS_INPUT, finding_about(store, &arena, where, &about));
    CHECK_MESSAGE("there is no result of it's, mine with phase inference, precision tf32,bf16, "
                  "server box yet; to add some: prony bench 'it'\\''s, mine' --phase inference "
                  "--precision tf32,bf16 --store ");
    arena_free(&arena);
    store_close(store);
}

/* Where this machine does not know, the same unit of another comes before another unit; and no
 * command asks for a GPU that is not here. */
TEST(the_same_unit_elsewhere_knows_better)
{
    struct store *store = fresh_store();
    struct arena arena = {0};
    struct finding_about about;
    add(store, "server=far unit=gpu backend=cuda batch=64 unit_name='NVIDIA H200'", 90000, 2);
    add(store, "server=far unit=gpu backend=cuda batch=1 unit_name='NVIDIA H200'", 9000, 2);
    store = ship_far(store);
    add(store, "server=near batch=64", 100, 1.25);
    plant(store, &(struct planted){.words = "batch=64", .rate = 90, .times_floor = 2, .load = 0.7});
    look(store, "", "limit", SENTENCE, "On 2 cores: Training `net` at batch 64", true);
    look(store, "", "batch", SENTENCE, "On 2 cores (shipped with prony): ", true);
    look(store, "", "next", SENTENCE, "Measure training `net` on box again while nothing else",
         true);
    look(store, "", "next", SENTENCE, "the CPU during 1 of 1 result.", true);
    CHECK_OK(finding_about(store, &arena, (struct store_where){0}, &about));
    about.machine.no_gpu = true;
    for (size_t i = 0; i < FINDINGS; i++) {
        struct finding found;
        CHECK_OK(finding_ask(&about, i, &found));
        CHECK(!found.command.length || !strstr(text_of(&found.command), "gpu"));
        finding_free(&found);
    }
    arena_free(&arena);
    store_close(store);
}

CHECK_MAIN
