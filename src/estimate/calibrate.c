/* calibrate.c: see calibrate.h. A burst is a kernel run by every thread at once, repeated within
 * one call so often that waking the threads does not count. */
#include "estimate/calibrate.h"

#include "base/clock.h"
#include "base/memory.h"
#include "estimate/ground.h"

#include <math.h>
#include <string.h>

static const uint64_t SET_LEAST = (uint64_t)16 << 10, SET_MOST = (uint64_t)1 << 30;
static const uint64_t COARSE_SET = (uint64_t)128 << 20;
static const uint64_t LATER_MOST = (uint64_t)256 << 20;
enum { FLOP_GRAINS = 16 }; /* what a thread's flop kernel is given */

static const uint64_t FIRST_NS = 60000000; /* for a ceiling that is not known */
static const uint64_t LOOK_NS = 16000000, ENOUGH_NS = 1000000000; /* a look; all of them */
static const uint64_t PEAK_NS = 3000000;    /* a look at a peak, of which there are many */
static const uint64_t AGAIN_NS = 300000000; /* when it is too low */

#ifdef __OPTIMIZE__
static const bool optimised = true;
#else
static const bool optimised = false; /* the kernels would measure the compiler, not the machine */
#endif

const char *pages_name(enum pages pages)
{
    return pages == PAGES_2M ? "2m" : "4k";
}

void calibration_free(struct calibration *calibration)
{
    calibration_close_unit(calibration);
    mem_free(calibration->rows);
    *calibration = (struct calibration){0};
}

/* Looks for a higher ceiling, all ways in turn. */
static void row_look(struct ground *ground, struct ceiling_row *row, uint64_t limit_ns)
{
    burst_kernel *const *ways = burst_ways(row->ceiling, row->isa, &ground->cpu);
    bool is_flop = ceiling_is_flop(row->ceiling);
    struct burst burst = {.data = ground->data, .apart = !is_flop};
    uint64_t start_ns = clock_ns();
    int count = 0;

    burst.bytes =
        is_flop ? FLOP_GRAINS * BURST_GRAIN : (long)row->set_bytes / BURST_GRAIN * BURST_GRAIN;
    while (ways[count])
        count++;
    double work = burst_work(row->ceiling, (double)burst.bytes) * (is_flop ? row->threads : 1);
    for (int way = 0; way < count; way++) {
        burst.kernel = ways[way];
        double best_ns = burst_best_ns(ground->pool, &burst, limit_ns / (uint64_t)count);
        row->per_s = fmax(row->per_s, work / best_ns * 1e9);
    }
    row->spent_ns += (double)(clock_ns() - start_ns);
}

static bool same_ceiling(const struct ceiling_row *a, const struct ceiling_row *b)
{
    return a->ceiling == b->ceiling && a->isa == b->isa && a->threads == b->threads &&
           a->pages == b->pages && a->set_bytes == b->set_bytes && strcmp(a->unit, b->unit) == 0;
}

struct ceiling_row *calibration_find(const struct calibration *calibration,
                                     const struct ceiling_row *like)
{
    for (size_t i = 0; i < calibration->count; i++)
        if (same_ceiling(&calibration->rows[i], like))
            return &calibration->rows[i];
    return NULL;
}

/* The row for this ceiling, a new one that knows nothing, or NULL when memory is out. */
static struct ceiling_row *find_row(struct calibration *calibration, const struct ceiling_row *like)
{
    struct ceiling_row *row = calibration_find(calibration, like);
    if (row)
        return row;
    if (calibration->count == calibration->room) {
        size_t room = calibration->room ? 2 * calibration->room : 64;
        struct ceiling_row *grown = mem_grow(calibration->rows, room, sizeof *grown);
        if (!grown)
            return NULL;
        calibration->rows = grown;
        calibration->room = room;
    }
    calibration->rows[calibration->count] = *like;
    return &calibration->rows[calibration->count++];
}

enum status calibration_merge(struct calibration *calibration, const struct ceiling_row *found)
{
    struct ceiling_row *row = find_row(calibration, found);
    NEED(row);
    row->per_s = fmax(row->per_s, found->per_s);
    row->spent_ns = fmax(row->spent_ns, found->spent_ns);
    return STATUS_OK;
}

