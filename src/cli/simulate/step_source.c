/* step_source.c: see step_source.h. */
#include "cli/simulate/step_source.h"

#include "bench/job/task.h"
#include "estimate/calibration_kept.h"
#include "record/facts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Filters that everything that is taken meets, beside those of the wish. */
static const struct store_filter usual[] = {
    {"phase", "training"},     {"framework", "prony"}, {"status", "ok"}, {"workers", "1"},
    {"scenario", "iterate"},   {"data", "synthetic"},  {"origin", ""},   {"fusion", "on"},
    {"ingestion", "resident"}, {"handicap", ""},       {"disturbed", ""}};
enum { USUAL = sizeof usual / sizeof *usual, WISHES = 6 };

struct looking {
    struct arena *arena;
    struct record best, one;
    bool found;
    struct step_source *source;
};

static bool is_alike(const struct record *a, const struct record *b)
{
    return !strcmp(a->point.server, b->point.server) &&
           !strcmp(a->point.unit_name, b->point.unit_name) &&
           !strcmp(a->point.backend, b->point.backend) &&
           !strcmp(a->point.precision, b->point.precision) &&
           !strcmp(a->point.optimiser, b->point.optimiser) && a->point.threads == b->point.threads;
}

static enum status keep_best(void *context, int64_t id, const char *line, size_t length)
{
    struct looking *looking = context;
    TRY(record_read(looking->arena, "the store", (long)id, line, length, &looking->one));
    if (!(looking->one.throughput > 0) ||
        (looking->found && looking->one.throughput <= looking->best.throughput))
        return STATUS_OK;
    looking->best = looking->one;
    looking->found = true;
    return STATUS_OK;
}

/* Takes its time where it is of the best's kind; of one batch the least. */
static enum status keep_time(void *context, int64_t id, const char *line, size_t length)
{
    struct looking *looking = context;
    struct step_source *source = looking->source;
    TRY(record_read(looking->arena, "the store", (long)id, line, length, &looking->one));
    const struct record *one = &looking->one;
    const double seconds = one->time_ns.median / 1e9;
    int at = 0;
    if (!is_alike(one, &looking->best) || !(seconds > 0) || one->point.batch < 1)
        return STATUS_OK;
    while (at < source->count && source->known[at].batch < one->point.batch)
        at++;
    if (at < source->count && source->known[at].batch == one->point.batch) {
        source->known[at].seconds = fmin(source->known[at].seconds, seconds);
        return STATUS_OK;
    }
    if (source->count == STEP_KNOWN)
        return STATUS_OK;
    for (int i = source->count++; i > at; i--)
        source->known[i] = source->known[i - 1];
    source->known[at] = (struct step_known){(int32_t)one->point.batch, seconds};
    return STATUS_OK;
}

static void take_shares(const struct record *record, double shares[PART_COUNT])
{
    const struct record_parts *parts = &record->parts_ns;
    const double values[PART_COUNT] = {
        [PART_PREPARE] = parts->prepare > 0 ? parts->prepare : 0,
        [PART_FORWARD] = parts->forward,
        [PART_BACKWARD] = parts->backward,
        [PART_UPDATE] = parts->update,
    };
    if (!(parts->forward > 0 && parts->backward > 0 && parts->update > 0))
        return;
    for (int part = 0; part < PART_COUNT; part++)
        shares[part] = values[part];
}

static enum status look(struct store *store, const struct step_wish *wish, struct arena *arena,
                        struct step_source *out)
{
    struct looking *looking;
    struct store_filter filters[USUAL + WISHES];
    const struct store_filter wishes[WISHES] = {
        {"model", wish->model},         {"unit", wish->unit},           {"backend", wish->backend},
        {"precision", wish->precision}, {"optimiser", wish->optimiser}, {"server", wish->server}};
    size_t count = USUAL;
    memcpy(filters, usual, sizeof usual);
    for (int i = 0; i < WISHES; i++)
        if (wishes[i].value)
            filters[count++] = wishes[i];
    const struct store_where where = {filters, count};
    NEED(looking = arena_alloc(arena, sizeof *looking));
    *looking = (struct looking){.arena = arena, .source = out};
    TRY(store_list(store, where, 0, 0, keep_best, looking));
    if (!looking->found)
        return STATUS_OK;
    TRY(store_list(store, where, 0, 0, keep_time, looking));
    out->record = looking->best;
    take_shares(&looking->best, out->shares);
    return STATUS_OK;
}

