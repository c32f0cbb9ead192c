/* conv_gemm_weigh.c: the gradient of a convolution's weights as a product of packed panels, for
 * many channels or few samples:
 *
 *     dw[output, tap] = dy[output, pixel] · patches[tap, pixel]ᵀ
 *
 * over the pixels of all samples, one group at a time. A block of pixels of dy is packed once for
 * all taps; the patches of 32 taps at these pixels are gathered (conv_patches.h) and turned in L1.
 * Threads share the taps, so that each gradient is one thread's sum. */
#include "backend/cpu/simd/conv_loops.h"
#include "backend/cpu/simd/conv_patches.h"
#include "backend/cpu/simd/team.h"
#include "backend/cpu/simd/workspace.h"

struct job_weigh {
    const struct gemm_kernels *gemm;
    const struct conv_kernels *conv;
    struct conv_relation relation;
    const float *x, *dy;
    float *dw;
    bool accumulate;
    /* workspace */
    struct patch_phase *phase; /* there is one */
    struct patch_tap *taps;
    char *members;
    uint64_t member_bytes;
};

struct member {
    float *slopes;  /* dy of a block of pixels, in panels of outputs */
    float *patches; /* [32 taps][PATCH_PIXELS], and a vector behind it */
    float *panel;   /* the same, [pixel][32 taps] */
    struct conv_piece *pieces;
    struct patch_run *runs;
};

static uint64_t lay_out_member(const struct job_weigh *job, char *memory, struct member *member)
{
    const struct conv_relation *r = &job->relation;
    int64_t kernel = r->down.kernel * r->across.kernel;
    uint64_t used = 0;
    member->slopes =
        workspace_take(memory, &used, r->out_group * PATCH_PIXELS, sizeof *member->slopes);
    member->patches =
        workspace_take(memory, &used, (GEMM_COLUMNS + 1) * PATCH_PIXELS, sizeof *member->patches);
    member->panel =
        workspace_take(memory, &used, GEMM_COLUMNS * PATCH_PIXELS, sizeof *member->panel);
    member->pieces = workspace_take(memory, &used, kernel * PATCH_PIXELS, sizeof *member->pieces);
    member->runs = workspace_take(memory, &used, PATCH_PIXELS, sizeof *member->runs);
    return used;
}

/* Divides the workspace; returns how large it must be. */
static uint64_t lay_out(struct job_weigh *job, int threads, char *workspace)
{
    const struct conv_relation *r = &job->relation;
    struct member member;
    uint64_t used = 0;
    job->phase = workspace_take(workspace, &used, 1, sizeof *job->phase);
    job->taps =
        workspace_take(workspace, &used, r->down.kernel * r->across.kernel, sizeof *job->taps);
    job->member_bytes = lay_out_member(job, NULL, &member);
    job->members = workspace_take(workspace, &used, threads, job->member_bytes);
    return used;
}

static void pack_slopes(const struct job_weigh *job, const struct member *member, int64_t group,
                        int64_t pixel, int64_t pixels)
{
    const struct conv_relation *r = &job->relation;
    int64_t image = r->down.out * r->across.out;
    int64_t runs = patch_runs(1, image, pixel, pixels, PATCH_PIXELS, member->runs);
    for (int64_t i = 0; i < runs; i++) {
        const struct patch_run *run = &member->runs[i];
        const float *dy =
            job->dy + (run->sample * r->out + group * r->out_group) * image + run->column;
        gemm_pack_a(job->gemm, (struct gemm_side){dy, image, 1}, r->out_group, run->length,
                    member->slopes, pixels, run->at);
    }
}

/* Adds a block of pixels to the gradients of the taps from `from` to `to`. */
static void weigh_block(const struct job_weigh *job, const struct member *member, int64_t group,
                        int64_t pixel, int64_t pixels, int64_t from, int64_t to)
{
    const struct conv_relation *r = &job->relation;
    int64_t width = job->gemm->columns, plane = r->down.in * r->across.in;
    struct conv_gather gather = {
        .x = job->x + group * r->in_group * plane,
        .plane = plane,
        .step = r->across.move,
        .pieces = member->pieces,
        .taps = job->phase->count,
        .count = patch_pieces(r, job->phase, job->taps, job->conv->lanes, pixel, pixels, pixels,
                              member->pieces),
        .out = member->patches,
        .lead = PATCH_PIXELS,
    };
    pack_slopes(job, member, group, pixel, pixels);
    for (int64_t k = from; k < to; k += width) {
        int64_t taps = to - k < width ? to - k : width;
        job->conv->gather(&gather, k, taps);
        gemm_pack_b(job->gemm, (struct gemm_side){member->patches, 1, PATCH_PIXELS}, pixels, taps,
                    member->panel);
        gemm_times_panel(job->gemm, member->slopes, r->out_group, pixels, 0,
                         (struct gemm_tile){
                             .inner = pixels,
                             .b = member->panel,
                             .c = job->dw + group * r->out_group * r->taps + k,
                             .stride = r->taps,
                             .columns = taps,
                             .scale = 1,
                             .add = job->accumulate || pixel > 0,
                         });
    }
}

static void weigh_member(void *context, int index, int members)
{
    const struct job_weigh *job = context;
    const struct conv_relation *r = &job->relation;
    int64_t all = r->batch * r->down.out * r->across.out, pixels;
    struct member member;
    long from, to;
    lay_out_member(job, job->members + (uint64_t)index * job->member_bytes, &member);
    pool_share(r->taps, job->gemm->columns, index, members, &from, &to);
    for (int64_t g = 0; g < r->groups && from < to; g++)
        for (int64_t p = 0; p < all; p += pixels) {
            pixels = even_part(all, PATCH_PIXELS, p);
            weigh_block(job, &member, g, p, pixels, from, to);
        }
}

void conv_gemm_weigh(const struct call *call, const struct gemm_kernels *gemm,
                     const struct conv_kernels *conv, const struct conv_relation *relation)
{
    struct job_weigh job = {
        .gemm = gemm,
        .conv = conv,
        .relation = patch_flat(relation),
        .x = call->data[0],
        .dy = call->data[1],
        .dw = call->data[2],
        .accumulate = call->op->attr.conv_dw.accumulate,
    };
    lay_out(&job, pool_at_once(call->pool), call->workspace);
    patch_list(&job.relation, job.phase, job.taps);
    int64_t panels = (relation->taps + gemm->columns - 1) / gemm->columns;
    int members = team_for_flop(call->pool, 2 * call->counts[1] * relation->taps, panels);
    pool_run(call->pool, members, weigh_member, &job);
}

uint64_t conv_gemm_weigh_bytes(const struct conv_relation *relation, int threads)
{
    struct job_weigh job = {.relation = patch_flat(relation)};
    return lay_out(&job, threads, NULL);
}
