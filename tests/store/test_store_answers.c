/* The answers: each is computed from the store, and contrary records turn it round. */
#include "check.h"
#include "finding/finding.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

static char path[] = "/tmp/prony-test-answers-XXXXXX";

static void remove_store(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char name[sizeof path + 8];
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

/* An empty store; the last one is gone. */
static struct store *fresh_store(void)
{
    struct store *store = NULL;
    static bool made;
    if (!made) {
        int fd = mkstemp(path);
        CHECK(fd >= 0);
        close(fd);
        atexit(remove_store);
        made = true;
    }
    remove_store();
    CHECK_OK(store_open(path, STORE_WRITE, &store));
    return store;
}

/* A result with these axes, so many samples a second, and × floor, made of `bound`. */
static void add_result(struct store *store, const char *words, double rate, double times_floor,
                       const char *bound, const char *handicap)
{
    struct arena arena = {0};
    struct store_where where;
    static const char cores[] = "{\"cores\":1}";
    struct json *machine;
    struct record record;
    struct text line = {0};
    record_start(&record);
    CHECK_OK(point_set(&record.point, &axes[AXIS_model], "net"));
    CHECK_OK(point_set(&record.point, &axes[AXIS_server], "box"));
    CHECK_OK(store_where_parse(&arena, words, &where));
    for (size_t i = 0; i < where.count; i++)
        CHECK_OK(point_set(&record.point, axis_find(where.filters[i].key), where.filters[i].value));
    point_settle(&record.point);
    double time_ns = (double)record_effective_batch(&record) / rate * 1e9;
    record.floor_ns = time_ns / times_floor;
    record.bound = bound;
    record.handicap = handicap;
    record.at = "2026-11-15T10:03:58Z";
    record.check.verdict = RECORD_RIGHT;
    record.program = "0123456789abcdef";
    CHECK_OK(json_parse(&arena, "machine", cores, strlen(cores), &machine));
    record.machine = machine;
    CHECK_OK(record_measure(&record, &arena, &time_ns, 1, 1));
    record_write(&record, &line);
    CHECK_OK(store_add(store, text_of(&line), line.length, &record, NULL, NULL));
    text_free(&line);
    arena_free(&arena);
}

static void add_bound(struct store *store, const char *words, double rate, double times_floor,
                      const char *bound)
{
    add_result(store, words, rate, times_floor, bound, NULL);
}

static void add(struct store *store, const char *words, double rate, double times_floor)
{
    add_bound(store, words, rate, times_floor, "bytes");
}

enum { SENTENCE = 1, COMMAND = 2, CHART = 4 };

/* What is asked for under filters is, or is not, in a part of the answer. */
static void look(struct store *store, const char *filters, const char *name, int part,
                 const char *expected, bool there)
{
    struct arena arena = {0};
    struct store_where where;
    struct finding_about about;
    struct finding answer;
    size_t index;
    if (CHECK_OK(store_where_parse(&arena, filters, &where)) &&
        CHECK_OK(finding_about(store, &arena, where, &about)) &&
        CHECK(finding_named(name, &index)) && CHECK_OK(finding_ask(&about, index, &answer))) {
        const char *found = text_of(part == SENTENCE  ? &answer.sentence
                                    : part == COMMAND ? &answer.command
                                                      : &answer.chart);
        if (!CHECK((strstr(found, expected) != NULL) == there))
            printf("%s: found \"%s\", %sexpected \"%s\"\n", name, found, there ? "" : "not ",
                   expected);
        finding_free(&answer);
    }
    arena_free(&arena);
}

/* The answer contains `expected`. */
static void expect(struct store *store, const char *name, bool known, const char *expected)
{
    struct arena arena = {0};
    struct finding_about about;
    struct finding answer;
    size_t index;
    look(store, "", name, SENTENCE, expected, true);
    if (CHECK_OK(finding_about(store, &arena, (struct store_where){0}, &about)) &&
        CHECK(finding_named(name, &index)) && CHECK_OK(finding_ask(&about, index, &answer))) {
        CHECK_EQUAL_INT(answer.known, known);
        CHECK(!known || answer.id_count > 0);
        for (size_t i = 1; i < answer.id_count; i++)
            CHECK(answer.ids[i] != answer.ids[i - 1]);
        CHECK_EQUAL_INT(text_starts(text_of(&answer.command), "prony "),
                        strcmp(name, "workers") != 0); /* nothing here runs several */
        CHECK(text_starts(text_of(&answer.chart), "x="));
        finding_free(&answer);
    }
    arena_free(&arena);
}

TEST(cpu_or_gpu)
{
    struct store *store = fresh_store();
    add(store, "unit=cpu backend=simd batch=1", 100, 2);
    add(store, "unit=cpu backend=simd batch=64", 400, 2);
    expect(store, "unit", false, "measured on a CPU");
    add(store, "unit=gpu backend=cuda batch=1 server=far", 50, 2);
    add(store, "unit=gpu backend=cuda batch=64 server=far", 300, 2);
    expect(store, "unit", true, "The CPU, at every batch");
    add(store, "unit=gpu backend=cuda batch=64 server=far", 900, 2);
    expect(store, "unit", true, "The CPU up to batch 1, the GPU from batch 64 on: 2.25 ×");
    add(store, "unit=gpu backend=cuda batch=1 server=far", 200, 2);
    expect(store, "unit", true,
           "The GPU, at every batch that both were measured with: 2 × to 2.25 ×");
    expect(store, "unit", true, "the GPU with prony/cuda in fp32 on far");
    add(store, "unit=cpu backend=simd batch=64", 1800, 2);
    expect(store, "unit", true,
           "the GPU at 1 of the 2 batches that both were measured with, 0.5 ×");
    add(store, "unit=gpu backend=cuda batch=64 server=far", 45e6, 2);
    expect(store, "unit", true, "2 × to 25000 × the CPU's samples/s");
    store_close(store);
}

/* A line as another machine, or another program, may have written it. */
static void add_line(struct store *store, const char *line)
{
    struct arena arena = {0};
    struct record record;
    CHECK_OK(record_read(&arena, "line", 1, line, strlen(line), &record));
    CHECK_OK(store_add(store, line, strlen(line), &record, NULL, NULL));
    arena_free(&arena);
}

static void add_cpu(struct store *store, int threads, int rate, const char *machine)
{
    static const char line[] =
        "{\"prony\":1,\"kind\":\"result\",\"point\":{\"framework\":\"prony\",\"backend\":\"simd\","
        "\"model\":\"net\",\"phase\":\"training\",\"precision\":\"fp32\",\"batch\":64,\"unit\":\"cpu\","
        "\"threads\":%d,\"server\":\"box\"},\"status\":\"ok\",\"result\":{\"time_ns\":{\"median\":9},"
        "\"throughput\":%d}%s}";
    char text[600];
    snprintf(text, sizeof text, line, threads, rate, machine);
    add_line(store, text);
}

static void add_gpu(struct store *store)
{
    add_line(store, "{\"prony\":1,\"kind\":\"result\",\"point\":{\"framework\":\"prony\","
                    "\"backend\":\"cuda\",\"model\":\"net\",\"phase\":\"training\",\"precision\":"
                    "\"fp32\",\"batch\":64,\"unit\":\"gpu\",\"server\":\"far\"},\"status\":\"ok\","
                    "\"result\":{\"time_ns\":{\"median\":1},\"throughput\":800}}");
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
    look(store, "", "unit", SENTENCE, "The GPU, at batch 64: 2.67 ×", true);
    store_close(store);
}

TEST(which_batch)
{
    struct store *store = fresh_store();
    add(store, "batch=1", 100, 2);
    expect(store, "batch", false, "not measured with two batches");
    add(store, "batch=64", 400, 2);
    expect(store, "batch", true, "Batch 64 for training net on box");
    expect(store, "batch", true, "a larger one may give more");
    add(store, "batch=1", 420, 2);
    expect(store, "batch", true, "Batch 1 for");
    add(store, "batch=16", 440, 2);
    expect(store, "batch", true, "Batch 1 for training net on box: 420 samples/s");
    expect(store, "batch", true, "batch 16 gives 1.05 × that, which is no gain beyond the noise");
    add(store, "batch=16", 460, 2);
    expect(store, "batch", true, "Batch 16 for");
    expect(store, "batch", true, "batch 1 already gives 91 % of it; no larger one");
    add(store, "batch=16 threads=2", 800, 2); /* with other threads it is no gain of the batch */
    expect(store, "batch", true, "460 samples/s");
    add(store, "batch=64 threads=2", 880, 2);
    expect(store, "batch", true, "880 samples/s with prony, 2 threads, 1.1 × those of batch 16");
    store_close(store);
}

/* The least that is as good as the best is advised, and intervals that meet are no gain. */
TEST(a_gain_is_beyond_the_noise)
{
    static const char line[] =
        "{\"prony\":1,\"kind\":\"result\",\"point\":{\"framework\":\"prony\",\"backend\":\"simd\","
        "\"model\":\"net\",\"phase\":\"training\",\"precision\":\"fp32\",\"batch\":%d,\"unit\":\"cpu\","
        "\"threads\":%d,\"server\":\"box\"},\"status\":\"ok\",\"result\":{\"time_ns\":{\"median\":%g,"
        "\"ci_low\":%g,\"ci_high\":%g},\"throughput\":%g}}";
    static const struct {
        int batch, threads;
        double rate, noise;
    } rows[] = {{1, 1, 100, 0.01}, {8, 1, 190, 0.2},  {64, 1, 220, 0.2}, {512, 1, 224, 0.01},
                {8, 2, 300, 0.01}, {64, 1, 90, 0.01}, {8, 4, 310, 0.01}, {8, 8, 330, 0.2}};
    struct store *store = fresh_store();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[700];
        double ns = 1e9 * rows[i].batch / rows[i].rate;
        snprintf(text, sizeof text, line, rows[i].batch, rows[i].threads, ns,
                 ns * (1 - rows[i].noise), ns * (1 + rows[i].noise), rows[i].rate);
        add_line(store, text);
    }
    look(store, "threads=1", "batch", SENTENCE, "Batch 8 for", true);
    look(store, "threads=1", "batch", SENTENCE, "batch 512 gives 1.18 × that", true);
    look(store, "batch=8", "threads", SENTENCE, "2 threads for", true);
    store_close(store);
}

