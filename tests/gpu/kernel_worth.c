/* kernel_worth.c: what kernels of the CUDA backend buy. For each row, or few rows, of its list of
 * kernels: random networks in the range that the row takes, timed as they run and with the row left
 * out (PRONY_CUDA_WITHOUT), in turns. Both must compute the same.
 *
 *     cc -O2 -D_GNU_SOURCE -Isrc -Itests/shared -I$build/generated tests/gpu/kernel_worth.c \
 *         $build/libprony_modules.a -lm -ldl -lpthread -o $build/tests/kernel_worth
 *     $build/tests/kernel_worth [SECONDS [SHAPES.csv [ROW]]]
 *
 * From the root of the tree, whose lines it counts. The gain is the time without the row over the
 * time with it. */
#include "base/clock.h"
#include "core/pass/fuse.h"
#include "nn/network.h"
#include "rig.h"

enum {
    ROWS = 256, /* of data */
    RING = 64,
    TEXT = 600,
    TRIES = 400, /* of drawing a shape that the row takes */
    SHAPES = 60, /* of a row, at most */
    TURNS = 7,   /* a shape is timed so often each way; the medians count */
    CHECKED = 3, /* steps that must compute the same */
    PRECISIONS = 3,
};

static const uint64_t SAMPLE_NS = 1200000; /* a timed run lasts about that */
static const char *const precisions[PRECISIONS] = {"fp32", "tf32", "bf16"};

/* A range; drawn so that every size is as likely as its double. */
struct range {
    int32_t least, most;
};

struct question {
    const char *without; /* rows that are left out, commas between */
    const char *kind;    /* mlp; conv, pool, norm; lstm, rnn, gru */
    struct range layers, inputs, hidden, outputs, batch;
    int precision;
    enum answering answering;
    const char *optimisers; /* one of these, spaces between; "": inference or sgd */
    const char *sources;    /* that go with the rows, below src/backend/cuda */
};

static const struct question questions[] = {
#include "kernel_worth.def"
};
enum { QUESTIONS = sizeof questions / sizeof *questions };

static uint64_t seed;

