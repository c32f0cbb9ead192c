/* conv_gemm_wgrad.c: the gradient of a convolution's weights as a product of packed panels, for
 * many channels or few samples:
 *
 *     dw[output, tap] = dy[output, pixel] · patches[tap, pixel]ᵀ
 *
 * over the pixels of all samples, one group at a time; or transposed, for gradients in blocks
 * (blocked.h). A block of pixels of dy is packed once for all taps; the patches of some taps at
 * these pixels are gathered (conv_patches.h) and packed in L1. Threads share the taps, so that each
 * gradient is one thread's sum. */
#include "backend/cpu/blocked.h"
#include "backend/cpu/simd/conv/conv_loops.h"
#include "backend/cpu/simd/conv/conv_patches.h"
#include "backend/cpu/simd/workspace.h"
#include "backend/cpu/team.h"

enum { TAPS = 4 * GEMM_ROWS }; /* that are gathered at a time for blocks */

struct job_wgrad {
    const struct gemm_kernels *gemm;
    const struct conv_kernels *conv;
    struct conv_relation relation;
    const float *x, *dy;
    float *dw;
    bool accumulate, blocked;
    /* workspace */
    struct patch_phase *phase; /* there is one */
    struct patch_tap *taps;
    char *members;
    uint64_t member_bytes;
};

struct member {
    float *dy;      /* dy of a block of pixels, in panels of outputs */
    float *patches; /* [taps][PATCH_PIXELS], and a vector behind it */
    float *panel;   /* the same, packed: [pixel][taps] */
    struct conv_piece *pieces;
    struct patch_run *runs;
};

static uint64_t lay_out_member(const struct job_wgrad *job, char *memory, struct member *member)
{
    const struct conv_relation *r = &job->relation;
    int64_t kernel = r->down.kernel * r->across.kernel, taps = job->blocked ? TAPS : GEMM_COLUMNS;
    uint64_t used = 0;
    member->dy = workspace_take(memory, &used, r->out_group * PATCH_PIXELS, sizeof *member->dy);
    member->patches =
        workspace_take(memory, &used, (taps + 1) * PATCH_PIXELS, sizeof *member->patches);
    member->panel = workspace_take(memory, &used, taps * PATCH_PIXELS, sizeof *member->panel);
    member->pieces = workspace_take(memory, &used, kernel * PATCH_PIXELS, sizeof *member->pieces);
    member->runs = workspace_take(memory, &used, PATCH_PIXELS, sizeof *member->runs);
    return used;
}

/* Divides the workspace; returns how large it must be. */
static uint64_t lay_out(struct job_wgrad *job, int threads, char *workspace)
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

/* dy of the pixels of one run: panels [pixel][outputs]. */
static void pack_run(const struct job_wgrad *job, const struct member *member, const float *dy,
                     int64_t image, const struct patch_run *run, int64_t pixels)
{
    const struct gemm_kernels *gemm = job->gemm;
    int64_t out = job->relation.out_group;
    if (!job->blocked) {
        gemm_pack_a(gemm, (struct gemm_side){dy, image, 1}, out, run->length, member->dy, pixels,
                    run->at);
        return;
    }
    for (int64_t o = 0; o < out; o += gemm->lanes) {
        int64_t panel = o / gemm->columns * gemm->columns;
        gemm->pack(dy + o * image, image, 1, gemm->lanes, run->length,
                   member->dy + panel * pixels + run->at * gemm->columns + o - panel,
                   gemm->columns);
    }
}

static void pack_dy(const struct job_wgrad *job, const struct member *member, int64_t group,
                    int64_t pixel, int64_t pixels)
{
    const struct conv_relation *r = &job->relation;
    int64_t image = r->down.out * r->across.out;
    int64_t runs = patch_runs(1, image, pixel, pixels, PATCH_PIXELS, member->runs);
    for (int64_t i = 0; i < runs; i++) {
        const struct patch_run *run = &member->runs[i];
        const float *dy =
            job->dy + (run->sample * r->out + group * r->out_group) * image + run->column;
        pack_run(job, member, dy, image, run, pixels);
    }
}

/* The patches of a panel of taps, transposed, times dy of all outputs. */
static void wgrad_taps(const struct job_wgrad *job, const struct member *member, int64_t group,
                       int64_t pixels, int64_t tap, int64_t taps, bool add)
{
    const struct conv_relation *r = &job->relation;
    gemm_pack_b(job->gemm, (struct gemm_side){member->patches, 1, PATCH_PIXELS}, pixels, taps,
                member->panel);
    gemm_times_panel(job->gemm, member->dy, r->out_group, pixels, 0,
                     (struct gemm_tile){
                         .inner = pixels,
                         .b = member->panel,
                         .c = job->dw + group * r->out_group * r->taps + tap,
                         .stride = r->taps,
                         .columns = taps,
                         .scale = 1,
                         .add = add,
                     });
}

