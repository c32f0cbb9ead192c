/* test_store_conditions.c: when a finding may be said, one condition at a time; how it is said; and
 * which of them an overview has. */
#include "base/memory.h"
#include "findings.h"

/* Each condition alone: a finding that is said of good results is not said of these. */

/* One batch of several frameworks, 1 and 2 threads, two batches: enough for most findings. */
static const struct planted good[] = {
    {.words = "batch=1", .rate = 100, .times_floor = 4},
    {.words = "batch=64", .rate = 330, .times_floor = 1.25},
    {.words = "batch=64 threads=2", .rate = 561, .times_floor = 1.25},
    {.words = "batch=64 framework=numpy", .rate = 200, .times_floor = 2},
    {.words = "batch=64 framework=pytorch", .rate = 202, .times_floor = 2},
    {.words = "batch=1 framework=numpy", .rate = 10, .times_floor = 40},
    {.words = "batch=1 framework=python-list", .rate = 0.071, .times_floor = 1400},
    {.words = "batch=64 phase=inference", .rate = 990, .times_floor = 1.25},
};
enum { GOOD = sizeof good / sizeof *good };
static const char *const carried[] = {"limit",   "batch",   "frameworks",
                                      "threads", "slowest", "phase"};

/* How many of these are known when every planted result is changed. */
static int count_known(void (*change)(struct planted *planted))
{
    static const struct store_filter training = {"phase", "training"};
    struct store *store = fresh_store();
    struct arena arena = {0};
    struct finding_about about;
    int known = 0;
    for (size_t i = 0; i < GOOD; i++) {
        struct planted planted = good[i];
        if (change)
            change(&planted);
        plant(store, &planted);
    }
    CHECK_OK(finding_about(store, &arena, (struct store_where){&training, 1}, &about));
    for (size_t i = 0; i < sizeof carried / sizeof *carried; i++) {
        struct finding found;
        size_t index;
        CHECK(finding_named(carried[i], &index));
        CHECK_OK(finding_ask(&about, index, &found));
        known += found.known;
        finding_free(&found);
    }
    arena_free(&arena);
    store_close(store);
    return known;
}

static void make_unchecked(struct planted *planted)
{
    planted->unchecked = true;
}

static void make_disturbed(struct planted *planted)
{
    planted->load = 0.7;
}

static void make_handicapped(struct planted *planted)
{
    planted->handicap = "reference BLAS (netlib)";
}

TEST(good_results_carry_findings)
{
    CHECK_EQUAL_INT(count_known(NULL), (int)(sizeof carried / sizeof *carried));
}

TEST(unchecked_results_carry_nothing)
{
    CHECK_EQUAL_INT(count_known(make_unchecked), 0);
}

TEST(disturbed_results_carry_nothing)
{
    CHECK_EQUAL_INT(count_known(make_disturbed), 0);
}

TEST(handicapped_results_carry_nothing)
{
    CHECK_EQUAL_INT(count_known(make_handicapped), 0);
}

static struct store *good_store(void)
{
    struct store *store = fresh_store();
    for (size_t i = 0; i < GOOD; i++)
        plant(store, &good[i]);
    return store;
}

/* Whole sentences, as a person reads them. */
TEST(sentences_are_short)
{
    struct store *store = good_store();
    expect_whole(store, "limit",
                 "The CPU of box is used well: training `net` at batch 64 with prony reaches 80 % "
                 "of what it can do (± 1 %). Memory sets the limit.");
    expect_whole(store, "batch",
                 "Batches pay: batch 64 trains 3.3 × as many samples of `net` per second as batch "
                 "1 (± 1 %); a larger batch may bring more.");
    expect_whole(
        store, "frameworks",
        "prony trains `net` 1.6 × as fast as PyTorch and NumPy at batch 64 on one core, and "
        "10 × as fast at batch 1 (± 1 %).");
    expect_whole(store, "threads",
                 "A second thread brings 1.7 × in training `net` at batch 64 (± 1 %).");
    expect_whole(store, "slowest",
                 "A Python list takes 1,400 × as long as the limit for training `net` at batch 1: "
                 "never loop over weights in Python.");
    expect_whole(store, "phase",
                 "Training `net` costs 3 × as much per sample as inference at batch 64 (± 1 %).");
    store_close(store);
}

