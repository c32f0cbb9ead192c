/* optimiser_text.c: the tables of optimisers, schedules and recipes, and how they are read. */
#include "base/text.h"
#include "core/schedule.h"
#include "nn/optimiser.h"
#include "nn/reader.h"

#include <stdio.h>
#include <string.h>

static const struct optimiser_kind kinds[] = {
#define OPTIMISER(name, op, states, fixed, settings, help)                                         \
    {#name, OP_##op, states, fixed, settings, help},
#include "nn/optimisers.def"
#undef OPTIMISER
};

enum { KINDS = sizeof kinds / sizeof *kinds };

const struct optimiser_kind *optimiser_kinds(int32_t *count)
{
    *count = KINDS;
    return kinds;
}

struct optimiser optimiser_usual(void)
{
    struct arguments arguments;
    struct optimiser optimiser = {.kind = &kinds[0]};
    arguments_begin(&arguments, kinds[0].name, kinds[0].settings);
    memcpy(optimiser.values, arguments.values, sizeof optimiser.values);
    return optimiser;
}

double optimiser_value(const struct optimiser *optimiser, const char *setting)
{
    int index = arguments_find(optimiser->kind->settings, setting);
    return index < 0 ? 0 : optimiser->values[index];
}

static const struct recipe_kind recipes[] = {
#define RECIPE(kind, networks, settings, help) {#kind, RECIPE_##kind, networks, settings, help},
#include "nn/recipes.def"
#undef RECIPE
};

const struct recipe_kind *recipe_kinds(int32_t *count)
{
    *count = RECIPE_COUNT;
    return recipes;
}

struct recipe recipe_usual(void)
{
    return (struct recipe){.kind = &recipes[RECIPE_feed_forward]}; /* it has no settings */
}

double recipe_value(const struct recipe *recipe, const char *setting)
{
    int index = arguments_find(recipe->kind->settings, setting);
    return index < 0 ? 0 : recipe->values[index];
}

/* "there is no optimiser 'adm'; there are: sgd, …", names being the first members of rows that are
 * `size` bytes each. */
static enum status unknown_name(struct reader *reader, const char *what, const void *rows,
                                size_t size, int count)
{
    struct text names = {0};
    for (int i = 0; i < count; i++)
        text_printf(&names, "%s%s", i ? ", " : "",
                    *(const char *const *)((const char *)rows + (size_t)i * size));
    enum status status =
        status_fail(STATUS_INPUT, __FILE__, __LINE__, "there is no %s '%s'; there are: %s", what,
                    reader->word, text_of(&names));
    text_free(&names);
    return status_prefix(status, "%s:%d:%d", reader->name, reader->number,
                         (int)(reader->word_at - reader->line) + 1);
}

/* The settings that follow a name. */
static enum status read_settings(struct reader *reader, const char *what, const char *list,
                                 double values[LAYER_VALUES])
{
    struct arguments arguments;
    arguments_begin(&arguments, what, list);
    TRY(reader_next(reader));
    TRY(reader_arguments(reader, &arguments));
    TRY(reader_arguments_end(reader, &arguments));
    memcpy(values, arguments.values, sizeof arguments.values);
    return STATUS_OK;
}

/* Settings of which none may be below 0. */
static enum status read_positive(struct reader *reader, const char *what, const char *list,
                                 double values[LAYER_VALUES])
{
    const char *where = reader->word_at;
    char name[READER_WORD];
    TRY(read_settings(reader, what, list, values));
    for (int i = 0; arguments_name(list, i, name); i++)
        if (!(values[i] >= 0))
            BAD(reader, where, "%s is %g, expected 0 or more", name, values[i]);
    return STATUS_OK;
}

enum status optimiser_read(struct reader *reader, struct optimiser *out)
{
    struct optimiser optimiser = {0};
    TRY(reader_next(reader));
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].name, reader->word))
            optimiser.kind = &kinds[i];
    if (!optimiser.kind)
        return unknown_name(reader, "optimiser", kinds, sizeof *kinds, KINDS);
    const char *where = reader->word_at;
    TRY(read_positive(reader, optimiser.kind->name, optimiser.kind->settings, optimiser.values));
    if (!(optimiser_value(&optimiser, "rate") > 0))
        BAD(reader, where, "rate is 0, expected a number above 0");
    if (arguments_find(optimiser.kind->settings, "epsilon") >= 0 &&
        !((float)optimiser_value(&optimiser, "epsilon") > 0))
        BAD(reader, where, "epsilon is %g, expected a number above 0 that a float can hold",
            optimiser_value(&optimiser, "epsilon"));
    static const char *const shares[] = {"momentum", "smoothing", "beta1", "beta2", "shrink"};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        if (!(optimiser_value(&optimiser, shares[i]) < 1))
            BAD(reader, where, "%s is %g, expected a number below 1", shares[i],
                optimiser_value(&optimiser, shares[i]));
    *out = optimiser;
    return STATUS_OK;
}

