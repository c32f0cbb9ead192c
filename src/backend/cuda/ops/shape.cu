/* shape.cu: elements moved, picked and added up. Along an axis of k places, a tensor is [n, k, c]:
 * n times, k places of c elements each. */
#include "backend/cuda/plan/kernel_families.h"

/* y[n,k,c] = x[n,c], element by element of y. */
static __global__ void expand_each(int64_t count, int64_t times, int64_t width, const float *x,
                                   float *y)
{
    FOR_EACH(index, count)
    y[index] = x[index / (times * width) * width + index % width];
}

void launch_expand(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_expand_y);
    enqueue(queue, expand_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            call_dim(call, AT_expand_y, 1), call_dim(call, AT_expand_y, 2),
            (const float *)call_reals(call, AT_expand_x), call_reals(call, AT_expand_y));
}

/* y[n,b,a,c] = x[n,a,b,c], element by element of y. */
static __global__ void transpose_each(int64_t count, int64_t a, int64_t b, int64_t c,
                                      const float *x, float *y)
{
    FOR_EACH(index, count)
    {
        const int64_t inner = index % c, place_a = index / c % a;
        const int64_t place_b = index / (c * a) % b, n = index / (c * a * b);
        y[index] = x[((n * a + place_a) * b + place_b) * c + inner];
    }
}

void launch_transpose(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_transpose_x);
    enqueue(queue, transpose_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            call_dim(call, AT_transpose_x, 1), call_dim(call, AT_transpose_x, 2),
            call_dim(call, AT_transpose_x, 3), (const float *)call_reals(call, AT_transpose_x),
            call_reals(call, AT_transpose_y));
}

/* The same `width` elements of n rows, whatever else is in the rows. */
static __global__ void copy_each(int64_t count, int64_t width, const float *from,
                                 int64_t from_stride, float *to, int64_t to_stride)
{
    FOR_EACH(index, count)
    {
        const int64_t n = index / width, place = index % width;
        to[n * to_stride + place] = from[n * from_stride + place];
    }
}

void launch_concat(const struct call *call, struct queue *queue)
{
    const int32_t parts = call->op->inputs;
    const int64_t n = call_dim(call, parts, 0), whole = call_count(call, parts) / n;
    float *y = call_reals(call, parts);
    for (int32_t part = 0; part < parts; part++) {
        const int64_t count = call_count(call, part), width = count / n;
        enqueue(queue, copy_each, dim3(blocks_striding(count)), dim3(THREADS), count, width,
                (const float *)call_reals(call, part), width, y, whole);
        y += width;
    }
}

void launch_slice(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, AT_slice_x, 0), inner = call_dim(call, AT_slice_x, 2);
    const int64_t count = call_count(call, AT_slice_y);
    const float *x = call_reals(call, AT_slice_x) + call->op->attr.slice.from * inner;
    enqueue(queue, copy_each, dim3(blocks_striding(count)), dim3(THREADS), count, count / n, x,
            call_count(call, AT_slice_x) / n, call_reals(call, AT_slice_y), count / n);
}

/* Elements [from, from + taken) of each row of dx are those of dy, the others 0. */
static __global__ void slice_grad_each(int64_t count, int64_t width, int64_t from, int64_t taken,
                                       const float *dy, float *dx)
{
    FOR_EACH(index, count)
    {
        const int64_t n = index / width, place = index % width - from;
        dx[index] = place >= 0 && place < taken ? dy[n * taken + place] : 0.0f;
    }
}

void launch_slice_grad(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, AT_slice_grad_dy, 0),
                  inner = call_dim(call, AT_slice_grad_dy, 2);
    const int64_t count = call_count(call, AT_slice_grad_dx);
    enqueue(queue, slice_grad_each, dim3(blocks_striding(count)), dim3(THREADS), count, count / n,
            call->op->attr.slice_grad.from * inner, call_count(call, AT_slice_grad_dy) / n,
            (const float *)call_reals(call, AT_slice_grad_dy), call_reals(call, AT_slice_grad_dx));
}

