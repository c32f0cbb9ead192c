/* finding_words.c: the words that sentences and commands share. */
#include "finding/finding_inside.h"
#include "record/names.h"

#include <stdio.h>
#include <string.h>

void finding_rests_on(struct finding *finding, const struct store_mark *mark)
{
    for (size_t i = 0; i < finding->id_count; i++)
        if (finding->ids[i] == mark->id)
            return;
    if (finding->id_count < FINDING_IDS)
        finding->ids[finding->id_count++] = mark->id;
}

static bool is_training(const struct finding_about *about)
{
    return strcmp(about->phase, "training") == 0;
}

void finding_add_work(struct text *out, const struct finding_about *about)
{
    text_printf(out, "%s `%s`", is_training(about) ? "training" : "inference of", about->model);
}

const char *finding_verb(const struct finding_about *about)
{
    return is_training(about) ? "trains" : "runs";
}

void finding_capitalise(struct text *text, size_t from)
{
    if (text->length > from && text->data[from] >= 'a' && text->data[from] <= 'z')
        text->data[from] = (char)(text->data[from] - 'a' + 'A');
}

void finding_add_batch(struct text *out, const struct point *point)
{
    text_printf(out, " at batch %lld", (long long)point->batch);
}

void finding_add_manner(struct text *out, const struct point *point)
{
    if (!point_is(point, CHOICE_precision_fp32) && point->precision[0])
        text_printf(out, " in %s", point->precision);
    if (!point_is(point, CHOICE_scenario_iterate) && point->scenario[0])
        text_printf(out, " in scenario %s", point->scenario);
    if (!point_is(point, CHOICE_ingestion_resident) && point->ingestion[0])
        text_printf(out, " with %s ingestion", point->ingestion);
}

void finding_add_cores(struct text *out, const struct finding_about *about,
                       const struct point *point)
{
    if (finding_is_gpu(point) || !point->threads || point->threads >= about->machine.cores)
        return;
    if (point->threads == 1)
        text_add(out, " on one core");
    else
        text_printf(out, " on %lld cores", (long long)point->threads);
}

void finding_add_maker(struct text *out, const struct point *point)
{
    text_printf(out, " with %s", framework_title(point->framework));
}

bool finding_is_gpu(const struct point *point)
{
    return strcmp(point->unit, "gpu") == 0;
}

void finding_add_unit(struct text *out, const struct finding_about *about,
                      const struct point *point)
{
    const char *unit = finding_is_gpu(point) ? "GPU" : "CPU";
    const bool mine = about->machine.here && strcmp(point->server, about->server) == 0;
    char name[TITLE_TEXT] = "";
    if (mine)
        text_printf(out, "your %s", unit);
    else if (finding_is_gpu(point) && point->unit_name[0])
        text_printf(out, "the %s", point->unit_name);
    else if (*title_cpu(point->unit_name, name))
        text_printf(out, "the %s (%s)", unit, name);
    else
        text_printf(out, "the %s of %s", unit, point->server);
}

void finding_add_place(struct text *out, const struct finding_about *about)
{
    if (about->machine.here)
        text_add(out, " on this machine");
    else
        text_printf(out, " on %s", about->server);
}

void finding_begin_command(const char *command, const struct point *point, const char *phase,
                           uint64_t set, struct finding *finding)
{
    bool named = set & FINDING_BIT(framework) && strcmp(point->framework, "prony") != 0;
    snprintf(finding->asks, sizeof finding->asks, "%s", named ? point->framework : "");
    text_clear(&finding->command);
    text_printf(&finding->command, "prony %s ", command);
    text_add_word(&finding->command, point->model);
    text_add(&finding->command, " --phase ");
    text_add_word(&finding->command, phase);
    point_flags(point, set, &finding->command);
    if (set & FINDING_BIT(scenario) && point_is(point, CHOICE_scenario_server))
        text_add(&finding->command, " --bound p99=10ms"); /* without one it is refused */
}

bool finding_add_threads(const struct finding_about *about, struct text *out)
{
    const int64_t cores = about->machine.cores;
    if (cores < 2)
        return false;
    text_add(out, " --threads 1");
    for (int64_t threads = cores >= 32 ? cores / 16 : 2; threads < cores; threads *= 2)
        text_printf(out, ",%lld", (long long)threads);
    text_printf(out, ",%lld", (long long)cores);
    return true;
}

/* Was something of this framework measured on the machine, or was all of it skipped? */
static enum status count_results(const struct finding_about *about, const char *framework,
                                 const char *status, int64_t *out)
{
    const struct store_filter filters[] = {{"framework", framework},
                                           {"server", about->server},
                                           {"source", about->machine.shipped ? "shipped" : "own"},
                                           {"status", status}};
    return store_count(about->store, (struct store_where){filters, 4}, out);
}

enum status finding_add_frameworks(const struct finding_about *about, bool gpu, struct text *out)
{
    const char *const names[] = {"pytorch", gpu ? "jax" : "numpy"};
    text_add(out, " --framework prony");
    for (size_t i = 0; i < 2; i++) {
        int64_t ok, skipped;
        TRY(count_results(about, names[i], "ok", &ok));
        TRY(count_results(about, names[i], "skipped", &skipped));
        if (ok || !skipped)
            text_printf(out, ",%s", names[i]);
    }
    return STATUS_OK;
}