/* The most words of a sentence; signs that stand alone are none. */
static int most_words(const char *text)
{
    int words = 0, most = 0;
    for (const char *at = text; *at; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        words += (unsigned char)*at < 0x80 && *at != '%' && *at != '(';
        at += length;
        most = words > most ? words : most;
        if (at[-1] == '.' || at[-1] == ';')
            words = 0;
    }
    return most;
}

/* What is known, and what is not, of much and of little. */
TEST(sentences_are_read_once)
{
    for (size_t count = 1; count <= GOOD; count++) {
        struct store *store = fresh_store();
        struct arena arena = {0};
        struct finding_about about;
        for (size_t i = 0; i < count; i++)
            plant(store, &good[i]);
        CHECK_OK(finding_about(store, &arena, (struct store_where){0}, &about));
        for (size_t i = 0; i < FINDINGS; i++) {
            struct finding found;
            CHECK_OK(finding_ask(&about, i, &found));
            if (!CHECK(most_words(text_of(&found.sentence)) <= 25))
                printf("%s\n", text_of(&found.sentence));
            finding_free(&found);
        }
        arena_free(&arena);
        store_close(store);
    }
}

/* Above 5 % a figure is "about", and has no ±. */
TEST(about_where_it_is_not_known_well)
{
    struct store *store = fresh_store();
    struct planted slow = {.words = "batch=1", .rate = 100, .times_floor = 2, .noise = 0.08};
    struct planted fast = {.words = "batch=64", .rate = 330, .times_floor = 2, .noise = 0.08};
    plant(store, &slow);
    plant(store, &fast);
    expect(store, "batch", true, "trains about 3.3 × as many");
    look(store, "", "batch", SENTENCE, "±", false);
    expect(store, "limit", true, "reaches about 50 % of");
    slow.noise = fast.noise = INFINITY; /* one sample has no interval */
    slow.words = "batch=1 model=one";
    fast.words = "batch=64 model=one";
    plant(store, &slow);
    plant(store, &fast);
    expect(store, "batch", true, "trains about 3.3 × as many samples of `one`");
    store_close(store);
}

/* 1.02 × is no gain, nor is one that the intervals hide. */
TEST(no_gain_within_the_noise)
{
    struct store *store = fresh_store();
    add(store, "batch=64 threads=1", 100, 2);
    add(store, "batch=64 threads=2", 102, 2);
    expect_whole(store, "threads",
                 "One thread is enough for training `net` at batch 64: up to 2, more bring no gain "
                 "beyond the noise.");
    plant(store, &(struct planted){
                     .words = "batch=64 threads=2", .rate = 140, .times_floor = 2, .noise = 0.4});
    expect(store, "threads", true, "One thread is enough");
    add(store, "batch=64 threads=2", 150, 2);
    expect(store, "threads", true, "A second thread brings 1.5 ×");
    add(store, "batch=64 framework=numpy threads=2", 147, 2);
    expect(store, "frameworks", true, "prony and NumPy are equally fast at training `net`");
    store_close(store);
}

/* A busy machine is told, with what to do. */
TEST(a_busy_machine_is_told)
{
    struct store *store = fresh_store();
    struct planted busy = {.words = "batch=8", .rate = 90, .times_floor = 2, .load = 0.7};
    add(store, "batch=1", 100, 2);
    expect(store, "busy", false, "No: 0 of 1 results on box were disturbed");
    plant(store, &busy);
    expect(store, "busy", true, "Other programs used the CPU during 1 of 2 results");
    look(store, "", "busy", COMMAND, "prony bench net --batch 8", true);
    expect(store, "batch", false, "(Left out as disturbed: 1 result.)");
    store_close(store);
}