static double draw(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static int32_t draw_from(struct range range)
{
    const double least = range.least, most = range.most + 0.999;
    return (int32_t)(least * pow(most / least, draw()));
}

struct drawn {
    char text[TEXT], optimiser[16];
    int32_t batch;
    enum program_use use;
};

static void draw_mlp(const struct question *question, char text[TEXT])
{
    static const char *const functions[] = {"sigmoid", "relu", "tanh"};
    const char *function = functions[(int)(3 * draw())];
    const int32_t layers = draw_from(question->layers);
    const bool even = draw() < 0.5; /* widths are multiples of four, as often people choose them */
    int at = snprintf(text, TEXT, "input %d\n", draw_from(question->inputs));
    for (int32_t l = 0; l < layers; l++) {
        int32_t units = draw_from(l == layers - 1 ? question->outputs : question->hidden);
        if (even && l < layers - 1)
            units = (units + 3) / 4 * 4;
        at += snprintf(text + at, (size_t)(TEXT - at), "dense %d\n%s%s", units,
                       l < layers - 1 ? function : "", l < layers - 1 ? "\n" : "");
    }
}

static void draw_images(const struct question *question, char text[TEXT])
{
    const int32_t layers = draw_from(question->layers), side = draw_from(question->inputs);
    const bool pools = question->kind[0] == 'p', norms = question->kind[0] == 'n';
    int at = snprintf(text, TEXT, "input %dx%dx%d\n", draw_from((struct range){1, 8}), side, side);
    for (int32_t l = 0; l < layers; l++) {
        const int kernel = draw() < 0.5 ? 3 : 5;
        at += snprintf(text + at, (size_t)(TEXT - at), "conv %d %dx%d pad=%d\n%srelu\n%s",
                       draw_from(question->hidden), kernel, kernel, kernel / 2,
                       norms ? "batch_norm\n" : "", pools || draw() < 0.3 ? "max_pool 2\n" : "");
    }
    snprintf(text + at, (size_t)(TEXT - at), "flatten\ndense 10\n");
}

static void draw_shape(const struct question *question, struct drawn *shape)
{
    int count = 1, chosen;
    const char *at = question->optimisers;
    if (!strcmp(question->kind, "mlp"))
        draw_mlp(question, shape->text);
    else if (strstr("lstm rnn gru", question->kind))
        snprintf(shape->text, TEXT, "input %dx%d\n%s %d output=last\ndense 10\n",
                 draw_from(question->layers), draw_from(question->inputs), question->kind,
                 draw_from(question->hidden));
    else
        draw_images(question, shape->text);
    shape->batch = draw_from(question->batch);
    shape->use = question->answering != ANSWER_STEPS || (!*at && draw() < 0.4) ? USE_INFERENCE
                                                                               : USE_TRAINING;
    for (const char *space = at; (space = strchr(space, ' ')); space++)
        count++;
    for (chosen = (int)(count * draw()); chosen; chosen--)
        at = strchr(at, ' ') + 1;
    snprintf(shape->optimiser, sizeof shape->optimiser, "%.*s", (int)strcspn(at, " "), at);
}

/* One of the two ways to run a shape. */
struct side {
    struct program *fused;
    struct ready ready;
    float *y, *loss;
    char kernel[64]; /* its first, or the row in question */
    int64_t steps;
    double ns[TURNS];
};

struct trial {
    struct network *network;
    struct params params;
    struct program *program;
    struct side sides[2]; /* as it runs; without the row */
    float *x, *target;
};

static void say_without(const char *names)
{
    if (names)
        setenv("PRONY_CUDA_WITHOUT", names, 1);
    else
        unsetenv("PRONY_CUDA_WITHOUT");
}

static bool is_named(const char *names, const char *name)
{
    const char *at = strstr(names, name);
    const size_t length = strlen(name);
    return at && (at == names || at[-1] == ',') && (!at[length] || at[length] == ',');
}

static enum status compile(struct trial *trial, const struct drawn *shape, bool bare)
{
    const struct compile_options options = {
        .batch = shape->batch, .use = shape->use, .loss = LOSS_MSE, .optimiser = shape->optimiser};
    params_init(&trial->params, DTYPE_F32);
    trial->params.bare = bare;
    TRY(network_parse("random", shape->text, strlen(shape->text), &trial->network));
    TRY(network_compile(trial->network, &trial->params, &options, &trial->program));
    return bare ? STATUS_OK : params_fill(&trial->params, 3);
}

static void trial_close(struct trial *trial)
{
    for (int s = 0; s < 2; s++) {
        trial->sides[s].ready.owns_instance = trial->sides[s].ready.instance != NULL;
        if (trial->sides[s].ready.backend)
            ready_close(&trial->sides[s].ready);
        program_free(trial->sides[s].fused);
        free(trial->sides[s].y);
        free(trial->sides[s].loss);
    }
    program_free(trial->program);
    params_free(&trial->params);
    network_free(trial->network);
    free(trial->x);
    free(trial->target);
}

/* Prepares the shape; *taken: one of the kernels that it runs by is of the row. */
static enum status side_open(struct trial *trial, struct side *side, struct rig *rig,
                             const struct question *question, bool without, bool dry, bool *taken)
{
    const struct plan_options options = {.dry = dry, .answering = question->answering};
    struct arena arena = {0};
    struct explanation explanation;
    *taken = false;
    side->ready.backend = rig->backend;
    say_without(without ? question->without : NULL);
    TRY(fuse(trial->program, rig->backend, rig->device, &side->fused));
    TRY(rig->backend->attach(rig->device, &trial->params, &side->ready.instance));
    TRY(rig->backend->prepare(side->ready.instance, side->fused, &options, &side->ready.plan));
    const enum status status = rig->backend->explain(side->ready.plan, &arena, &explanation);
    for (int32_t k = 0; status == STATUS_OK && k < explanation.kernel_count && !*taken; k++) {
        *taken = is_named(question->without, explanation.kernels[k].kernel);
        if (*taken || k == 0 || !strncmp(explanation.kernels[k].kernel, "dense", 5))
            snprintf(side->kernel, sizeof side->kernel, "%s", explanation.kernels[k].kernel);
    }
    arena_free(&arena);
    return status;
}

/* Is this shape one of the row's? Nothing is taken on the device. */
static bool is_taken(const struct question *question, const struct drawn *shape, struct rig *rig)
{
    struct trial trial = {0};
    bool taken = false, still = false;
    const bool ok =
        compile(&trial, shape, true) == STATUS_OK &&
        side_open(&trial, &trial.sides[0], rig, question, false, true, &taken) == STATUS_OK &&
        taken && side_open(&trial, &trial.sides[1], rig, question, true, true, &still) == STATUS_OK;
    trial_close(&trial);
    return ok && taken && !still;
}

static enum status side_bind(struct trial *trial, struct side *side)
{
    static const char *const names[] = {"x", "target", "loss", "y"};
    void *const data[] = {trial->x, trial->target, side->loss, side->y};
    const int64_t rows[] = {ROWS, ROWS, RING, ROWS};
    struct view views[4];
    struct binding binding = {.views = views};
    for (int i = 0; i < 4; i++) {
        const int32_t tensor =
            program_find(side->fused, i < 2 ? ROLE_INPUT : ROLE_OUTPUT, names[i]);
        if (tensor >= 0)
            views[binding.view_count++] = (struct view){tensor, data[i], rows[i]};
    }
    return side->ready.backend->bind(side->ready.plan, &binding);
}

static enum status side_run(struct side *side, enum answering answering, int64_t steps)
{
    const struct backend *backend = side->ready.backend;
    const bool apart = answering == ANSWER_CALLS || answering == ANSWER_RESIDENT;
    for (int64_t done = 0; done < steps; done += apart ? 1 : steps) {
        TRY(backend->run(side->ready.plan, PARTS_ALL, 0, apart ? 1 : steps));
        TRY(backend->sync(side->ready.plan));
    }
    return STATUS_OK;
}

static enum status side_time(struct side *side, enum answering answering, double *ns)
{
    const uint64_t start = clock_ns();
    TRY(side_run(side, answering, side->steps));
    *ns = (double)(clock_ns() - start);
    return STATUS_OK;
}

/* So many steps that they last long enough; the first run captures and loads. */
static enum status side_calibrate(struct side *side, enum answering answering)
{
    double ns = 0;
    side->steps = 1;
    TRY(side_time(side, answering, &ns));
    for (; side->steps < 1 << 18; side->steps *= 2) {
        TRY(side_time(side, answering, &ns));
        if (ns > (double)SAMPLE_NS)
            break;
    }
    return STATUS_OK;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *values, int count, double share)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return values[(int)(share * (count - 1) + 0.5)];
}

