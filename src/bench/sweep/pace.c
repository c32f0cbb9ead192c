/* pace.c: see pace.h. */
#include "bench/sweep/pace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What is usual for a framework, where no record of this machine says more. */
struct usual {
    const char *name; /* of a framework, of a backend of ours, or of any other on a GPU */
    double start_s;
    double share;      /* of a thread's FLOP/s that it reaches in a large network … */
    double flop_per_s; /* … or its own rate; 0: the share counts */
    double call_s;     /* what an iteration of the smallest network takes */
};
static const struct usual table[] = {
    {"simd", 0.02, 0.7, 0, 2e-7},
    {"blas", 1.3, 0.5, 0, 1e-5},
    {"ref", 0.01, 0, 1e9, 2e-7},
    {"python-list", 0.13, 0, 3.2e7, 2e-5},
    {"python-array", 0.13, 0, 1e7, 2e-5},
    {"numpy", 0.7, 0.4, 0, 3e-5},
    {"go", 0.4, 0, 4e9, 1e-5},
    {"fann", 0.13, 0, 1e9, 1e-6},
    {"onednn", 1.3, 0.5, 0, 1e-5},
    {"onnxruntime", 1.5, 0.5, 0, 1e-5},
    {"pytorch", 2.5, 0.5, 0, 1e-4},
    {"jax", 4, 0.4, 0, 1e-4},
    {"cuda", 0.5, 0, 1e13, 1e-5},
    {"other", 1, 0.3, 0, 1e-4},
};
static const double THREAD_FLOP = 5e10, BYTES_PER_S = 1e10; /* where nothing is calibrated */

static bool on_gpu(const struct point *point)
{
    return strcmp(point->unit, "gpu") == 0;
}

/* Who computes, as the table calls it. */
static const char *name_of(const struct point *point)
{
    return on_gpu(point)                            ? "cuda"
           : strcmp(point->framework, "prony") == 0 ? point->backend
                                                    : point->framework;
}

