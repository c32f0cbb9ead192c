/* find.c: data sets by name or path: shipped in the program, fetched into the user's folder,
 * random, a file whose first bytes say what it is, a folder with the files of MNIST. */
#include "base/embed.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/dataset.h"
#include "data/made.h"
#include "data/stream.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The CSV files of datasets/, as CMakeLists.txt embeds them */
extern const struct embedded dataset_files[];

enum { SHIPPED_MOST = 64, NAME_ROOM = 64 };

bool dataset_unlabelled(const struct dataset_options *options)
{
    return options->label && text_equal(options->label, "none");
}

/* Data whose labels are known takes no word about them, but that they are not wanted. */
static enum status check_known(const char *name, const struct dataset_options *options)
{
    if ((options->label && !dataset_unlabelled(options)) || options->labels)
        FAIL(STATUS_INPUT, "%s: found --label%s, but its labels are known", name,
             options->labels ? "s" : "");
    return STATUS_OK;
}

static const struct embedded *find_shipped(const char *name)
{
    for (const struct embedded *file = dataset_files; file->name; file++)
        if (text_starts(file->name, name) && text_equal(file->name + strlen(name), ".csv"))
            return file;
    return NULL;
}

static enum status refuse_name(const char *name)
{
    char names[SHIPPED_MOST][NAME_ROOM];
    const char *candidates[SHIPPED_MOST] = {"mnist"};
    size_t count = 1;
    for (const struct embedded *file = dataset_files; file->name && count < SHIPPED_MOST; file++) {
        snprintf(names[count], NAME_ROOM, "%.*s", (int)strcspn(file->name, "."), file->name);
        candidates[count] = names[count];
        count++;
    }
    const char *nearest = text_nearest(name, candidates, count);
    if (nearest)
        FAIL(STATUS_INPUT, "there is no data set and no file '%s'; did you mean '%s'?", name,
             nearest);
    FAIL(STATUS_INPUT,
         "there is no data set and no file '%s'; expected a CSV, IDX or NPY file, iris, digits, "
         "mnist, ring:ROWS, adding:ROWSxSTEPS or synthetic:ROWSxCOLUMNS",
         name);
}

/* CSV text, which the reader cuts fields out of: text[length] is a NUL. */
static enum status read_csv(const char *name, char *text, size_t length,
                            const struct dataset_options *options, struct dataset **out)
{
    size_t memory = dataset_memory(options);
    if (options->labels)
        FAIL(STATUS_INPUT,
             "%s: found CSV and --labels %s, expected the labels as a column (--label COLUMN)",
             name, options->labels);
    if (!length)
        FAIL(STATUS_INPUT, "%s:1:1: found nothing, expected rows of comma-separated numbers", name);
    if (length > memory / 2) /* text and floats are there at once */
        FAIL(STATUS_INPUT,
             "%s: found %zu bytes of CSV, expected at most half of %zu, since CSV is read whole; "
             "--memory allows more, NPY files are streamed",
             name, length, memory);
    return dataset_parse_csv(name, text, length, options, out);
}

static enum status read_shipped(const char *name, const struct embedded *file,
                                const struct dataset_options *options, struct dataset **out)
{
    struct text text = {0};
    text_add_bytes(&text, file->bytes, file->length);
    enum status status = text_done(&text);
    if (status == STATUS_OK)
        status = read_csv(name, text.data, text.length, options, out);
    text_free(&text);
    return status;
}

static enum status read_input(const char *name, const struct dataset_options *options,
                              struct dataset **out)
{
    struct text text = {0};
    enum status status = file_read(name, dataset_memory(options) / 2, &text);
    if (status == STATUS_OK)
        status = read_csv(name, text.data, text.length, options, out);
    text_free(&text);
    return status;
}