double calibration_best(const struct calibration *calibration, const struct ceiling_row *like)
{
    double best = 0;
    for (size_t i = 0; i < calibration->count; i++) {
        const struct ceiling_row *row = &calibration->rows[i];
        if (row->ceiling == like->ceiling && row->isa <= like->isa &&
            row->threads <= like->threads && row->pages <= like->pages &&
            row->set_bytes >= like->set_bytes && strcmp(row->unit, like->unit) == 0)
            best = fmax(best, row->per_s);
    }
    return best;
}

/* One ceiling as far as it is known, after a look that is as long as it is worth. */
static enum status calibrate_row(struct calibration *calibration, const struct ceiling_row *like,
                                 uint64_t least_ns, double *per_s)
{
    struct ceiling_row *row = find_row(calibration, like);
    struct ground ground;

    NEED(row);
    uint64_t limit_ns = row->per_s > 0 ? LOOK_NS : FIRST_NS;
    if (least_ns == 0 && row->spent_ns >= (double)ENOUGH_NS)
        limit_ns = 0;
    limit_ns = limit_ns > least_ns ? limit_ns : least_ns;
    if (limit_ns) {
        uint64_t bytes = like->set_bytes ? like->set_bytes : BURST_GRAIN * FLOP_GRAINS;
        TRY(ground_open(&ground, like->pages, bytes));
        enum status status = ground_team(&ground, like->threads);
        if (status == STATUS_OK)
            row_look(&ground, row, limit_ns);
        ground_close(&ground);
        TRY(status);
        calibration->changed = true;
    }
    *per_s = calibration_best(calibration, like);
    return STATUS_OK;
}

uint64_t calibration_set(uint64_t set_bytes)
{
    uint64_t unit = SET_LEAST / 16; /* beyond a cache's size a little more is a lot slower */
    set_bytes = set_bytes < SET_LEAST ? SET_LEAST : set_bytes > SET_MOST ? SET_MOST : set_bytes;
    while (unit * 32 <= set_bytes)
        unit *= 2;
    return set_bytes - set_bytes % unit;
}

/* What a CPU multiplies in when it is asked for a precision. */
static enum ceiling flop_of(const char *precision, const struct cpu *cpu)
{
    enum ceiling asked;
    bool has = precision && ceiling_parse(precision, &asked) && ceiling_is_flop(asked) &&
               burst_ways(asked, cpu->isa, cpu)[0];
    return has ? asked : CEILING_FP32;
}

enum status calibrate(struct calibration *calibration, int threads, const char *precision,
                      uint64_t set_bytes, bool again, struct ceilings *out)
{
    const uint64_t least_ns = again ? AGAIN_NS : 0;
    struct cpu cpu;
    if (!optimised)
        FAIL(STATUS_UNSUPPORTED, "a build without optimisation cannot calibrate");
    cpu_detect(&cpu);
    threads = threads > cpu.cores ? cpu.cores : threads;
    *out = (struct ceilings){.threads = threads, .set_bytes = calibration_set(set_bytes)};
    struct ceiling_row like = {
        .ceiling = flop_of(precision, &cpu), .isa = cpu.isa, .threads = threads};
    TRY(calibrate_row(calibration, &like, least_ns, &out->flop_per_s));
    like.pages = PAGES_2M;
    like.set_bytes = out->set_bytes;
    like.ceiling = CEILING_READ;
    TRY(calibrate_row(calibration, &like, least_ns, &out->read_per_s));
    like.ceiling = CEILING_UPDATE;
    return calibrate_row(calibration, &like, least_ns, &out->update_per_s);
}

/* The largest working set of a tour. Getting a gigabyte takes longer than all looks at it: the
 * first tour does. */
static uint64_t most_bytes(const struct cpu *cpu, int number)
{
    uint64_t most = number ? LATER_MOST : SET_MOST, fits = cpu->memory_bytes / 4;
    return fits && fits < most ? fits : most;
}

/* 16 KB, 24 KB, 32 KB, 48 KB … and, where it is all memory and takes long, 128 MB, 256 MB … */
static uint64_t next_set(uint64_t set_bytes)
{
    if (set_bytes >= COARSE_SET)
        return 2 * set_bytes;
    return (set_bytes & (set_bytes - 1)) ? set_bytes / 3 * 4 : set_bytes / 2 * 3;
}