static const struct usual *usual_of(const struct point *point)
{
    const char *name = name_of(point);
    const size_t last = sizeof table / sizeof *table - 1;
    for (size_t i = 0; i < last; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return &table[last];
}

/* Where starts of this framework on this unit are gathered; NULL: nowhere yet. */
static const struct pace_start *find_start(const struct pace *pace, const struct point *point)
{
    for (int i = 0; i < pace->start_count; i++)
        if (strcmp(pace->starts[i].framework, point->framework) == 0 &&
            strcmp(pace->starts[i].unit, point->unit) == 0)
            return &pace->starts[i];
    return NULL;
}

/* Ours depend on the network more than on the machine. */
static void learn_start(struct pace *pace, const struct record *record)
{
    const struct point *point = &record->point;
    const struct pace_start *known = find_start(pace, point);
    if (!(record->start_ns > 0) || strcmp(point->framework, "prony") == 0 ||
        strlen(point->framework) >= sizeof known->framework ||
        strlen(point->unit) >= sizeof known->unit || (!known && pace->start_count == PACE_KNOWN))
        return;
    struct pace_start *start = &pace->starts[known ? known - pace->starts : pace->start_count++];
    if (!known)
        *start = (struct pace_start){.count = 0};
    snprintf(start->framework, sizeof start->framework, "%.63s", point->framework);
    snprintf(start->unit, sizeof start->unit, "%.7s", point->unit);
    start->sum_log_s += log(record->start_ns * 1e-9);
    start->count++;
}

/* What an iteration usually takes: its call, and its work. */
static double usual_call_s(const struct point *point)
{
    return usual_of(point)->call_s;
}

static double usual_work_s(const struct point *point, double flop, double bytes, double thread,
                           double cores)
{
    const struct usual *usual = usual_of(point);
    const double threads = on_gpu(point) ? 1 : fmin(fmax((double)point->threads, 1), cores);
    const double per_s =
        usual->flop_per_s > 0 ? usual->flop_per_s : usual->share * thread * threads;
    return fmax(flop / per_s, on_gpu(point) ? 0 : bytes / BYTES_PER_S);
}

static const struct pace_rate *find_rate(const struct pace *pace, const struct point *point)
{
    for (int i = 0; i < pace->rate_count; i++)
        if (strcmp(pace->rates[i].name, name_of(point)) == 0 &&
            strcmp(pace->rates[i].unit, point->unit) == 0)
            return &pace->rates[i];
    return NULL;
}

/* A disturbed result says what others did. */
static void learn_rate(struct pace *pace, const struct record *record)
{
    const struct point *point = &record->point;
    const struct pace_rate *known = find_rate(pace, point);
    const double call = usual_call_s(point),
                 work = usual_work_s(point, fmax(record->flop, 0), fmax(record->bytes, 0),
                                     THREAD_FLOP, HUGE_VAL);
    const double taken = record_work_ns(record) * 1e-9;
    if (!(taken > 0) || !(call + work > 0) || *record_disturbed(record) ||
        strlen(name_of(point)) >= sizeof known->name || strlen(point->unit) >= sizeof known->unit ||
        (!known && pace->rate_count == PACE_KNOWN))
        return;
    struct pace_rate *rate = &pace->rates[known ? known - pace->rates : pace->rate_count++];
    if (!known)
        *rate = (struct pace_rate){.count = {0}};
    snprintf(rate->name, sizeof rate->name, "%.63s", name_of(point));
    snprintf(rate->unit, sizeof rate->unit, "%.7s", point->unit);
    rate->sum_log[work > call] += log(taken / (call + work));
    rate->count[work > call]++;
}

void pace_learn(struct pace *pace, const struct record *record, const char *server)
{
    static const double TIGHT = 0.01; /* as cli/bench_run.c asks for */
    const struct stats *time = &record->time_ns;
    if (record->kind != RECORD_RESULT || record->status != RECORD_OK ||
        strcmp(json_text(record->machine, "server", ""), server) != 0)
        return;
    learn_start(pace, record);
    learn_rate(pace, record);
    if (isnan(time->ci_high) || !(time->median > 0))
        return;
    pace->timed++;
    pace->tight += (time->ci_high - time->ci_low) / 2 <= TIGHT * time->median;
}

static double start_s(const struct pace *pace, const struct point *point)
{
    const struct pace_start *known = find_start(pace, point);
    return known && known->count ? exp(known->sum_log_s / known->count) : usual_of(point)->start_s;
}

static double flop_of(const struct task *task)
{
    return task ? (double)(task->work.forward.flop + task->work.backward.flop) : 0;
}

static double bytes_of(const struct task *task)
{
    return task ? (double)(task->work.forward.bytes + task->work.backward.bytes) : 0;
}

/* How many times longer work takes while others want the CPU too. */
static double crowded(const struct pace_plan *plan)
{
    return fmax(plan->crowd, 1);
}

/* As results of this machine have it, else as is usual. */
static double iteration_s(const struct pace *pace, const struct pace_plan *plan,
                          const struct task *task, const struct point *point)
{
    const double flop = flop_of(task), bytes = bytes_of(task), call = usual_call_s(point);
    const double thread = plan->fp32_per_s > 0 ? plan->fp32_per_s : THREAD_FLOP;
    const double here = usual_work_s(point, flop, bytes, THREAD_FLOP, plan->cores);
    const struct pace_rate *rate = find_rate(pace, point);
    const double crowd = on_gpu(point) ? 1 : crowded(plan);
    if (rate && rate->count[here > call])
        return crowd * (call + here) * exp(rate->sum_log[here > call] / rate->count[here > call]);
    return crowd * (call + usual_work_s(point, flop, bytes, thread, plan->cores));
}

/* As task_choose_check and reference.c have it: how many steps, by whom, how often. */
static double check_steps(const struct task *task)
{
    static const double CHEAP = 5e7;
    return flop_of(task) < CHEAP ? 3 : task && task->phase == PHASE_TRAINING ? 2 : 1;
}

static double reference_s(const struct pace_plan *plan, const struct task *task)
{
    static const double EXACT = 5e8, EXACT_PER_S = 1e9, FAST_SHARE = 0.4;
    const double thread = plan->fp32_per_s > 0 ? plan->fp32_per_s : THREAD_FLOP;
    const double flop = flop_of(task) * check_steps(task);
    if (!task || !task->network)
        return 0;
    if (flop <= EXACT)
        return 6 * flop / EXACT_PER_S;
    const double fast =
        flop / (FAST_SHARE * thread) + bytes_of(task) * check_steps(task) / BYTES_PER_S;
    return fmin(3 * fast / plan->cores, plan->patience);
}

/* How much of the time is used: all of it, unless every contender is known well before. */
static double timing_s(const struct pace *pace, const struct pace_plan *plan, double iteration,
                       int count)
{
    enum { BELIEVED = 4 }; /* results without which half of them are tight */
    const double tight = (pace->tight + BELIEVED / 2.0) / (pace->timed + BELIEVED);
    const double least = fmin(plan->seconds / 2, 0.5), all = pow(tight, count);
    if (iteration > plan->seconds)
        return 2 * iteration;
    return fmax(all * least + (1 - all) * plan->seconds, 8 * iteration);
}

static double passes_s(const struct pace_plan *plan, double iteration)
{
    static const double PASSES = 0.15;
    return plan->counts ? PASSES + fmin(3 * iteration, 1) : 0;
}

/* Not checked where that takes too long. */
static double check_s(const struct pace_plan *plan, const struct task *task, double iteration)
{
    const double seconds = check_steps(task) * iteration;
    return seconds <= plan->patience ? seconds : 0;
}

static bool does_run(const struct pace_plan *plan, const struct point *point)
{
    return !plan->runs || plan->runs(plan->context, point);
}

double pace_group(const struct pace *pace, const struct pace_plan *plan, const struct task *task,
                  const struct point *points, int count)
{
    double seconds = 0;
    int running = 0;
    for (int i = 0; i < count; i++)
        running += does_run(plan, &points[i]);
    if (running && !(plan->trainings > 0))
        seconds = crowded(plan) * reference_s(plan, task);
    for (int i = 0; i < count; i++) {
        const double iteration = iteration_s(pace, plan, task, &points[i]);
        if (!does_run(plan, &points[i]))
            continue;
        if (plan->trainings > 0) {
            seconds += plan->trainings * plan->patience / 4;
            continue;
        }
        seconds += crowded(plan) * start_s(pace, &points[i]) + 2 * iteration;
        seconds += check_s(plan, task, iteration);
        seconds += timing_s(pace, plan, iteration, running) + passes_s(plan, iteration);
    }
    return seconds;
}

double pace_correct(double seconds, double planned, double taken)
{
    static const double BELIEVED_S = 3; /* of planned time, before experience weighs more */
    return seconds * (taken + BELIEVED_S) / (planned + BELIEVED_S);
}
