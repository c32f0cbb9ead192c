/* conv_gemm.c: convolution as a product of packed panels, for many channels or few samples:
 *
 *     y[output, pixel] = w[output, tap] · patches[tap, pixel]
 *
 * over the pixels of all samples, one group and phase (conv_relation.h) at a time. The patches are
 * never there as a whole: each panel of them is gathered from the image, into L1, when it is
 * needed (conv_patches.h), or a band of rows that has them all (conv_band.h). Pixels are in lanes
 * and weights broadcast; where few pixels would leave lanes empty (49 of 64), the product is
 * transposed: outputs in lanes, patches broadcast. Of a band both are read alike, so outputs that
 * fill panels are in lanes and the rest (1 of 33) have pixels there. What follows the convolution
 * (bias, batch-norm, a second summand, a function) is done to a block of sums on its way to y. The
 * bound is FMA; gathering costs about two loads and stores per tap of a panel, which all outputs
 * share.
 */
#include "backend/cpu/simd/conv/conv_loops.h"
#include "backend/cpu/simd/conv/conv_panels.h"
#include "backend/cpu/simd/workspace.h"
#include "backend/cpu/team.h"

enum { OUTPUTS = 256 };                   /* of a part, about */
enum { PART_MOST = OUTPUTS + GEMM_ROWS }; /* a part is whole panels */
enum { GATHERING = 8 }; /* a panel of patches costs as much as so many outputs of it */

static uint64_t lay_out_member(const struct panel_job *job, char *memory,
                               struct panel_member *member)
{
    const struct conv_relation *r = &job->relation;
    int64_t most = r->out_group < PART_MOST ? r->out_group : PART_MOST;
    int64_t kernel = r->down.kernel * r->across.kernel;
    int64_t width = job->transposed ? PANEL_PIXELS : GEMM_COLUMNS;
    uint64_t used = 0;
    member->patches =
        workspace_take(memory, &used, (PANEL_TAPS + 1) * width, sizeof *member->patches);
    member->sums = workspace_take(memory, &used, most * PANEL_PIXELS, sizeof *member->sums);
    kernel = kernel < job->band.source.count ? job->band.source.count : kernel;
    member->pieces = workspace_take(memory, &used, kernel * PANEL_PIXELS, sizeof *member->pieces);
    member->counts = workspace_take(memory, &used, PANEL_PIXELS, sizeof *member->counts);
    member->runs = workspace_take(memory, &used, PANEL_PIXELS, sizeof *member->runs);
    return used;
}

/* Divides the workspace; returns how large it must be. */
static uint64_t lay_out(struct panel_job *job, int threads, char *workspace)
{
    const struct conv_relation *r = &job->relation;
    struct panel_member member;
    uint64_t used = 0;
    job->phases = workspace_take(workspace, &used, patch_phases(r), sizeof *job->phases);
    job->taps =
        workspace_take(workspace, &used, r->down.kernel * r->across.kernel, sizeof *job->taps);
    job->band.taps =
        workspace_take(workspace, &used, job->band.source.count, sizeof *job->band.taps);
    job->band.offsets = workspace_take(workspace, &used, PANEL_TAPS, sizeof *job->band.offsets);
    job->weights = workspace_take(workspace, &used, panel_packs(job) ? r->out * r->taps : 0,
                                  sizeof *job->weights);
    job->after.scale = workspace_take(workspace, &used, r->out, sizeof(float));
    job->after.shift = workspace_take(workspace, &used, r->out, sizeof(float));
    job->member_bytes = lay_out_member(job, NULL, &member);
    job->members = workspace_take(workspace, &used, threads, job->member_bytes);
    return used;
}

static int64_t pixels_of(const struct panel_job *job, const struct patch_phase *phase)
{
    return job->relation.batch * phase->rows * phase->columns;
}

/* Pixels of every block but the last, which may have fewer: whole rows for bands, whole panels
 * where pixels are in lanes, otherwise as many in each. */
static int64_t block_size(const struct panel_job *job, const struct patch_phase *phase)
{
    if (job->band.rows)
        return job->band.rows * phase->columns;
    int64_t panel = job->transposed ? 1 : job->gemm->columns, most = PANEL_PIXELS / panel;
    int64_t panels = (pixels_of(job, phase) + panel - 1) / panel;
    int64_t blocks = (panels + most - 1) / most;
    return blocks ? (panels + blocks - 1) / blocks * panel : 1;
}

/* Bands are blocks of one sample each. */
static int64_t sample_blocks(const struct panel_job *job)
{
    return (job->relation.down.steps + job->band.rows - 1) / job->band.rows;
}

static int64_t blocks_of(const struct panel_job *job, const struct patch_phase *phase)
{
    int64_t size = block_size(job, phase);
    if (job->band.rows)
        return job->relation.batch * sample_blocks(job);
    return (pixels_of(job, phase) + size - 1) / size;
}

/* The pixels of block number i. */
static void place_block(const struct panel_job *job, struct panel_block *block, int64_t i)
{
    const struct patch_phase *phase = block->phase;
    int64_t size = block_size(job, phase), end = pixels_of(job, phase);
    block->pixel = i * size;
    if (job->band.rows) {
        int64_t sample = i / sample_blocks(job), image = phase->rows * phase->columns;
        block->pixel = sample * image + i % sample_blocks(job) * size;
        end = (sample + 1) * image;
    }
    block->pixels = end - block->pixel < size ? end - block->pixel : size;
}

