/* accuracy.c: see accuracy.h. Both forms, in fp32 and in the precision, predict the same rows. In 8
 * bits the second is what prony quantise makes, with ranges from the data. */
#include "bench/check/accuracy.h"

#include "base/memory.h"
#include "base/text.h"
#include "library/prony_inside.h"
#include "nn/formats/saved.h"
#include "nn/network.h"

#include <math.h>
#include <string.h>

enum { SAMPLES_MOST = 64, SAMPLES_LEAST = 2, OUTPUTS_MOST = 1 << 20 };
static const double SAMPLES_FLOP = 2e10; /* of random samples, at most */

struct accuracy_kept {
    const char *key;
    struct accuracy found;
    struct accuracy_kept *next;
};

/* Two forms of a network, and the rows that both are asked about. */
struct forms {
    const struct point *point;
    const struct accuracy_options *options;
    struct prony *real, *small; /* real NULL: there is no fp32 form; both may be the same */
    struct prony_data *data;
    bool labelled; /* the data says what is right */
};

/* What one form says. */
struct said {
    const struct prony_data *data;
    int64_t right, asked;
    float *outputs; /* the first of them, or NULL */
    int64_t count;
};

static bool is_saved(const char *model)
{
    return !network_built_in(model) && saved_is(model);
}

bool accuracy_is_trained(const char *model)
{
    return !network_built_in(model) && (saved_is(model) || network_onnx_end(model));
}

static enum status open_form(const struct point *point, const char *precision, struct prony **out)
{
    const struct prony_options options = {
        .backend = point->backend, .threads = (int)point->threads, .precision = precision};
    return (enum status)(is_saved(point->model) ? prony_open_saved(point->model, &options, out)
                                                : prony_open(point->model, &options, out));
}

static enum status open_random(struct forms *forms, struct prony *network)
{
    const double most = SAMPLES_FLOP / fmax(forms->options->flop, 1);
    const int64_t rows = (int64_t)fmin(fmax(most, SAMPLES_LEAST), SAMPLES_MOST);
    const struct prony_data_options options = {.network = network};
    struct arena arena = {0};
    const char *name = arena_format(&arena, "synthetic:%lldx%lld", (long long)rows,
                                    (long long)prony_inputs(network));
    enum status status =
        name ? (enum status)prony_data_open(name, &options, &forms->data) : STATUS_MEMORY;
    arena_free(&arena);
    return status;
}

static enum status open_data(struct forms *forms)
{
    struct prony *network = forms->real ? forms->real : forms->small;
    const char *name = forms->options->data ? forms->options->data : network->model.data;
    const struct prony_data_options options = {.network = network};
    if (!name)
        return forms->options->outputs ? open_random(forms, network) : STATUS_OK;
    forms->labelled = true;
    return (enum status)prony_data_open(name, &options, &forms->data);
}

/* The file's own 8 bits, 8 bits made here, or another type. */
static enum status open_small(struct forms *forms)
{
    const struct point *point = forms->point;
    const struct prony_quantising how = {.rows = forms->labelled ? 0 : SAMPLES_MOST};
    if (forms->small || !forms->data)
        return STATUS_OK;
    if (point_is(point, CHOICE_precision_fp32)) {
        forms->small = forms->real;
        return STATUS_OK;
    }
    if (!point_is(point, CHOICE_precision_int8))
        return open_form(point, point->precision, &forms->small);
    return (enum status)prony_quantise(forms->real, forms->data, &how, NULL, NULL, &forms->small);
}

static enum status open_forms(struct forms *forms)
{
    struct prony *first = NULL;
    TRY(open_form(forms->point, NULL, &first));
    if (first->network->quantised ||
        (point_is(forms->point, CHOICE_precision_int8) && network_integers(first->network)))
        forms->small = first;
    else
        forms->real = first;
    TRY(open_data(forms));
    return open_small(forms);
}

static void close_forms(struct forms *forms)
{
    if (forms->small != forms->real)
        prony_close(forms->small);
    prony_close(forms->real);
    prony_data_close(forms->data);
}