static enum status read_file(const char *path, const struct dataset_options *options,
                             struct dataset **out)
{
    struct blob blob = {0};
    enum status status = blob_open(path, dataset_memory(options), &blob);
    bool is_array = status == STATUS_OK &&
                    (array_is_npy(blob.bytes, blob.held) || array_is_idx(blob.bytes, blob.held));
    if (is_array && options->label && !dataset_unlabelled(options))
        status = status_fail(STATUS_INPUT, __FILE__, __LINE__,
                             "%s: found no columns with names, expected --labels FILE, not --label",
                             path);
    else if (is_array)
        status = dataset_from_arrays(path, &path, &options->labels, 1, &blob, options, out);
    else if (status == STATUS_OK)
        status = read_csv(path, (char *)blob.bytes, blob.length, options, out);
    blob_close(&blob);
    return status;
}

/* "FOLDER/NAME", or that with ".gz", in the arena; NULL in *out when there is neither. */
static enum status find_member(struct arena *arena, const char *folder, const char *name,
                               const char **out)
{
    static const char *const endings[] = {"", ".gz"};
    *out = NULL;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const char *path = arena_format(arena, "%s/%s%s", folder, name, endings[i]);
        NEED(path);
        if (file_exists(path)) {
            *out = path;
            break;
        }
    }
    return STATUS_OK;
}

