/* record_write.c: a record as its line. The order of members is that of record.h. */
#include "record/names.h"
#include "record/record.h"

#include <math.h>

static void write_text(struct json_writer *writer, const char *key, const char *text)
{
    if (text) {
        json_put_text(writer, key, text);
    }
}

static void write_count(struct json_writer *writer, const char *key, int64_t count)
{
    if (count) {
        json_put_int(writer, key, count);
    }
}

static void write_tree(struct json_writer *writer, const char *key, const struct json *tree)
{
    if (tree) {
        json_put_tree(writer, key, tree);
    }
}

static void write_time(struct json_writer *writer, const struct stats *time)
{
    json_key(writer, "time_ns");
    json_object(writer);
    json_put_real(writer, "min", time->min);
    json_put_real(writer, "median", time->median);
    json_put_real(writer, "mean", time->mean);
    json_put_real(writer, "p90", time->p90);
    json_put_real(writer, "p99", time->p99);
    json_put_real(writer, "ci_low", time->ci_low);
    json_put_real(writer, "ci_high", time->ci_high);
    json_put_int(writer, "count", time->count);
    json_put_int(writer, "per", time->per);
    json_end(writer);
}

static void write_parts(struct json_writer *writer, const struct record_parts *parts)
{
    json_key(writer, "parts_ns");
    json_object(writer);
    json_put_real(writer, "prepare", parts->prepare);
    json_put_real(writer, "forward", parts->forward);
    json_put_real(writer, "backward", parts->backward);
    json_put_real(writer, "communicate", parts->communicate);
    json_put_real(writer, "update", parts->update);
    if (!isnan(parts->scaled))
        json_put_real(writer, "scaled", parts->scaled);
    json_end(writer);
}

static void write_check(struct json_writer *writer, const struct record_check *check)
{
    json_key(writer, "check");
    json_object(writer);
    write_text(writer, "verdict", record_verdicts[check->verdict]);
    if (check->verdict != RECORD_UNCHECKED) {
        write_text(writer, "against", check->against);
        json_put_real(writer, "difference", check->difference);
        json_put_real(writer, "tolerance", check->tolerance);
    }
    write_text(writer, "reason", check->reason);
    json_end(writer);
}

static void write_against(struct json_writer *writer, const struct record_against *against)
{
    if (!against->other)
        return;
    json_key(writer, "against");
    json_object(writer);
    write_text(writer, "other", against->other);
    write_text(writer, "verdict", verdict_name(against->found.verdict));
    write_text(writer, "disturbed", against->disturbed);
    json_put_real(writer, "ratio", against->found.ratio);
    json_put_real(writer, "low", against->found.low);
    json_put_real(writer, "high", against->found.high);
    json_put_int(writer, "rounds", against->found.rounds);
    json_put_int(writer, "instances", against->found.instances);
    json_end(writer);
}

static void write_meters(struct json_writer *writer, const struct record *record)
{
    struct text why = {0};
    json_key(writer, "meters");
    json_object(writer);
    for (size_t i = 0; i < record->meter_count; i++) {
        const struct record_meter *meter = &record->meters[i];
        json_key(writer, meter->name);
        if (!meter->unavailable) {
            json_add_real(writer, meter->value);
            continue;
        }
        text_clear(&why);
        text_printf(&why, "%s%s", record_unavailable, meter->unavailable);
        json_add_text(writer, text_of(&why));
    }
    json_end(writer);
    if (text_done(&why) != STATUS_OK)
        writer->text->failed = true;
    text_free(&why);
}

static void write_result(struct json_writer *writer, const struct record *record)
{
    json_key(writer, "result");
    json_object(writer);
    write_time(writer, &record->time_ns);
    write_parts(writer, &record->parts_ns);
    json_put_real(writer, "start_ns", record->start_ns);
    json_put_real(writer, "throughput", record->throughput);
    json_put_real(writer, "floor_ns", record->floor_ns);
    write_text(writer, "bound", record->bound);
    json_put_real(writer, "times_floor", record->times_floor);
    json_put_real(writer, "best_times_floor", record->best_times_floor);
    if (!isnan(record->times_now))
        json_put_real(writer, "times_now", record->times_now);
    json_put_real(writer, "flop", record->flop);
    json_put_real(writer, "bytes", record->bytes);
    write_count(writer, "parameters", record->parameters);
    write_count(writer, "layers", record->layers);
    write_check(writer, &record->check);
    write_against(writer, &record->against);
    write_meters(writer, record);
    json_end(writer);
    json_key(writer, "samples_ns");
    json_array(writer);
    for (size_t i = 0; i < record->sample_count; i++)
        json_add_real(writer, record->samples_ns[i]);
    json_end(writer);
}

static void write_measured(struct json_writer *writer, const struct record *record)
{
    json_key(writer, "point");
    point_write(&record->point, writer);
    write_text(writer, "status", record_statuses[record->status]);
    write_text(writer, "reason", record->reason);
    write_text(writer, "program", record->program);
    write_text(writer, "goal", record->goal);
    write_text(writer, "handicap", record->handicap);
    json_key(writer, "kernels");
    json_array(writer);
    for (size_t i = 0; i < record->kernel_count; i++)
        json_add_text(writer, record->kernels[i]);
    json_end(writer);
    if (record->status != RECORD_SKIPPED)
        write_result(writer, record);
}

void record_write(const struct record *record, struct text *out)
{
    struct json_writer writer;
    json_begin(&writer, out);
    json_object(&writer);
    json_put_int(&writer, "prony", RECORD_VERSION);
    write_text(&writer, "kind", record_kinds[record->kind]);
    if (record->kind == RECORD_RESULT)
        write_measured(&writer, record);
    write_tree(&writer, "network", record->network);
    write_tree(&writer, "proof", record->proof);
    write_tree(&writer, "profile", record->profile);
    write_tree(&writer, "machine", record->machine);
    write_tree(&writer, "calibration", record->calibration);
    write_tree(&writer, "software", record->software);
    write_text(&writer, "at", record->at);
    json_end(&writer);
}