/* Rows of n tables picked by number. */
struct picks {
    const int32_t *index;       /* [n, picks] */
    int64_t rows, width, picks; /* tables are [n, rows, width], and have … */
    int64_t from, all;          /* … the rows from this one on, of so many */
    __device__ int64_t row(int64_t pick) const
    {
        return index[pick] - from;
    }
    __device__ bool there(int64_t pick) const
    {
        return row(pick) >= 0 && row(pick) < rows;
    }
    /* Of a row that is not there. */
    __device__ float other(int64_t pick) const
    {
        return index[pick] >= 0 && index[pick] < all ? 0.0f : NAN;
    }
    /* Where the row of this pick begins, pick counting over all tables. */
    __device__ int64_t place(int64_t pick) const
    {
        return (pick / picks * rows + row(pick)) * width;
    }
};

static __global__ void gather_each(int64_t count, struct picks picks, const float *table, float *y)
{
    FOR_EACH(at, count)
    {
        const int64_t pick = at / picks.width;
        y[at] = picks.there(pick) ? table[picks.place(pick) + at % picks.width] : picks.other(pick);
    }
}

void launch_gather(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_gather_y);
    const struct picks picks = {call_integers(call, AT_gather_index),
                                call_dim(call, AT_gather_table, 1),
                                call_dim(call, AT_gather_table, 2),
                                call_dim(call, AT_gather_index, 1),
                                call->op->attr.gather.from,
                                call->op->attr.gather.rows ? call->op->attr.gather.rows
                                                           : call_dim(call, AT_gather_table, 1)};
    enqueue(queue, gather_each, dim3(blocks_striding(count)), dim3(THREADS), count, picks,
            (const float *)call_reals(call, AT_gather_table), call_reals(call, AT_gather_y));
}

/* How the rows of tables are shared out: a block has `each` of one table. */
struct share {
    int32_t blocks, each; /* of a table */
};

/* Of THREADS · SCATTER_EACH picks from `first` on, those whose row is in [from, to), in order;
 * returns how many. */
enum { SCATTER_EACH = 4, SCATTER_PICKS = THREADS * SCATTER_EACH };

static __device__ int32_t picks_found(const struct picks &picks, int64_t first, int64_t last,
                                      int64_t from, int64_t to, int64_t *list)
{
    __shared__ int32_t counts[THREADS / 32 * SCATTER_EACH]; /* as many as a warp has lanes */
    const int32_t lane = (int32_t)threadIdx.x % 32, warp = (int32_t)threadIdx.x / 32;
    uint32_t hits[SCATTER_EACH];
#pragma unroll
    for (int i = 0; i < SCATTER_EACH; i++) {
        const int64_t pick = first + i * THREADS + threadIdx.x;
        const int64_t row = pick < last ? picks.row(pick) : -1;
        hits[i] = __ballot_sync(UINT32_MAX, row >= from && row < to);
        if (lane == 0)
            counts[i * (THREADS / 32) + warp] = __popc(hits[i]);
    }
    __syncthreads();
    const int32_t own = counts[lane];
    int32_t sum = own;
    for (int step = 1; step < 32; step *= 2) {
        const int32_t before = __shfl_up_sync(UINT32_MAX, sum, step);
        sum += lane >= step ? before : 0;
    }
#pragma unroll
    for (int i = 0; i < SCATTER_EACH; i++) {
        const int32_t at = __shfl_sync(UINT32_MAX, sum - own, i * (THREADS / 32) + warp);
        if (hits[i] >> lane & 1)
            list[at + __popc(hits[i] & ((1u << lane) - 1))] = first + i * THREADS + threadIdx.x;
    }
    __syncthreads();
    return __shfl_sync(UINT32_MAX, sum, 31);
}

/* A block has some rows of a table to itself, looks through all picks of that table, and adds what
 * is picked for its rows in order, a thread a column: rows that are picked twice need no atomics,
 * and the sum is the same every time. */