enum status schedule_read(struct reader *reader, struct schedule *out)
{
    static const struct {
        const char *name;
        enum schedule_kind kind;
        const char *settings, *factor; /* which of the settings is the factor */
    } schedules[] = {
        {"constant", SCHEDULE_CONSTANT, "warmup=0", ""},
        {"step", SCHEDULE_STEP, "period factor=0.1 warmup=0", "factor"},
        {"cosine", SCHEDULE_COSINE, "period least=0 warmup=0", "least"},
    };
    enum { SCHEDULES = sizeof schedules / sizeof *schedules };
    double values[LAYER_VALUES];
    TRY(reader_next(reader));
    int which = 0;
    while (which < SCHEDULES && strcmp(schedules[which].name, reader->word))
        which++;
    if (which == SCHEDULES)
        return unknown_name(reader, "schedule", schedules, sizeof *schedules, SCHEDULES);
    const char *where = reader->word_at, *settings = schedules[which].settings;
    TRY(read_positive(reader, schedules[which].name, settings, values));
    int warmup = arguments_find(settings, "warmup"), period = arguments_find(settings, "period");
    int factor = arguments_find(settings, schedules[which].factor);
    if (values[warmup] > 1e9 || values[warmup] != (double)(int32_t)values[warmup])
        BAD(reader, where, "warmup is %g, expected a whole number of updates", values[warmup]);
    *out = (struct schedule){
        .kind = (int32_t)schedules[which].kind,
        .warmup = (int32_t)values[warmup],
        .period = period < 0 ? 0 : (int32_t)values[period],
        .factor = factor < 0 ? 0 : values[factor],
    };
    return STATUS_OK;
}

/* Can the recipe be carried out with these values? */
static enum status check_settings(const struct reader *reader, const char *where,
                                  const struct recipe *recipe)
{
    static const struct {
        const char *name;
        double least, most;
        bool whole;
    } rows[] = {{"steps", 1, 1000, true},  {"chains", 0, 1e6, true}, {"pretrain", 0, 1e6, true},
                {"condition", 0, 1, true}, {"beta", 0, 1e6, false},  {"gentle", 1e-9, 1e6, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (arguments_find(recipe->kind->settings, rows[i].name) < 0)
            continue;
        double value = recipe_value(recipe, rows[i].name);
        bool fits = value >= rows[i].least && value <= rows[i].most;
        if (!fits || (rows[i].whole && value != (double)(int32_t)value))
            BAD(reader, where, "%s is %g, expected a %snumber from %g to %g", rows[i].name, value,
                rows[i].whole ? "whole " : "", rows[i].least, rows[i].most);
    }
    if (arguments_find(recipe->kind->settings, "chains") < 0)
        return STATUS_OK;
    double work = recipe_value(recipe, "chains") * recipe_value(recipe, "steps");
    if (work > 1e6) /* an update would take minutes, and cannot be stopped within */
        BAD(reader, where, "chains times steps is %g, expected at most 1e+06 in an update", work);
    return STATUS_OK;
}

enum status recipe_read(struct reader *reader, struct recipe *out)
{
    struct recipe recipe = {0};
    TRY(reader_next(reader));
    for (int i = 0; i < RECIPE_COUNT; i++)
        if (!strcmp(recipes[i].name, reader->word))
            recipe.kind = &recipes[i];
    if (!recipe.kind)
        return unknown_name(reader, "recipe", recipes, sizeof *recipes, RECIPE_COUNT);
    const char *where = reader->word_at;
    TRY(read_settings(reader, recipe.kind->name, recipe.kind->settings, recipe.values));
    TRY(check_settings(reader, where, &recipe));
    *out = recipe;
    return STATUS_OK;
}

/* A flag's value as a line: `adam:beta1=0.9,decay=0.01` has the words of the line
 * `adam beta1=0.9 decay=0.01`, and at the same places. */
enum { FLAG_MOST = 400 };

static enum status flag_begin(struct reader *reader, const char *name, const char *flag,
                              char line[FLAG_MOST])
{
    size_t length = strlen(flag);
    if (length >= FLAG_MOST)
        FAIL(STATUS_INPUT, "%s: found %zu characters, expected at most %d", name, length,
             FLAG_MOST - 1);
    for (size_t i = 0; i < length; i++)
        if (strchr(":,", flag[i]) && (!flag[i + 1] || strchr(":,", flag[i + 1])))
            FAIL(STATUS_INPUT, "%s:1:%zu: found nothing behind '%c', expected setting=value", name,
                 i + 1, flag[i]);
    for (size_t i = 0; i <= length; i++)
        line[i] = (char)(flag[i] == ':' || flag[i] == ',' ? ' ' : flag[i]);
    *reader =
        (struct reader){.name = name, .at = line, .end = line + length, .line = line, .number = 1};
    return STATUS_OK;
}

static enum status flag_end(const struct reader *reader)
{
    if (*reader->word)
        BAD(reader, reader->word_at, "found '%s', expected NAME:setting=value,…", reader->word);
    return STATUS_OK;
}

enum status optimiser_parse(const char *flag, struct optimiser *out)
{
    struct reader reader;
    char line[FLAG_MOST];
    if (!flag || !*flag)
        return STATUS_OK;
    TRY(flag_begin(&reader, "optimiser", flag, line));
    TRY(optimiser_read(&reader, out));
    return flag_end(&reader);
}

enum status schedule_parse(const char *flag, struct schedule *out)
{
    struct reader reader;
    char line[FLAG_MOST];
    if (!flag || !*flag)
        return STATUS_OK;
    TRY(flag_begin(&reader, "schedule", flag, line));
    TRY(schedule_read(&reader, out));
    return flag_end(&reader);
}

enum status recipe_parse(const char *flag, struct recipe *out)
{
    struct reader reader;
    char line[FLAG_MOST];
    if (!flag || !*flag)
        return STATUS_OK;
    TRY(flag_begin(&reader, "recipe", flag, line));
    TRY(recipe_read(&reader, out));
    return flag_end(&reader);
}