TEST(how_many_threads)
{
    struct store *store = fresh_store();
    add(store, "backend=simd batch=64 threads=1", 100, 2);
    expect(store, "threads", false, "one number of threads only");
    add(store, "backend=simd batch=64 threads=2", 180, 2);
    expect(store, "threads", true, "2 threads for training net at batch 64 with prony/simd");
    expect(store, "threads", true, "1.8 × the samples/s of 1, 90 % of what they could");
    add(store, "backend=simd batch=64 threads=1", 200, 2);
    expect(store, "threads", true, "1 thread for");
    expect(store, "threads", true, "which is not worth them");
    add(store, "backend=simd batch=64 threads=2", 208, 2); /* 1.04 × */
    expect(store, "threads", true, "1 thread for");
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
        "\"throughput\":5000}}";
    static const char *const names[] = {"unit", "batch", "threads", "phase", "next"};
    struct store *store = fresh_store();
    char text[600];
    for (int batch = 1; batch <= 8; batch *= 8) {
        snprintf(text, sizeof text, line, "llama.cpp", "llama 7B", batch);
        add_line(store, text);
        snprintf(text, sizeof text, line, "tensorflow", "net", batch);
        add_line(store, text);
    }
    add(store, "phase=inference batch=1", 10, 2);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        look(store, "model='llama 7B'", names[i], COMMAND, "prony", false);
        look(store, "model=net", names[i], COMMAND, "tensorflow", false);
    }
    look(store, "model=net", "framework", COMMAND, "prony bench net", true);
    store_close(store);
}

