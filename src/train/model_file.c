/* model_file.c: a model in a safetensors file, its metadata as JSON texts; and in an ONNX file. */
#include "train/model_rounded.h"

#include "base/memory.h"
#include "base/text.h"
#include "core/pass/quantise.h"
#include "nn/formats/saved.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NOTE_NETWORK SAVED_NETWORK
#define NOTE_LOSS "loss"
#define NOTE_RECIPE "recipe"
#define NOTE_CLASSES "classes"
#define NOTE_NORMALISATION "normalisation"
#define NOTE_TRAINING "training"
#define NOTE_COLUMNS "columns"
#define NOTE_TARGETS "targets"
#define NOTE_DATA "data"
#define NOTE_ACCURACY "accuracy_fp32"
#define NOTE_WEIGHT_BITS "weight_bits"

enum { NOTES_MOST = 12 };

static void add_floats(struct json_writer *writer, const char *key, const float *values, int count)
{
    json_key(writer, key);
    json_array(writer);
    for (int i = 0; i < count; i++)
        json_add_float(writer, values[i]);
    json_end(writer);
}

static void add_same(struct json_writer *writer, const char *key, float value, int64_t count)
{
    json_key(writer, key);
    json_array(writer);
    for (int64_t i = 0; i < count; i++)
        json_add_float(writer, value);
    json_end(writer);
}

/* Without a scaling, one that changes nothing. */
static void write_normalisation(const struct model *model, struct text *out)
{
    const struct scaling *scaling = &model->scaling;
    int64_t inputs = shape_count(&model->network->input);
    struct json_writer writer;
    json_begin(&writer, out);
    json_object(&writer);
    if (scaling->columns) {
        add_floats(&writer, "mean", scaling->mean, scaling->columns);
        add_floats(&writer, "scale", scaling->scale, scaling->columns);
    } else {
        add_same(&writer, "mean", 0, inputs);
        add_same(&writer, "scale", 1, inputs);
    }
    json_end(&writer);
}

/* The scale of what is learnt, where it has one. */
static void write_targets(const struct model *model, struct text *out)
{
    const struct scaling *targets = &model->targets;
    struct json_writer writer;
    if (!targets->columns)
        return;
    json_begin(&writer, out);
    json_object(&writer);
    add_floats(&writer, "mean", targets->mean, targets->columns);
    add_floats(&writer, "scale", targets->scale, targets->columns);
    if (model->target_means)
        add_floats(&writer, "learnt_mean", model->target_means, targets->columns);
    json_end(&writer);
}

static void write_classes(const struct model *model, struct text *out)
{
    struct json_writer writer;
    json_begin(&writer, out);
    json_array(&writer);
    for (int32_t i = 0; i < model->class_count; i++)
        json_add_text(&writer, model->classes[i]);
    json_end(&writer);
}

static void write_training(const struct model *model, const struct course *course, struct text *out)
{
    const struct control *control = &model->params.control;
    struct json_writer writer;
    json_begin(&writer, out);
    json_object(&writer);
    json_put_text(&writer, "optimiser", model->optimiser);
    json_put_text(&writer, "schedule", model->schedule);
    json_put_real(&writer, "rate", control->rate);
    course_write_wide(&writer, "seed", control->seed);
    course_write(course, &writer);
    json_end(&writer);
}

/* The notes of a file; those that are empty are left out. */
struct notes {
    struct text classes, normalisation, training, columns, targets, quantised, accuracy;
    struct safetensors_note list[NOTES_MOST];
    size_t count;
};

static void add_note(struct notes *notes, const char *key, const char *value)
{
    notes->list[notes->count++] = (struct safetensors_note){key, value};
}

static enum status add_text(struct notes *notes, const char *key, struct text *text)
{
    TRY(text_done(text));
    if (text->length)
        add_note(notes, key, text_of(text));
    return STATUS_OK;
}