/* Both ways, in turns; found: times of a step in ns, and how far the results differ. */
static enum status measure(const struct question *question, const struct drawn *shape,
                           struct rig *rig, struct trial *trial, double ns[2], double *differ)
{
    bool taken;
    TRY(compile(trial, shape, false));
    trial->params.control.rate = 0.01;
    const int32_t x = program_find(trial->program, ROLE_INPUT, "x");
    const int64_t in = shape_count(&trial->program->tensors[x].shape) / shape->batch;
    trial->x = malloc((size_t)(ROWS * in) * sizeof(float));
    trial->target = malloc(ROWS * 1024 * sizeof(float));
    fill_random(trial->x, ROWS * in, 5);
    fill_random(trial->target, ROWS * 1024, 6);
    for (int s = 0; s < 2; s++) {
        struct side *side = &trial->sides[s];
        side->y = calloc(ROWS * 1024, sizeof(float));
        side->loss = calloc(RING, sizeof(float));
        TRY(side_open(trial, side, rig, question, s == 1, false, &taken));
        TRY(rig->backend->upload(side->ready.instance, &trial->params));
        TRY(side_bind(trial, side));
        TRY(side_run(side, question->answering, CHECKED));
    }
    *differ = shape->use == USE_TRAINING
                  ? difference(trial->sides[1].loss, trial->sides[0].loss, CHECKED)
                  : difference(trial->sides[1].y, trial->sides[0].y, ROWS * 1024);
    for (int s = 0; s < 2; s++)
        TRY(side_calibrate(&trial->sides[s], question->answering));
    for (int turn = 0; turn < TURNS; turn++)
        for (int s = 0; s < 2; s++)
            TRY(side_time(&trial->sides[s], question->answering, &trial->sides[s].ns[turn]));
    for (int s = 0; s < 2; s++)
        ns[s] = quantile(trial->sides[s].ns, TURNS, 0.5) / (double)trial->sides[s].steps;
    return STATUS_OK;
}

/* Lines of these files. */
static int count_lines(const char *sources)
{
    char path[256];
    int lines = 0, c;
    for (const char *at = sources; *at; at += strcspn(at, " "), at += *at == ' ') {
        snprintf(path, sizeof path, "src/backend/cuda/%.*s", (int)strcspn(at, " "), at);
        FILE *file = fopen(path, "r");
        while (file && (c = getc(file)) != EOF)
            lines += c == '\n';
        if (file)
            fclose(file);
    }
    return lines;
}

static void write_shape(FILE *csv, const struct question *question, const struct drawn *shape,
                        const struct trial *trial, const double ns[2], double differ)
{
    char text[TEXT];
    snprintf(text, TEXT, "%s", shape->text);
    for (char *c = text; *c; c++)
        *c = *c == '\n' || *c == ' ' ? '-' : *c;
    fprintf(csv, "\"%s\",%s,%s,%s,%s,%d,%d,%.4f,%.4f,%.4f,%s,%s,%.2g\n", question->without,
            question->kind, text, shape->optimiser, precisions[question->precision],
            (int)question->answering, shape->batch, ns[0] / 1e3, ns[1] / 1e3, ns[1] / ns[0],
            trial->sides[0].kernel, trial->sides[1].kernel, differ);
}

