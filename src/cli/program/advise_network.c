/* advise_network.c: see advise_network.h. */
#include "cli/program/advise_network.h"

#include "advise/own.h"
#include "base/json.h"
#include "base/machine/cpu.h"
#include "bench/sweep/point_job.h"
#include "bench/sweep/request.h"
#include "cli/bench_run.h"
#include "cli/program/prove_network.h"
#include "cli/program/trace_output.h"
#include "cli/screen.h"
#include "cli/table/wrap.h"
#include "nn/network.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS_MOST = 4, AXES = RULES - RULES_OF_TRACES, TRIALS = 32, VALUES = 128 };

/* A change that was taken, and what it promised. */
struct taken {
    struct point before, after;
    const char *change; /* "--threads 2" */
    const char *proof;  /* the line of its proof; NULL: none was asked for */
};

struct advising {
    struct cli *cli;
    const struct network_flags *flags;
    struct arena arena;
    struct point now; /* the configuration as far as changes were taken */
    struct advice advice;
    struct taken taken[ROUNDS_MOST];
    struct text tried; /* "--threads 2: 1.63 ×, …" of the last round */
};

static const struct axis *axis_of(int rule)
{
    return axis_find(rules[rule].axis);
}

/* ---- what can be changed --------------------------------------------------------------------- */

static void add_value(struct text *list, const char *value)
{
    text_printf(list, "%s%s", list->length ? "," : "", value);
}

static void add_number(struct text *list, int64_t number)
{
    text_printf(list, "%s%lld", list->length ? "," : "", (long long)number);
}

/* Powers of two up to the cores, and all of them. */
static void other_threads(const struct advising *now, struct text *out)
{
    struct cpu cpu;
    cpu_detect(&cpu);
    if (strcmp(now->now.unit, "cpu") != 0)
        return;
    for (int64_t threads = 1; threads < cpu.cores; threads *= 2)
        if (threads != now->now.threads)
            add_number(out, threads);
    if (cpu.cores != now->now.threads)
        add_number(out, cpu.cores);
}

static void other_batches(const struct advising *now, struct text *out)
{
    for (int64_t times = 2; times <= 8; times *= 2)
        if (now->now.batch <= TASK_BATCH_MOST / times)
            add_number(out, now->now.batch * times);
}

/* Of the same unit; the reference is not meant to be fast. */
static void other_backends(const struct advising *now, struct text *out)
{
    const struct registry *registry = now->cli->registry;
    for (int i = 0; i < registry->count; i++) {
        const struct backend *backend = registry->list[i].backend;
        if (backend && strcmp(backend->unit, now->now.unit) == 0 &&
            strcmp(backend->name, "ref") != 0 && strcmp(backend->name, now->now.backend) != 0 &&
            backend->probe() == STATUS_OK)
            add_value(out, backend->name);
    }
}

static void other_precisions(const struct advising *now, struct text *out)
{
    const bool cpu = strcmp(now->now.unit, "cpu") == 0;
    if (!point_is(&now->now, CHOICE_precision_fp32) && !point_is(&now->now, CHOICE_precision_tf32))
        return;
    if (!cpu && point_is(&now->now, CHOICE_precision_fp32))
        add_value(out, "tf32");
    add_value(out, "bf16");
    if (cpu && point_is(&now->now, CHOICE_phase_inference))
        add_value(out, "int8");
}

static void other_fusion(const struct advising *now, struct text *out)
{
    if (point_is(&now->now, CHOICE_fusion_off))
        add_value(out, "on");
}

static void other_ingestion(const struct advising *now, struct text *out)
{
    if (point_is(&now->now, CHOICE_ingestion_direct))
        add_value(out, "pinned");
    if (point_is(&now->now, CHOICE_ingestion_direct) ||
        point_is(&now->now, CHOICE_ingestion_pinned))
        add_value(out, "overlapped");
}

static void (*const others[AXES])(const struct advising *now, struct text *out) = {
#define OWN(key, id, axis, word, low, high, title, action)                                         \
    [RULE_own_##key - RULES_OF_TRACES] = other_##key,
#define other_batch other_batches
#define other_backend other_backends
#define other_smaller other_precisions
#include "advise/rules.def"
};

/* ---- measuring ------------------------------------------------------------------------------- */

/* The configuration as flags of a bench, with other values of one axis. */
static enum status ask_bench(struct advising *now, int rule, const char *values,
                             struct bench_request *request)
{
    static const enum axis_index asked[] = {AXIS_phase,     AXIS_precision, AXIS_data,
                                            AXIS_ingestion, AXIS_batch,     AXIS_unit,
                                            AXIS_threads,   AXIS_fusion,    AXIS_backend};
    char number[POINT_NUMBER];
    bench_request_start(request);
    request->seconds = now->flags->seconds;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        const struct axis *axis = &axes[asked[i]];
        const char *own = point_get(&now->now, axis, number);
        const char **text = &request->axis_text[asked[i]];
        if (!*own || !point_applies(&now->now, axis))
            continue;
        NEED(*text = strcmp(axis->key, rules[rule].axis) == 0
                         ? arena_format(&now->arena, "%s,%s", own, values)
                         : arena_text(&now->arena, own));
    }
    return bench_request_sweep(request, &now->flags->network, 1, &now->arena);
}

