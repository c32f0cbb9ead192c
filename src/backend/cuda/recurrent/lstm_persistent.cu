/* lstm_persistent.cu: the steps of an lstm in one kernel, the recurrent weights kept in registers.
 *
 * A block has SAMPLES samples and UNITS units, all four gates of them; the blocks of the same
 * samples are a team and tell each other, once a step, what they found. Their weights are the
 * columns of Wh that belong to their gates, forward and backward alike: 64 in each of 256 threads.
 *
 * Forward a block needs the state h of all units, from every member; backward it turns the
 * gradients of its gates into a share of dh for all units, and adds up the shares that members have
 * for its own. What travels is a word of 8 bytes, a float and the number of the step, written and
 * read as one: who needs it reads until the number is right, so that no barrier is needed. There
 * are two sets of words, for even and odd steps. A word is overwritten two steps later, by a block
 * that has had, in between, one from each block that reads it; so it has been read. All blocks of a
 * launch run at once (a cooperative launch); larger batches take several.
 *
 * Sums have a fixed order. Bound: 131,072 multiply-adds a block and step, 1,024 cycles; then an
 * exchange through L2, about 0.7 µs. */
#include "backend/cuda/device/activation.h"
#include "backend/cuda/recurrent/lstm_persistent.h"

enum {
    SAMPLES = 8,
    UNITS = 16,
    GATES = 4,
    COLUMNS = GATES * UNITS, /* of a block */
    MOST = 256,              /* units of a layer */
    WARPS = THREADS / 32,
    DEPTH = MOST / WARPS, /* units whose h a warp multiplies */
    PAIRS = SAMPLES / 2
};

/* Two words side by side: float and number of each. */
struct pair {
    uint64_t a, b;
};

/* Reads COUNT pairs, `apart` from each other, once they have all come; those from `there` on do not
 * come and are 0. All are asked for at once: each answer takes as long as an exchange. */
template <int COUNT>
static __device__ void read_pairs(float2 (&out)[COUNT], const struct pair *from, int apart,
                                  int there, uint32_t number)
{
    bool missing = true;
    while (missing) {
        struct pair pairs[COUNT] = {};
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            if (i < there)
                asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];"
                             : "=l"(pairs[i].a), "=l"(pairs[i].b)
                             : "l"(from + i * apart)
                             : "memory");
        missing = false;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            missing = missing || (i < there && ((uint32_t)(pairs[i].a >> 32) != number ||
                                                (uint32_t)(pairs[i].b >> 32) != number));
            out[i] = make_float2(__uint_as_float((uint32_t)pairs[i].a),
                                 __uint_as_float((uint32_t)pairs[i].b));
        }
    }
}

static __device__ uint64_t word_of(float value, uint32_t number)
{
    return (uint64_t)number << 32 | __float_as_uint(value);
}

static __device__ void pair_write(struct pair *to, float a, float b, uint32_t number)
{
    asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(word_of(a, number)),
                 "l"(word_of(b, number))
                 : "memory");
}

/* … of the pair only the word of one sample */
static __device__ void word_write(struct pair *to, int32_t sample, float value, uint32_t number)
{
    asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"((uint64_t *)to + sample % 2),
                 "l"(word_of(value, number))
                 : "memory");
}

/* Blocks of a team. */
static __host__ __device__ int32_t members_of(int64_t hidden)
{
    return (int32_t)((hidden + UNITS - 1) / UNITS);
}

/* Where a block works, and the sample and unit whose cell a thread keeps. */
struct seat {
    int32_t team, member, members;
    int32_t sample_in_block, unit_in_block;
    int64_t sample, unit;
    bool keeps, lives; /* a cell; one of the layer's */
    __device__ seat(const struct sequence &sequence, int32_t first_team)
    {
        const int32_t thread = (int32_t)threadIdx.x;
        members = members_of(sequence.hidden);
        team = first_team + (int32_t)blockIdx.x / members;
        member = (int32_t)blockIdx.x % members;
        sample_in_block = thread / UNITS % SAMPLES;
        unit_in_block = thread % UNITS;
        sample = (int64_t)team * SAMPLES + sample_in_block;
        unit = (int64_t)member * UNITS + unit_in_block;
        keeps = thread < SAMPLES * UNITS;
        lives = keeps && sample < sequence.n && unit < sequence.hidden;
    }
    /* The weight from a unit's h to a column of this block. */
    __device__ float weight(const struct sequence &sequence, const float *wh, int64_t from,
                            int32_t column) const
    {
        const int64_t to = (int64_t)member * UNITS + column % UNITS;
        if (from >= sequence.hidden || to >= sequence.hidden)
            return 0.0f;
        return wh[(from * GATES + column / UNITS) * sequence.hidden + to];
    }
};

