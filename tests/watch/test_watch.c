/* test_watch.c: what watching is made of: line tables, symbols, maps, the ring, sums over samples.
 */
#include "agent/python_layout.h"
#include "check.h"
#include "watch/gathered.h"
#include "watch/hot.h"
#include "watch/ring.h"
#include "watch/symbols.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* The table of `def f(x):` at line 10 whose body has a short entry, one line on, three on with
 * columns, and one without a line: as PEP 657 writes them. */
TEST(reads_line_tables)
{
    static const unsigned char table[] = {
        0x80 | 15 << 3 | 0,                /* no line, one unit */
        0x80 | 10 << 3 | 1, 4,    9,       /* line + 0, two units */
        0x80 | 11 << 3 | 0, 4,    9,       /* line + 1 */
        0x80 | 13 << 3 | 2, 6,             /* line + 3, alone, three units */
        0x80 | 14 << 3 | 0, 5,    1, 2, 3, /* line - 2, long */
        0x80 | 2 << 3 | 7,  0x11,          /* the same line, short, eight units */
    };
    static const struct {
        uint32_t instruction;
        int32_t line;
    } cases[] = {{0, 0},   {2, 10},  {4, 10},  {6, 11},  {8, 14},
                 {12, 14}, {14, 12}, {16, 12}, {30, 12}, {32, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_EQUAL_INT(
            python_line(PYTHON_LINES_3_11, table, sizeof table, 10, cases[i].instruction),
            cases[i].line);
    for (size_t length = 0; length < sizeof table; length++) /* cut anywhere, it ends */
        (void)python_line(PYTHON_LINES_3_11, table, length, 10, 1000);
    CHECK_EQUAL_INT(python_line(PYTHON_LINES_3_11, NULL, 0, 10, 0), 0);
}

/* As CPython 3.8 and 3.10 write a function whose lines are 11, 12, 20 and 12 again. */
TEST(reads_line_tables_of_older_pythons)
{
    static const unsigned char old[] = {0, 1, 8, 1, 4, 8, 6, 0xf8};
    static const unsigned char table[] = {8, 1, 4, 1, 6, 8, 2, 0x80, 4, 0xf8};
    static const struct {
        uint32_t instruction;
        int32_t old, line;
    } cases[] = {{0, 11, 11},  {6, 11, 11}, {8, 12, 12},  {12, 20, 20},
                 {16, 20, 20}, {18, 12, 0}, {20, 12, 12}, {99, 12, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_EQUAL_INT(python_line(PYTHON_LINES_OLD, old, sizeof old, 10, cases[i].instruction),
                        cases[i].old);
        CHECK_EQUAL_INT(
            python_line(PYTHON_LINES_3_10, table, sizeof table, 10, cases[i].instruction),
            cases[i].line);
    }
    CHECK_EQUAL_INT(python_line(PYTHON_LINES_OLD, old, 3, 10, 50), 11);
    CHECK_EQUAL_INT(python_line(PYTHON_LINES_3_10, table, 1, 10, 0), 0);
}

TEST(tells_functions_apart)
{
    struct python_frame one = {.code = 1, .name = 2, .file = 3, .table = 4, .first_line = 5};
    struct python_frame other = one;
    CHECK(python_key(&one) == python_key(&other));
    other.name = 6; /* the code's address was used again */
    CHECK(python_key(&one) != python_key(&other));
    other = one;
    other.table = 7;
    CHECK(python_key(&one) != python_key(&other));
}

TEST(knows_its_pythons)
{
    struct python_layout layout;
    CHECK(python_layout_find(0x030b02f0, getpid(), 0, &layout) && layout.frame_entry);
    CHECK(python_layout_find(0x030c01f0, getpid(), 0, &layout) && !layout.frame_entry);
    CHECK(python_layout_find(0x030a0df0, getpid(), 0, &layout) && layout.entries);
    CHECK(!python_layout_find(0x030700f0, getpid(), 0, &layout));
    unsigned char garbage[1024];
    memset(garbage, 0xff, sizeof garbage);
    memcpy(garbage, "xdebugpy", 8);
    CHECK(!python_layout_find(0x030d00f0, getpid(), (uint64_t)(uintptr_t)garbage, &layout));
    /* 3.14 has three more words of interpreters and two of frames than 3.13; made, not run */
    uint64_t said[49] = {0};
    memcpy(said, "xdebugpy", 8);
    said[1] = 0x030e00f0;
    said[5] = 5, said[9] = 9, said[22 + 4] = 26, said[31 + 2] = 33, said[39 + 4] = 43;
    const uint64_t at = (uint64_t)(uintptr_t)said;
    if (CHECK(python_layout_find(0x030e00f0, getpid(), at, &layout))) {
        CHECK_EQUAL_INT(layout.runtime_interpreters, 5);
        CHECK_EQUAL_INT(layout.interpreter_threads, 9);
        CHECK_EQUAL_INT(layout.thread_frame, 26);
        CHECK_EQUAL_INT(layout.frame_code, 33);
        CHECK_EQUAL_INT(layout.code_table, 43);
    }
    CHECK(!python_layout_find(0x030d00f0, getpid(), at, &layout)); /* it says another version */
    CHECK(!python_layout_find(0x030f00f0, getpid(), at, &layout));
}

/* Reading what is not there fails; it does not end the program. */
TEST(survives_frames_that_are_none)
{
    struct python_place place = {.process = getpid(), .code_type = 1};
    struct python_frame frames[4];
    bool torn, cut;
    CHECK(python_layout_find(0x030b02f0, getpid(), 0, &place.layout));
    CHECK_EQUAL_INT(python_walk(&place, 16, frames, 4, &torn, &cut), 0);
    CHECK(torn);
    uint64_t memory[64];
    for (int i = 0; i < 64; i++)
        memory[i] = (uint64_t)(uintptr_t)memory; /* a chain without end, and no code in it */
    CHECK_EQUAL_INT(python_walk(&place, (uint64_t)(uintptr_t)memory, frames, 4, &torn, &cut), 0);
    CHECK(torn);
    CHECK(python_find_thread(&place, 1) == 0);
}

void watched_function(void);
__attribute__((noinline, used)) void watched_function(void)
{
    __asm__ volatile("");
}

TEST(finds_its_own_functions)
{
    struct modules modules = {0};
    struct maps maps = {0};
    struct symbols symbols;
    CHECK_OK(maps_read(&maps, getpid(), &modules));
    uint64_t place = maps_place(&maps, (uint64_t)(uintptr_t)watched_function);
    if (!CHECK(place != 0))
        return;
    CHECK_OK(symbols_read(&symbols, modules.paths[place_module(place)]));
    CHECK_EQUAL_TEXT(symbols_find(&symbols, place_offset(place)), "watched_function");
    CHECK(maps_place(&maps, 8) == 0);
    symbols_free(&symbols);
    maps_free(&maps);
    modules_free(&modules);
}

TEST(makes_names_readable)
{
    static const struct {
        const char *name, *readable;
    } cases[] = {
        {"sgemm_", "sgemm_"},
        {"_ZN2at4_ops5addmm4callERKNS_6TensorES4_S4_RKN3c106ScalarES8_", "at::_ops::addmm::call"},
        {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector::push_back"},
        {"_ZN2at6native12_GLOBAL__N_16kernelEv", "at::native::kernel"},
        {"_Zbad", "_Zbad"},
    };
    char out[64], tiny[4];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        symbol_readable(cases[i].name, out, sizeof out);
        CHECK_EQUAL_TEXT(out, cases[i].readable);
    }
    symbol_readable("sgemm_", tiny, sizeof tiny);
    CHECK_EQUAL_TEXT(tiny, "sge");
}

/* A file of the agent that is not one, or holds records that cannot be. */
static enum status count_record(void *context, const struct agent_record *record, uint32_t kind)
{
    (void)record;
    *(uint32_t *)context += kind;
    return STATUS_OK;
}

TEST(refuses_a_broken_ring)
{
    char path[] = "/tmp/prony_ring.XXXXXX";
    struct ring ring;
    uint32_t kinds = 0;
    int fd = mkstemp(path);
    if (!CHECK(fd >= 0))
        return;
    CHECK(ring_open(&ring, path) != STATUS_OK); /* empty */
    if (!CHECK(ftruncate(fd, AGENT_BYTES) == 0))
        return;
    CHECK(ring_open(&ring, path) != STATUS_OK); /* no magic */
    struct agent_head *head = mmap(NULL, AGENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct agent_record *record = (void *)((unsigned char *)head + AGENT_HEAD);
    memcpy(head->magic, AGENT_MAGIC, sizeof head->magic);
    head->version = AGENT_VERSION;
    if (!CHECK_OK(ring_open(&ring, path)))
        return;
    CHECK_OK(ring_read(&ring, count_record, &kinds)); /* nothing is there */
    atomic_store(&head->written, 64);
    CHECK_OK(ring_read(&ring, count_record, &kinds)); /* a record is being written */
    CHECK_EQUAL_INT(kinds, 0);
    record->bytes = 64;
    atomic_store(&record->kind, AGENT_SAMPLE);
    CHECK_OK(ring_read(&ring, count_record, &kinds));
    CHECK_EQUAL_INT(kinds, AGENT_SAMPLE);
    static const uint32_t lengths[] = {0, 4, 12, AGENT_BYTES, UINT32_MAX - 7};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        record = (void *)((unsigned char *)head + AGENT_HEAD + 64);
        record->bytes = lengths[i];
        atomic_store(&record->kind, AGENT_CODE);
        atomic_store(&head->written, 128);
        CHECK(ring_read(&ring, count_record, &kinds) != STATUS_OK);
    }
    struct agent_sample sample = {.record = {.bytes = sizeof sample}, .native_count = 1};
    CHECK(!ring_sample_fits(&sample));
    sample.native_count = 0;
    CHECK(ring_sample_fits(&sample));
    struct agent_code code = {.record = {.bytes = sizeof code + 8}, .name_bytes = 9};
    CHECK(!ring_code_fits(&code));
    munmap(head, AGENT_BYTES);
    ring_close(&ring);
    close(fd);
    unlink(path);
}

/* A sample of `ns` in these frames, the outermost first; a function with a line is Python's. */
static void add_sample(struct trace *trace, const char *const *functions, const int *lines,
                       size_t count, int64_t ns)
{
    static int64_t at;
    struct span span = {.start_ns = at, .end_ns = at + ns, .kind = SPAN_sample};
    const struct lane lane = {.kind = LANE_THREAD};
    at += ns;
    CHECK_OK(trace_lane(trace, &lane, &span.lane));
    for (size_t i = 0; i < count; i++) {
        struct site site = {.line = (uint32_t)lines[i], .caller = span.site};
        CHECK_OK(trace_text(trace, lines[i] ? "me.py" : "lib.so", 5 + !lines[i], &site.file));
        CHECK_OK(trace_text(trace, functions[i], strlen(functions[i]), &site.function));
        CHECK_OK(trace_site(trace, &site, &span.site));
        span.name = site.function;
    }
    CHECK_OK(trace_add(trace, &span));
}

TEST(sums_samples)
{
    struct trace trace = {0};
    struct hot hot;
    struct hot_tree tree;
    for (int i = 0; i < 3; i++)
        add_sample(&trace, (const char *const[]){"main", "loop", "loop", "gemm"},
                   (const int[]){1, 5, 6, 0}, 4, 10);
    add_sample(&trace, (const char *const[]){"main", "free"}, (const int[]){2, 0}, 2, 10);
    CHECK_OK(trace_finish(&trace, "test"));
    CHECK_OK(hot_find(&trace, HOT_LINES, -1, &hot));
    CHECK_EQUAL_INT(hot.count, 2);
    CHECK_EQUAL_INT(trace.sites[hot.rows[0].site].line, 6);
    CHECK_EQUAL_TEXT(trace_word(&trace, hot.rows[0].name), "gemm");
    CHECK(hot.rows[0].ns == 30 && hot.all_ns == 40);
    hot_free(&hot);
    CHECK_OK(hot_find(&trace, HOT_FUNCTIONS, -1, &hot)); /* loop calls itself, and counts once */
    CHECK_EQUAL_INT(hot.count, 2);
    CHECK(hot.rows[0].ns == 40 && hot.rows[1].ns == 30);
    hot_free(&hot);
    CHECK_OK(hot_find(&trace, HOT_CALLS, -1, &hot));
    CHECK_EQUAL_INT(hot.count, 0);
    hot_free(&hot);
    CHECK_OK(hot_tree_find(&trace, &tree));
    CHECK_EQUAL_INT(tree.count, 5); /* the root, main, loop, gemm, free */
    CHECK(tree.nodes[0].ns == 40);
    hot_tree_free(&tree);
    trace_free(&trace);
}

TEST(keeps_codes_and_words)
{
    struct gathered gathered = {0};
    uint64_t *words;
    for (uint64_t key = 1; key < 3000; key++) {
        const struct code code = {
            .key = key, .name = "f", .file = "me.py", .table = (const unsigned char *)""};
        CHECK_OK(gathered_add_code(&gathered, &code));
    }
    CHECK(gathered_code(&gathered, 2999) && !gathered_code(&gathered, 3000));
    const struct sighting sighting = {.native = 100};
    for (int i = 0; i < 100; i++) {
        CHECK_OK(gathered_add(&gathered, &sighting, &words));
        words[99] = (uint64_t)i;
    }
    CHECK_EQUAL_INT(gathered.words[gathered.sightings[50].first + 99], 50);
    gathered_free(&gathered);
}

CHECK_MAIN