/* The rows of a whole calibration, one after another, on the ground they need. */
struct tour {
    struct calibration *calibration;
    struct ground ground;
    bool (*progress)(double share);
    uint64_t most; /* the largest working set */
    double done, all;
};

static enum status tour_row(struct tour *tour, const struct ceiling_row *like, uint64_t look_ns)
{
    struct ceiling_row *row;
    if (!burst_ways(like->ceiling, like->isa, &tour->ground.cpu)[0])
        return STATUS_OK;
    NEED(row = find_row(tour->calibration, like));
    row_look(&tour->ground, row, look_ns);
    tour->calibration->changed = true;
    if (tour->progress && !tour->progress(tour->done / tour->all))
        FAIL(STATUS_INTERRUPTED, "stopped");
    return STATUS_OK;
}

static enum status tour_peaks(struct tour *tour, int threads)
{
    for (int isa = ISA_SCALAR; isa <= (int)tour->ground.cpu.isa; isa++)
        for (int ceiling = 0; ceiling_is_flop((enum ceiling)ceiling); ceiling++)
            TRY(tour_row(tour,
                         &(struct ceiling_row){.ceiling = (enum ceiling)ceiling,
                                               .isa = (enum isa)isa,
                                               .threads = threads},
                         PEAK_NS));
    return STATUS_OK;
}

/* Between the sizes the peaks are looked at for a moment, and so all the time: two virtual CPUs
 * that share a core for seconds are half as fast together. */
static enum status tour_curves(struct tour *tour, int threads, enum pages pages)
{
    const struct cpu *cpu = &tour->ground.cpu;
    for (uint64_t set = SET_LEAST; set <= tour->most; set = next_set(set), tour->done++) {
        TRY(tour_peaks(tour, threads));
        for (int ceiling = CEILING_READ; ceiling_is_memory((enum ceiling)ceiling); ceiling++)
            TRY(tour_row(tour,
                         &(struct ceiling_row){.ceiling = (enum ceiling)ceiling,
                                               .isa = cpu->isa,
                                               .threads = threads,
                                               .pages = pages,
                                               .set_bytes = set},
                         LOOK_NS));
    }
    return STATUS_OK;
}

/* 1, 2, 4 … and all cores. */
static int next_threads(int threads, int cores)
{
    return threads < cores && 2 * threads > cores ? cores : 2 * threads;
}

static enum status tour_threads(struct tour *tour, int threads, enum pages pages)
{
    TRY(ground_team(&tour->ground, threads));
    enum status status = tour_curves(tour, threads, pages);
    ground_dismiss(&tour->ground);
    return status;
}

/* Once through all rows. */
static enum status tour_walk(struct tour *tour, int cores)
{
    for (int pages = 0; pages < PAGES_COUNT; pages++) {
        enum status status = STATUS_OK;
        TRY(ground_open(&tour->ground, (enum pages)pages, tour->most));
        for (int threads = 1; threads <= cores && status == STATUS_OK;
             threads = next_threads(threads, cores))
            status = tour_threads(tour, threads, (enum pages)pages);
        ground_close(&tour->ground);
        TRY(status);
    }
    return STATUS_OK;
}

/* Several times a short look, seconds apart: a bad moment (another process, two virtual CPUs on one
 * core) lasts longer than a look, and seldom as long as a tour. */
enum status calibrate_all(struct calibration *calibration, bool (*progress)(double share))
{
    enum { TOURS = 3 };
    struct tour tour = {.calibration = calibration, .progress = progress};
    struct cpu cpu;
    if (!optimised)
        FAIL(STATUS_UNSUPPORTED, "a build without optimisation cannot calibrate");
    cpu_detect(&cpu);
    int cores = cpu.cores > POOL_MOST ? POOL_MOST : cpu.cores;
    for (int threads = 1; threads <= cores; threads = next_threads(threads, cores))
        for (int i = 0; i < TOURS; i++)
            for (uint64_t set = SET_LEAST; set <= most_bytes(&cpu, i); set = next_set(set))
                tour.all += PAGES_COUNT;
    for (int i = 0; i < TOURS; i++) {
        tour.most = most_bytes(&cpu, i);
        TRY(tour_walk(&tour, cores));
    }
    return STATUS_OK;
}