/* This machine, all of its cores, by its ceilings. */
static enum status take_floor(const struct step_wish *wish, struct arena *arena,
                              struct step_source *out)
{
    struct facts facts;
    struct calibration calibration = {0};
    struct record *record = &out->record;
    if (strcmp(wish->unit, "cpu") != 0)
        FAIL(STATUS_INPUT,
             "found no result of training %s on a %s in the store; prony bench %s --phase "
             "training --unit %s --store FILE measures it there",
             wish->model, wish->unit, wish->model, wish->unit);
    facts_find(&facts);
    point_set(&record->point, &axes[AXIS_model], wish->model);
    facts_set_point(&facts, &record->point);
    point_settle(&record->point);
    record->point.threads = facts.cpu.cores;
    TRY(facts_trees(&facts, arena, &record->machine, &record->software));
    TRY(calibration_open(&calibration));
    enum status status =
        calibrate(&calibration, facts.cpu.cores, NULL, (uint64_t)1 << 28, false, &out->ceilings);
    calibration_close(&calibration);
    return status;
}

enum status step_source_find(struct store *store, const struct step_wish *wish, struct arena *arena,
                             struct step_source *out)
{
    *out = (struct step_source){.wish = *wish};
    record_start(&out->record);
    if (store)
        TRY(look(store, wish, arena, out));
    return out->count ? STATUS_OK : take_floor(wish, arena, out);
}

static double floor_seconds(const struct step_source *source, int32_t batch)
{
    const struct task_options options = {.model = source->wish.model,
                                         .phase = PHASE_TRAINING,
                                         .batch = batch,
                                         .optimiser = source->wish.optimiser};
    struct task *task;
    struct floor floor = {.ns = NAN};
    if (task_begin(&options, &task) != STATUS_OK)
        return 0;
    if (!task->refused)
        floor_of(&task->work, &source->ceilings, &floor);
    task_close(task);
    return floor.ns > 0 ? floor.ns / 1e9 : 0;
}

double step_seconds(const void *context, int32_t batch)
{
    const struct step_source *source = context;
    const struct step_known *known = source->known;
    int at = 0;
    if (!source->count)
        return floor_seconds(source, batch);
    while (at < source->count && known[at].batch < batch)
        at++;
    if (at < source->count && known[at].batch == batch)
        return known[at].seconds;
    if (at == source->count)
        return known[at - 1].seconds * batch / known[at - 1].batch;
    if (at > 0 || source->count > 1) {
        const struct step_known *low = &known[at > 0 ? at - 1 : 0], *high = low + 1;
        const double slope = (high->seconds - low->seconds) / (high->batch - low->batch);
        const double line = low->seconds + slope * (batch - low->batch);
        if (line > low->seconds * batch / (low->batch > batch ? low->batch : batch))
            return line;
    }
    return known[at].seconds * batch / known[at].batch;
}

void step_source_tell(const struct step_source *source, struct text *out)
{
    const struct point *point = &source->record.point;
    if (!source->count) {
        text_printf(out,
                    "computing: not measured, so the least time that this CPU allows is taken; "
                    "prony bench %s --store FILE measures it",
                    source->wish.model);
        return;
    }
    text_printf(out, "computing: measured on %s (%s, %s",
                *point->unit_name ? point->unit_name : point->unit, point->backend,
                point->precision);
    if (point->threads > 0)
        text_printf(out, ", %d thread%s", (int)point->threads, point->threads == 1 ? "" : "s");
    text_add(out, ") at batch");
    for (int i = 0; i < source->count; i++)
        text_printf(out, "%s%d", i ? ", " : " ", source->known[i].batch);
    text_add(out, "; other batches in proportion to these");
}
