/* calibrate.c: see calibrate.h.
 *
 * A burst is a kernel run by every thread at once, repeated within one call so often that waking
 * the threads does not count. The kernels differ per ISA and are chosen at run time; loads, adds
 * and stores are written once over 64-byte vectors, which the compiler turns into whatever the
 * function's target has. */
#include "estimate/calibrate.h"

#include "base/clock.h"
#include "base/pool.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static const uint64_t SET_LEAST = (uint64_t)16 << 10, SET_MOST = (uint64_t)1 << 30;
static const uint64_t HUGE_PAGE = (uint64_t)2 << 20;
enum { FLOP_VECTORS = 12 * 64 }; /* of one thread: whole rounds of every flop kernel */
static const uint64_t BURST_NS = 1000000, BURSTS_NS = 60000000;

typedef int64_t words __attribute__((vector_size(64)));
typedef float reals __attribute__((vector_size(64)));
typedef float reals4 __attribute__((vector_size(16)));

/* Each kernel goes over `vectors` 64-byte vectors `times` times and returns something that depends
 * on all of it. */
typedef float kernel(void *data, long vectors, long times);

static inline __attribute__((always_inline)) float read_body(void *data, long vectors, long times)
{
    words sum[4] = {{0}};
    for (long t = 0; t < times; t++) {
        const words *from = data;
        for (long i = 0; i + 4 <= vectors; i += 4)
            for (int j = 0; j < 4; j++)
                sum[j] ^= from[i + j];
        __asm__ volatile("" ::: "memory"); /* or the passes would be merged */
    }
    words all = sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
    int64_t folded = 0;
    for (int j = 0; j < 8; j++)
        folded ^= all[j];
    return (float)folded;
}

static inline __attribute__((always_inline)) float update_body(void *data, long vectors, long times)
{
    reals *at = data;
    const float step = 1.0f;
    for (long t = 0; t < times; t++) {
        for (long i = 0; i < vectors; i++)
            at[i] += step;
        __asm__ volatile("" ::: "memory");
    }
    return at[0][0];
}

/* The flop kernels do `vectors` × `times` multiply-adds of 16 lanes in registers, which start from
 * `data`. This one is what a CPU does without fused instructions: x86-64's baseline, or another. */
static float flop_scalar(void *data, long vectors, long times)
{
    const reals4 factor = {1.0f, 1.0f, 1.0f, 1.0f};
    reals4 sum[8], *seed = data;
    for (int j = 0; j < 8; j++)
        sum[j] = seed[j];
    for (long i = 0; i < vectors * times; i += 2)
        for (int j = 0; j < 8; j++) {
            sum[j] = sum[j] * factor + factor;
            __asm__ volatile("" : "+x"(sum[j]));
        }
    for (int j = 1; j < 8; j++)
        sum[0] += sum[j];
    return sum[0][0];
}

static float read_scalar(void *data, long vectors, long times)
{
    return read_body(data, vectors, times);
}

static float update_scalar(void *data, long vectors, long times)
{
    return update_body(data, vectors, times);
}

#if defined(__x86_64__)
/* 12 accumulators hide a latency of 4 cycles at two fused multiply-adds a cycle, with room. */
__attribute__((target("avx2,fma"))) static float flop_avx2(void *data, long vectors, long times)
{
    const __m256 factor = _mm256_set1_ps(0.5f);
    __m256 sum[12];
    for (int j = 0; j < 12; j++)
        sum[j] = _mm256_loadu_ps((const float *)data + 8 * j);
    for (long i = 0; i < vectors * times; i += 6)
        for (int j = 0; j < 12; j++)
            sum[j] = _mm256_fmadd_ps(sum[j], factor, factor);
    for (int j = 1; j < 12; j++)
        sum[0] = _mm256_add_ps(sum[0], sum[j]);
    return _mm256_cvtss_f32(sum[0]);
}

__attribute__((target("avx2,fma"))) static float read_avx2(void *data, long vectors, long times)
{
    return read_body(data, vectors, times);
}

__attribute__((target("avx2,fma"))) static float update_avx2(void *data, long vectors, long times)
{
    return update_body(data, vectors, times);
}

__attribute__((target("avx512f"))) static float flop_avx512(void *data, long vectors, long times)
{
    const __m512 factor = _mm512_set1_ps(0.5f);
    __m512 sum[12];
    for (int j = 0; j < 12; j++)
        sum[j] = _mm512_loadu_ps((const float *)data + 16 * j);
    for (long i = 0; i < vectors * times; i += 12)
        for (int j = 0; j < 12; j++)
            sum[j] = _mm512_fmadd_ps(sum[j], factor, factor);
    for (int j = 1; j < 12; j++)
        sum[0] = _mm512_add_ps(sum[0], sum[j]);
    return _mm512_cvtss_f32(sum[0]);
}

__attribute__((target("avx512f"))) static float read_avx512(void *data, long vectors, long times)
{
    return read_body(data, vectors, times);
}

__attribute__((target("avx512f"))) static float update_avx512(void *data, long vectors, long times)
{
    return update_body(data, vectors, times);
}
#endif

static const struct kernels {
    kernel *flop, *read, *update;
} kernels[] = {
    [ISA_SCALAR] = {flop_scalar, read_scalar, update_scalar},
#if defined(__x86_64__)
    [ISA_AVX2] = {flop_avx2, read_avx2, update_avx2},
    [ISA_AVX512] = {flop_avx512, read_avx512, update_avx512},
#endif
};