/* Words of a team, forward: [2][PAIRS][MOST]. */
static __device__ struct pair *state_words(void *words, int32_t team, uint32_t number)
{
    return (struct pair *)words + ((int64_t)team * 2 + number % 2) * PAIRS * MOST;
}

static __device__ void receive_state(const struct pair *words, int32_t units, uint32_t number,
                                     float (*h)[MOST])
{
    const int32_t unit = (int32_t)threadIdx.x;
    if (unit >= units)
        return;
    float2 pairs[PAIRS];
    read_pairs(pairs, words + unit, MOST, PAIRS, number);
#pragma unroll
    for (int p = 0; p < PAIRS; p++) {
        h[2 * p][unit] = pairs[p].x;
        h[2 * p + 1][unit] = pairs[p].y;
    }
}

static __global__ void __launch_bounds__(THREADS, 1)
    lstm_steps(struct sequence sequence, struct lstm_forward lstm, int32_t first_team)
{
    __shared__ float h[SAMPLES][MOST], part[WARPS][SAMPLES][COLUMNS];
    const struct seat seat(sequence, first_team);
    const int thread = (int)threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int64_t hidden = sequence.hidden, cell = seat.sample * hidden + seat.unit;
    float w[DEPTH][2], state = 0.0f, memory = 0.0f, bias[GATES] = {};

#pragma unroll
    for (int d = 0; d < DEPTH; d++)
#pragma unroll
        for (int k = 0; k < 2; k++)
            w[d][k] = seat.weight(sequence, lstm.wh, warp * DEPTH + d, 2 * lane + k);
    for (int s = 0; s < SAMPLES; s++) {
        const int64_t sample = (int64_t)seat.team * SAMPLES + s;
        const bool there = lstm.h0 && sample < sequence.n && thread < hidden;
        h[s][thread] = there ? lstm.h0[sample * hidden + thread] : 0.0f;
    }
    if (seat.lives) {
        state = lstm.h0 ? lstm.h0[cell] : 0.0f;
        memory = lstm.c0 ? lstm.c0[cell] : 0.0f;
        for (int gate = 0; gate < GATES; gate++)
            bias[gate] = lstm.bh[gate * hidden + seat.unit];
    }
    for (int64_t step = 0; step < sequence.steps; step++) {
        const int64_t place = (seat.sample * sequence.steps + step) * hidden + seat.unit;
        float gate[GATES] = {};
        if (seat.lives)
#pragma unroll
            for (int g = 0; g < GATES; g++)
                gate[g] = lstm.sums[(seat.sample * sequence.steps + step) * GATES * hidden +
                                    g * hidden + seat.unit];
        if (step > 0)
            receive_state(state_words(lstm.words, seat.team, (uint32_t)step), seat.members * UNITS,
                          (uint32_t)step, h);
        __syncthreads();
        float sum[SAMPLES][2] = {};
#pragma unroll
        for (int d = 0; d < DEPTH; d += 4)
#pragma unroll
            for (int s = 0; s < SAMPLES; s++) {
                const vector<4> four = *(const vector<4> *)&h[s][warp * DEPTH + d];
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int k = 0; k < 2; k++)
                        sum[s][k] = fmaf(four.at[i], w[d + i][k], sum[s][k]);
            }
#pragma unroll
        for (int s = 0; s < SAMPLES; s++)
            *(float2 *)&part[warp][s][2 * lane] = make_float2(sum[s][0], sum[s][1]);
        __syncthreads();
        if (!seat.keeps)
            continue;
        if (seat.lives && sequence.active(seat.sample, step)) {
#pragma unroll
            for (int g = 0; g < GATES; g++) {
                float recurrent = bias[g];
#pragma unroll
                for (int other = 0; other < WARPS; other++)
                    recurrent += part[other][seat.sample_in_block][g * UNITS + seat.unit_in_block];
                gate[g] += recurrent;
            }
            const float i = sigmoid(gate[0]), f = sigmoid(gate[1]);
            const float g = tanhf(gate[2]), o = sigmoid(gate[3]);
            memory = f * memory + i * g;
            state = o * tanhf(memory);
            if (lstm.gates) {
                float *to = lstm.gates + (place - seat.unit) * GATES + seat.unit;
                to[0] = i, to[hidden] = f, to[2 * hidden] = g, to[3 * hidden] = o;
            }
            if (lstm.cells)
                lstm.cells[place] = memory;
            lstm.y[place] = state;
        } else if (seat.lives)
            lstm.y[place] = 0.0f;
        if (step + 1 < sequence.steps)
            word_write(state_words(lstm.words, seat.team, (uint32_t)step + 1) +
                           seat.sample_in_block / 2 * MOST + seat.unit,
                       seat.sample_in_block, state, (uint32_t)step + 1);
    }
    if (seat.lives) {
        lstm.hn[cell] = state;
        lstm.cn[cell] = memory;
    }
}

