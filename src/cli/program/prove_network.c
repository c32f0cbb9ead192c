/* prove_network.c: see prove_network.h. */
#include "cli/program/prove_network.h"

#include "bench/sweep/point_job.h"
#include "cli/screen.h"

static const double RUN_NS = 4e7, WARM_NS = 1e7; /* of a run; before it, as the other one ran */
enum { RUNS_OF_A_ROUND = 4 };

struct pair {
    struct point_job jobs[2]; /* before, after */
    int64_t batch[2], iterations[2];
    int64_t runs;
};

static enum status run_for(struct job *job, double least_ns, int64_t *iterations, double *ns)
{
    uint64_t elapsed_ns = 0;
    *iterations = 1;
    for (;;) {
        TRY(job->kind->run(job, *iterations, &elapsed_ns));
        *ns = (double)elapsed_ns;
        if (*ns >= least_ns)
            return STATUS_OK;
        *iterations *= 2;
    }
}

/* Each round both are taken anew, as a second start would. */
static enum status renew(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        struct job *job = pair->jobs[i].job;
        double ns;
        int process;
        if (job->kind->renew)
            TRY(job->kind->renew(job, &process));
        TRY(run_for(job, RUN_NS, &pair->iterations[i], &ns));
    }
    return STATUS_OK;
}

/* The time of one sample. */
static enum status run_one(void *context, bool after, double *ns)
{
    struct pair *pair = context;
    struct job *job = pair->jobs[after].job;
    int64_t warm;
    uint64_t elapsed_ns;
    if (pair->runs++ % RUNS_OF_A_ROUND == 0)
        TRY(renew(pair));
    TRY(run_for(job, WARM_NS, &warm, ns));
    TRY(job->kind->run(job, pair->iterations[after], &elapsed_ns));
    *ns = (double)elapsed_ns / (double)(pair->iterations[after] * pair->batch[after]);
    return STATUS_OK;
}

enum status prove_network(struct cli *cli, const struct point *before, const struct point *after,
                          const char *change, const struct prove_wish *wish,
                          const struct prove_promise *promise, struct text *out)
{
    struct pair pair = {.batch = {before->batch, after->batch}};
    const struct prove_options options = {.run = run_one,
                                          .runner = &pair,
                                          .rounds = wish->rounds,
                                          .stopped = cli_interrupted,
                                          .tell = prove_tell};
    struct proof proof = {0};
    enum status status = point_job_open(cli->registry, before, &pair.jobs[0]);
    if (status == STATUS_OK)
        status = point_job_open(cli->registry, after, &pair.jobs[1]);
    if (status == STATUS_OK)
        status = prove_run(&options, &proof);
    screen_status(NULL);
    if (status == STATUS_OK) {
        prove_add_line(&proof, promise, out);
        status = prove_keep(wish, promise, change, &proof);
    }
    proof_free(&proof);
    point_job_close(&pair.jobs[1]);
    point_job_close(&pair.jobs[0]);
    return status == STATUS_OK ? text_done(out) : status;
}