static enum status write_notes(const struct model *model, const struct course *course,
                               struct notes *notes)
{
    write_classes(model, &notes->classes);
    write_normalisation(model, &notes->normalisation);
    if (model->columns)
        columns_write(model->columns, &notes->columns);
    write_targets(model, &notes->targets);
    if (course)
        write_training(model, course, &notes->training);
    add_note(notes, NOTE_NETWORK, model->network->text);
    add_note(notes, NOTE_LOSS, loss_name(model->loss));
    TRY(add_text(notes, NOTE_CLASSES, &notes->classes));
    TRY(add_text(notes, NOTE_NORMALISATION, &notes->normalisation));
    add_note(notes, NOTE_RECIPE, model->recipe);
    TRY(add_text(notes, NOTE_COLUMNS, &notes->columns));
    TRY(add_text(notes, NOTE_TARGETS, &notes->targets));
    if (model->network->quantised)
        quantisation_write(model->network->quantised, &notes->quantised);
    TRY(add_text(notes, SAVED_QUANTISED, &notes->quantised));
    if (model->data)
        add_note(notes, NOTE_DATA, model->data);
    if (model->used_to_bits)
        add_note(notes, NOTE_WEIGHT_BITS,
                 model->used_to_bits == 8   ? "8"
                 : model->used_to_bits == 4 ? "4"
                                            : "2");
    if (model->accuracy > 0)
        text_printf(&notes->accuracy, "%.9g", model->accuracy);
    TRY(add_text(notes, NOTE_ACCURACY, &notes->accuracy));
    return add_text(notes, NOTE_TRAINING, &notes->training);
}

static void free_notes(struct notes *notes)
{
    text_free(&notes->classes);
    text_free(&notes->normalisation);
    text_free(&notes->training);
    text_free(&notes->columns);
    text_free(&notes->targets);
    text_free(&notes->quantised);
    text_free(&notes->accuracy);
}

enum status model_save(struct model *model, const struct course *course, const char *path)
{
    struct notes notes = {0};
    if (model->part)
        FAIL(STATUS_INPUT,
             "%s: found a network that learnt together with others, loaded from %s; expected one "
             "that learnt alone; export writes it as ONNX",
             path, model->network->name);
    TRY(params_fill_new(&model->params));
    TRY(engine_download(&model->engine, &model->params));
    enum status status = write_notes(model, course, &notes);
    if (status == STATUS_OK)
        status = safetensors_write(path, &model->params,
                                   course ? SAFETENSORS_CHECKPOINT : SAFETENSORS_WEIGHTS,
                                   notes.list, notes.count);
    free_notes(&notes);
    return status;
}

static enum status refuse_note(const struct safetensors *file, const char *key)
{
    FAIL(STATUS_INPUT, "%s: found no '%s' in its metadata, expected a file that prony train wrote",
         file->name, key);
}

/* A note that is JSON. */
static enum status read_note(const struct safetensors *file, const char *key, struct arena *arena,
                             struct json **out)
{
    const char *note = safetensors_note(file, key);
    if (!note)
        return refuse_note(file, key);
    char *name;
    NEED(name = arena_format(arena, "%s, metadata '%s'", file->name, key));
    return json_parse(arena, name, note, strlen(note), out);
}

static enum status read_classes(struct model *model, const struct safetensors *file)
{
    struct json *list;
    TRY(read_note(file, NOTE_CLASSES, &model->arena, &list));
    if (list->kind != JSON_ARRAY)
        FAIL(STATUS_INPUT, "%s: found classes that are no list", file->name);
    const char **classes;
    int32_t count = 0;
    NEED(classes = arena_array(&model->arena, list->count + 1, sizeof *classes));
    for (const struct json *name = list->first; name; name = name->next) {
        if (name->kind != JSON_STRING)
            FAIL(STATUS_INPUT, "%s: found a class that is no text", file->name);
        classes[count++] = name->string;
    }
    model->classes = classes;
    model->class_count = count;
    return STATUS_OK;
}

