/* course.c: see course.h. Only the table knows which settings there are. */
#include "train/course.h"

#include "base/text.h"
#include "train/workers/agree.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* A setting by its type; numbers are whole or not. */
static const struct setting {
    const char *name, *key;
    size_t offset, bytes;
    bool whole;
    double usual, low, high;
} settings[] = {
#define PRONY_COURSE(type, name, key, usual, low, high, otherwise, meaning, help)                  \
    {#name, #key, offsetof(struct course, key), sizeof(type), (type)0.5 == 0, usual, low, high},
#include "prony_settings.def"
};

enum { SETTINGS = sizeof settings / sizeof *settings };

static double get(const struct course *course, const struct setting *setting)
{
    const void *value = (const char *)course + setting->offset;
    if (!setting->whole)
        return *(const double *)value;
    return setting->bytes == sizeof(int32_t) ? *(const int32_t *)value
                                             : (double)*(const int64_t *)value;
}

static void set(struct course *course, const struct setting *setting, double number)
{
    void *value = (char *)course + setting->offset;
    if (!setting->whole)
        *(double *)value = number;
    else if (setting->bytes == sizeof(int32_t))
        *(int32_t *)value = (int32_t)number;
    else
        *(int64_t *)value = (int64_t)number;
}

static bool is_within(const struct setting *setting, double value)
{
    return value >= setting->low && value <= setting->high;
}

void course_settle(struct course *course)
{
    for (int i = 0; i < SETTINGS; i++)
        if (get(course, &settings[i]) == 0)
            set(course, &settings[i], settings[i].usual);
}

enum status course_check(const struct course *course)
{
    for (int i = 0; i < SETTINGS; i++) {
        const struct setting *setting = &settings[i];
        const double value = get(course, setting);
        if (value != 0 && !is_within(setting, value))
            FAIL(STATUS_INPUT, "%s: found %.15g, expected %.15g to %.15g, or 0: as usual",
                 setting->name, value, setting->low, setting->high);
    }
    return STATUS_OK;
}

void course_write_wide(struct json_writer *writer, const char *key, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, number);
    json_put_text(writer, key, text);
}

void course_write(const struct course *course, struct json_writer *writer)
{
    for (int i = 0; i < SETTINGS; i++) {
        const double value = get(course, &settings[i]);
        if (settings[i].whole)
            json_put_int(writer, settings[i].key, (int64_t)value);
        else
            json_put_real(writer, settings[i].key, value);
    }
    course_write_wide(writer, "data", course->data);
    json_put_int(writer, "epoch", course->epoch);
    json_put_int(writer, "step", course->step);
    json_put_real(writer, "loss_sum", course->score.loss_sum);
    json_put_real(writer, "right_sum", course->score.right_sum);
    json_put_int(writer, "samples", course->score.samples);
    json_put_int(writer, "best_epoch", course->best_epoch);
    json_put_real(writer, "best_loss", course->best_loss);
    json_put_int(writer, "stopped", course->stopped);
}

void course_tell(const struct course *course, struct text *facts)
{
    char what[64];
    for (int i = 0; i < SETTINGS; i++) {
        snprintf(what, sizeof what, "the setting %s", settings[i].name);
        agree_fact(facts, what, "%.15g", get(course, &settings[i]));
    }
    agree_fact(facts, "the epochs done", "%" PRId64, course->epoch);
    agree_fact(facts, "the steps done", "%" PRId64, course->step);
    agree_fact(facts, "the best epoch", "%" PRId64, course->best_epoch);
}

bool course_read_wide(const struct json *object, const char *key, uint64_t *out)
{
    return text_to_uint(json_text(object, key, ""), out);
}

static bool read_setting(const struct json *object, const struct setting *setting,
                         struct course *course)
{
    const double missing = json_get(object, setting->key) ? -1 : 0;
    const double value = setting->whole ? (double)json_int(object, setting->key, (int64_t)missing)
                                        : json_real(object, setting->key, missing);
    const bool sound = is_within(setting, value) || (value == 0 && setting->usual == 0);
    if (sound)
        set(course, setting, value);
    return sound;
}

bool course_read(const struct json *object, struct course *course)
{
    for (int i = 0; i < SETTINGS; i++)
        if (!read_setting(object, &settings[i], course))
            return false;
    course->epoch = json_int(object, "epoch", -1);
    course->step = json_int(object, "step", -1);
    course->score.loss_sum = json_real(object, "loss_sum", (double)NAN);
    course->score.right_sum = json_real(object, "right_sum", (double)NAN);
    course->score.samples = json_int(object, "samples", 0);
    course->best_epoch = json_int(object, "best_epoch", -1);
    course->best_loss = json_real(object, "best_loss", (double)NAN);
    course->stopped = json_int(object, "stopped", 0) != 0;
    return course_read_wide(object, "data", &course->data) &&
           course->test_share + course->validate_share < 1 && course->epoch >= 0 &&
           course->step >= 0 && course->best_epoch >= 0 && isfinite(course->score.loss_sum) &&
           isfinite(course->score.right_sum) && course->score.samples >= 0;
}
