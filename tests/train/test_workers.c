/* test_workers.c: several workers learn what one learns: in f64 to 1e-12, in fp32 as exactly. Each
 * lesson is learnt by one number of workers in one way; PRONY_EVERY_WORKER=1 tries all (make slow).
 */
#include "comm/shm.h"
#include "comm/threads.h"
#include "launched.h"
#include "parallel.h"
#include "random_networks.h"

#include <pthread.h>
#include <sys/mman.h>

/* A residual block, as resnet18 has them. */
#define NORMS                                                                                      \
    "input 2x8x8\nconv 4 3x3 pad=1 bias=0\nbatch_norm\nfirst = relu\n"                             \
    "conv 4 3x3 pad=1 bias=0 < first\nbatch_norm\nrelu\nconv 4 3x3 pad=1 bias=0\n"                 \
    "long = batch_norm\nadd < long, first\nrelu\nglobal_average_pool\ndense 4\n"                   \
    "loss cross_entropy\n"
#define TRANSFORMER "examples/transformer.net"
#define IMAGES                                                                                     \
    "input 1x12x12\nconv 4 5x5 pad=2\nrelu\nmax_pool 2\nconv 6 3x3\nrelu\nflatten\ndense 10\n"
#define RECURRENT "input 5x6\nlstm 12 output=last\ndense 4\n"

/* The gradient of a key's bias is 0 but for rounding, which adam makes a step of: its epsilon is
 * larger than such a gradient here. */
#define ADAM_OVER_ROUNDING "adam:epsilon=1e-5"

static struct lesson lessons[] = {
    {"mlp:6-33-17-5:relu", "", 11, 50, 5},
    {"mlp:6-33-17-5:tanh", "adam", 12, 50, 5},
    {"input 8\ndense 24\ntanh\ndropout 0.3\ndense 3\nloss mse\n", "momentum", 9, 50, 0},
    {IMAGES, "", 7, 50, 10},
    {IMAGES, "adam", 8, 50, 10},
    {RECURRENT, "", 8, 50, 4},
    {RECURRENT, "adam", 9, 50, 4},
    {TRANSFORMER, "", 8, 50, 8},
    {TRANSFORMER, ADAM_OVER_ROUNDING, 8, 50, 8},
    {"gan", "", 10, 50, 0},
    {"gan", "sgd:rate=0.01", 7, 50, 0},
    {NORMS, "", 10, 50, 4},
    {NORMS, "adam", 9, 50, 4},
    {NULL, "sgd:rate=0.01", 8, 50, 1000}, /* resnet18, with every worker only */
};
enum { LESSONS = sizeof lessons / sizeof *lessons };

/* The zoo's resnet18 with a 16th of its channels, over images of 64x64: the reference computes the
 * whole in hours. */
static void write_resnet(struct text *out)
{
    struct network *network;
    if (!CHECK_OK(network_open("resnet18", &network)))
        return;
    for (const char *at = network->text; *at; at++) {
        if (text_starts(at, "224x224")) {
            text_add(out, "64x64");
            at += strlen("224x224") - 1;
            continue;
        }
        text_add_char(out, *at);
        if (!text_starts(at, " ") || at - network->text < 4 || !text_starts(at - 4, "conv"))
            continue;
        text_printf(out, "%d", atoi(at + 1) / 16);
        at += strspn(at + 1, "0123456789");
    }
    network_free(network);
}

/* How many lessons there are; the text is of the last. */
static int open_lessons(bool every, struct text *text)
{
    if (!every)
        return LESSONS - 1;
    write_resnet(text);
    lessons[LESSONS - 1].network = text_of(text);
    return LESSONS;
}

/* What workers are, and how they communicate. */
enum way { WAY_THREADS, WAY_QUEUE, WAY_PROCESSES, WAYS };
static const char *const way_names[WAYS] = {"threads", "threads, overlapped", "processes"};

static void *learn(void *pupil)
{
    pupil_learn(pupil);
    return NULL;
}

static bool is_well(const struct pupil *pupil)
{
    if (CHECK(pupil->status == STATUS_OK))
        return true;
    printf("    %s\n", pupil->message);
    return false;
}