static enum status read_floats(const struct safetensors *file, const struct json *list, float *out,
                               int32_t count)
{
    if (!list || list->kind != JSON_ARRAY || list->count != (size_t)count)
        FAIL(STATUS_INPUT, "%s: found a normalisation of %zu columns, expected %d", file->name,
             list && list->kind == JSON_ARRAY ? list->count : 0, count);
    for (const struct json *item = list->first; item; item = item->next) {
        if (item->kind != JSON_NUMBER || !isfinite((float)item->number))
            FAIL(STATUS_INPUT, "%s: found a normalisation that holds no number", file->name);
        *out++ = (float)item->number;
    }
    return STATUS_OK;
}

static enum status read_normalisation(struct model *model, const struct safetensors *file,
                                      int64_t numbers, struct scaling *out)
{
    struct json *object;
    int32_t columns = (int32_t)numbers;
    TRY(read_note(file, NOTE_NORMALISATION, &model->arena, &object));
    scaling_free(out);
    TRY(scaling_alloc(columns, out));
    TRY(read_floats(file, json_get(object, "mean"), out->mean, columns));
    return read_floats(file, json_get(object, "scale"), out->scale, columns);
}

/* How the columns of a table become features; a file without the note knows of none. */
static enum status read_columns(struct model *model, const struct safetensors *file)
{
    const char *note = safetensors_note(file, NOTE_COLUMNS), *name;
    const int64_t inputs = shape_count(&model->network->input);
    struct columns *columns = NULL;
    model->columns = NULL;
    if (!note)
        return STATUS_OK;
    NEED(name = arena_format(&model->arena, "%s, metadata '" NOTE_COLUMNS "'", file->name));
    TRY(columns_read(&model->arena, name, note, &columns));
    if (columns_width(columns) != inputs)
        FAIL(STATUS_INPUT, "%s: found columns that make %lld features, expected %lld", name,
             (long long)columns_width(columns), (long long)inputs);
    model->columns = columns;
    return STATUS_OK;
}

/* What always saying the mean would say; a file of an older prony does not know. */
static enum status read_target_means(struct model *model, const struct safetensors *file,
                                     const struct json *means)
{
    const int32_t columns = model->targets.columns;
    model->target_means = NULL;
    if (!means)
        return STATUS_OK;
    NEED(model->target_means =
             arena_array(&model->arena, (size_t)columns, sizeof *model->target_means));
    return read_floats(file, means, model->target_means, columns);
}

/* The scale of what was learnt; a file without the note has none. */
static enum status read_targets(struct model *model, const struct safetensors *file)
{
    struct scaling *targets = &model->targets;
    int64_t outputs;
    struct json *object;
    scaling_free(targets);
    if (!safetensors_note(file, NOTE_TARGETS))
        return STATUS_OK;
    TRY(read_note(file, NOTE_TARGETS, &model->arena, &object));
    TRY(network_outputs(model->network, &outputs));
    if (outputs > DATASET_COLUMNS_MOST)
        FAIL(STATUS_INPUT, "%s: found a scale of %lld outputs", file->name, (long long)outputs);
    TRY(scaling_alloc((int32_t)outputs, targets));
    TRY(read_floats(file, json_get(object, "mean"), targets->mean, targets->columns));
    TRY(read_floats(file, json_get(object, "scale"), targets->scale, targets->columns));
    TRY(read_target_means(model, file, json_get(object, "learnt_mean")));
    for (int32_t i = 0; i < targets->columns; i++)
        if (!(targets->scale[i] > 0))
            FAIL(STATUS_INPUT,
                 "%s: found a scale of %g in '" NOTE_TARGETS "', expected one above 0", file->name,
                 (double)targets->scale[i]);
    return STATUS_OK;
}