TEST(does_it_waste)
{
    struct store *store = fresh_store();
    add(store, "framework=prony batch=10", 100, 1.25);
    expect(store, "framework", true, "80 % with prony (1.25 × the floor): it wastes little");
    add(store, "framework=numpy batch=10", 10, 12.5);
    expect(store, "framework", true, "8 % with numpy");
    expect(store, "framework", true, "prony wastes the least");
    add(store, "framework=numpy batch=10", 120, 1.1);
    expect(store, "framework", true, "numpy wastes the least");
    add(store, "framework=numpy batch=10", 130, 1.001);
    expect(store, "framework", true, "100 % with numpy (1 × the floor)");
    store_close(store);
}

TEST(training_or_inference)
{
    struct store *store = fresh_store();
    add(store, "phase=training batch=10", 100, 2);
    expect(store, "phase", false, "not both measured");
    add(store, "phase=inference batch=10", 300, 2);
    expect(store, "phase", true, "A sample costs 3 × as much in training as in inference");
    add(store, "phase=training batch=10", 600, 2);
    expect(store, "phase", true, "A sample costs 2 × as much in inference as in training");
    add(store, "phase=training batch=10 threads=2", 1200, 2);
    expect(store, "phase", true, "600 samples/s for net at batch 10 with prony, 1 thread on box");
    store_close(store);
}