static __global__ void __launch_bounds__(THREADS)
    scatter_rows(struct picks picks, struct share share, bool accumulate, const float *dy,
                 float *dtable)
{
    __shared__ int64_t list[SCATTER_PICKS];
    const int64_t n = blockIdx.x / share.blocks, width = picks.width;
    const int64_t from = (int64_t)(blockIdx.x % share.blocks) * share.each;
    const int64_t to = min(from + share.each, picks.rows), last = (n + 1) * picks.picks;
    float *table = dtable + n * picks.rows * width;
    if (!accumulate)
        for (int64_t i = from * width + threadIdx.x; i < to * width; i += THREADS)
            table[i] = 0.0f;
    __syncthreads();
    for (int64_t first = n * picks.picks; first < last; first += SCATTER_PICKS) {
        const int32_t found = picks_found(picks, first, last, from, to, list);
        for (int64_t d = threadIdx.x; d < width; d += THREADS)
            for (int32_t i = 0; i < found; i++)
                table[picks.row(list[i]) * width + d] += dy[list[i] * width + d];
        __syncthreads();
    }
}

void launch_scatter(const struct call *call, struct queue *queue)
{
    enum { BLOCKS = TARGET_MULTIPROCESSORS * 8 }; /* wanted */
    const struct picks picks = {
        call_integers(call, AT_scatter_index), call_dim(call, AT_scatter_dtable, 1),
        call_dim(call, AT_scatter_dtable, 2),  call_dim(call, AT_scatter_index, 1),
        call->op->attr.scatter.from,           0};
    const int64_t n = call_dim(call, AT_scatter_dtable, 0),
                  each = (picks.rows * n + BLOCKS - 1) / BLOCKS;
    const struct share share = {(int32_t)blocks_for(picks.rows, each), (int32_t)each};
    enqueue(queue, scatter_rows, dim3((unsigned)(n * share.blocks)), dim3(THREADS), picks, share,
            call->op->attr.scatter.accumulate != 0, (const float *)call_reals(call, AT_scatter_dy),
            call_reals(call, AT_scatter_dtable));
}

/* The place of the largest of `places` elements that are `step` apart; of equals the first. */
static __device__ int64_t largest(const float *x, int64_t places, int64_t step)
{
    int64_t best = 0;
    for (int64_t k = 1; k < places; k++)
        if (x[k * step] > x[best * step])
            best = k;
    return best;
}

/* One thread a result: neighbours read neighbours where c > 1. */
static __global__ void reduce_each(int64_t count, int64_t places, int64_t inner,
                                   enum reduction reduction, const float *x, float *y)
{
    FOR_EACH(index, count)
    {
        const float *first = x + index / inner * places * inner + index % inner;
        if (reduction == REDUCTION_MAX) {
            y[index] = first[largest(first, places, inner) * inner];
            continue;
        }
        float sum = 0.0f;
        for (int64_t k = 0; k < places; k++)
            sum += first[k * inner];
        y[index] = reduction == REDUCTION_MEAN ? sum / (float)places : sum;
    }
}

void launch_reduce(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_reduce_y);
    enqueue(queue, reduce_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            call_dim(call, AT_reduce_x, 1), call_dim(call, AT_reduce_x, 2),
            (enum reduction)call->op->attr.reduce.reduction,
            (const float *)call_reals(call, AT_reduce_x), call_reals(call, AT_reduce_y));
}

/* One thread an element of dy; x is read only for the largest. */
static __global__ void reduce_grad_each(int64_t count, int64_t places, int64_t inner,
                                        enum reduction reduction, const float *x, const float *dy,
                                        float *dx)
{
    const float share = reduction == REDUCTION_MEAN ? 1.0f / (float)places : 1.0f;
    FOR_EACH(index, count)
    {
        const int64_t first = index / inner * places * inner + index % inner;
        const int64_t best = reduction == REDUCTION_MAX ? largest(x + first, places, inner) : -1;
        for (int64_t k = 0; k < places; k++)
            dx[first + k * inner] = best < 0 || best == k ? dy[index] * share : 0.0f;
    }
}

void launch_reduce_grad(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_reduce_grad_dy);
    enqueue(queue, reduce_grad_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            call_dim(call, AT_reduce_grad_dx, 1), call_dim(call, AT_reduce_grad_dx, 2),
            (enum reduction)call->op->attr.reduce_grad.reduction,
            (const float *)call_reals(call, AT_reduce_grad_x),
            (const float *)call_reals(call, AT_reduce_grad_dy),
            call_reals(call, AT_reduce_grad_dx));
}