enum { MEMBERS_MOST = MOST / UNITS };

/* Words of a team, backward: [2][to member][from member][PAIRS][UNITS]. */
static __device__ struct pair *share_words(void *words, int32_t team, uint32_t number, int32_t to,
                                           int32_t from)
{
    return (struct pair *)words +
           ((((int64_t)team * 2 + number % 2) * MEMBERS_MOST + to) * MEMBERS_MOST + from) * PAIRS *
               UNITS;
}

enum { QUARTER = MEMBERS_MOST / 4 };

/* A quarter of the threads adds the shares of a quarter of the members, those of two samples and a
 * unit each. */
static __device__ void receive_shares(void *words, const struct seat &seat, uint32_t number,
                                      float (*shares)[SAMPLES][UNITS])
{
    const int thread = (int)threadIdx.x, quarter = thread / (PAIRS * UNITS);
    const int within = thread % (PAIRS * UNITS);
    float2 pairs[QUARTER];
    read_pairs(pairs,
               share_words(words, seat.team, number, seat.member, quarter * QUARTER) + within,
               PAIRS * UNITS, seat.members - quarter * QUARTER, number);
    float a = 0.0f, b = 0.0f;
#pragma unroll
    for (int i = 0; i < QUARTER; i++) {
        a += pairs[i].x;
        b += pairs[i].y;
    }
    shares[quarter][within / UNITS * 2][within % UNITS] = a;
    shares[quarter][within / UNITS * 2 + 1][within % UNITS] = b;
}

