/* comm_reduce.c: sums over all ranks, in three ways.
 *
 *   ring     P − 1 steps of 1/P of the data each way, twice: least bytes, P − 1 latencies
 *   halving  recursive halving, then doubling: log P latencies. Of P = 2^k + r ranks the first 2r
 *            pair up, and one of each pair takes part for both
 *   direct   each rank adds its slice from the others' memory, and writes it there
 *
 * Ring and direct add a slice in one order: the ranks after its owner in turn, the owner last. */
#include "core/comm/comm_inside.h"

#include "base/memory.h"

#include <assert.h>
#include <string.h>

enum { SEGMENTS = 8, MOST_LEVELS = 32, TILE = 64 * 1024 };

enum { COMM_SMALL = 16384, COMM_MEDIUM = 65536 };

/* The way by size: the first row that fits. A ring of many ranks sends small pieces often. Halving
 * sends as much as a ring between 2^k ranks, and more between others. */
static const struct {
    bool common;       /* ranks can read each other's memory */
    bool powers;       /* holds for 2^k ranks alone */
    size_t most_bytes; /* of the sum … */
    size_t most_piece; /* … or of its part for each rank, which a ring sends at once */
    enum comm_algorithm algorithm;
} ways[] = {
    {true, false, COMM_SMALL, 0, COMM_HALVING},
    {true, false, SIZE_MAX, 0, COMM_DIRECT},
    {false, true, COMM_MEDIUM, COMM_MEDIUM, COMM_HALVING},
    {false, false, COMM_MEDIUM, COMM_SMALL, COMM_HALVING},
    {false, false, SIZE_MAX, 0, COMM_RING},
};

enum comm_algorithm comm_choose(const struct comm *comm, size_t bytes)
{
    const bool common = comm->common == COMM_COMMON_YES;
    const bool power = (comm->size & (comm->size - 1)) == 0;
    const size_t piece = bytes / (size_t)comm->size;
    for (size_t i = 0;; i++)
        if (ways[i].common == common && (power || !ways[i].powers) &&
            (bytes <= ways[i].most_bytes || piece <= ways[i].most_piece))
            return ways[i].algorithm;
}

const char *comm_algorithm_name(enum comm_algorithm algorithm)
{
    static const char *const names[] = {"ring", "halving", "direct"};
    return names[algorithm];
}

void comm_slice(size_t count, int size, int rank, size_t *from, size_t *to)
{
    const size_t each = count / (size_t)size, more = count % (size_t)size, at = (size_t)rank;
    *from = at * each + (at < more ? at : more);
    *to = *from + each + (at < more);
}

/* A range of the data, in bytes. */
struct piece {
    char *data;
    size_t bytes;
};

static struct piece slice_of(const struct comm *comm, void *data, size_t count, enum dtype dtype,
                             int slice)
{
    size_t from, to;
    slice = (slice % comm->size + comm->size) % comm->size;
    comm_slice(count, comm->size, slice, &from, &to);
    return (struct piece){(char *)data + from * dtype_bytes(dtype),
                          (to - from) * dtype_bytes(dtype)};
}

/* Sends one piece and receives another, in segments of which a few are under way. */
struct move {
    int to, from;
    struct piece out, in;
    bool adds;
    enum dtype dtype;
};

static void begin_segment(struct comm *comm, const struct move *move, size_t at, size_t segment,
                          struct comm_transfer *sent, struct comm_transfer *received)
{
    size_t out = move->out.bytes - at, in = move->in.bytes - at;
    sent->done = received->done = true;
    if (at < move->out.bytes)
        comm_begin_send(comm, move->to, move->out.data + at, out < segment ? out : segment, sent);
    if (at >= move->in.bytes)
        return;
    in = in < segment ? in : segment;
    if (move->adds)
        comm_begin_add(comm, move->from, move->in.data + at, in, move->dtype, received);
    else
        comm_begin_receive(comm, move->from, move->in.data + at, in, received);
}

