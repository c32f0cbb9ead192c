/* quality.c: see quality.h. */
#include "cli/show/quality.h"

#include "base/memory.h"
#include "base/plain.h"
#include "base/text.h"
#include "cli/screen.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CLASSES_SHOWN = 32, NAME_SHOWN = 16, TARGETS_SHOWN = 8 };

enum status quality_open(struct quality *quality, const struct prony *network,
                         const struct prony_data *data)
{
    const size_t count = (size_t)prony_classes(network);
    *quality = (struct quality){.network = network,
                                .data = data,
                                .class_count = (int32_t)count,
                                .targets = prony_data_targets(data)};
    if (count && prony_data_classes(data, 0))
        NEED(quality->cells = mem_array(count * count, sizeof *quality->cells));
    if (prony_data_numbers(data, 0))
        NEED(quality->numbers = mem_array((size_t)quality->targets, sizeof *quality->numbers));
    return STATUS_OK;
}

void quality_close(struct quality *quality)
{
    mem_free(quality->cells);
    mem_free(quality->numbers);
    mem_free(quality->is);
    *quality = (struct quality){0};
}

static int64_t row_of(const struct prony_prediction *prediction, int64_t index)
{
    return prediction->list ? (int64_t)prediction->list[index] : prediction->first + index;
}

static void add_classes(struct quality *quality, const struct prony_prediction *prediction)
{
    const int32_t *said = prediction->classes;
    for (int64_t row = 0; row < prediction->rows; row++) {
        const int32_t *is = prony_data_classes(quality->data, row_of(prediction, row));
        for (int32_t i = 0; i < prediction->places; i++, said++) {
            quality->cells[is[i] * quality->class_count + *said]++;
            quality->right += is[i] == *said;
            quality->answers++;
        }
    }
}

static enum status add_numbers(struct quality *quality, const struct prony_prediction *prediction)
{
    const float *said = prediction->outputs;
    const int32_t targets = quality->targets;
    if (quality->rows + prediction->rows > quality->room) {
        const int64_t room = 2 * quality->room + prediction->rows;
        float *is = mem_grow(quality->is, (size_t)room, (size_t)targets * sizeof *is);
        NEED(is);
        quality->is = is;
        quality->room = room;
    }
    for (int64_t row = 0; row < prediction->rows; row++, quality->rows++) {
        const float *is = prony_data_numbers(quality->data, row_of(prediction, row));
        for (int32_t i = 0; i < targets; i++, said++) {
            const double off = (double)*said - (double)is[i];
            quality->numbers[i].squares += off * off;
            quality->numbers[i].off += fabs(off);
            quality->is[quality->rows * targets + i] = is[i];
        }
    }
    return STATUS_OK;
}

enum status quality_add(struct quality *quality, const struct prony_prediction *prediction)
{
    if (quality->cells && prediction->classes && quality->targets == prediction->places)
        add_classes(quality, prediction);
    else if (quality->numbers && !prediction->classes && quality->targets == prediction->width)
        return add_numbers(quality, prediction);
    return STATUS_OK;
}

bool quality_known(const struct quality *quality)
{
    return quality->answers || quality->rows;
}

static void print_name(const char *name, int width, bool left)
{
    char shown[NAME_SHOWN + 1];
    plain_copy(shown, sizeof shown, name);
    printf(left ? "%-*s" : "%*s", width, shown);
}

/* Rows that are of the class, and rows that were said to be. */
static void count_class(const struct quality *quality, int32_t class, int64_t *is, int64_t *said)
{
    *is = *said = 0;
    for (int32_t i = 0; i < quality->class_count; i++) {
        *is += quality->cells[class * quality->class_count + i];
        *said += quality->cells[i * quality->class_count + class];
    }
}

/* A share, or "-" where there is nothing to share. */
static void print_share(int64_t part, int64_t whole)
{
    if (whole)
        printf("  %7.1f %%", 100 * (double)part / (double)whole);
    else
        printf("  %9s", "-");
}

/* Precision: of those that were said to be of the class, how many are. Recall: of those that are,
 * how many were found. F1: their harmonic mean. */
static void print_classes(const struct quality *quality)
{
    printf("\n%-*s  %9s  %9s  %9s  %8s\n", NAME_SHOWN, "class", "precision", "recall", "F1",
           "rows");
    for (int32_t i = 0; i < quality->class_count; i++) {
        const int64_t right = quality->cells[i * quality->class_count + i];
        int64_t is, said;
        count_class(quality, i, &is, &said);
        print_name(prony_class(quality->network, i), NAME_SHOWN, true);
        print_share(right, said);
        print_share(right, is);
        print_share(2 * right, is + said);
        printf("  %8" PRId64 "\n", is);
    }
}

/* The width that the columns of the confusion need. */
static int confusion_width(const struct quality *quality)
{
    enum { LEAST = 4, MOST = 8 };
    const int32_t count = quality->class_count;
    int width = LEAST;
    for (int32_t i = 0; i < count * count; i++) {
        const int digits = snprintf(NULL, 0, " %" PRId64, quality->cells[i]);
        width = digits > width ? digits : width;
    }
    for (int32_t i = 0; i < count; i++) {
        const size_t length = strlen(prony_class(quality->network, i)) + 1;
        width = length > (size_t)width ? (length < MOST ? (int)length : MOST) : width;
    }
    return width;
}