/* A GPU that others compute on carries nothing; one where they only hold memory does. */
TEST(a_shared_gpu_carries_nothing)
{
    static const char *const words[] = {"unit=gpu backend=cuda batch=1",
                                        "unit=gpu backend=cuda batch=64"};
    for (int busy = 0; busy < 2; busy++) {
        struct store *store = fresh_store();
        for (int i = 0; i < 2; i++)
            plant(store, &(struct planted){.words = words[i],
                                           .rate = i ? 330 : 100,
                                           .times_floor = 2,
                                           .gpu_others = 1,
                                           .gpu_busy = busy ? 40 : 0});
        expect(store, "batch", !busy, busy ? "(Left out as disturbed: 2 results.)" : "Batches pay");
        expect(store, "busy", busy,
               busy ? "Other programs used the GPU during 2 of 2 results" : "No: 0 of 2");
        store_close(store);
    }
}

/* The overview: the best findings of one machine. */

static void find_overview(struct store *store, const char *filters, struct arena *arena,
                          struct overview *out)
{
    struct store_where where;
    CHECK_OK(store_where_parse(arena, filters, &where));
    if (!CHECK_OK(overview_find(store, arena, where, out)))
        *out = (struct overview){.machine = {"", "", "", 0}, .newest = ""};
}

TEST(an_overview_has_the_most_important_findings)
{
    static const char *const names[] = {"limit",   "batch",   "frameworks",
                                        "threads", "slowest", "next"};
    struct store *store = good_store();
    struct arena arena = {0};
    struct overview overview;
    find_overview(store, "", &arena, &overview);
    CHECK_EQUAL_TEXT(overview.machine.server, "box");
    CHECK_EQUAL_TEXT(overview.machine.source, "own");
    CHECK_EQUAL_INT(overview.machine.results, GOOD);
    CHECK_EQUAL_TEXT(overview.newest, "2026-11-15T10:03:58Z");
    if (CHECK_EQUAL_INT(overview.count, 6))
        for (size_t i = 0; i < 6; i++)
            CHECK_EQUAL_TEXT(overview.findings[i].name, names[i]);
    for (size_t i = 0; i < overview.count; i++)
        CHECK(overview.findings[i].known && overview.findings[i].id_count);
    overview_free(&overview);
    arena_free(&arena);
    store_close(store);
}

/* Of networks with about as many results the largest is spoken of; others say what it cannot. */
TEST(an_overview_chooses_the_network)
{
    struct store *store = fresh_store();
    struct arena arena = {0};
    struct overview overview;
    add(store, "model=tiny batch=1", 100, 2);
    add(store, "model=tiny batch=64", 400, 2);
    add(store, "model=tiny batch=64 threads=2", 600, 2);
    add(store, "model=other batch=1", 10, 2);
    add(store, "model=other batch=64", 30, 2);
    find_overview(store, "", &arena, &overview);
    for (size_t i = 0; i < overview.count; i++)
        CHECK(strstr(text_of(&overview.findings[i].sentence), "`tiny`"));
    overview_free(&overview);
    arena_free(&arena);
    store_close(store);
}

/* Own results before those that ship, which are a choice; no machine's results are mixed. */
TEST(an_overview_is_of_one_machine)
{
    struct store *store = fresh_store();
    struct arena arena = {0};
    struct overview overview;
    add(store, "server=far threads=1 batch=64", 100, 2);
    add(store, "server=far threads=2 batch=64", 190, 2);
    add(store, "server=far unit=gpu batch=64", 900, 2);
    store = ship_far(store);
    find_overview(store, "", &arena, &overview);
    CHECK_EQUAL_TEXT(overview.machine.source, "shipped");
    overview_free(&overview);
    add(store, "threads=2 batch=64", 50, 2);
    find_overview(store, "", &arena, &overview);
    CHECK_EQUAL_TEXT(overview.machine.server, "box");
    CHECK_EQUAL_INT(overview.machine.results, 1);
    CHECK_EQUAL_INT(overview.other_count, 1);
    CHECK_EQUAL_TEXT(overview.others[0].source, "shipped");
    CHECK_EQUAL_INT(overview.others[0].results, 3);
    for (size_t i = 0; i < overview.count; i++)
        CHECK(!strstr(text_of(&overview.findings[i].sentence), "far"));
    overview_free(&overview);
    find_overview(store, "server=far", &arena, &overview);
    CHECK_EQUAL_TEXT(overview.machine.server, "far");
    CHECK(overview.count > 0);
    overview_free(&overview);
    arena_free(&arena);
    store_close(store);
}