/* The records of a request with this value of its axis. */
static const struct record *find_record(const struct bench_output *output, const struct point *now,
                                        const struct axis *axis, const char *value)
{
    char number[POINT_NUMBER], other[POINT_NUMBER];
    for (size_t i = 0; i < output->kept_count; i++) {
        const struct record *record = output->kept[i].record;
        bool same = strcmp(point_get(&record->point, axis, number), value) == 0;
        for (int rule = RULES_OF_TRACES; rule < RULES && same; rule++) {
            const struct axis *held = axis_of(rule);
            if (held != axis && point_applies(now, held))
                same = strcmp(point_get(&record->point, held, number),
                              point_get(now, held, other)) == 0;
        }
        if (same)
            return record;
    }
    return NULL;
}

static void say_tried(struct advising *now, const struct own_trial *trial)
{
    struct text *out = &now->tried;
    text_printf(out, "%s--%s %s ", out->length ? ", " : "", rules[trial->rule].axis, trial->value);
    if (trial->gain > 0)
        text_printf(out, "%.2f ×", trial->gain);
    else
        text_add(out,
                 trial->changed && trial->changed->status == RECORD_OK ? "wrong" : "not possible");
}

/* The trials of one request. */
static enum status add_trials(struct advising *now, int rule, const char *values,
                              const struct bench_output *output, struct own_trial *trials,
                              size_t *count)
{
    char own[POINT_NUMBER];
    const struct axis *axis = axis_of(rule);
    const struct record *base =
        find_record(output, &now->now, axis, point_get(&now->now, axis, own));
    for (const char *at = values; *at && *count < TRIALS;) {
        const size_t length = strcspn(at, ",");
        struct own_trial *trial = &trials[*count];
        *trial = (struct own_trial){.rule = (enum rule_key)rule, .base = base};
        NEED(trial->value = arena_bytes(&now->arena, at, length));
        trial->changed = find_record(output, &now->now, axis, trial->value);
        own_weigh(trial);
        say_tried(now, trial);
        ++*count;
        at += length + (at[length] == ',');
    }
    return STATUS_OK;
}

/* Every axis with all its other values, each beside the configuration as it is. */
static enum status measure_round(struct advising *now, struct bench_output *output,
                                 struct own_trial *trials, size_t *count)
{
    struct bench_request requests[AXES], *list[AXES];
    struct text values[AXES] = {{0}};
    int asked[AXES], requested = 0;
    enum status status = STATUS_OK;
    for (int i = 0; i < AXES && status == STATUS_OK; i++) {
        others[i](now, &values[i]);
        if (!values[i].length)
            continue;
        asked[requested] = i;
        list[requested] = &requests[requested];
        status = ask_bench(now, RULES_OF_TRACES + i, text_of(&values[i]), list[requested++]);
    }
    if (status == STATUS_OK && requested)
        status = cli_bench(now->cli, list, requested, output, false);
    if (status == STATUS_WRONG) /* what cannot run, or is wrong, gains nothing */
        status = STATUS_OK;
    text_clear(&now->tried);
    for (int i = 0; i < requested && status == STATUS_OK; i++)
        status = add_trials(now, RULES_OF_TRACES + asked[i], text_of(&values[asked[i]]), output,
                            trials, count);
    for (int i = 0; i < AXES; i++)
        text_free(&values[i]);
    return status;
}

static enum status take(struct advising *now, const struct own_trial *best)
{
    struct taken *taken = &now->taken[now->advice.count - 1];
    taken->before = taken->after = now->now;
    TRY(point_set(&taken->after, axis_of((int)best->rule), best->value));
    NEED(taken->change = arena_format(&now->arena, "--%s %s", rules[best->rule].axis, best->value));
    now->now = taken->after;
    return STATUS_OK;
}

/* One round: is there a change that is worth it? Then it is the base of the next. */
static enum status advise_round(struct advising *now, bool *more)
{
    struct bench_output output = {.style = OUTPUT_KEPT};
    struct own_trial trials[TRIALS];
    const struct own_trial *best = NULL;
    size_t count = 0;
    *more = false;
    enum status status = measure_round(now, &output, trials, &count);
    const struct record *base = count ? trials[0].base : NULL;
    if (status == STATUS_OK && (!base || base->status != RECORD_OK))
        status = status_fail(STATUS_UNSUPPORTED, __FILE__, __LINE__, "it cannot be measured: %s",
                             base && base->reason ? base->reason : "no configuration runs here");
    if (status == STATUS_OK && !now->advice.count)
        now->advice.step_ns = base->time_ns.median;
    if (status == STATUS_OK)
        status = own_take(trials, count, &now->advice, &best);
    if (status == STATUS_OK)
        status = own_bound(best ? best->changed : base, &now->advice);
    if (status == STATUS_OK && best)
        status = take(now, best);
    *more = best != NULL;
    bench_output_close(&output);
    return status;
}