/* Rows: what it is. Columns: what was said. Not shown where it would be too wide. */
static void print_confusion(const struct quality *quality)
{
    const int32_t count = quality->class_count;
    const int width = confusion_width(quality);
    char shown[NAME_SHOWN];
    if (NAME_SHOWN + count * width > screen_width(stdout))
        return;
    printf("\n%-*s", NAME_SHOWN, "is \\ said");
    for (int32_t i = 0; i < count; i++) {
        plain_copy(shown, (size_t)width, prony_class(quality->network, i));
        printf("%*s", width, shown);
    }
    printf("\n");
    for (int32_t i = 0; i < count; i++) {
        print_name(prony_class(quality->network, i), NAME_SHOWN, true);
        for (int32_t k = 0; k < count; k++)
            printf("%*" PRId64, width, quality->cells[i * count + k]);
        printf("\n");
    }
}

static void print_classified(const struct quality *quality, const char *word)
{
    int32_t frequent = 0;
    int64_t most = 0, is, said;
    for (int32_t i = 0; i < quality->class_count; i++) {
        count_class(quality, i, &is, &said);
        if (is > most) {
            most = is;
            frequent = i;
        }
    }
    if (quality->class_count <= CLASSES_SHOWN) {
        print_confusion(quality);
        print_classes(quality);
    }
    char name[NAME_SHOWN + 1];
    plain_copy(name, sizeof name, prony_class(quality->network, frequent));
    printf("\nbaseline: %.1f %% by always saying %s, the most frequent class\n",
           100 * (double)most / (double)quality->answers, name);
    printf("%saccuracy %.1f %%\n", word, 100 * (double)quality->right / (double)quality->answers);
}

/* One target: what is said off what is right; the same of always saying the mean of what was learnt
 * (of these rows where that is not known), and of always saying these rows' own. */
struct target_sums {
    struct quality_number said, learnt, own;
    bool same; /* all rows are */
};

static struct target_sums sum_target(const struct quality *quality, int32_t target)
{
    struct target_sums out = {.said = quality->numbers[target], .same = true};
    const float *is = quality->is + target;
    double mean = 0, learnt = prony_target_mean(quality->network, target);
    for (int64_t row = 0; row < quality->rows; row++) {
        mean += (double)is[row * quality->targets] / (double)quality->rows;
        out.same &= is[row * quality->targets] == is[0];
    }
    learnt = isfinite(learnt) ? learnt : mean;
    for (int64_t row = 0; row < quality->rows; row++) {
        const double value = (double)is[row * quality->targets];
        out.own.squares += (value - mean) * (value - mean);
        out.learnt.squares += (value - learnt) * (value - learnt);
        out.learnt.off += fabs(value - learnt);
    }
    return out;
}

/* R²: 1 where all is said right, 0 where it is as good as the rows' own mean. */
static double explain(const struct target_sums *sums, const struct quality_number *number)
{
    return 1 - number->squares / sums->own.squares;
}

static const char *target_name(const struct quality *quality, int32_t target)
{
    const char *name = prony_target(quality->network, target);
    return name ? name : "number";
}

static void print_target(const struct quality *quality, int32_t target,
                         const struct target_sums *sums)
{
    const double rows = (double)quality->rows;
    printf("\n");
    print_name(target_name(quality, target), NAME_SHOWN, true);
    printf("  %12s  %15s\n", "network", "always the mean");
    printf("%-*s  %12.6g  %15.6g\n", NAME_SHOWN, "RMSE", sqrt(sums->said.squares / rows),
           sqrt(sums->learnt.squares / rows));
    printf("%-*s  %12.6g  %15.6g\n", NAME_SHOWN, "MAE", sums->said.off / rows,
           sums->learnt.off / rows);
    if (quality->targets > 1 && !sums->same)
        printf("%-*s  %12.4g  %15.4g\n", NAME_SHOWN + 1, "R²", explain(sums, &sums->said),
               explain(sums, &sums->learnt));
}

/* "test R² 0.870"; where no two rows differ there is nothing to explain. */
static void print_numbers(const struct quality *quality, const char *word)
{
    double explained = 0;
    int32_t told = 0;
    for (int32_t i = 0; i < quality->targets; i++) {
        const struct target_sums sums = sum_target(quality, i);
        if (i < TARGETS_SHOWN)
            print_target(quality, i, &sums);
        if (!sums.same)
            explained += explain(&sums, &sums.said);
        told += !sums.same;
    }
    if (told)
        printf("\n%sR² %.3f%s\n", word, explained / told,
               quality->targets == 1      ? ""
               : told == quality->targets ? ", the mean of all targets"
                                          : ", the mean of the targets whose rows differ");
    else if (quality->rows == 1)
        printf("\n%sR² –: there is one row only\n", word);
    else
        printf("\n%sR² –: all %" PRId64 " rows have the same %s\n", word, quality->rows,
               quality->targets == 1 ? target_name(quality, 0) : "numbers");
}

void quality_print(const struct quality *quality, const char *word)
{
    if (quality->answers)
        print_classified(quality, word);
    else if (quality->rows)
        print_numbers(quality, word);
}

static int take_rows(void *context, const struct prony_prediction *prediction)
{
    return (int)quality_add(context, prediction);
}

enum status quality_test(struct prony *network, const struct prony_data *data,
                         const struct prony_score *score)
{
    struct quality quality = {0};
    enum status status;
    TRY_OR(done, quality_open(&quality, network, data));
    TRY_OR(done, prony_test(network, take_rows, &quality));
    if (quality_known(&quality))
        quality_print(&quality, "test ");
    else if (score->accuracy >= 0)
        printf("test accuracy %.1f %%\n", 100 * score->accuracy);
    else
        printf("test loss %.6g\n", score->loss);
done:
    quality_close(&quality);
    return status;
}