struct burst {
    kernel *kernel;
    char *data;
    long vectors, times;
    long stride; /* bytes from vector to vector; 0: every thread starts from the same place */
    float sink[POOL_MOST];
};

static void burst_member(void *context, int member, int members)
{
    struct burst *burst = context;
    long from, to;
    pool_share(burst->vectors, 64, member, members, &from, &to);
    if (from < to)
        burst->sink[member] =
            burst->kernel(burst->data + from * burst->stride, to - from, burst->times);
}

/* The shortest time in which all threads together went once over the data. Passes per burst double
 * until a burst is long enough for the threads' wake-up not to count; the rest of the time repeats
 * it. */
static double burst_best_ns(struct pool *pool, struct burst burst)
{
    uint64_t deadline_ns = clock_ns() + BURSTS_NS;
    double best_ns = (double)INFINITY;

    do {
        uint64_t start_ns = clock_ns();
        pool_run(pool, pool_threads(pool), burst_member, &burst);
        uint64_t elapsed_ns = clock_ns() - start_ns;
        if (elapsed_ns < BURST_NS)
            burst.times *= 2;
        else
            best_ns = fmin(best_ns, (double)elapsed_ns / (double)burst.times);
    } while (clock_ns() < deadline_ns || isinf(best_ns));
    return best_ns;
}

#ifdef __OPTIMIZE__
static const bool optimised = true;
#else
static const bool optimised = false; /* the kernels would measure the compiler, not the machine */
#endif

static enum status calibrate_measure(struct ceilings *ceilings)
{
    struct cpu cpu;
    struct pool *pool;
    uint64_t mapped_bytes = ceilings->set_bytes + HUGE_PAGE;

    cpu_detect(&cpu);
    ceilings->isa = cpu.isa;
    char *mapped =
        mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        FAIL(STATUS_MEMORY, "no %llu bytes to calibrate with: %s", (unsigned long long)mapped_bytes,
             strerror(errno));
    char *data = mapped + (HUGE_PAGE - (uintptr_t)mapped % HUGE_PAGE) % HUGE_PAGE;
    madvise(data, ceilings->set_bytes, MADV_HUGEPAGE); /* without them it is slower, not wrong */
    memset(data, 0, ceilings->set_bytes);

    enum status status = pool_open(ceilings->threads, POOL_NONE, &pool);
    if (status == STATUS_OK) {
        const struct kernels *row = &kernels[cpu.isa];
        struct burst burst = {.kernel = row->read,
                              .data = data,
                              .vectors = (long)(ceilings->set_bytes / 64),
                              .times = 1,
                              .stride = 64};
        double set_bytes = (double)ceilings->set_bytes;
        ceilings->read_per_s = set_bytes / burst_best_ns(pool, burst) * 1e9;
        burst.kernel = row->update;
        ceilings->update_per_s = 2 * set_bytes / burst_best_ns(pool, burst) * 1e9;
        burst.kernel = row->flop;
        burst.vectors = FLOP_VECTORS * ceilings->threads;
        burst.stride = 0;
        ceilings->flop_per_s = 32.0 * (double)burst.vectors / burst_best_ns(pool, burst) * 1e9;
        pool_close(pool);
    }
    munmap(mapped, mapped_bytes);
    return status;
}

enum status calibrate(struct calibration *calibration, int threads, uint64_t set_bytes,
                      const struct ceilings **out)
{
    set_bytes = set_bytes < SET_LEAST ? SET_LEAST : set_bytes > SET_MOST ? SET_MOST : set_bytes;
    uint64_t unit = SET_LEAST / 8;
    while (unit * 16 <= set_bytes)
        unit *= 2;
    set_bytes -= set_bytes % unit; /* to three binary digits and the leading one */

    for (int i = 0; i < calibration->count; i++) {
        *out = &calibration->list[i];
        if ((*out)->threads == threads && (*out)->set_bytes == set_bytes)
            return STATUS_OK;
    }
    if (!optimised)
        FAIL(STATUS_UNSUPPORTED, "a build without optimisation cannot calibrate");
    if (calibration->count == CALIBRATION_MOST)
        FAIL(STATUS_UNSUPPORTED, "more than %d calibrations in one run", CALIBRATION_MOST);
    struct ceilings *next = &calibration->list[calibration->count];
    *next = (struct ceilings){.threads = threads, .set_bytes = set_bytes};
    TRY(calibrate_measure(next));
    calibration->count++;
    *out = next;
    return STATUS_OK;
}

void calibration_write(const struct calibration *calibration, struct json_writer *writer)
{
    json_object(writer);
    json_key(writer, "ceilings");
    json_array(writer);
    for (int i = 0; i < calibration->count; i++) {
        const struct ceilings *row = &calibration->list[i];
        json_object(writer);
        json_key(writer, "threads");
        json_add_int(writer, row->threads);
        json_key(writer, "set_bytes");
        json_add_uint(writer, row->set_bytes);
        json_key(writer, "isa");
        json_add_text(writer, isa_name(row->isa));
        json_key(writer, "flop_per_s");
        json_add_real(writer, row->flop_per_s);
        json_key(writer, "read_per_s");
        json_add_real(writer, row->read_per_s);
        json_key(writer, "update_per_s");
        json_add_real(writer, row->update_per_s);
        json_end(writer);
    }
    json_end(writer);
    json_end(writer);
}