TEST(an_overview_of_nothing)
{
    struct store *store = fresh_store();
    struct arena arena = {0};
    struct overview overview;
    find_overview(store, "", &arena, &overview);
    CHECK_EQUAL_TEXT(overview.machine.server, "");
    CHECK_EQUAL_INT(overview.count, 0);
    overview_free(&overview);
    arena_free(&arena);
    store_close(store);
}

/* Wherever memory ends, it is told, and nothing is lost. */
TEST(an_overview_without_memory)
{
    struct store *store = good_store();
    enum status status = STATUS_MEMORY;
    for (long nth = 1; status == STATUS_MEMORY && nth < 20000; nth += nth < 200 ? 1 : 37) {
        struct arena arena = {0};
        struct overview overview = {.count = 0};
        memory_fail_at(nth);
        status = overview_find(store, &arena, (struct store_where){0}, &overview);
        memory_fail_at(0);
        CHECK(status == STATUS_OK || status == STATUS_MEMORY);
        overview_free(&overview);
        arena_free(&arena);
    }
    CHECK_OK(status);
    store_close(store);
}

/* Results that came with prony, of a machine of that name, are not counted with one's own. */
TEST(an_overview_tells_that_its_own_results_were_disturbed)
{
    struct store *store = fresh_store();
    struct arena arena = {0};
    struct overview overview;
    for (int batch = 1; batch <= 64; batch *= 2) {
        char words[40];
        snprintf(words, sizeof words, "server=far batch=%d", batch);
        add(store, words, 100 * batch, 2);
    }
    store = ship_far(store);
    plant(store, &(struct planted){
                     .words = "server=far batch=3", .rate = 90, .times_floor = 2, .load = 0.7});
    find_overview(store, "", &arena, &overview);
    CHECK_EQUAL_TEXT(overview.machine.source, "own");
    if (CHECK_EQUAL_INT(overview.count, 1)) {
        CHECK_EQUAL_TEXT(overview.findings[0].name, "busy");
        CHECK(strstr(text_of(&overview.findings[0].sentence), "the CPU during 1 of 1 result, and"));
    }
    overview_free(&overview);
    arena_free(&arena);
    store_close(store);
}

/* Without a finding it says why, and what would settle it. */
TEST(an_overview_says_why_it_has_no_finding)
{
    static const struct {
        bool unchecked;
        double load;
        const char *sentence;
    } cases[] = {{true, 0, "2 of 2 results were not checked: no finding rests on these."},
                 {true, 0.7, "the CPU during 1 of 9 results, and 8 more were not checked: no"}};
    for (size_t i = 0; i < 2; i++) {
        struct store *store = fresh_store();
        struct arena arena = {0};
        struct overview overview;
        const int batches = i ? 9 : 2;
        for (int batch = 1; batch <= batches; batch++) {
            char words[40];
            snprintf(words, sizeof words, "batch=%d", batch);
            plant(store, &(struct planted){.words = words,
                                           .rate = 100,
                                           .times_floor = 2,
                                           .unchecked = cases[i].unchecked,
                                           .load = batch == 1 ? cases[i].load : 0});
        }
        find_overview(store, "", &arena, &overview);
        CHECK_EQUAL_INT(overview.count, 0);
        if (!CHECK(strstr(text_of(&overview.lacking), cases[i].sentence)))
            printf("    %s\n", text_of(&overview.lacking));
        if (!CHECK(text_starts(text_of(&overview.command), "prony bench net")))
            printf("    %s\n", text_of(&overview.command));
        overview_free(&overview);
        arena_free(&arena);
        store_close(store);
    }
}

CHECK_MAIN
