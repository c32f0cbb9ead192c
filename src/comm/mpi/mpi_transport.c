/* mpi_transport.c: MPI as a transport. Compiled once against Open MPI and once against MPICH.
 *
 * Only messages without waiting are taken from MPI (Isend, Irecv, Test): the sums are ours, because
 * MPI's differ by version and message size, and need not be the same bits on all ranks. The
 * library's MPI_Allreduce is there to be compared with. Several threads call it at once. */
#include "base/clock.h"
#include "base/memory.h"
#include "comm/launcher.h"
#include "core/comm/comm_inside.h"

#include <mpi.h> /* cmake/mpi.cmake tells whose it is: MPI_LIBRARY, MPI_LIBRARY_VERSION */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    SPARES = 16,         /* buffers for what is to be added */
    YIELDS = 2000,       /* looks before a rank sleeps between two */
    SLEEP_NS = 50000,    /* … for so long */
    TCP_SEGMENT = 16384, /* eager: larger ones make both libraries send one way at a time */
    NEAR_SEGMENT = 1 << 20,
};

struct place {
    char host[64];
    int process;
};

struct mpi_end {
    struct comm comm;
    MPI_Comm mpi;
    bool world;
    struct place *places;
    struct {
        void *data;
        size_t bytes;
        bool taken;
    } spares[SPARES];
    unsigned idle; /* rests since anything moved */
};

/* What a transfer has under way: one request, and where its bytes go. */
struct under_way {
    MPI_Request request;
    size_t bytes;
};

static enum status fail_mpi(struct comm *comm, int peer, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "", name[COMM_NAME];
    int length;
    MPI_Error_string(code, text, &length);
    FAIL(STATUS_DEVICE, "MPI, with %s: %s", comm_name(comm, peer, name), text);
}

static enum status fail_mismatch(struct comm *comm, int peer, size_t expected)
{
    char theirs[COMM_NAME], ours[COMM_NAME];
    FAIL(STATUS_WRONG,
         "%s sent another number of bytes than the %zu that %s expected: the ranks do not run the "
         "same program",
         comm_name(comm, peer, theirs), expected, comm_name(comm, comm->rank, ours));
}

/* ---- buffers ---- */

static void *take_spare(struct mpi_end *end, size_t bytes)
{
    for (int i = 0; i < SPARES; i++) {
        if (end->spares[i].taken)
            continue;
        if (end->spares[i].bytes < bytes) {
            mem_free(end->spares[i].data);
            end->spares[i].bytes = 0;
            end->spares[i].data = mem_alloc(bytes);
            if (!end->spares[i].data)
                return NULL;
            end->spares[i].bytes = bytes;
        }
        end->spares[i].taken = true;
        return end->spares[i].data;
    }
    return NULL;
}

static void give_spare(struct mpi_end *end, const void *data)
{
    for (int i = 0; i < SPARES; i++)
        if (end->spares[i].data == data)
            end->spares[i].taken = false;
}

/* ---- messages ---- */

/* The next piece of a message, of which MPI counts at most an int. */
static enum status begin_piece(struct mpi_end *end, struct comm_transfer *transfer)
{
    struct under_way *way = transfer->handle;
    size_t left = transfer->bytes - transfer->moved;
    void *data = (char *)transfer->data + transfer->moved;
    way->bytes = left < COMM_PIECE ? left : COMM_PIECE;
    if (transfer->adds && !transfer->scratch)
        NEED(transfer->scratch = take_spare(end, way->bytes));
    if (transfer->adds)
        data = transfer->scratch;
    int code = transfer->sending ? MPI_Isend(data, (int)way->bytes, MPI_BYTE, transfer->peer, 0,
                                             end->mpi, &way->request)
                                 : MPI_Irecv(data, (int)way->bytes, MPI_BYTE, transfer->peer, 0,
                                             end->mpi, &way->request);
    return code == MPI_SUCCESS ? STATUS_OK : fail_mpi(&end->comm, transfer->peer, code);
}

static enum status end_piece(struct mpi_end *end, struct comm_transfer *transfer, int code,
                             const MPI_Status *found)
{
    struct under_way *way = transfer->handle;
    int kind = MPI_SUCCESS, count = 0;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &kind);
    if (kind == MPI_ERR_TRUNCATE)
        return fail_mismatch(&end->comm, transfer->peer, transfer->bytes);
    if (code != MPI_SUCCESS)
        return fail_mpi(&end->comm, transfer->peer, code);
    if (!transfer->sending && MPI_Get_count(found, MPI_BYTE, &count) == MPI_SUCCESS &&
        (size_t)count != way->bytes)
        return fail_mismatch(&end->comm, transfer->peer, transfer->bytes);
    if (transfer->adds)
        comm_apply(transfer, transfer->scratch, way->bytes);
    else
        transfer->moved += way->bytes;
    return STATUS_OK;
}

static void let_go(struct mpi_end *end, struct comm_transfer *transfer)
{
    if (transfer->scratch)
        give_spare(end, transfer->scratch);
    transfer->scratch = NULL;
    mem_free(transfer->handle);
    transfer->handle = NULL;
}

static enum status advance(struct comm *comm, struct comm_transfer *transfer, bool *active)
{
    struct mpi_end *end = (struct mpi_end *)comm;
    MPI_Status found;
    int ended = 0;
    if (!transfer->begun) {
        NEED(transfer->handle = mem_alloc(sizeof(struct under_way)));
        TRY(begin_piece(end, transfer));
        transfer->begun = *active = true;
    }
    int code = MPI_Test(&((struct under_way *)transfer->handle)->request, &ended, &found);
    if (!ended && code == MPI_SUCCESS)
        return STATUS_OK;
    TRY(end_piece(end, transfer, code, &found));
    *active = true;
    end->idle = 0;
    if (transfer->moved < transfer->bytes)
        return begin_piece(end, transfer);
    transfer->done = true;
    let_go(end, transfer);
    return STATUS_OK;
}

