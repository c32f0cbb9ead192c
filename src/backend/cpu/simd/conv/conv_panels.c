/* conv_panels.c: the weights of a convolution in panels of outputs, [tap][outputs], as its product
 * reads them. The outputs of a group are divided into parts, a part into panels: whole vectors of
 * outputs where they are in lanes, even shares of the rest. */
#include "backend/cpu/simd/conv/conv_panels.h"

#include "backend/cpu/blocked.h"
#include "backend/cpu/team.h"

bool panel_packs(const struct panel_job *job)
{
    return !job->blocked || job->relation.transposed || job->gemm->columns != BLOCKED_PANEL;
}

int64_t panel_transposed(const struct panel_job *job, int64_t outputs)
{
    return job->band.rows || job->transposed ? outputs / job->gemm->columns * job->gemm->columns
                                             : 0;
}

/* Of so many outputs, those of the panel of weights that begins with number `first`. */
static int64_t panel_outputs(const struct panel_job *job, int64_t outputs, int64_t first)
{
    int64_t transposed = panel_transposed(job, outputs);
    if (first < transposed)
        return job->gemm->columns;
    return even_part(outputs - transposed, job->gemm->rows, first - transposed);
}

int64_t panel_part(const struct panel_job *job)
{
    int64_t panel =
        panel_transposed(job, job->gemm->columns) ? job->gemm->columns : job->gemm->rows;
    int64_t panels = (job->relation.out_group + panel - 1) / panel;
    return (panels + job->parts - 1) / job->parts * panel;
}

int64_t panel_part_at(const struct panel_job *job, int64_t first)
{
    int64_t left = job->relation.out_group - first;
    return left < panel_part(job) ? left : panel_part(job);
}

float *panel_weights(const struct panel_job *job, const struct panel_block *block)
{
    const struct conv_relation *r = &job->relation;
    int64_t before = r->in_group * block->phase->first, taps = r->in_group * block->phase->count;
    if (!panel_packs(job))
        return (float *)job->w + block->first * taps;
    return job->weights + (block->group * r->taps + before) * r->out_group + block->first * taps;
}

/* A panel of weights in blocks, for outputs from number `first` on: copied for a convolution;
 * flipped for a transposed one, whose outputs are the other's inputs. */
static void pack_blocked(const struct panel_job *job, const struct patch_phase *phase,
                         int64_t first, int64_t outputs, float *to)
{
    const struct conv_relation *r = &job->relation;
    int64_t kernel = r->down.kernel * r->across.kernel, lanes = job->gemm->lanes;
    const float *w = job->w;
    if (!r->transposed) {
        w += first / BLOCKED_PANEL * BLOCKED_PANEL * r->taps + first % BLOCKED_PANEL;
        for (int64_t i = 0; i < outputs; i += lanes)
            job->gemm->pack(w + i, 1, BLOCKED_PANEL, lanes, r->taps, to + i, outputs);
        return;
    }
    for (int64_t c = 0; c < r->in_group; c += BLOCKED_PANEL)
        for (int64_t k = 0; k < phase->count; k++) {
            const float *from =
                w + c * r->out_group * kernel +
                (first * kernel + job->taps[phase->first + k].place) * BLOCKED_PANEL;
            float *panel = to + (c * phase->count + k) * outputs;
            for (int64_t i = 0; i < outputs && job->transposed; i += lanes)
                job->gemm->pack(from + i * kernel * BLOCKED_PANEL, kernel * BLOCKED_PANEL, 1, lanes,
                                BLOCKED_PANEL, panel + i, phase->count * outputs);
            for (int64_t i = 0; i < outputs && !job->transposed; i++)
                for (int64_t o = 0; o < BLOCKED_PANEL; o++)
                    panel[o * phase->count * outputs + i] = from[i * kernel * BLOCKED_PANEL + o];
        }
}

/* A panel of weights: [tap][outputs], from output `first` of the block on. */
static void pack_panel(const struct panel_job *job, const struct panel_block *block, int64_t first,
                       int64_t outputs)
{
    const struct conv_relation *r = &job->relation;
    const struct patch_phase *phase = block->phase;
    int64_t kernel = r->down.kernel * r->across.kernel, taps = r->in_group * phase->count;
    int64_t lanes = job->gemm->lanes;
    int64_t across = r->transposed ? kernel : r->taps; /* from an output to the next */
    float *to = panel_weights(job, block) + first * taps;
    const float *w =
        job->w + block->group * r->taps * r->out_group + (block->first + first) * across;
    if (job->blocked) {
        pack_blocked(job, phase, block->first + first, outputs, to);
        return;
    }
    if (!r->transposed || kernel == 1) {
        int64_t along = r->transposed ? r->out_group : 1;
        for (int64_t i = 0; i < outputs; i += lanes)
            job->gemm->pack(w + i * across, across, along,
                            outputs - i < lanes ? outputs - i : lanes, taps, to + i, outputs);
        return;
    }
    for (int64_t c = 0; c < r->in_group; c++, w += kernel * r->out_group)
        for (int64_t k = 0; k < phase->count; k++, to += outputs)
            for (int64_t i = 0; i < outputs; i++)
                to[i] = w[i * kernel + job->taps[phase->first + k].place];
}

void panel_pack(void *context, int index, int members)
{
    const struct panel_job *job = context;
    const struct conv_relation *r = &job->relation;
    for (int64_t i = 0; i < r->groups * patch_phases(r) * job->parts; i++) {
        struct panel_block block = {
            .phase = &job->phases[i / job->parts % patch_phases(r)],
            .group = i / job->parts / patch_phases(r),
            .first = i % job->parts * panel_part(job),
        };
        block.outputs = panel_part_at(job, block.first);
        int64_t size, panel = 0;
        for (int64_t o = 0; o < block.outputs; o += size, panel++) {
            size = panel_outputs(job, block.outputs, o);
            if (panel % members == index)
                pack_panel(job, &block, o, size);
        }
    }
}
