/* blas_library.c: see blas_library.h. The libraries are loaded at run time, through what cblas.h
 * declares. */
#include "backend/cpu/blas/blas_library.h"

#include "base/load/dynamic.h"
#include "base/pool.h"
#include "base/text.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ROW_MAJOR = 101, PLAIN = 111, TURNED = 112 }; /* as cblas.h has them */

typedef void gemm_function(int order, int transpose_a, int transpose_b, int m, int n, int k,
                           float alpha, const float *a, int lda, const float *b, int ldb,
                           float beta, float *c, int ldc);

typedef void set_threads_function(long threads);

static struct {
    gemm_function *gemm;
    set_threads_function *set_threads;
} found[BLAS_LIBRARIES]; /* written once, when a library is loaded */

static const struct dynamic_function functions[BLAS_LIBRARIES][2] = {
    {{"cblas_sgemm", &found[0].gemm}, {"openblas_set_num_threads", &found[0].set_threads}},
    {{"cblas_sgemm", &found[1].gemm}, {"bli_thread_set_num_threads", &found[1].set_threads}},
};

#define LIBRARY(file, i)                                                                           \
    {                                                                                              \
        file, "BLAS", functions[i], 2, PTHREAD_MUTEX_INITIALIZER, false                            \
    }

/* Addresses that each thread of a library takes at once. OpenBLAS asks for them again and again
 * until it gets them: where `ulimit -v` leaves fewer, its loading never ends. */
static struct {
    const char *name;
    uint64_t thread_bytes;
    struct dynamic_library library;
} libraries[BLAS_LIBRARIES] = {
    {"openblas", 160u << 20, LIBRARY("libopenblas.so.0", 0)},
    {"blis", 0, LIBRARY("libblis.so.4", 1)},
};

static struct {
    gemm_function *gemm; /* NULL: there is none */
    set_threads_function *set_threads;
    int library;
    bool cramped; /* one was left out, for it would find too few addresses */
} blas;

/* Whether ulimit -v leaves the addresses that its threads take, one a CPU and the caller. */
static bool has_room(int library)
{
    uint64_t need = libraries[library].thread_bytes * ((uint64_t)sysconf(_SC_NPROCESSORS_ONLN) + 1);
    struct rlimit limit;
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file || getrlimit(RLIMIT_AS, &limit) != 0 || fscanf(file, "%llu", &pages) != 1)
        limit.rlim_cur = RLIM_INFINITY;
    if (file)
        fclose(file);
    uint64_t taken = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return limit.rlim_cur == RLIM_INFINITY || need == 0 ||
           (limit.rlim_cur > taken && limit.rlim_cur - taken >= need);
}

static void load_wanted(void)
{
    const char *wanted = getenv("PRONY_BLAS");
    for (int i = 0; !blas.gemm && i < BLAS_LIBRARIES; i++) {
        if (wanted && strcmp(wanted, libraries[i].name) != 0)
            continue;
        if (!has_room(i)) {
            blas.cramped = true;
            continue;
        }
        if (dynamic_load(&libraries[i].library) != STATUS_OK)
            continue;
        blas.gemm = found[i].gemm;
        blas.set_threads = found[i].set_threads;
        blas.library = i;
    }
}

/* "openblas and blis", of those that are installed; "neither". */
static const char *installed(void)
{
    bool has[BLAS_LIBRARIES];
    for (int i = 0; i < BLAS_LIBRARIES; i++)
        has[i] = has_room(i) && dynamic_load(&libraries[i].library) == STATUS_OK;
    return has[0] && has[1] ? "openblas and blis are"
           : has[0]         ? "openblas is"
           : has[1]         ? "blis is"
                            : "neither is";
}

enum status blas_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_wanted);
    const char *wanted = getenv("PRONY_BLAS");
    if (!blas.gemm && blas.cramped)
        FAIL(STATUS_UNSUPPORTED,
             "ulimit -v leaves too few addresses for OpenBLAS, whose loading would never end; "
             "expected a higher limit or none");
    if (!blas.gemm && wanted)
        FAIL(STATUS_UNSUPPORTED,
             "PRONY_BLAS is '%s', expected openblas or blis; %s installed (Debian: libopenblas0, "
             "libblis4)",
             wanted, installed());
    if (!blas.gemm)
        FAIL(STATUS_UNSUPPORTED,
             "no BLAS with a C interface was found (Debian: libopenblas0 or libblis4)");
    return STATUS_OK;
}

int blas_library(void)
{
    return blas.library;
}

void blas_multiply(const struct call *call, bool transpose_a, bool transpose_b, int64_t m,
                   int64_t n, int64_t k, float alpha, const float *a, const float *b, float beta,
                   float *c)
{
    blas.set_threads(pool_threads(call->pool));
    blas.gemm(ROW_MAJOR, transpose_a ? TURNED : PLAIN, transpose_b ? TURNED : PLAIN, (int)m, (int)n,
              (int)k, alpha, a, (int)(transpose_a ? m : k), b, (int)(transpose_b ? k : n), beta, c,
              (int)n);
}