/* Without a GPU: how many of so many random shapes the row takes, by the same code. */
static void count_shapes(const struct question *question, struct rig *rig)
{
    enum { DRAWN = 100 };
    struct drawn shape;
    int taken = 0;
    seed = 21 + (uint64_t)(question - questions);
    for (int i = 0; i < DRAWN; i++) {
        draw_shape(question, &shape);
        taken += is_taken(question, &shape, rig);
    }
    say_without(NULL);
    printf("%-44.44s %-4s %d takes %d of %d\n", question->without, precisions[question->precision],
           (int)question->answering, taken, DRAWN);
}

/* A row of the table. */
static void ask(const struct question *question, struct rig *rig, uint64_t limit_ns, FILE *csv)
{
    const uint64_t end = clock_ns() + limit_ns;
    double gains[SHAPES], worst = 0;
    int count = 0, more = 0, less = 0, failed = 0;
    seed = 21 + (uint64_t)(question - questions);
    while (count < SHAPES && clock_ns() < end && failed < 5) {
        struct drawn shape;
        struct trial trial = {0};
        double ns[2], differ;
        int tries = 0;
        do
            draw_shape(question, &shape);
        while (!is_taken(question, &shape, rig) && ++tries < TRIES && clock_ns() < end);
        if (tries == TRIES || clock_ns() >= end)
            break;
        if (measure(question, &shape, rig, &trial, ns, &differ) == STATUS_OK) {
            gains[count] = ns[1] / ns[0];
            more += gains[count] > 1.1;
            less += gains[count] < 0.98;
            worst = fmax(worst, differ);
            count++;
            if (csv)
                write_shape(csv, question, &shape, &trial, ns, differ);
        } else {
            failed++;
            printf("failed: %s: %s", question->without, status_message());
            printf(" (%s, batch %d)\n", strtok(shape.text, "\n"), shape.batch);
        }
        trial_close(&trial);
    }
    say_without(NULL);
    if (!count) {
        printf("%-44.44s no shape\n", question->without);
        return;
    }
    const double low = quantile(gains, count, 0.1), median = quantile(gains, count, 0.5);
    const double high = quantile(gains, count, 0.9);
    printf("%-44.44s %-4s %d %6d %7.2f %7.2f %7.2f %7.0f %% %6.0f %% %7.1g %6d\n",
           question->without, precisions[question->precision], (int)question->answering, count, low,
           median, high, 100.0 * more / count, 100.0 * less / count, worst,
           count_lines(question->sources));
    fflush(stdout);
}

int main(int count, char **arguments)
{
    const double seconds = count > 1 ? strtod(arguments[1], NULL) : 120;
    FILE *csv = count > 2 && arguments[2][0] ? fopen(arguments[2], "w") : NULL;
    const char *only = count > 3 ? arguments[3] : "";
    struct rig rigs[PRECISIONS] = {0};
    int asked = 0, done = 0;
    const uint64_t end = clock_ns() + (uint64_t)(seconds * 1e9);
    bool paper = false;
    for (int p = 0; p < PRECISIONS; p++) {
        struct device_options options = {.precision = precisions[p]};
        if (registry_find(rig_registry(), "cuda", &rigs[p].backend) == STATUS_OK)
            options.paper = paper = rigs[p].backend->probe() != STATUS_OK;
        if (!rigs[p].backend || rigs[p].backend->open(&options, &rigs[p].device) != STATUS_OK) {
            printf("%s\n", status_message());
            return 2;
        }
    }
    for (int q = 0; q < QUESTIONS; q++)
        asked += strstr(questions[q].without, only) != NULL;
    if (csv)
        fprintf(csv, "without,kind,network,optimiser,precision,answering,batch,us,us_without,gain,"
                     "kernel,instead,differ\n");
    printf("%-44s %-4s %s %6s %7s %7s %7s %9s %8s %7s %6s\n", "left out", "", "a", "shapes", "10 %",
           "median", "90 %", "> 10 %", "< -2 %", "differ", "lines");
    for (int q = 0; q < QUESTIONS; q++)
        if (paper && strstr(questions[q].without, only)) {
            count_shapes(&questions[q], &rigs[questions[q].precision]);
        } else if (strstr(questions[q].without, only)) {
            const uint64_t now = clock_ns();
            ask(&questions[q], &rigs[questions[q].precision],
                now < end ? (end - now) / (uint64_t)(asked - done) : 0, csv);
            done++;
        }
    if (csv)
        fclose(csv);
    return 0;
}