TEST(twice_the_machines)
{
    struct store *store = fresh_store();
    add(store, "workers=1 batch=64", 100, 2);
    expect(store, "workers", false, "one number of workers only");
    add(store, "workers=2 batch=64 scaling=weak", 200, 2);
    expect(store, "workers", true, "About 2 × the samples/s");
    expect(store, "workers", true, "the next doubling is worth having");
    add(store, "workers=4 batch=64 scaling=weak", 210, 2);
    expect(store, "workers", true, "the next doubling brings little");
    store_close(store);
}

TEST(what_next)
{
    struct store *store = fresh_store();
    add(store, "batch=64", 100, 1.3);
    expect(store, "next", true, "bound by memory: a larger batch");
    look(store, "", "next", COMMAND, "--batch 64-512*2", true);
    add(store, "batch=128", 99, 1.3);
    expect(store, "next", true, "bound by memory: no larger batch that was measured gives more");
    look(store, "", "next", COMMAND, "prony profile", true);
    add(store, "batch=64", 200, 5);
    expect(store, "next", true, "takes 5 × its floor: see where the time goes");
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
        {"precision=tf32", "flop", 3, "takes 3 × its floor",
         "prony profile net --phase training --backend cuda --precision tf32 --batch 64 --unit gpu"},
        {"", "latency", 46, "launches", " --backend cuda --unit gpu --batch 64-512*2"},
        {"", "flop", 1.2, "arithmetic in fp32: tf32", " --precision fp32,tf32,bf16"},
        {"precision=tf32", "flop", 1.2, "bf16 multiplies twice", " --precision tf32,bf16"},
        {"precision=bf16", "flop", 1.2, "all that is left", " --precision bf16 --batch 64 --unit"},
        {"", "bytes", 1.2, "16 bits halve", " --unit gpu --batch 64-512*2 --precision fp32,bf16"},
        {"precision=fp16", "bytes", 1.2, "less often", " --precision fp16 --unit gpu --batch 64-"},
        {"ingestion=pinned data=real/dram", "flop", 3, "copied while the GPU computes",
         " --data real/dram --batch 64 --unit gpu --ingestion pinned,overlapped"},
        {"phase=inference scenario=queued", "flop", 3, "more samples a call",
         " --unit gpu --scenario queued --batch 64-512*2"},
        {"framework=pytorch backend=graph", "flop", 3, "takes 3 ×",
         "prony profile net --phase training --batch 64 --unit gpu"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct store *store = fresh_store();
        char words[200];
        snprintf(words, sizeof words, "%s %s", usual, cases[i].more);
        add_bound(store, words, 100, cases[i].times_floor, cases[i].bound);
        look(store, "", "next", SENTENCE, cases[i].sentence, true);
        look(store, "", "next", SENTENCE, "the GPU of box", true);
        look(store, "", "next", SENTENCE, "or a GPU", false);
        look(store, "", "next", COMMAND, cases[i].command, true);
        look(store, "", "next", COMMAND, "--threads", false);
        store_close(store);
    }
}