/* Threads of this process: they end with the same numbers, those in `out`. */
static bool learn_by_threads(int ranks, bool queued, const struct pupil *as, double *out)
{
    pthread_t threads[LESSON_WORKERS];
    struct comm *ends[LESSON_WORKERS];
    struct pupil pupils[LESSON_WORKERS];
    bool ok = true;
    if (!CHECK_OK(threads_open(ranks, ends)))
        return false;
    for (int rank = 0; rank < ranks; rank++) {
        pupils[rank] = *as;
        pupils[rank].comm = ends[rank];
        pupils[rank].queued = queued;
        pupils[rank].recompute = rank % 2; /* which changes no bit */
        pthread_create(&threads[rank], NULL, learn, &pupils[rank]);
    }
    for (int rank = 0; rank < ranks; rank++)
        pthread_join(threads[rank], NULL);
    for (int rank = 0; rank < ranks; rank++)
        ok = is_well(&pupils[rank]) && ok;
    if (ok)
        pupil_numbers(&pupils[0], out);
    for (int rank = 1; ok && rank < ranks; rank++)
        CHECK(pupils_are_same(&pupils[rank], &pupils[0]));
    for (int rank = 0; rank < ranks; rank++) {
        params_free(&pupils[rank].params);
        comm_close(ends[rank]);
    }
    return ok;
}

/* What a process is given; `out` is memory that it shares with this one. */
struct process {
    struct pupil as;
    double *out;
};

static enum status learn_in_process(struct comm *comm, void *context)
{
    struct process *process = context;
    process->as.comm = comm;
    pupil_learn(&process->as);
    if (process->as.status != STATUS_OK)
        FAIL(process->as.status, "%s", process->as.message);
    if (comm->rank == 0)
        pupil_numbers(&process->as, process->out);
    return STATUS_OK;
}

static bool learn_by_processes(int ranks, const struct pupil *as, double *out, size_t count)
{
    struct process process = {.as = *as};
    process.out =
        mmap(NULL, count * sizeof *out, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!CHECK(process.out != MAP_FAILED))
        return false;
    bool ok = CHECK_OK(shm_run(ranks, learn_in_process, &process));
    memcpy(out, process.out, count * sizeof *out);
    munmap(process.out, count * sizeof *out);
    return ok;
}

static bool learn_together(int ranks, enum way way, const struct pupil *as, double *out,
                           size_t count)
{
    return way == WAY_PROCESSES ? learn_by_processes(ranks, as, out, count)
                                : learn_by_threads(ranks, way == WAY_QUEUE, as, out);
}

/* What one worker learns, in f64 and in fp32. */
struct known {
    struct pupil exact, single;
    double *exact_numbers, *single_numbers, *found;
    size_t count;
};

static bool known_open(struct known *known, const struct lesson *lesson)
{
    *known = (struct known){
        .exact = {.lesson = lesson, .backend = "ref", .real = DTYPE_F64},
        .single = {.lesson = lesson, .backend = "simd", .real = DTYPE_F32},
    };
    pupil_learn(&known->exact);
    pupil_learn(&known->single);
    if (known->single.status == STATUS_UNSUPPORTED) { /* a CPU without vectors */
        known->single.backend = "ref";
        params_free(&known->single.params);
        pupil_learn(&known->single);
    }
    if (!is_well(&known->exact) || !is_well(&known->single))
        return false;
    known->count = pupil_numbers(&known->exact, NULL);
    known->exact_numbers = mem_array(3 * known->count, sizeof(double));
    if (!CHECK(known->exact_numbers))
        return false;
    known->single_numbers = known->exact_numbers + known->count;
    known->found = known->single_numbers + known->count;
    pupil_numbers(&known->exact, known->exact_numbers);
    pupil_numbers(&known->single, known->single_numbers);
    return true;
}

static void known_close(struct known *known)
{
    mem_free(known->exact_numbers);
    params_free(&known->exact.params);
    params_free(&known->single.params);
}

/* Is what was found in f64, and what was in fp32, what one worker learns? */
static bool is_exact(const struct known *known, double most)
{
    return CHECK(largest_difference(known->found, known->exact_numbers, known->count) <= most);
}

static bool is_as_exact(const struct known *known)
{
    const double *exact = known->exact_numbers;
    return CHECK(mean_difference(known->found, exact, known->count) <=
                 2 * mean_difference(known->single_numbers, exact, known->count));
}

static void check_lesson(struct known *known, int ranks, enum way way)
{
    struct pupil as = known->exact;
    bool ok = true;
    if (learn_together(ranks, way, &as, known->found, known->count))
        ok = is_exact(known, 1e-12) && ok;
    as = known->single;
    if (learn_together(ranks, way, &as, known->found, known->count))
        ok = is_as_exact(known) && ok;
    if (!ok)
        printf("    %s by %s, %d workers: %s\n", known->exact.lesson->network,
               known->exact.lesson->optimiser, ranks, way_names[way]);
}

TEST(workers_learn_what_one_learns)
{
    const bool every = getenv("PRONY_EVERY_WORKER") != NULL;
    struct text resnet = {0};
    for (int i = 0, count = open_lessons(every, &resnet); i < count; i++) {
        struct known known;
        if (known_open(&known, &lessons[i]))
            for (int ranks = 2; ranks <= 4; ranks++)
                for (int way = 0; way < WAYS; way++)
                    if (every || (ranks == 2 + i % 3 && way == (i + i / 3) % WAYS))
                        check_lesson(&known, ranks, (enum way)way);
        known_close(&known);
    }
    text_free(&resnet);
}

