/* simulate.c: makes the workers' lists of actions, and a child that runs them. */
#include "simulate/simulate.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "comm/launcher.h"
#include "core/pass/split_data.h"
#include "core/pass/split_model.h"
#include "core/pass/split_pipeline.h"
#include "simulate/worker.h"
#include "train/recipe.h"
#include "train/workers/pipeline.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAID = 600 };

/* ---- what workers do ---- */

static struct compile_options options_of(const struct simulate_request *request, int32_t batch)
{
    return (struct compile_options){
        .batch = batch, .use = USE_TRAINING, .optimiser = request->optimiser};
}

static struct pace_of_parts pace_of(const struct simulate_request *request,
                                    const struct program *program, double part_of_step)
{
    return actions_pace(program, part_of_step * request->seconds(request->context, program->batch),
                        request->shares);
}

/* Of the programs of a step: what each takes of its time. */
static double cost_of(const struct program *program)
{
    double cost = 0;
    for (int32_t o = 0; o < program->op_count; o++)
        cost += split_cost(program, &program->ops[o]);
    return cost;
}

static enum status add_data_list(const struct simulate_request *request, int32_t samples,
                                 struct actions *out)
{
    const struct data_share share = {
        .samples = samples, .of = request->batch, .bucket_bytes = request->bucket_bytes};
    const struct compile_options options = options_of(request, samples);
    struct params params;
    struct recipe_step step = {0};
    double all = 0;
    params_init(&params, DTYPE_F32);
    params.bare = true;
    enum status status = recipe_compile_stages(request->network, &params, &options, &step);
    for (int32_t i = 0; i < step.count; i++)
        all += cost_of(step.programs[i]);
    for (int32_t i = 0; i < step.count && status == STATUS_OK; i++) {
        const struct pace_of_parts pace =
            pace_of(request, step.programs[i], cost_of(step.programs[i]) / all);
        struct program *own = NULL;
        status = split_data(step.programs[i], &share, &own);
        if (status == STATUS_OK)
            status = actions_add(out, own, &pace);
        program_free(own);
    }
    recipe_free(&step);
    params_free(&params);
    return status;
}

static enum status make_data(struct work_plan *plan)
{
    const struct simulate_request *request = plan->request;
    const int32_t least = request->batch / request->workers;
    plan->most = request->batch % request->workers;
    if (least < 1)
        FAIL(STATUS_INPUT,
             "found %d workers and batches of %d samples, expected at least one sample for each",
             request->workers, request->batch);
    NEED(plan->lists = mem_array(2, sizeof *plan->lists));
    plan->list_count = 2;
    if (plan->most)
        TRY(add_data_list(request, least + 1, &plan->lists[0]));
    return add_data_list(request, least, &plan->lists[1]);
}

static enum status add_ranks(struct work_plan *plan, const struct program *program,
                             const struct split_ranks *split)
{
    const struct pace_of_parts pace = pace_of(plan->request, program, 1);
    NEED(plan->lists = mem_array((size_t)split->count, sizeof *plan->lists));
    plan->list_count = split->count;
    for (int32_t r = 0; r < split->count; r++)
        TRY(actions_add(&plan->lists[r], split->ranks[r].program, &pace));
    return STATUS_OK;
}

/* A program of all layers, cut for as many ranks as there are workers. */
static enum status make_split(struct work_plan *plan, struct params *params)
{
    const struct simulate_request *request = plan->request;
    const bool pipeline = plan->parallelism == PARALLEL_PIPELINE;
    const struct compile_options options = options_of(request, request->batch);
    struct split_ranks split = {0};
    struct program *program = NULL;
    enum status status;
    plan->micros = !pipeline         ? 1
                   : request->micros ? request->micros
                                     : pipeline_usual_micros(request->workers, request->batch);
    TRY(pipeline_compile(request->network, params, &options, plan->micros, &program));
    if (pipeline)
        status = split_pipeline(program, params,
                                &(struct pipeline_options){
                                    .stages = request->workers, .micros = plan->micros, .own = -1},
                                &split);
    else
        status = split_model(program, params,
                             &(struct model_options){.ranks = request->workers, .own = -1}, &split);
    if (status == STATUS_OK)
        status = add_ranks(plan, program, &split);
    split_ranks_free(&split);
    program_free(program);
    return status;
}

