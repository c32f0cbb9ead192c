/* pipeline_table.c: see pipeline_table.h. */
#include "core/pass/pipeline_table.h"

#include "base/arena.h"
#include "base/text.h"

#include <assert.h>
#include <string.h>

static const char *const names[PIPELINE_SCHEDULES] = {
    [PIPELINE_1F1B] = "1f1b",
    [PIPELINE_GPIPE] = "gpipe",
};

const char *pipeline_schedule_name(enum pipeline_schedule schedule)
{
    return names[schedule];
}

enum status pipeline_schedule_read(const char *name, enum pipeline_schedule *out)
{
    for (int i = 0; i < PIPELINE_SCHEDULES; i++)
        if (!strcmp(name, names[i])) {
            *out = (enum pipeline_schedule)i;
            return STATUS_OK;
        }
    FAIL(STATUS_INPUT, "--pipeline: found '%s', expected 1f1b or gpipe", name);
}

int32_t pipeline_alive(enum pipeline_schedule schedule, int32_t stages, int32_t stage,
                       int32_t micros)
{
    int32_t most = schedule == PIPELINE_GPIPE ? micros : stages - stage;
    return most < micros ? most : micros;
}

/* So many forwards come first; then a backward and a forward in turn; then what is left. Of the
 * first forwards one is the other half of the first pair, so that `alive` of them are there at
 * once. */
void pipeline_table(enum pipeline_schedule schedule, int32_t stages, int32_t stage, int32_t micros,
                    struct pipeline_turn *out)
{
    const int32_t alive = pipeline_alive(schedule, stages, stage, micros);
    int32_t forwards = 0, backwards = 0;
    for (int32_t i = 0; i < 2 * micros; i++) {
        const bool backward = forwards == micros || forwards - backwards == alive;
        const int32_t micro = backward ? backwards++ : forwards++;
        out[i] = (struct pipeline_turn){backward, micro, micro % alive};
    }
}

/* How far the tables were played. */
struct play {
    int32_t stages, micros;
    struct pipeline_turn *turns; /* [stages][2 × micros] */
    int32_t *next;               /* per stage */
    double *free_s;              /* per stage: when it ends what it does */
    double *done_s[2]; /* [stages][micros]: when the forward, the backward ended; < 0: not yet */
};

static enum status play_begin(struct play *play, struct arena *arena)
{
    const size_t stages = (size_t)play->stages, all = stages * (size_t)play->micros;
    NEED(play->turns = arena_array(arena, 2 * all, sizeof *play->turns));
    NEED(play->next = arena_array(arena, stages, sizeof *play->next));
    NEED(play->free_s = arena_array(arena, stages, sizeof *play->free_s));
    for (int i = 0; i < 2; i++) {
        NEED(play->done_s[i] = arena_array(arena, all, sizeof *play->done_s[i]));
        for (size_t k = 0; k < all; k++)
            play->done_s[i][k] = -1;
    }
    return STATUS_OK;
}

/* When what this turn waits for has ended; -1: it has not been played yet. */
static double ready_s(const struct play *play, int32_t stage, const struct pipeline_turn *turn)
{
    const int32_t last = play->stages - 1;
    const double *done = play->done_s[turn->backward && stage < last];
    int32_t from = turn->backward ? (stage < last ? stage + 1 : stage) : stage - 1;
    return from < 0 ? 0 : done[from * play->micros + turn->micro];
}

/* Plays the next turn of a stage, if it can. */
static bool play_turn(struct play *play, int32_t stage, const double *forward_s,
                      const double *backward_s)
{
    if (play->next[stage] == 2 * play->micros)
        return false;
    const struct pipeline_turn *turn = &play->turns[stage * 2 * play->micros + play->next[stage]];
    const double ready = ready_s(play, stage, turn);
    if (ready < 0)
        return false;
    const double start = ready > play->free_s[stage] ? ready : play->free_s[stage];
    play->free_s[stage] = start + (turn->backward ? backward_s : forward_s)[stage];
    play->done_s[turn->backward][stage * play->micros + turn->micro] = play->free_s[stage];
    play->next[stage]++;
    return true;
}

enum status pipeline_play(enum pipeline_schedule schedule, int32_t stages, int32_t micros,
                          const double *forward_s, const double *backward_s, double *step_s,
                          double *bubble)
{
    struct arena arena = {0};
    struct play play = {.stages = stages, .micros = micros};
    double busy_s = 0;
    enum status status;
    *step_s = 0;
    TRY_OR(done, play_begin(&play, &arena));
    for (int32_t s = 0; s < stages; s++)
        pipeline_table(schedule, stages, s, micros, play.turns + s * 2 * micros);
    for (bool moved = true; moved;) {
        moved = false;
        for (int32_t s = 0; s < stages; s++)
            while (play_turn(&play, s, forward_s, backward_s))
                moved = true;
    }
    for (int32_t s = 0; s < stages; s++) {
        *step_s = play.free_s[s] > *step_s ? play.free_s[s] : *step_s;
        busy_s += (double)micros * (forward_s[s] + backward_s[s]);
    }
    *bubble = *step_s > 0 ? 1 - busy_s / (*step_s * (double)stages) : 0;
done:
    arena_free(&arena);
    return status;
}

/* By dynamic programming: the best cut of the first i groups into k stages is the best cut of some
 * first j of them into k - 1, and a stage of the rest. */
enum status pipeline_balance(const double *costs, int32_t count, int32_t stages, int32_t *stage_of)
{
    struct arena arena = {0};
    const size_t width = (size_t)count + 1;
    enum status status = STATUS_OK;
    double *sums, *largest; /* [count + 1], [stages + 1][count + 1] */
    int32_t *begins;        /* [stages + 1][count + 1]: where the last stage of that cut begins */
    assert(stages >= 1 && stages <= count);
    NEED_OR(done, sums = arena_array(&arena, width, sizeof *sums));
    NEED_OR(done, largest = arena_array(&arena, width * ((size_t)stages + 1), sizeof *largest));
    NEED_OR(done, begins = arena_array(&arena, width * ((size_t)stages + 1), sizeof *begins));
    for (int32_t i = 0; i < count; i++)
        sums[i + 1] = sums[i] + costs[i];
    for (int32_t i = 1; i <= count; i++)
        largest[width + (size_t)i] = sums[i];
    for (int32_t k = 2; k <= stages; k++)
        for (int32_t i = k; i <= count; i++) {
            const size_t at = (size_t)k * width + (size_t)i;
            for (int32_t j = k - 1; j < i; j++) {
                const double before = largest[(size_t)(k - 1) * width + (size_t)j];
                const double own = sums[i] - sums[j], most = before > own ? before : own;
                if (j == k - 1 || most < largest[at]) {
                    largest[at] = most;
                    begins[at] = j;
                }
            }
        }
    for (int32_t k = stages, to = count; k >= 1; k--) {
        const int32_t from = begins[(size_t)k * width + (size_t)to];
        for (int32_t i = from; i < to; i++)
            stage_of[i] = k - 1;
        to = from;
    }
done:
    arena_free(&arena);
    return status;
}