/* ---- what is said ---------------------------------------------------------------------------- */

static enum status prove_all(struct advising *now)
{
    for (size_t i = 0; i < now->advice.count; i++) {
        struct taken *taken = &now->taken[i];
        struct text line = {0};
        const struct finding_of_trace *finding = &now->advice.findings[i];
        const struct prove_promise promise = {.rule = finding->rule->id,
                                              .expected = finding->gain,
                                              .low = finding->low,
                                              .high = finding->high};
        const struct prove_wish wish = {
            .command = now->cli->typed, .store = now->flags->store, .rounds = now->flags->rounds};
        TRY(prove_network(now->cli, &taken->before, &taken->after, taken->change, &wish, &promise,
                          &line));
        taken->proof = arena_text(&now->arena, text_of(&line));
        text_free(&line);
        NEED(taken->proof);
    }
    return STATUS_OK;
}

static enum status print_text(const struct advising *now, const struct point *start)
{
    static const struct trace none;
    struct text out = {0}, title = {0};
    const int width = wrap_screen();
    point_label(start, &title);
    enum status status = advised_text(&none, &now->advice, text_of(&title), width, &out);
    wrap_add(&out, now->advice.count ? "beyond that tried: " : "tried: ", text_of(&now->tried),
             width);
    for (size_t i = 0; i < now->advice.count; i++)
        if (now->taken[i].proof) {
            struct text line = {0};
            text_printf(&line, "%s: %s", now->taken[i].change, now->taken[i].proof);
            wrap_add(&out, "", text_of(&line), width);
            text_free(&line);
        }
    if (status == STATUS_OK)
        status = text_done(&out);
    if (status == STATUS_OK)
        fputs(text_of(&out), stdout);
    text_free(&title);
    text_free(&out);
    return status;
}

static enum status print_json(const struct advising *now, const struct point *start)
{
    static const struct trace none;
    struct text out = {0};
    struct json_writer json;
    json_begin(&json, &out);
    json_object(&json);
    json_key(&json, "point");
    point_write(start, &json);
    json_put_real(&json, "step_ns", now->advice.step_ns);
    advised_json_findings(&json, &none, &now->advice);
    json_key(&json, "changes");
    json_array(&json);
    for (size_t i = 0; i < now->advice.count; i++) {
        json_object(&json);
        json_put_text(&json, "change", now->taken[i].change);
        json_put_text(&json, "proof", now->taken[i].proof);
        json_end(&json);
    }
    json_end(&json);
    json_put_text(&json, "tried", text_of(&now->tried));
    json_put_real(&json, "together", now->advice.together);
    json_put_text(&json, "bound", now->advice.bound);
    json_end(&json);
    text_add(&out, "\n");
    enum status status = text_done(&out);
    if (status == STATUS_OK)
        fputs(text_of(&out), stdout);
    text_free(&out);
    return status;
}

/* The configuration that the flags name. */
static enum status start_point(struct advising *now)
{
    const struct network_flags *flags = now->flags;
    const struct backend *backend;
    const char *name = flags->backend, *unit = flags->unit;
    struct point *point = &now->now;
    const struct {
        int axis;
        const char *value;
    } values[] = {{AXIS_model, flags->network},
                  {AXIS_phase, flags->phase},
                  {AXIS_precision, flags->precision},
                  {AXIS_data, flags->data},
                  {AXIS_ingestion, flags->ingestion}};
    point_start(point);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i].value) {
            if (values[i].axis != AXIS_model)
                TRY(axis_check(&axes[values[i].axis], values[i].value));
            TRY(point_set(point, &axes[values[i].axis], values[i].value));
        }
    TRY(cli_unit(now->cli, unit, &name));
    TRY(name ? registry_find(now->cli->registry, name, &backend)
             : registry_first(now->cli->registry, NULL, &backend));
    TRY(point_set(point, &axes[AXIS_backend], backend->name));
    TRY(point_set(point, &axes[AXIS_unit], backend->unit));
    point->batch = flags->batch;
    point->threads = flags->threads;
    if (flags->no_fusion)
        point_choose(point, CHOICE_fusion_off);
    point_settle(point);
    return STATUS_OK;
}

enum status advise_network(struct cli *cli, const struct network_flags *flags)
{
    struct advising now = {.cli = cli, .flags = flags};
    struct rule_range ranges[RULES];
    struct point start;
    bool more = true;
    TRY(prove_ranges(flags->store, ranges));
    advice_begin(ranges, &now.advice);
    enum status status = start_point(&now);
    start = now.now;
    for (int round = 0; round < ROUNDS_MOST && more && status == STATUS_OK; round++)
        status = advise_round(&now, &more);
    if (status == STATUS_OK && flags->prove)
        status = prove_all(&now);
    if (status == STATUS_OK)
        status = flags->json ? print_json(&now, &start) : print_text(&now, &start);
    text_free(&now.tried);
    advice_free(&now.advice);
    arena_free(&now.arena);
    return status;
}