/* The same for blocks: taps are rows, and a panel of outputs is in lanes. */
static void wgrad_blocked(const struct job_wgrad *job, const struct member *member, int64_t pixels,
                          int64_t tap, int64_t taps, bool add)
{
    const struct conv_relation *r = &job->relation;
    int64_t width = job->gemm->columns;
    gemm_pack_a(job->gemm, (struct gemm_side){member->patches, PATCH_PIXELS, 1}, taps, pixels,
                member->panel, pixels, 0);
    for (int64_t o = 0; o < r->out_group; o += width) {
        int64_t first = o / BLOCKED_PANEL * BLOCKED_PANEL;
        gemm_times_panel(job->gemm, member->panel, taps, pixels, 0,
                         (struct gemm_tile){
                             .inner = pixels,
                             .b = member->dy + o * pixels,
                             .c = job->dw + first * r->taps + tap * BLOCKED_PANEL + o - first,
                             .stride = BLOCKED_PANEL,
                             .columns = width,
                             .scale = 1,
                             .add = add,
                         });
    }
}

/* Adds a block of pixels to the gradients of the taps from `from` to `to`. */
static void wgrad_block(const struct job_wgrad *job, const struct member *member, int64_t group,
                        int64_t pixel, int64_t pixels, int64_t from, int64_t to)
{
    const struct conv_relation *r = &job->relation;
    int64_t plane = r->down.in * r->across.in, taps;
    int64_t most = job->blocked ? TAPS / job->gemm->rows * job->gemm->rows : job->gemm->columns;
    bool add = job->accumulate || pixel > 0;
    struct conv_gather gather = {
        .x = job->x + group * r->in_group * plane,
        .plane = plane,
        .step = r->across.move,
        .ahead = PATCH_PIXELS,
        .pieces = member->pieces,
        .taps = job->phase->count,
        .count = patch_pieces(r, job->phase, job->taps, job->conv->lanes, pixel, pixels, pixels,
                              member->pieces),
        .out = member->patches,
        .lead = PATCH_PIXELS,
    };
    pack_dy(job, member, group, pixel, pixels);
    for (int64_t k = from; k < to; k += taps) {
        taps = to - k < most ? to - k : most;
        job->conv->gather(&gather, k, taps);
        if (job->blocked)
            wgrad_blocked(job, member, pixels, k, taps, add);
        else
            wgrad_taps(job, member, group, pixels, k, taps, add);
    }
}

static void wgrad_member(void *context, int index, int members)
{
    const struct job_wgrad *job = context;
    const struct conv_relation *r = &job->relation;
    int64_t all = r->batch * r->down.out * r->across.out, pixels;
    struct member member;
    long from, to;
    lay_out_member(job, job->members + (uint64_t)index * job->member_bytes, &member);
    pool_share(r->taps, job->blocked ? job->gemm->rows : job->gemm->columns, index, members, &from,
               &to);
    for (int64_t g = 0; g < r->groups && from < to; g++)
        for (int64_t p = 0; p < all; p += pixels) {
            pixels = even_part(all, PATCH_PIXELS, p);
            wgrad_block(job, &member, g, p, pixels, from, to);
        }
}

void conv_gemm_wgrad(const struct call *call, const struct gemm_kernels *gemm,
                     const struct conv_kernels *conv, const struct conv_relation *relation,
                     bool blocked)
{
    struct job_wgrad job = {
        .blocked = blocked,
        .gemm = gemm,
        .conv = conv,
        .relation = patch_flat(relation),
        .x = call->data[AT_conv_dw_x],
        .dy = call->data[AT_conv_dw_dy],
        .dw = call->data[AT_conv_dw_dw],
        .accumulate = call->op->attr.conv_dw.accumulate,
    };
    lay_out(&job, pool_at_once(call->pool), call->workspace);
    patch_list(&job.relation, job.phase, job.taps);
    int64_t width = blocked ? gemm->rows : gemm->columns;
    int64_t panels = (relation->taps + width - 1) / width;
    int members = team_for_flop(call->pool, 2 * call->counts[1] * relation->taps, panels);
    pool_run(call->pool, members, wgrad_member, &job);
}

uint64_t conv_gemm_wgrad_bytes(const struct conv_relation *relation, bool blocked, int threads)
{
    struct job_wgrad job = {.relation = patch_flat(relation), .blocked = blocked};
    return lay_out(&job, threads, NULL);
}