/* A part of the outputs: those that are in lanes, and the others. */
static void sum_part(const struct panel_job *job, const struct panel_member *member,
                     struct panel_block *block)
{
    int64_t outputs = panel_part_at(job, block->first);
    block->outputs = panel_transposed(job, outputs);
    block->transposed = true;
    if (block->outputs)
        panel_sum(job, member, block);
    block->first += block->outputs;
    block->outputs = outputs - block->outputs;
    block->transposed = false;
    if (block->outputs)
        panel_sum(job, member, block);
}

static void sum_member(void *context, int index, int members)
{
    const struct panel_job *job = context;
    const struct conv_relation *r = &job->relation;
    struct panel_member member;
    lay_out_member(job, job->members + (uint64_t)index * job->member_bytes, &member);
    for (int64_t i = 0; i < patch_phases(r); i++) {
        const struct patch_phase *phase = &job->phases[i];
        int64_t blocks = blocks_of(job, phase);
        long item, last;
        pool_share(r->groups * job->parts * blocks, 1, index, members, &item, &last);
        for (; item < last; item++) {
            struct panel_block block = {
                .phase = phase,
                .group = item / blocks / job->parts,
                .first = item / blocks % job->parts * panel_part(job),
            };
            place_block(job, &block, item % blocks);
            sum_part(job, &member, &block);
        }
    }
}

/* Outputs in lanes, where they fill them: always with weights in blocks, otherwise where pixels
 * would leave more than a twentieth of their lanes empty. */
static bool should_transpose(const struct panel_job *job)
{
    const struct conv_relation *r = &job->relation;
    int64_t pixels = r->batch * r->down.steps * r->across.steps, width = job->gemm->columns;
    int64_t empty = (pixels + width - 1) / width * width - pixels;
    return r->out_group % width == 0 && (job->blocked || 20 * empty > pixels);
}

/* Is a flat band less work than panels of patches? The outputs that do not fill panels are summed
 * between its rows too; gathering costs as much as some outputs more. */
static bool flat_suits(const struct panel_job *job, const struct conv_band *band)
{
    const struct conv_relation *r = &job->relation;
    int64_t columns = r->across.steps, rest = r->out_group % job->gemm->columns;
    bool short_rows = 2 * columns < job->gemm->rows; /* would make small tiles */
    return band->rows && !short_rows && (band->lead - columns) * rest < columns * GATHERING;
}

static void choose_form(struct panel_job *job)
{
    struct conv_band flat =
        band_flat(&job->relation, PANEL_PIXELS, PANEL_TAPS, (int64_t)PANEL_TAPS * GEMM_COLUMNS);
    job->transposed = should_transpose(job);
    if (job->transposed)
        job->band = band_of(&job->relation, PANEL_PIXELS, PANEL_TAPS,
                            (int64_t)PANEL_TAPS * PANEL_PIXELS, job->gemm->rows);
    else if (flat_suits(job, &flat))
        job->band = flat;
}

/* Parts of the outputs: small enough for L2, and where there are few pixels, as many for each
 * thread as for the others. */
static void choose_parts(struct panel_job *job, int members)
{
    const struct conv_relation *r = &job->relation;
    int64_t parts = (r->out_group + OUTPUTS - 1) / OUTPUTS;
    if (r->groups < members && blocks_of(job, job->phases) < 4 * members)
        parts = (parts + members - 1) / members * members;
    job->parts = parts;
    job->parts = (r->out_group + panel_part(job) - 1) / panel_part(job);
}

void conv_gemm_sum(const struct call *call, const struct gemm_kernels *gemm,
                   const struct conv_kernels *conv, const struct conv_relation *relation,
                   bool blocked)
{
    struct panel_job job = {
        .blocked = blocked,
        .gemm = gemm,
        .conv = conv,
        .relation = patch_flat(relation),
        .x = call->data[AT_conv_x],
        .w = call->data[AT_conv_w],
        .y = call->data[call->op->inputs],
    };
    const struct conv_relation *r = &job.relation;
    choose_form(&job);
    job.few = r->batch * r->down.steps * r->across.steps <= 4 * PANEL_PIXELS;
    lay_out(&job, pool_at_once(call->pool), call->workspace);
    patch_list(r, job.phases, job.taps);
    if (job.band.rows)
        band_list(r, job.taps, &job.band);
    conv_after_of(call, r->out, &job.after);
    int64_t flop = 2 * r->batch * r->out * r->taps * r->down.steps * r->across.steps;
    int64_t pixels = r->batch * r->down.steps * r->across.steps;
    int members =
        team_for_flop(call->pool, flop, pixels * r->out / (PANEL_PIXELS * gemm->rows) + 1);
    choose_parts(&job, members);
    if (panel_packs(&job))
        pool_run(call->pool,
                 team_for_bytes(call->pool, call->counts[1] * 8, r->out / gemm->rows + 1),
                 panel_pack, &job);
    pool_run(call->pool, members, sum_member, &job);
}

uint64_t conv_gemm_sum_bytes(const struct gemm_kernels *gemm, const struct conv_relation *relation,
                             bool blocked, int threads)
{
    struct panel_job job = {.gemm = gemm, .relation = patch_flat(relation), .blocked = blocked};
    choose_form(&job);
    return lay_out(&job, threads, NULL);
}

bool conv_gemm_has_bands(const struct gemm_kernels *gemm, const struct conv_relation *relation,
                         bool blocked)
{
    struct panel_job job = {.gemm = gemm, .relation = patch_flat(relation), .blocked = blocked};
    choose_form(&job);
    return job.band.rows > 0;
}
