/* test_recurrent.c: rnn and gru against loops written down here from their definitions, with
 * lengths and a first state; and an LSTM that learns to add two marked numbers. */
#include "nn/network.h"
#include "rig.h"

#include <stdio.h>

enum { BATCH = 3, TIME = 4, IN = 2, UNITS = 3 };

/* One op with its operands as entries of params. */
struct layer_run {
    struct params params;
    struct program *program;
    struct ready ready;
};

static int32_t declare(struct params *params, const char *name, struct shape shape)
{
    int32_t entry;
    CHECK_OK(params_declare(params, name, ROLE_STATE, params->real, shape,
                            (struct init){INIT_UNIFORM, 1}, &entry));
    return entry;
}

static const double *values(const struct layer_run *run, const char *name)
{
    return params_data(&run->params, params_find(&run->params, name));
}

/* Runs an op of `gates` gates once, in f64, on random numbers; lengths are 0, 2 and TIME. */
static bool layer_run_open(struct layer_run *run, struct rig *rig, enum op_kind kind, int64_t gates,
                           int32_t function)
{
    const int64_t width = gates * UNITS;
    struct draft draft;
    *run = (struct layer_run){0};
    struct params *params = &run->params;
    params_init(params, DTYPE_F64);
    int32_t entries[] = {declare(params, "x", SHAPE(BATCH, TIME, IN)),
                         declare(params, "wx", SHAPE(IN, width)),
                         declare(params, "wh", SHAPE(UNITS, width)),
                         declare(params, "bx", SHAPE(width)),
                         declare(params, "bh", SHAPE(width)),
                         declare(params, "h0", SHAPE(BATCH, UNITS)),
                         declare(params, "y", SHAPE(BATCH, TIME, UNITS)),
                         declare(params, "hn", SHAPE(BATCH, UNITS)),
                         declare(params, "sums", SHAPE(BATCH, 4 * UNITS))};
    int32_t lengths, t[9];
    CHECK_OK(params_declare(params, "lengths", ROLE_STATE, DTYPE_I32, SHAPE(BATCH),
                            (struct init){.kind = INIT_ZERO}, &lengths));
    CHECK_OK(params_fill(params, 9));
    memcpy(params_data(params, lengths), (int32_t[]){0, 2, TIME}, BATCH * sizeof(int32_t));
    if (!CHECK_OK(program_begin(&draft, params, "test", BATCH, DTYPE_F64)))
        return false;
    draft_part(&draft, PART_FORWARD);
    for (int i = 0; i < 9; i++)
        t[i] = draft_kept(&draft, entries[i]);
    int32_t masks = draft_kept(&draft, lengths);
    if (kind == OP_rnn)
        draft_op(&draft, OP_rnn, IN(t[0], t[1], t[2], t[3], t[4], t[5], masks), OUT(t[6], t[7]))
            ->attr.rnn.function = function;
    else
        draft_op(&draft, kind, IN(t[0], t[1], t[2], t[3], t[4], t[5], masks),
                 OUT(t[6], t[7], t[8], -1));
    return CHECK_OK(program_finish(&draft, &run->program)) &&
           ready_open(&run->ready, rig, params, run->program) &&
           ready_run(&run->ready, PART_BIT(PART_FORWARD), 0, 1) &&
           CHECK_OK(rig->backend->download(run->ready.instance, params));
}

static void layer_run_close(struct layer_run *run)
{
    ready_close(&run->ready);
    program_free(run->program);
    params_free(&run->params);
}

/* b + v·w for one column */
static double sum(double b, const double *v, const double *w, int rows, int64_t width,
                  int64_t column)
{
    for (int r = 0; r < rows; r++)
        b += v[r] * w[r * width + column];
    return b;
}

typedef void step_rule(const struct layer_run *run, const double *x, const double *h, double *next);

static void rnn_tanh(const struct layer_run *run, const double *x, const double *h, double *next)
{
    for (int k = 0; k < UNITS; k++)
        next[k] = tanh(sum(values(run, "bx")[k], x, values(run, "wx"), IN, UNITS, k) +
                       sum(values(run, "bh")[k], h, values(run, "wh"), UNITS, UNITS, k));
}

static void rnn_relu(const struct layer_run *run, const double *x, const double *h, double *next)
{
    for (int k = 0; k < UNITS; k++)
        next[k] = fmax(0, sum(values(run, "bx")[k], x, values(run, "wx"), IN, UNITS, k) +
                              sum(values(run, "bh")[k], h, values(run, "wh"), UNITS, UNITS, k));
}

/* PyTorch's definition: gates r, z, n; the reset comes after the product. */
static void gru(const struct layer_run *run, const double *x, const double *h, double *next)
{
    for (int k = 0; k < UNITS; k++) {
        double from_x[3], from_h[3];
        for (int g = 0; g < 3; g++) {
            int column = g * UNITS + k;
            from_x[g] = sum(values(run, "bx")[column], x, values(run, "wx"), IN, 3 * UNITS, column);
            from_h[g] =
                sum(values(run, "bh")[column], h, values(run, "wh"), UNITS, 3 * UNITS, column);
        }
        double r = 1 / (1 + exp(-from_x[0] - from_h[0])), z = 1 / (1 + exp(-from_x[1] - from_h[1]));
        next[k] = (1 - z) * tanh(from_x[2] + r * from_h[2]) + z * h[k];
    }
}