/* Of a batch that cannot be doubled none larger is asked for. */
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
    expect(store, "framework", true,
           "the GPU of box can do, training net at batch 64 in tf32 uses 12 % with prony (8 ×");
    look(store, "", "framework", CHART, "&precision=tf32", true);
    look(store, "", "framework", COMMAND, " --precision tf32 ", true);
    add(store, "framework=prony unit=gpu backend=cuda batch=1024 precision=bf16", 900, 2);
    expect(store, "batch", false, "not measured with two batches, all else alike");
    look(store, "", "batch", COMMAND, " --backend cuda --precision bf16 --unit gpu --batch 1-",
         true);
    add(store, "framework=prony unit=gpu backend=cuda batch=256 precision=tf32", 270, 6);
    expect(store, "batch", true, "prony/cuda in tf32, 3 × those of batch 64");
    look(store, "", "batch", CHART, "&precision=tf32", true);
    look(store, "", "batch", CHART, "fusion", false); /* PyTorch is to be seen, too */
    add(store, "phase=inference unit=gpu backend=cuda batch=256 precision=tf32 scenario=queued",
        600, 6);
    expect(store, "phase", false, "not both measured");
    add(store, "phase=inference unit=gpu backend=cuda batch=256 precision=tf32", 540, 6);
    expect(store, "phase", true, "A sample costs 2 × as much in training");
    store_close(store);
}

/* The floor that is spoken of is that of the unit that is best. */
TEST(the_hardware_is_the_best_unit)
{
    struct store *store = fresh_store();
    add(store, "unit=cpu backend=simd batch=10", 10, 1.25);
    add(store, "unit=gpu backend=cuda batch=10", 90, 5);
    expect(store, "framework", true,
           "Of what the GPU of box can do, training net at batch 10 in fp32");
    look(store, "unit=cpu", "framework", SENTENCE, "Of what 1 thread of box can do", true);
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
    expect(store, "unit", true, "The GPU, at batch 10: 90 × the CPU's samples/s, training net");
    expect(store, "unit", true, "the CPU with prony/simd, 2 threads on far");
    add(store, "unit=cpu backend=simd batch=10", 30, 2);
    expect(store, "unit", true, "The GPU, at batch 10: 30 ×");
    expect(store, "unit", true, "the CPU with prony/simd, 1 thread on box");
    look(store, "", "unit", CHART, "&precision=fp32", true);
    store_close(store);
}

/* A floor that is passed was computed from ceilings that are too low: nothing is said by it. */
TEST(what_is_faster_than_its_floor_says_nothing)
{
    struct store *store = fresh_store();
    add(store, "batch=10", 100, 0.004);
    expect(store, "framework", false, "their ceilings are too low");
    expect(store, "next", true, "faster than its floor: the ceilings were seen too low");
    look(store, "", "next", COMMAND, "prony bench net --phase training --batch 10", true);
    add(store, "batch=1", 10, 0.98);
    expect(store, "framework", true, "at batch 1 uses 100 % with prony (0.98 × the floor)");
    store_close(store);
}