static enum status make_ranks(struct work_plan *plan)
{
    struct params params;
    params_init(&params, DTYPE_F32);
    params.bare = true;
    enum status status = make_split(plan, &params);
    params_free(&params);
    return status;
}

/* What a worker loads in a step: the network's inputs and what is learnt, once for each sample. */
static double sample_bytes(const struct simulate_request *request)
{
    const struct compile_options options = options_of(request, 1);
    struct params params;
    struct recipe_step step = {0};
    double bytes = 0;
    params_init(&params, DTYPE_F32);
    params.bare = true;
    if (recipe_compile_stages(request->network, &params, &options, &step) == STATUS_OK)
        for (int32_t t = 0; t < step.programs[0]->tensor_count; t++)
            if (step.programs[0]->tensors[t].role == ROLE_INPUT)
                bytes += (double)step.programs[0]->tensors[t].bytes;
    recipe_free(&step);
    params_free(&params);
    return bytes;
}

/* ---- the child ---- */

/* What the child tells, in memory that both see. */
struct told {
    enum status status;
    bool ended;
    char message[SAID];
    struct simulate_result result;
};

static const char *host_of(void *context, int rank)
{
    static _Thread_local char text[PLATFORM_HOST];
    (void)context;
    return platform_host(rank, text);
}

static enum status run_plan(struct work_plan *plan, const char *file, struct simulate_result *out)
{
    const struct simulate_request *request = plan->request;
    const struct comm_plugin *plugin;
    struct rusage used;
    size_t bytes = 4096;
    TRY(launcher_plugin(request->folder, "simgrid", &plugin));
    plan->simulator = plugin->simulator;
    for (int32_t i = 0; i < plan->list_count; i++)
        for (int32_t a = 0; a < plan->lists[i].count; a++)
            if (plan->lists[i].list[a].bytes > bytes)
                bytes = plan->lists[i].list[a].bytes;
    NEED(plan->data = mem_reserve(bytes));
    const struct simulation simulation = {.platform = file,
                                          .ranks = request->workers,
                                          .host = *request->platform->file ? NULL : host_of,
                                          .main = worker_main,
                                          .context = plan};
    const uint64_t begun = clock_ns();
    TRY(plan->simulator->run(&simulation));
    *out = plan->sum;
    out->compute_s /= request->workers;
    out->exposed_s /= request->workers;
    out->hidden_s /= request->workers;
    out->input_s /= request->workers;
    out->sent_bytes /= request->workers;
    out->resources_s = (double)(clock_ns() - begun) / 1e9;
    if (getrusage(RUSAGE_SELF, &used) == 0)
        out->peak_bytes = (uint64_t)used.ru_maxrss * 1024;
    return STATUS_OK;
}

static _Noreturn void child_main(struct work_plan *plan, const char *file, int errors,
                                 struct told *told)
{
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody waits for it then */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    dup2(errors, STDERR_FILENO);
    told->status = run_plan(plan, file, &told->result);
    if (told->status != STATUS_OK)
        snprintf(told->message, sizeof told->message, "%s", status_message());
    told->ended = true;
    _exit(0);
}

/* What SimGrid said last before it ended the process: without its brackets and the file's name. */
static enum status fail_simgrid(const char *said, const struct platform *platform)
{
    char line[SAID];
    const char *at = said;
    for (; *at == '[' && strchr(at, ']'); at += strspn(at, " "))
        at = strchr(at, ']') + 1;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    FAIL(STATUS_INPUT, "%s: SimGrid cannot use this platform: %.300s",
         *platform->file ? platform->file : platform->name,
         *line ? line : "it ended without a word");
}