static int hear(void *context, const struct prony_prediction *said)
{
    struct said *all = context;
    for (int64_t i = 0; i < said->rows; i++) {
        const int64_t row = said->list ? (int64_t)said->list[i] : said->first + i;
        const int32_t *classes = prony_data_classes(all->data, row);
        for (int32_t k = 0; classes && said->classes && k < said->places; k++) {
            all->right += said->classes[i * said->places + k] == classes[k];
            all->asked++;
        }
    }
    int64_t more = said->rows * said->width;
    more = more < OUTPUTS_MOST - all->count ? more : OUTPUTS_MOST - all->count;
    if (all->outputs && more > 0)
        memcpy(all->outputs + all->count, said->outputs, (size_t)more * sizeof *all->outputs);
    all->count += all->outputs ? more : 0;
    return PRONY_OK;
}

static enum status ask(const struct forms *forms, struct prony *network, struct said *out)
{
    *out = (struct said){.data = forms->data};
    if (forms->options->outputs && forms->real && forms->real != forms->small)
        NEED(out->outputs = mem_array(OUTPUTS_MOST, sizeof *out->outputs));
    return (enum status)prony_predict_test(network, forms->data, hear, out);
}

static double share_of(const struct said *said)
{
    return said->asked ? (double)said->right / (double)said->asked : (double)NAN;
}

static double error_of(const struct said *real, const struct said *small)
{
    double most = 0, off = 0;
    for (int64_t i = 0; i < real->count && i < small->count; i++) {
        most = fmax(most, fabs((double)real->outputs[i]));
        off = fmax(off, fabs((double)real->outputs[i] - (double)small->outputs[i]));
    }
    return real->count && most > 0 ? off / most : (double)NAN;
}

/* Is the data what the file was made with? */
static bool is_own(const struct forms *forms)
{
    const char *own = forms->small->model.data, *asked = forms->options->data;
    return own && (!asked || strcmp(own, asked) == 0);
}

static enum status compare_forms(const struct forms *forms, struct accuracy *out)
{
    struct said real = {0}, small = {0};
    enum status status = ask(forms, forms->small, &small);
    if (status == STATUS_OK && forms->real && forms->real != forms->small)
        status = ask(forms, forms->real, &real);
    if (status == STATUS_OK) {
        const double kept = forms->small->model.accuracy;
        double before = forms->real ? share_of(&real) : (double)NAN;
        if (!forms->real && kept > 0 && is_own(forms))
            before = kept;
        out->share = forms->labelled ? share_of(&small) : (double)NAN;
        out->lost = before - out->share;
        out->error = error_of(&real, &small);
        if (forms->labelled && !small.asked)
            out->why = "the data has no classes";
    }
    mem_free(real.outputs);
    mem_free(small.outputs);
    return status;
}

static enum status find(const struct point *point, const struct accuracy_options *options,
                        struct accuracy *out)
{
    struct forms forms = {.point = point, .options = options};
    enum status status = open_forms(&forms);
    if (status == STATUS_OK && forms.data && forms.small)
        status = compare_forms(&forms, out);
    close_forms(&forms);
    return status;
}

enum status accuracy_find(struct accuracies *all, const struct point *point,
                          const struct accuracy_options *options, struct accuracy *out)
{
    struct accuracy_kept *kept = all->kept;
    const char *key;
    NEED(key = arena_format(&all->arena, "%s\n%s\n%s\n%s", point->model, point->backend,
                            point->precision, options->data ? options->data : ""));
    while (kept && strcmp(kept->key, key) != 0)
        kept = kept->next;
    if (!kept) {
        NEED(kept = arena_alloc(&all->arena, sizeof *kept));
        *kept = (struct accuracy_kept){
            .key = key, .found = {(double)NAN, (double)NAN, (double)NAN, NULL}, .next = all->kept};
        all->kept = kept;
        enum status status = find(point, options, &kept->found);
        if (status == STATUS_MEMORY || status == STATUS_INTERRUPTED)
            return status;
        if (status != STATUS_OK)
            NEED(kept->found.why = arena_text(&all->arena, status_message()));
    }
    *out = kept->found;
    return STATUS_OK;
}

void accuracies_free(struct accuracies *all)
{
    arena_free(&all->arena);
    all->kept = NULL;
}