/* The test files may be missing; of a pair there must be both. */
static enum status find_members(struct arena *arena, const char *folder, const char *remedy,
                                const char **features, const char **labels, int *parts)
{
    static const char *const names[STREAM_PARTS][2] = {
        {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
        {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
    };
    for (*parts = 0; *parts < STREAM_PARTS; ++*parts) {
        const char **images = &features[*parts], **classes = &labels[*parts];
        TRY(find_member(arena, folder, names[*parts][0], images));
        TRY(find_member(arena, folder, names[*parts][1], classes));
        if (*parts && !*images && !*classes)
            break;
        if (!*images || !*classes)
            FAIL(STATUS_INPUT, "%s: found no file %s (or .gz), expected the files of MNIST%s",
                 folder, names[*parts][*images != NULL], remedy);
    }
    return STATUS_OK;
}

static enum status read_folder(const char *name, const char *folder, const char *remedy,
                               const struct dataset_options *options, struct dataset **out)
{
    struct arena arena = {0};
    const char *features[STREAM_PARTS], *labels[STREAM_PARTS];
    int parts;
    TRY(check_known(name, options));
    enum status status = find_members(&arena, folder, remedy, features, labels, &parts);
    if (status == STATUS_OK)
        status = dataset_from_arrays(name, features, labels, parts, NULL, options, out);
    arena_free(&arena);
    return status;
}

static enum status read_mnist(const struct dataset_options *options, struct dataset **out)
{
    struct text folder = {0};
    enum status status = file_data_folder(&folder);
    text_add(&folder, "/mnist");
    if (status == STATUS_OK)
        status = text_done(&folder);
    if (status == STATUS_OK)
        status =
            read_folder("mnist", folder.data, "; tools/setup mnist fetches them", options, out);
    text_free(&folder);
    return status;
}

/* Labels are numbers of classes, which must be those that are known. */
static enum status check_classes(const struct dataset *dataset,
                                 const struct dataset_options *options)
{
    bool same = !options->class_count || dataset->class_count == options->class_count;
    for (int32_t i = 0; same && i < options->class_count; i++)
        same = text_equal(dataset->classes[i], options->classes[i]);
    if (!same)
        FAIL(STATUS_INPUT, "%s: found %d classes of its own, expected those of the network: '%s' …",
             dataset->name, dataset->class_count, options->classes[0]);
    return STATUS_OK;
}

/* Before it is made: so many rows of so many numbers, labels included. */
static enum status check_made(const char *name, long long rows, long long numbers,
                              const struct dataset_options *options)
{
    double bytes = (double)rows * (double)numbers * sizeof(float), memory;
    memory = (double)dataset_memory(options);
    if (bytes > memory)
        FAIL(STATUS_INPUT,
             "%s: found %.1f MB of numbers to make, expected at most the %.1f MB that data may "
             "take: fewer rows, or --memory",
             name, bytes / 1e6, memory / 1e6);
    return STATUS_OK;
}

/* "synthetic:ROWSxCOLUMNS" or "synthetic:ROWSxCOLUMNS:CLASSES": random numbers, to try things out.
 */
static enum status make_synthetic(const char *name, const struct dataset_options *options,
                                  struct dataset **out)
{
    enum { SEED = 1 };
    long long rows = 0, columns = 0, classes = 0;
    int end = 0, whole = 0;
    int found =
        sscanf(name, "synthetic:%9lldx%9lld%n:%9lld%n", &rows, &columns, &end, &classes, &whole);
    if (found < 2 || name[found == 3 ? whole : end] || (found == 3 && classes < 1))
        FAIL(STATUS_INPUT,
             "found the data '%s', expected synthetic:ROWSxCOLUMNS, for numbers to learn, or "
             "synthetic:ROWSxCOLUMNS:CLASSES",
             name);
    TRY(check_known(name, options));
    if (classes > DATASET_CLASSES_MOST)
        FAIL(STATUS_INPUT, "%s: found %lld classes, expected at most %d", name, classes,
             DATASET_CLASSES_MOST);
    TRY(check_made(name, rows, columns + 1, options));
    struct dataset *dataset;
    TRY(dataset_synthetic(rows, (int32_t)columns, options->numbers ? 0 : (int32_t)classes, 1, SEED,
                          &dataset));
    enum status status = check_classes(dataset, options);
    if (status == STATUS_OK)
        *out = dataset;
    else
        dataset_free(dataset);
    return status;
}

/* "ring:ROWS" or "adding:ROWSxSTEPS": problems with a known answer. */
static enum status make_problem(const char *name, const struct dataset_options *options,
                                struct dataset **out)
{
    long long rows = 0, steps = 0;
    int end = 0;
    bool ring = text_starts(name, "ring:");
    int found = ring ? sscanf(name, "ring:%9lld%n", &rows, &end)
                     : sscanf(name, "adding:%9lldx%9lld%n", &rows, &steps, &end);
    if (found < (ring ? 1 : 2) || name[end])
        FAIL(STATUS_INPUT, "found the data '%s', expected %s", name,
             ring ? "ring:ROWS" : "adding:ROWSxSTEPS");
    TRY(check_known(name, options));
    TRY(check_made(name, rows, ring ? 2 : 2 * steps + 1, options));
    return ring ? dataset_ring(name, rows, out) : dataset_adding(name, rows, (int32_t)steps, out);
}

/* What is not asked for; names of classes are the arena's. */
static void forget_labels(struct dataset *dataset)
{
    mem_free(dataset->labels);
    mem_free(dataset->numbers);
    dataset->labels = NULL;
    dataset->numbers = NULL;
    dataset->label_columns = dataset->number_columns = dataset->class_count = 0;
}

static bool is_problem(const char *name)
{
    return text_starts(name, "ring:") || text_starts(name, "adding:");
}

bool dataset_built_in(const char *name)
{
    return find_shipped(name) || text_equal(name, "mnist") || text_starts(name, "synthetic") ||
           is_problem(name);
}

static enum status open_any(const char *name, const struct dataset_options *options,
                            struct dataset **out)
{
    struct stat info;
    const struct embedded *file = find_shipped(name);
    if (file)
        return read_shipped(name, file, options, out);
    if (text_equal(name, "mnist"))
        return read_mnist(options, out);
    if (text_starts(name, "synthetic"))
        return make_synthetic(name, options, out);
    if (is_problem(name))
        return make_problem(name, options, out);
    if (text_equal(name, "-"))
        return read_input(name, options, out);
    if (!file_exists(name))
        return refuse_name(name);
    if (stat(name, &info) == 0 && S_ISDIR(info.st_mode))
        return read_folder(name, name, "", options, out);
    return read_file(name, options, out);
}

enum status dataset_open(const char *name, const struct dataset_options *options,
                         struct dataset **out)
{
    if (dataset_unlabelled(options) && options->labels)
        FAIL(STATUS_INPUT, "found --label none and --labels %s, expected one of them",
             options->labels);
    TRY(open_any(name, options, out));
    if (dataset_unlabelled(options) || options->passed_over)
        forget_labels(*out);
    return STATUS_OK;
}