/* ---- ranks that mpirun started ---- */

static bool learn_as_rank(struct comm *comm, const struct pupil *as, double *out)
{
    struct pupil pupil = *as;
    pupil.comm = comm;
    pupil.queued = true;
    pupil_learn(&pupil);
    const bool ok = is_well(&pupil);
    if (ok)
        pupil_numbers(&pupil, out);
    params_free(&pupil.params);
    return ok;
}

/* Of the lessons a few, which differ by the number of ranks. */
TEST(ranks_of_mpirun_learn_what_one_learns)
{
    const bool every = getenv("PRONY_EVERY_WORKER") != NULL;
    struct comm *comm = open_launched();
    struct text resnet = {0};
    if (!comm)
        return;
    for (int i = 0, count = open_lessons(every, &resnet); i < count; i++) {
        struct known known;
        if (!every && i % 5 != comm->size % 5)
            continue;
        bool ok = known_open(&known, &lessons[i]);
        if (ok && learn_as_rank(comm, &known.exact, known.found))
            ok = is_exact(&known, 1e-12);
        if (ok && learn_as_rank(comm, &known.single, known.found))
            ok = is_as_exact(&known);
        if (!ok)
            printf("    %s by %s, rank %d of %d\n", lessons[i].network, lessons[i].optimiser,
                   comm->rank, comm->size);
        known_close(&known);
    }
    text_free(&resnet);
    comm_close(comm);
}

/* ---- random networks ---- */

/* A norm over two or three features makes rounding larger, as in test_split_model.c. */
static void check_random(unsigned number)
{
    unsigned seed;
    struct text text = {0};
    struct known known;
    random_network(number, &seed, &text);
    const int ranks = 2 + (int)random_below(&seed, 4);
    const struct lesson lesson = {.network = text_of(&text),
                                  .optimiser = number % 2 ? "sgd:rate=0.02" : "momentum",
                                  .batch = ranks + (int32_t)random_below(&seed, 8),
                                  .steps = 4};
    bool ok = known_open(&known, &lesson);
    if (ok &&
        learn_together(ranks, (enum way)(number % WAYS), &known.exact, known.found, known.count))
        ok = is_exact(&known, 1e-11);
    if (!ok)
        printf("    random %u, %d ranks:\n%s", number, ranks, text_of(&text));
    known_close(&known);
    text_free(&text);
}

TEST(random_networks_agree)
{
    for (unsigned n = 0, count = random_count(20); n < count; n++)
        check_random(n);
}

/* CUDA does not live through a fork, so that all who use it are children. */
static bool learn_on_gpu(int ranks, bool split, const struct pupil *as, struct known *known)
{
    struct pupil on_gpu = *as;
    on_gpu.backend = "cuda";
    on_gpu.queued = on_gpu.split = split;
    return learn_by_processes(ranks, &on_gpu, known->found, known->count);
}

static enum status probe_gpu(struct comm *comm, void *context)
{
    const struct backend *backend;
    (void)comm, (void)context;
    TRY(registry_find(rig_registry(), "cuda", &backend));
    return backend->probe();
}

/* One rank alone takes NCCL where it is installed; two that share a GPU sum through the host. */
static void check_lesson_on_gpu(struct known *known)
{
    const double *exact = known->exact_numbers;
    double allowed = 2 * mean_difference(known->single_numbers, exact, known->count);
    if (!learn_on_gpu(1, false, &known->single, known))
        return;
    allowed = fmax(allowed, 2 * mean_difference(known->found, exact, known->count));
    for (int ranks = 1; ranks <= 2; ranks++)
        if (learn_on_gpu(ranks, true, &known->single, known) &&
            !CHECK(mean_difference(known->found, exact, known->count) <= allowed))
            printf("    %s by %s, %d ranks: %g, allowed %g\n", known->exact.lesson->network,
                   known->exact.lesson->optimiser, ranks,
                   mean_difference(known->found, exact, known->count), allowed);
}

TEST(workers_on_a_gpu_learn_what_one_learns)
{
    if (shm_run(1, probe_gpu, NULL) != STATUS_OK)
        SKIP("%s", status_message());
    for (int i = 0; i < LESSONS - 1; i++) {
        struct known known;
        if (strstr(lessons[i].network, "batch_norm")) /* a GPU sees its own samples only */
            continue;
        if (known_open(&known, &lessons[i]))
            check_lesson_on_gpu(&known);
        known_close(&known);
    }
}

CHECK_MAIN