/* A file without the note has the network's own loss. */
static enum status read_loss(struct model *model, const struct safetensors *file)
{
    const char *name = safetensors_note(file, NOTE_LOSS);
    if (name && !loss_parse(name, &model->loss))
        FAIL(STATUS_INPUT, "%s: found the loss '%s', expected one that this prony knows",
             file->name, name);
    return STATUS_OK;
}

/* A file without the note has the network's own recipe. */
static enum status read_recipe(struct model *model, const struct safetensors *file)
{
    const char *recipe = safetensors_note(file, NOTE_RECIPE);
    if (recipe)
        NEED(model->recipe = arena_text(&model->arena, recipe));
    return STATUS_OK;
}

/* How it was trained, and which data it is good at. A file must not say which files are read: names
 * of data sets only. */
static enum status read_data(struct model *model, const struct safetensors *file)
{
    const char *data = safetensors_note(file, NOTE_DATA);
    const char *accuracy = safetensors_note(file, NOTE_ACCURACY);
    double share;
    const char *bits = safetensors_note(file, NOTE_WEIGHT_BITS);
    int64_t number = 0;
    model->data = NULL;
    model->accuracy = 0;
    model->used_to_bits = 0;
    if (bits && text_to_int(bits, &number) && (number == 8 || number == 4 || number == 2))
        model->used_to_bits = (int32_t)number;
    if (!data || strchr(data, ':') || !dataset_built_in(data))
        return STATUS_OK;
    NEED(model->data = arena_text(&model->arena, data));
    if (accuracy && text_to_real(accuracy, &share) && share > 0 && share <= 1)
        model->accuracy = share;
    return STATUS_OK;
}

/* The first line in which two texts differ; *at is where it begins in `text`. */
static int differing_line(const char *text, const char *other, const char **at)
{
    int line = 1;
    *at = text;
    for (; *text && *text == *other; text++, other++)
        if (*text == '\n') {
            *at = text + 1;
            line++;
        }
    return line;
}

static enum status check_network(const struct model *model, const struct safetensors *file)
{
    const char *text = safetensors_note(file, NOTE_NETWORK), *at;
    if (!text)
        return refuse_note(file, NOTE_NETWORK);
    if (!text_equal(text, model->network->text)) {
        enum { SHOWN = 60 };
        int line = differing_line(text, model->network->text, &at);
        size_t length = strcspn(at, "\n");
        FAIL(STATUS_INPUT,
             "%s: found the weights of another network (line %d is '%.*s'), expected weights of "
             "%s: name their network, or train this one",
             file->name, line, (int)(length < SHOWN ? length : SHOWN), at, model->network->name);
    }
    return STATUS_OK;
}

/* Whether inputs lie between 0 and 1 follows from the recipe. */
static enum status take_unit(struct model *model)
{
    struct recipe_traits traits;
    TRY(model_traits(model, &traits));
    model->scaling.unit = traits.unit;
    return STATUS_OK;
}

/* Does the file hold what the network has learnt together with others? */
static bool holds_part(const struct model *model, const struct safetensors *file)
{
    const char *text = safetensors_note(file, NOTE_NETWORK);
    return model->network->part_of.text && text && text_equal(text, model->network->part_of.text);
}

/* The network's own among the weights of several; its classes are nobody's. */
static enum status load_part(struct model *model, const struct safetensors *file)
{
    struct recipe_traits traits;
    struct text prefix = {0};
    int64_t numbers = shape_count(&model->network->input);
    model->part = true;
    TRY(read_loss(model, file));
    TRY(model_traits(model, &traits));
    model->scaling.unit = traits.unit;
    if (traits.inner) /* the data's scale is that of what it gives */
        TRY(network_outputs(model->network, &numbers));
    TRY(read_normalisation(model, file, numbers, traits.inner ? &model->returns : &model->scaling));
    text_printf(&prefix, "%s.", model->network->part_of.name);
    enum status status = text_done(&prefix);
    if (status == STATUS_OK)
        status = params_fill_new(&model->params);
    if (status == STATUS_OK)
        status = safetensors_load_part(file, text_of(&prefix), &model->params);
    text_free(&prefix);
    return status;
}