/* The child's standard error until it ends: its first bytes. */
static void read_errors(int from, char said[SAID])
{
    char rest[SAID];
    size_t length = 0;
    for (ssize_t got = 1; got > 0 || (got < 0 && errno == EINTR);) {
        const bool full = length == SAID - 1;
        got = read(from, full ? rest : said + length, full ? sizeof rest : SAID - 1 - length);
        length += full || got < 0 ? 0 : (size_t)got;
    }
    said[length] = '\0';
}

static enum status run_child(struct work_plan *plan, const char *file, struct told *told)
{
    char said[SAID];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        FAIL(STATUS_IO, "cannot make a pipe: %s", strerror(errno));
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        child_main(plan, file, ends[1], told);
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        FAIL(STATUS_IO, "cannot start a process: %s", strerror(errno));
    }
    read_errors(ends[0], said);
    close(ends[0]);
    int ended = 0;
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(ended) && (WTERMSIG(ended) == SIGINT || WTERMSIG(ended) == SIGTERM))
        FAIL(STATUS_INTERRUPTED, "stopped");
    if (!told->ended)
        return fail_simgrid(said, plan->request->platform);
    if (told->status != STATUS_OK)
        FAIL(told->status, "%s", told->message);
    return STATUS_OK;
}

/* SimGrid's file, made anew or the user's own. */
static enum status write_platform(const struct simulate_request *request, char path[PLATFORM_TEXT])
{
    const char *folder = getenv("TMPDIR");
    struct text text = {0};
    snprintf(path, PLATFORM_TEXT, "%.90s/prony-platform-XXXXXX.xml",
             folder && *folder ? folder : "/tmp");
    const int made = mkstemps(path, sizeof ".xml" - 1);
    if (made < 0)
        FAIL(STATUS_IO, "%s: %s", path, strerror(errno));
    enum status status = platform_write(request->platform, request->workers, &text);
    if (status == STATUS_OK && write(made, text_of(&text), text.length) != (ssize_t)text.length)
        status = status_fail(STATUS_IO, __FILE__, __LINE__, "%s: %s", path, strerror(errno));
    close(made);
    text_free(&text);
    if (status != STATUS_OK)
        unlink(path);
    return status;
}

static enum status run_on_platform(struct work_plan *plan, struct simulate_result *out)
{
    const struct platform *platform = plan->request->platform;
    char path[PLATFORM_TEXT] = "";
    struct told *told =
        mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED)
        FAIL(STATUS_MEMORY, "out of memory");
    enum status status = *platform->file ? STATUS_OK : write_platform(plan->request, path);
    if (status == STATUS_OK)
        status = run_child(plan, *platform->file ? platform->file : path, told);
    if (*path)
        unlink(path);
    *out = told->result;
    munmap(told, sizeof *told);
    return status;
}

enum status simulate(const struct simulate_request *request, struct simulate_result *out)
{
    struct work_plan plan = {.request = request,
                             .micros = 1,
                             .parallelism =
                                 request->workers > 1 ? request->parallelism : PARALLEL_DATA};
    if (request->workers < 1 || request->workers > SIMULATE_WORKERS_MOST)
        FAIL(STATUS_INPUT, "--workers: found %d, expected 1 to %d", request->workers,
             SIMULATE_WORKERS_MOST);
    enum status status = plan.parallelism == PARALLEL_DATA ? make_data(&plan) : make_ranks(&plan);
    if (status == STATUS_OK) {
        const double samples = plan.parallelism == PARALLEL_DATA
                                   ? (double)request->batch / request->workers
                                   : request->batch;
        plan.feed_bytes = request->platform->feed > 0 ? samples * sample_bytes(request) : 0;
        status = run_on_platform(&plan, out);
    }
    out->micros = plan.micros;
    out->one_s = request->seconds(request->context, request->batch);
    for (int32_t i = 0; i < plan.list_count; i++)
        actions_free(&plan.lists[i]);
    mem_free(plan.lists);
    return status;
}
