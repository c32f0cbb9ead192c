/* test_workers.c: several workers learn what one learns: in f64 to 1e-12, in fp32 as exactly. Each
 * lesson is learnt by one number of workers in one way; PRONY_EVERY_WORKER=1 tries all (make slow).
 */
#include "comm/shm.h"
#include "comm/threads.h"
#include "parallel.h"

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

static const struct lesson lessons[] = {
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
};
enum { LESSONS = sizeof lessons / sizeof *lessons };

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

static void check_lesson(struct known *known, int ranks, enum way way)
{
    const double *exact = known->exact_numbers;
    struct pupil as = known->exact;
    bool ok = true;
    if (learn_together(ranks, way, &as, known->found, known->count))
        ok = CHECK(largest_difference(known->found, exact, known->count) <= 1e-12) && ok;
    as = known->single;
    if (learn_together(ranks, way, &as, known->found, known->count))
        ok = CHECK(mean_difference(known->found, exact, known->count) <=
                   2 * mean_difference(known->single_numbers, exact, known->count)) &&
             ok;
    if (!ok)
        printf("    %s by %s, %d workers: %s\n", known->exact.lesson->network,
               known->exact.lesson->optimiser, ranks, way_names[way]);
}

TEST(workers_learn_what_one_learns)
{
    const bool every = getenv("PRONY_EVERY_WORKER") != NULL;
    for (int i = 0; i < LESSONS; i++) {
        struct known known;
        if (known_open(&known, &lessons[i]))
            for (int ranks = 2; ranks <= 4; ranks++)
                for (int way = 0; way < WAYS; way++)
                    if (every || (ranks == 2 + i % 3 && way == (i + i / 3) % WAYS))
                        check_lesson(&known, ranks, (enum way)way);
        known_close(&known);
    }
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
    for (int i = 0; i < LESSONS; i++) {
        struct known known;
        if (strstr(lessons[i].network, "batch_norm")) /* a GPU sees its own samples only */
            continue;
        if (known_open(&known, &lessons[i]))
            check_lesson_on_gpu(&known);
        known_close(&known);
    }
}

CHECK_MAIN