/* Weights of another framework have no notes: what the model was opened with stays. */
static enum status load(struct model *model, const struct safetensors *file)
{
    model->part = false;
    if (holds_part(model, file))
        return load_part(model, file);
    if (safetensors_note(file, NOTE_NETWORK)) {
        TRY(check_network(model, file));
        TRY(read_loss(model, file));
        TRY(read_classes(model, file));
        TRY(read_normalisation(model, file, shape_count(&model->network->input), &model->scaling));
        TRY(read_recipe(model, file));
        TRY(read_columns(model, file));
        TRY(read_targets(model, file));
        TRY(read_data(model, file));
        TRY(model_declare_learnt(model)); /* which may depend on these */
        TRY(take_unit(model));
    }
    TRY(params_fill_new(&model->params)); /* or they would be taken for new ones, later */
    TRY(safetensors_load(file, SAFETENSORS_WEIGHTS, &model->params));
    TRY(quantise_check(&model->params, file->name));
    int32_t chains = rbm_chains(model->network, &model->params); /* it generates from there on */
    return chains < 0 ? STATUS_OK : safetensors_load_entry(file, &model->params, chains);
}

enum status model_check_numbers(const struct model *model, const char *path)
{
    const struct params *params = &model->params;
    for (int32_t i = 0; i < params->count; i++) {
        const struct entry *entry = &params->entries[i];
        const float *values = params_data(params, i);
        bool weights = entry->dtype == DTYPE_F32 &&
                       (entry->role == ROLE_PARAM || entry->role == ROLE_STATISTIC);
        for (int64_t k = 0; weights && k < shape_count(&entry->shape); k++)
            if (isnan(values[k]) || (isinf(values[k]) && !model->network->given_count))
                FAIL(STATUS_WRONG,
                     "%s: found weights that are %s in '%s', expected numbers: their training "
                     "diverged; train again from the start with a lower --rate",
                     path, isnan(values[k]) ? "no numbers" : "infinite", entry->name);
    }
    return STATUS_OK;
}

enum status model_load(struct model *model, const char *path)
{
    struct safetensors file = {0};
    enum status status;
    model_change(model);
    TRY_OR(done, engine_detach(&model->engine, &model->params));
    TRY_OR(done, safetensors_open(path, &file));
    TRY_OR(done, load(model, &file));
    TRY_OR(done, model_check_numbers(model, path));
    status = model_round(model);
done:
    safetensors_close(&file);
    return status;
}

enum status model_read_course(struct model *model, const struct safetensors *file,
                              struct course *course)
{
    struct control *control = &model->params.control;
    struct json *object;
    TRY(check_network(model, file));
    TRY(read_loss(model, file));
    TRY(read_recipe(model, file));
    TRY(read_note(file, NOTE_TRAINING, &model->arena, &object));
    TRY(read_data(model, file));
    if (model->used_to_bits != model->weight_bits)
        FAIL(
            STATUS_INPUT,
            "%s: found a training with weights of %d bits, expected --precision int8 --weight-bits "
            "%d again (0: neither of both)",
            file->name, model->used_to_bits, model->used_to_bits);
    NEED(model->optimiser = arena_text(&model->arena, json_text(object, "optimiser", "")));
    NEED(model->schedule = arena_text(&model->arena, json_text(object, "schedule", "")));
    control->rate = json_real(object, "rate", -1);
    if (!course_read_wide(object, "seed", &control->seed) || !(control->rate >= 0) ||
        !course_read(object, course))
        FAIL(STATUS_INPUT, "%s: found a training in its metadata that cannot be resumed: %s",
             file->name, safetensors_note(file, NOTE_TRAINING));
    return STATUS_OK;
}