static enum status move_pieces(struct comm *comm, const struct move *move)
{
    struct comm_transfer sent[SEGMENTS], received[SEGMENTS];
    const size_t bytes = move->out.bytes > move->in.bytes ? move->out.bytes : move->in.bytes;
    const size_t count = bytes / comm->segment + (bytes % comm->segment != 0);
    for (size_t i = 0; i < count + SEGMENTS; i++) {
        const size_t at = i % SEGMENTS;
        if (i >= SEGMENTS && i - SEGMENTS < count) {
            TRY(comm_finish(comm, &received[at]));
            TRY(comm_finish(comm, &sent[at]));
        }
        if (i < count)
            begin_segment(comm, move, i * comm->segment, comm->segment, &sent[at], &received[at]);
    }
    return STATUS_OK;
}

static enum status ring_pass(struct comm *comm, void *data, size_t count, enum dtype dtype,
                             bool adds)
{
    const int size = comm->size, rank = comm->rank;
    for (int step = 0; step < size - 1; step++) {
        const int first = rank - step - adds; /* a slice ends its way at its owner when summed */
        struct move move = {(rank + 1) % size,
                            (rank + size - 1) % size,
                            slice_of(comm, data, count, dtype, first),
                            slice_of(comm, data, count, dtype, first - 1),
                            adds,
                            dtype};
        TRY(move_pieces(comm, &move));
    }
    return STATUS_OK;
}

/* ---- direct ---- */

/* Where the others have their data, as they see it. */
static enum status share_data(struct comm *comm, const void *data, const char **theirs)
{
    struct comm_transfer *transfers = comm->scratch;
    for (int i = 0; i < comm->size; i++) {
        if (i == comm->rank)
            continue;
        comm_begin_send(comm, i, &data, sizeof data, &transfers[2 * i]);
        comm_begin_receive(comm, i, &theirs[i], sizeof *theirs, &transfers[2 * i + 1]);
    }
    for (int i = 0; i < comm->size; i++) {
        if (i == comm->rank)
            continue;
        TRY(comm_finish(comm, &transfers[2 * i + 1]));
        TRY(comm_finish(comm, &transfers[2 * i]));
    }
    return STATUS_OK;
}

/* comm->scratch: transfers of share_data, the others' addresses, a tile. */
struct direct {
    const char **theirs;
    char *tile;
};

static enum status begin_direct(struct comm *comm, const void *data, struct direct *out)
{
    const size_t size = (size_t)comm->size, transfers = 2 * size * sizeof(struct comm_transfer);
    TRY(comm_need_scratch(comm, transfers + size * sizeof(char *) + 2 * TILE));
    out->theirs = (const char **)((char *)comm->scratch + transfers);
    out->tile = (char *)(out->theirs + size);
    return share_data(comm, data, out->theirs);
}

static enum status fetch(struct comm *comm, int rank, const char *theirs, void *to, size_t bytes)
{
    enum status status = comm->transport->fetch(comm, rank, theirs, to, bytes);
    return status == STATUS_OK ? status : comm_break(comm, status);
}

/* One tile of this rank's slice, in the ring's order. It stays in a near cache. */
static enum status add_tile(struct comm *comm, const struct direct *direct, char *own, size_t at,
                            size_t bytes, enum dtype dtype)
{
    char *sum = direct->tile, *more = sum + TILE;
    for (int k = 1; k < comm->size; k++) {
        const int from = (comm->rank + k) % comm->size;
        TRY(fetch(comm, from, direct->theirs[from] + at, k == 1 ? sum : more, bytes));
        if (k > 1)
            comm_add(dtype, sum, more, bytes);
    }
    comm_add(dtype, own, sum, bytes);
    return STATUS_OK;
}

/* … goes to all others while it is near. Nobody else reads this slice of theirs. */
static enum status spread_tile(struct comm *comm, const struct direct *direct, const char *own,
                               size_t at, size_t bytes)
{
    for (int k = 1; k < comm->size; k++) {
        const int to = (comm->rank + k) % comm->size;
        enum status status =
            comm->transport->store(comm, to, (char *)direct->theirs[to] + at, own, bytes);
        if (status != STATUS_OK)
            return comm_break(comm, status);
    }
    return STATUS_OK;
}