/* Bytes that MPI may still write stay allocated: the comm is broken, and the process ends soon. */
static void cancel(struct comm *comm, struct comm_transfer *transfer)
{
    (void)comm;
    if (transfer->handle)
        MPI_Request_free(&((struct under_way *)transfer->handle)->request);
    mem_free(transfer->handle);
    transfer->handle = NULL;
}

/* MPI cannot sleep until a message comes. */
static void rest(struct comm *comm, uint64_t limit_ns)
{
    struct mpi_end *end = (struct mpi_end *)comm;
    (void)limit_ns;
    if (end->idle++ < YIELDS)
        sched_yield();
    else
        clock_sleep_ns(SLEEP_NS);
}

/* A rank that dies is the launcher's to notice: it ends all of them. */
static enum status check(struct comm *comm, int rank)
{
    (void)comm;
    (void)rank;
    return STATUS_OK;
}

static enum status all_reduce(struct comm *comm, void *data, size_t count, enum dtype dtype)
{
    struct mpi_end *end = (struct mpi_end *)comm;
    int code = MPI_Allreduce(MPI_IN_PLACE, data, (int)count,
                             dtype == DTYPE_F32 ? MPI_FLOAT : MPI_DOUBLE, MPI_SUM, end->mpi);
    return code == MPI_SUCCESS ? STATUS_OK : fail_mpi(comm, comm->rank, code);
}

static void place_of(const struct comm *comm, int rank, char *text, size_t room)
{
    const struct place *place = &((const struct mpi_end *)comm)->places[rank];
    snprintf(text, room, "host %s, process %d", place->host, place->process);
}

/* ---- ends ---- */

static enum status open_group(struct comm *comm, const int *ranks, int count, struct comm **out);

/* A broken world is not finalised, which would wait for all: the launcher sees this rank go. */
static void close_end(struct comm *comm)
{
    struct mpi_end *end = (struct mpi_end *)comm;
    if (!comm->broken && !end->world)
        MPI_Comm_free(&end->mpi);
    if (!comm->broken && end->world)
        MPI_Finalize();
    for (int i = 0; i < SPARES; i++)
        if (!end->spares[i].taken)
            mem_free(end->spares[i].data);
    mem_free(end->places);
    mem_free(end);
}

static const struct comm_transport mpi_transport = {
    .name = MPI_LIBRARY,
    .posts_ahead = true,
    .advance = advance,
    .cancel = cancel,
    .rest = rest,
    .check = check,
    .group = open_group,
    .place = place_of,
    .all_reduce = all_reduce,
    .close = close_end,
};

static bool on_one_host(const struct place *places, int count)
{
    for (int i = 1; i < count; i++)
        if (strcmp(places[i].host, places[0].host) != 0)
            return false;
    return true;
}

static enum status open_end(MPI_Comm mpi, bool world, struct comm **out)
{
    struct mpi_end *end;
    struct place mine = {.process = (int)getpid()};
    gethostname(mine.host, sizeof mine.host - 1);
    NEED(end = mem_alloc(sizeof *end));
    end->mpi = mpi;
    end->world = world;
    MPI_Comm_set_errhandler(mpi, MPI_ERRORS_RETURN);
    MPI_Comm_rank(mpi, &end->comm.rank);
    MPI_Comm_size(mpi, &end->comm.size);
    end->places = mem_array((size_t)end->comm.size, sizeof *end->places);
    if (!end->places) {
        mem_free(end);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, end->places, sizeof mine, MPI_BYTE, mpi);
    end->comm.near = on_one_host(end->places, end->comm.size);
    end->comm.transport = &mpi_transport;
    end->comm.segment = end->comm.near ? NEAR_SEGMENT : TCP_SEGMENT;
    end->comm.full_duplex = true;
    end->comm.patience_ns = COMM_PATIENCE_NS;
    *out = &end->comm;
    return STATUS_OK;
}

static enum status open_group(struct comm *comm, const int *ranks, int count, struct comm **out)
{
    struct mpi_end *end = (struct mpi_end *)comm;
    MPI_Comm mpi = MPI_COMM_NULL;
    MPI_Group all, some;
    int *copy, code;
    NEED(copy = mem_array((size_t)count, sizeof *copy));
    for (int i = 0; i < count; i++)
        copy[i] = ranks ? ranks[i] : i;
    MPI_Comm_group(end->mpi, &all);
    MPI_Group_incl(all, count, copy, &some);
    code = MPI_Comm_create_group(end->mpi, some, 1, &mpi);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    mem_free(copy);
    if (code != MPI_SUCCESS)
        return fail_mpi(comm, comm->rank, code);
    return open_end(mpi, false, out);
}

static enum status open_world(struct comm **out)
{
    int provided = 0;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        FAIL(STATUS_DEVICE, "MPI_Init_thread failed");
    if (provided < MPI_THREAD_MULTIPLE)
        FAIL(STATUS_UNSUPPORTED,
             "this MPI lets one thread call it at a time "
             "(MPI_THREAD_MULTIPLE is %d, it gives %d): build it with threads",
             MPI_THREAD_MULTIPLE, provided);
    return open_end(MPI_COMM_WORLD, true, out);
}

extern const struct comm_plugin prony_plugin;
__attribute__((visibility("default"))) const struct comm_plugin prony_plugin = {
    .abi = COMM_ABI,
    .name = MPI_LIBRARY,
    .version = MPI_LIBRARY_VERSION,
    .share = status_share,
    .open = open_world,
};