/* Makes what was measured on `far` results that came with prony. */
static struct store *ship_far(struct store *store)
{
    sqlite3 *db;
    store_close(store);
    CHECK_EQUAL_INT(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_EQUAL_INT(sqlite3_exec(db, "UPDATE result SET source = 'shipped' WHERE server = 'far'",
                                 NULL, NULL, NULL),
                    SQLITE_OK);
    sqlite3_close(db);
    store = NULL;
    CHECK_OK(store_open(path, STORE_WRITE, &store));
    return store;
}

/* Where there are own results, those that came with prony only say what these cannot. */
TEST(own_results_before_those_that_came_with_prony)
{
    struct store *store = fresh_store();
    add(store, "unit=cpu batch=1", 100, 2);
    add(store, "unit=cpu batch=64", 400, 2);
    add(store, "unit=cpu batch=64 threads=2 server=far", 9000, 2);
    add(store, "unit=cpu batch=64 server=far", 8000, 2);
    add(store, "unit=gpu batch=64 server=far", 900, 2);
    store = ship_far(store);
    expect(store, "unit", true, "The GPU, at batch 64: 2.25 × the CPU's samples/s");
    expect(store, "unit", true, "the CPU with prony, 1 thread on box");
    expect(store, "unit", true,
           "the GPU with prony in fp32 on far (results that came with prony).");
    expect(store, "batch", true, "Batch 64 for training net on box: 400 samples/s");
    expect(store, "threads", true, "(From results that came with prony.)");
    store_close(store);
}

/* A machine of one's own that has the name of one that came with prony is not that one. */
TEST(machines_of_one_name)
{
    struct store *store = fresh_store();
    add(store, "server=far threads=1 batch=64", 100, 2);
    store = ship_far(store);
    add(store, "server=far threads=16 batch=64", 50, 2);
    expect(store, "threads", false, "one number of threads only");
    add(store, "server=far unit=gpu batch=64", 500, 2);
    expect(store, "unit", true, "The GPU, at batch 64: 10 ×");
    store_close(store);
}

/* The newest result is of a machine that cannot know; an older one's can. */
TEST(another_machine_may_know)
{
    struct store *store = fresh_store();
    add(store, "framework=prony backend=simd batch=64 threads=1", 1000, 2);
    add(store, "framework=prony backend=simd batch=64 threads=2", 1800, 2);
    add(store, "framework=prony backend=cuda unit=gpu batch=64 server=far", 90000, 2);
    expect(store, "threads", true, "on box: 2 threads bring 1.8 ×");
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
        struct finding answer;
        CHECK_OK(finding_ask(&about, i, &answer));
        CHECK(!answer.command.length || strstr(text_of(&answer.command), " 'net;reboot' --phase "));
        CHECK(!strstr(text_of(&answer.command), "--workers"));
        finding_free(&answer);
    }
    arena_free(&arena);
    store_close(store);
}

/* No sentence rests on what did not run as its users run it, and the sentence says so. */
TEST(handicapped_results_conclude_nothing)
{
    static const char why[] = "reference BLAS (netlib)";
    struct store *store = fresh_store();
    add_result(store, "framework=pytorch batch=64 threads=1", 50, 20, "bytes", why);
    expect(store, "next", false, "(Left out as handicapped: pytorch: reference BLAS (netlib).)");
    expect(store, "framework", false, "Not known: no result");
    expect(store, "framework", false,
           "(Left out as handicapped: pytorch: reference BLAS (netlib).)");
    add(store, "backend=simd batch=64 threads=1", 1000, 1.1);
    look(store, "", "framework", SENTENCE, "% with pytorch", false);
    expect(store, "framework", true, "91 % with prony (1.1 × the floor): it wastes little.");
    expect(store, "framework", true,
           "(Left out as handicapped: pytorch: reference BLAS (netlib).)");
    look(store, "", "next", SENTENCE, "Left out", false); /* it is said once */
    add_result(store, "framework=numpy batch=64 threads=1", 1e9, 1.01, "bytes", "debug build");
    expect(store, "next", true, "batch 64 with prony/simd");
    add(store, "framework=pytorch batch=64 threads=1", 500, 2.2);
    expect(store, "framework", true, "45 % with pytorch");
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

CHECK_MAIN