enum { DIRECT_SCATTER = 1, DIRECT_GATHER = 2 };

/* Both halves, or one, of `count` numbers: a rank adds its slice from the others' memory, and
 * writes it there. All have their data ready when it begins, and may touch it again when it has
 * ended. */
static enum status direct_pass(struct comm *comm, char *data, size_t count, enum dtype dtype,
                               int halves)
{
    const struct piece own = slice_of(comm, data, count, dtype, comm->rank);
    struct direct direct;
    TRY(begin_direct(comm, data, &direct));
    for (size_t i = 0; i < own.bytes; i += TILE) {
        const size_t bytes = own.bytes - i < TILE ? own.bytes - i : TILE;
        const size_t at = (size_t)(own.data - data) + i;
        if (halves & DIRECT_SCATTER)
            TRY(add_tile(comm, &direct, own.data + i, at, bytes, dtype));
        if (halves & DIRECT_GATHER)
            TRY(spread_tile(comm, &direct, own.data + i, at, bytes));
    }
    return comm_barrier(comm);
}

/* Tries to read a word of every other rank; all must succeed on all ranks, or none goes direct. */
static enum status find_common(struct comm *comm)
{
    const uint64_t mark = 0x636f6d6d;
    uint64_t found;
    double failed = 0;
    struct direct direct;
    if (comm->common != COMM_COMMON_UNKNOWN)
        return STATUS_OK;
    comm->common = COMM_COMMON_NO;
    if (!comm->transport->fetch)
        return STATUS_OK;
    TRY(begin_direct(comm, &mark, &direct));
    for (int i = 0; i < comm->size; i++)
        if (i != comm->rank &&
            (comm->transport->fetch(comm, i, direct.theirs[i], &found, sizeof found) != STATUS_OK ||
             found != mark))
            failed = 1;
    TRY(comm_all_reduce_by(comm, COMM_HALVING, &failed, 1, DTYPE_F64));
    comm->common = failed > 0 ? COMM_COMMON_NO : COMM_COMMON_YES;
    return STATUS_OK;
}

/* ---- recursive halving and doubling ---- */

struct halving {
    int virtual_rank, ranks; /* among a power of two; −1: another takes part for this one */
    int pairs;               /* r */
};

static int real_rank(const struct halving *halving, int virtual_rank)
{
    return virtual_rank < halving->pairs ? 2 * virtual_rank + 1 : virtual_rank + halving->pairs;
}

static enum status exchange_half(struct comm *comm, int partner, struct piece out, struct piece in,
                                 bool adds, enum dtype dtype)
{
    return move_pieces(comm, &(struct move){partner, partner, out, in, adds, dtype});
}

/* The even rank of a pair gives its data to the odd one, or gets the result from it. */
static enum status fold(struct comm *comm, struct piece all, bool back, enum dtype dtype)
{
    const struct piece none = {all.data, 0};
    const bool even = comm->rank % 2 == 0;
    const int partner = even ? comm->rank + 1 : comm->rank - 1;
    const bool sends = even != back;
    return exchange_half(comm, partner, sends ? all : none, sends ? none : all, !back, dtype);
}

static enum status halve_and_double(struct comm *comm, const struct halving *halving, char *data,
                                    size_t count, enum dtype dtype)
{
    const size_t width = dtype_bytes(dtype);
    struct {
        struct piece kept, given;
        int partner;
    } levels[MOST_LEVELS];
    int depth = 0;
    struct piece mine = {data, count * width};
    for (int mask = halving->ranks / 2; mask; mask /= 2) {
        const size_t low = mine.bytes / width / 2 * width;
        const struct piece lower = {mine.data, low}, upper = {mine.data + low, mine.bytes - low};
        const bool up = halving->virtual_rank & mask;
        levels[depth].kept = mine = up ? upper : lower;
        levels[depth].given = up ? lower : upper;
        levels[depth].partner = real_rank(halving, halving->virtual_rank ^ mask);
        TRY(exchange_half(comm, levels[depth].partner, levels[depth].given, mine, true, dtype));
        depth++;
    }
    while (depth-- > 0)
        TRY(exchange_half(comm, levels[depth].partner, levels[depth].kept, levels[depth].given,
                          false, dtype));
    return STATUS_OK;
}