static void check_steps(const struct layer_run *run, step_rule *rule)
{
    static const int lengths[BATCH] = {0, 2, TIME};
    for (int n = 0; n < BATCH; n++) {
        double h[UNITS], next[UNITS];
        memcpy(h, values(run, "h0") + n * UNITS, sizeof h);
        for (int t = 0; t < TIME; t++) {
            const double *y = values(run, "y") + (n * TIME + t) * UNITS;
            if (t < lengths[n]) {
                rule(run, values(run, "x") + (n * TIME + t) * IN, h, next);
                memcpy(h, next, sizeof h);
            }
            for (int k = 0; k < UNITS; k++)
                CHECK_NEAR(y[k], t < lengths[n] ? h[k] : 0, 1e-12);
        }
        for (int k = 0; k < UNITS; k++)
            CHECK_NEAR(values(run, "hn")[n * UNITS + k], h[k], 1e-12);
    }
}

TEST(layers_follow_their_definitions)
{
    static const struct {
        enum op_kind kind;
        int64_t gates;
        int32_t function;
        step_rule *rule;
    } layers[] = {
        {OP_rnn, 1, ACTIVATION_TANH, rnn_tanh},
        {OP_rnn, 1, ACTIVATION_RELU, rnn_relu},
        {OP_gru, 3, 0, gru},
    };
    struct rig rig;
    CHECK(rig_open(&rig, "ref"));
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        struct layer_run run;
        if (layer_run_open(&run, &rig, layers[i].kind, layers[i].gates, layers[i].function))
            check_steps(&run, layers[i].rule);
        layer_run_close(&run);
    }
    rig_close(&rig);
}

/* The adding problem (Hochreiter and Schmidhuber 1997), short: of LENGTH numbers two are marked,
 * and their sum is to be told at the end. Always answering 1 has a loss of 1/6. */
enum { LENGTH = 8, ROWS = 512, ADD_BATCH = 32 };

static void make_sums(float *x, float *target, unsigned seed)
{
    float draws[LENGTH + 2];
    for (int row = 0; row < ROWS; row++) {
        float *sequence = x + row * LENGTH * 2;
        fill_random(draws, LENGTH + 2, seed + (unsigned)row * 7919u);
        int first = (int)((draws[LENGTH] + 1) * 0.5f * (LENGTH / 2));
        int second = LENGTH / 2 + (int)((draws[LENGTH + 1] + 1) * 0.5f * (LENGTH / 2));
        target[row] = 0;
        for (int t = 0; t < LENGTH; t++) {
            bool marked = t == first || t == second;
            sequence[2 * t] = (draws[t] + 1) * 0.5f;
            sequence[2 * t + 1] = marked ? 1 : 0;
            target[row] += marked ? sequence[2 * t] : 0;
        }
    }
}

TEST(an_lstm_learns_to_add)
{
    static const char net[] = "input 8x2\nlstm 8 output=last\ndense 1\nloss mse\n"
                              "optimiser adam rate=0.03 clip=1\n";
    static float x[ROWS * LENGTH * 2], target[ROWS];
    static float other_x[ROWS * LENGTH * 2], other_target[ROWS];
    const char *names[] = {"x", "target"};
    struct rig rig;
    struct network *network = NULL;
    struct program *learn = NULL, *test = NULL;
    struct ready learning = {0}, testing = {0};
    struct params params;
    float loss = NAN;
    make_sums(x, target, 1);
    make_sums(other_x, other_target, 1000003);
    params_init(&params, DTYPE_F32);
    CHECK(rig_open(&rig, "ref"));
    if (CHECK_OK(network_parse("adding", net, strlen(net), &network)) &&
        CHECK_OK(network_compile(network, &params,
                                 &(struct compile_options){.batch = ADD_BATCH, .use = USE_TRAINING},
                                 &learn)) &&
        CHECK_OK(network_compile(network, &params,
                                 &(struct compile_options){.batch = ROWS, .use = USE_EVALUATION},
                                 &test)) &&
        CHECK_OK(params_fill(&params, 1)) &&
        CHECK_OK(network_rate(network, NULL, &params.control.rate)) &&
        ready_open(&learning, &rig, &params, learn) &&
        ready_on(&testing, &rig, learning.instance, test, NULL) &&
        ready_bind(&learning, learn, names, (void *[]){x, target}, (int64_t[]){ROWS, ROWS}, 2, NULL,
                   0, 0) &&
        ready_bind(&testing, test, names, (void *[]){other_x, other_target},
                   (int64_t[]){ROWS, ROWS}, 2, NULL, 0, 0)) {
        ready_run(&learning, PARTS_ALL, 0, 400);
        ready_run(&testing, PARTS_ALL, 0, 1);
        CHECK_OK(rig.backend->fetch(testing.plan, program_find(test, ROLE_OUTPUT, "loss"), &loss));
        if (!CHECK(loss < 0.01f))
            printf("    the loss on sums it has not seen is %g\n", (double)loss);
    }
    ready_close(&testing);
    ready_close(&learning);
    program_free(learn);
    program_free(test);
    params_free(&params);
    network_free(network);
    rig_close(&rig);
}

CHECK_MAIN