static __global__ void __launch_bounds__(THREADS, 1)
    lstm_steps_back(struct sequence sequence, struct lstm_backward lstm, int32_t first_team)
{
    __shared__ float shares[4][SAMPLES][UNITS];
    __shared__ alignas(16) float dgates[SAMPLES][COLUMNS];
    const struct seat seat(sequence, first_team);
    const int thread = (int)threadIdx.x;
    const int64_t hidden = sequence.hidden, cell = seat.sample * hidden + seat.unit;
    float w[COLUMNS], dh = 0.0f, dc = 0.0f;

#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
        w[c] = seat.weight(sequence, lstm.wh, thread, c);
    if (seat.lives) {
        dh = lstm.dhn ? lstm.dhn[cell] : 0.0f;
        dc = lstm.dcn ? lstm.dcn[cell] : 0.0f;
    }
    for (int64_t step = sequence.steps - 1; step >= -1; step--) {
        const uint32_t number = (uint32_t)(sequence.steps - step); /* of what is sent below */
        const int64_t place = (seat.sample * sequence.steps + step) * hidden + seat.unit;
        const bool active = seat.lives && step >= 0 && sequence.active(seat.sample, step);
        float gate[GATES] = {}, before = 0.0f, now = 0.0f, dy = 0.0f, out[GATES] = {};
        if (active) {
#pragma unroll
            for (int g = 0; g < GATES; g++)
                gate[g] = lstm.gates[(place - seat.unit) * GATES + g * hidden + seat.unit];
            before = step > 0 ? lstm.cells[place - hidden] : lstm.c0 ? lstm.c0[cell] : 0.0f;
            now = lstm.cells[place];
            dy = lstm.dy ? lstm.dy[place] : 0.0f;
        }
        if (number > 1)
            receive_shares(lstm.words, seat, number - 1, shares);
        __syncthreads();
        if (seat.lives && number > 1 && sequence.active(seat.sample, step + 1)) {
            dh = 0.0f;
#pragma unroll
            for (int quarter = 0; quarter < 4; quarter++)
                dh += shares[quarter][seat.sample_in_block][seat.unit_in_block];
        }
        if (step < 0)
            break;
        if (active) {
            const float i = gate[0], f = gate[1], g = gate[2], o = gate[3], bent = tanhf(now);
            const float dstate = dh + dy, dcell = dc + dstate * o * (1.0f - bent * bent);
            out[0] = dcell * g * i * (1.0f - i);
            out[1] = dcell * before * f * (1.0f - f);
            out[2] = dcell * i * (1.0f - g * g);
            out[3] = dstate * bent * o * (1.0f - o);
            dc = dcell * f;
        }
        if (seat.keeps)
#pragma unroll
            for (int g = 0; g < GATES; g++) {
                dgates[seat.sample_in_block][g * UNITS + seat.unit_in_block] = out[g];
                if (seat.lives)
                    lstm.dgates[(place - seat.unit) * GATES + g * hidden + seat.unit] = out[g];
            }
        __syncthreads();
        float sum[SAMPLES] = {};
#pragma unroll
        for (int c = 0; c < COLUMNS; c += 4)
#pragma unroll
            for (int s = 0; s < SAMPLES; s++) {
                const vector<4> four = *(const vector<4> *)&dgates[s][c];
#pragma unroll
                for (int i = 0; i < 4; i++)
                    sum[s] = fmaf(four.at[i], w[c + i], sum[s]);
            }
        if (thread < seat.members * UNITS)
#pragma unroll
            for (int p = 0; p < PAIRS; p++)
                pair_write(share_words(lstm.words, seat.team, number, thread / UNITS, seat.member) +
                               p * UNITS + thread % UNITS,
                           sum[2 * p], sum[2 * p + 1], number);
    }
    if (seat.lives) {
        lstm.dh0[cell] = dh;
        lstm.dc0[cell] = dc;
    }
}

static int64_t teams_of(int64_t n)
{
    return (n + SAMPLES - 1) / SAMPLES;
}

static int32_t multiprocessors(void)
{
    return (int32_t)device_has(cudaDevAttrMultiProcessorCount, TARGET_MULTIPROCESSORS);
}

bool lstm_is_persistent(int64_t hidden, int32_t multiprocessors)
{
    return hidden <= MOST && members_of(hidden) <= multiprocessors; /* a team runs at once */
}

uint64_t lstm_words_bytes(int64_t n, bool back)
{
    const uint64_t words =
        back ? 2 * MEMBERS_MOST * MEMBERS_MOST * PAIRS * UNITS : 2 * PAIRS * MOST;
    return (uint64_t)teams_of(n) * words * sizeof(struct pair);
}

/* As many teams at a time as the GPU has room for. */
template <typename Layer>
static void launch_teams(struct queue *queue, void (*kernel)(struct sequence, Layer, int32_t),
                         struct sequence sequence, Layer layer, bool back)
{
    const int32_t members = members_of(sequence.hidden), teams = (int32_t)teams_of(sequence.n);
    const int32_t at_once = multiprocessors() / members;
    begin_state(queue, (int64_t)(lstm_words_bytes(sequence.n, back) / sizeof(float)), NULL,
                (float *)layer.words);
    for (int32_t first = 0; first < teams; first += at_once) {
        queue->launches++;
        if (queue->counting || queue->error != cudaSuccess)
            continue;
        void *arguments[] = {&sequence, &layer, &first};
        queue->error = cudaLaunchCooperativeKernel(
            kernel, dim3((unsigned)(min(at_once, teams - first) * members)), dim3(THREADS),
            arguments, 0, queue->stream);
    }
}

void lstm_persistent(struct queue *queue, const struct sequence &sequence,
                     const struct lstm_forward &lstm)
{
    launch_teams(queue, lstm_steps, sequence, lstm, false);
}

void lstm_persistent_back(struct queue *queue, const struct sequence &sequence,
                          const struct lstm_backward &lstm)
{
    launch_teams(queue, lstm_steps_back, sequence, lstm, true);
}