static enum status halving_reduce(struct comm *comm, void *data, size_t count, enum dtype dtype)
{
    struct halving halving = {.ranks = 1};
    while (halving.ranks * 2 <= comm->size)
        halving.ranks *= 2;
    halving.pairs = comm->size - halving.ranks;
    const bool paired = comm->rank < 2 * halving.pairs;
    halving.virtual_rank = paired ? comm->rank / 2 : comm->rank - halving.pairs;
    const struct piece all = {data, count * dtype_bytes(dtype)};
    if (paired)
        TRY(fold(comm, all, false, dtype));
    if (!paired || comm->rank % 2)
        TRY(halve_and_double(comm, &halving, data, count, dtype));
    return paired ? fold(comm, all, true, dtype) : STATUS_OK;
}

/* ---- the entries ---- */

enum status comm_all_reduce_by(struct comm *comm, enum comm_algorithm algorithm, void *data,
                               size_t count, enum dtype dtype)
{
    assert(dtype == DTYPE_F32 || dtype == DTYPE_F64);
    if (comm->size == 1 || count == 0)
        return STATUS_OK;
    if (algorithm == COMM_HALVING)
        return halving_reduce(comm, data, count, dtype);
    TRY(find_common(comm));
    if (algorithm == COMM_DIRECT && comm->common == COMM_COMMON_YES)
        return direct_pass(comm, data, count, dtype, DIRECT_SCATTER | DIRECT_GATHER);
    TRY(ring_pass(comm, data, count, dtype, true));
    return ring_pass(comm, data, count, dtype, false);
}

enum status comm_all_reduce(struct comm *comm, void *data, size_t count, enum dtype dtype)
{
    const size_t bytes = count * dtype_bytes(dtype);
    if (comm->size > 1 && count && bytes > COMM_SMALL)
        TRY(find_common(comm));
    return comm_all_reduce_by(comm, comm_choose(comm, bytes), data, count, dtype);
}

static enum status half(struct comm *comm, void *data, size_t count, enum dtype dtype, int half)
{
    if (comm->size == 1 || count == 0)
        return STATUS_OK;
    TRY(find_common(comm));
    if (comm->common == COMM_COMMON_YES)
        return direct_pass(comm, data, count, dtype, half);
    return ring_pass(comm, data, count, dtype, half == DIRECT_SCATTER);
}

enum status comm_reduce_scatter(struct comm *comm, void *data, size_t count, enum dtype dtype)
{
    assert(dtype == DTYPE_F32 || dtype == DTYPE_F64);
    return half(comm, data, count, dtype, DIRECT_SCATTER);
}

enum status comm_all_gather(struct comm *comm, void *data, size_t count, enum dtype dtype)
{
    return half(comm, data, count, dtype, DIRECT_GATHER);
}

/* Dissemination: after round k a rank has heard from 2^k others. */
enum status comm_barrier(struct comm *comm)
{
    for (int step = 1; step < comm->size; step *= 2) {
        char none = 0;
        TRY(comm_exchange(comm, (comm->rank + step) % comm->size, &none, 0,
                          (comm->rank + comm->size - step) % comm->size, &none, 0));
    }
    return STATUS_OK;
}

/* A binomial tree: whoever has it sends it to the rank 2^k further. */
enum status comm_broadcast(struct comm *comm, int root, void *data, size_t bytes)
{
    const int place = (comm->rank - root + comm->size) % comm->size;
    int step = 1;
    for (; step < comm->size && place >= step; step *= 2)
        if (place < 2 * step)
            TRY(comm_receive(comm, (place - step + root) % comm->size, data, bytes));
    for (; step < comm->size; step *= 2)
        if (place + step < comm->size)
            TRY(comm_send(comm, (place + step + root) % comm->size, data, bytes));
    return STATUS_OK;
}
