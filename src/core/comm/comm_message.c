/* comm_message.c: messages between two ranks, over what a transport can advance.
 *
 * Whoever waits for one message advances all that are pending on the comm: two ranks that both
 * began a send and wait for a receive would never end otherwise. Patience is counted from the last
 * time that anything moved. */
#include "core/comm/comm_inside.h"

#include "base/clock.h"
#include "base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { LOOK_NS = 200 * 1000000 }; /* how often the peers are looked after during a wait */

const char *comm_name(const struct comm *comm, int rank, char *text)
{
    int used = snprintf(text, COMM_NAME, "rank %d (", rank);
    comm->transport->place(comm, rank, text + used, (size_t)(COMM_NAME - used - 1));
    for (char *end = text;; end++)
        if (!*end) {
            end[0] = ')';
            end[1] = 0;
            return text;
        }
}

/* What failed first is what every later call says. */
static enum status fail_again(const struct comm *comm)
{
    FAIL(comm->broken, "%s", comm->why);
}

enum status comm_break(struct comm *comm, enum status code)
{
    if (comm->broken)
        return fail_again(comm);
    comm->broken = code;
    snprintf(comm->why, sizeof comm->why, "%s", status_message());
    for (struct comm_transfer *one = comm->pending; one; one = one->next)
        if (comm->transport->cancel)
            comm->transport->cancel(comm, one);
    comm->pending = NULL;
    if (comm->transport->abandon)
        comm->transport->abandon(comm, comm->why);
    return code;
}

enum status comm_abandon(struct comm *comm, enum status code)
{
    char name[COMM_NAME];
    if (!comm->broken)
        status_prefix(code, "%s", comm_name(comm, comm->rank, name));
    return comm_break(comm, code);
}

static void begin(struct comm *comm, struct comm_transfer *transfer)
{
    assert(transfer->peer >= 0 && transfer->peer < comm->size && transfer->peer != comm->rank);
    struct comm_transfer **end = &comm->pending;
    while (!comm->broken && *end)
        end = &(*end)->next;
    if (!comm->broken) /* else comm_finish says so */
        *end = transfer;
}

void comm_begin_send(struct comm *comm, int to, const void *data, size_t bytes,
                     struct comm_transfer *transfer)
{
    *transfer = (struct comm_transfer){
        .peer = to, .sending = true, .data = (void *)(uintptr_t)data, .bytes = bytes};
    begin(comm, transfer);
}

void comm_begin_receive(struct comm *comm, int from, void *data, size_t bytes,
                        struct comm_transfer *transfer)
{
    *transfer = (struct comm_transfer){.peer = from, .data = data, .bytes = bytes};
    begin(comm, transfer);
}

void comm_begin_add(struct comm *comm, int from, void *data, size_t bytes, enum dtype dtype,
                    struct comm_transfer *transfer)
{
    *transfer = (struct comm_transfer){
        .peer = from, .data = data, .bytes = bytes, .adds = true, .dtype = dtype};
    begin(comm, transfer);
}

/* Must one that goes the same way end first? */
static bool must_queue(const struct comm *comm, const struct comm_transfer *transfer)
{
    for (const struct comm_transfer *one = comm->pending; one != transfer; one = one->next)
        if (one->peer == transfer->peer && one->sending == transfer->sending &&
            !(comm->transport->posts_ahead && one->bytes <= COMM_PIECE))
            return true;
    return false;
}

/* Every pending transfer a step; those that are done leave the list. */
static enum status advance_all(struct comm *comm, bool *active)
{
    for (struct comm_transfer **at = &comm->pending; *at;) {
        struct comm_transfer *one = *at;
        if (!must_queue(comm, one))
            TRY(comm->transport->advance(comm, one, active));
        if (one->done)
            *at = one->next;
        else
            at = &one->next;
    }
    return STATUS_OK;
}

static enum status fail_patience(struct comm *comm, int rank)
{
    char name[COMM_NAME];
    FAIL(STATUS_TIMEOUT,
         "%s has not answered for %.3g s: it hangs, or it was given too little time",
         comm_name(comm, rank, name), (double)comm->patience_ns / 1e9);
}

/* Nothing moves: are those there who are waited for? Others may have ended well. */
static enum status look_around(struct comm *comm, int rank, uint64_t waited_ns)
{
    for (const struct comm_transfer *one = comm->pending; one; one = one->next)
        TRY(comm->transport->check(comm, one->peer));
    if (waited_ns > comm->patience_ns)
        return fail_patience(comm, rank);
    return STATUS_OK;
}

/* A rank that is gone may have sent what is waited for since the last look. */
static enum status look_twice(struct comm *comm, int rank, uint64_t waited_ns)
{
    bool active = false;
    if (look_around(comm, rank, waited_ns) == STATUS_OK)
        return STATUS_OK;
    TRY(advance_all(comm, &active));
    return active ? STATUS_OK : look_around(comm, rank, waited_ns);
}

/* The first of them that is done, or `count`. */
static int find_done(struct comm_transfer *const *any, int count)
{
    int i = 0;
    while (i < count && !any[i]->done)
        i++;
    return i;
}

/* Until one of them is done. */
static enum status await(struct comm *comm, struct comm_transfer *const *any, int count)
{
    uint64_t since = 0, looked = 0;
    while (find_done(any, count) == count) {
        bool active = false;
        TRY(advance_all(comm, &active));
        if (active) {
            since = 0;
            continue;
        }
        const uint64_t now = clock_ns();
        if (!since)
            since = looked = now;
        if (now - looked >= LOOK_NS || now - since > comm->patience_ns) {
            TRY(look_twice(comm, any[0]->peer, now - since));
            looked = now;
        }
        comm->transport->rest(comm, LOOK_NS);
    }
    return STATUS_OK;
}

enum status comm_finish(struct comm *comm, struct comm_transfer *transfer)
{
    if (comm->broken)
        return fail_again(comm);
    enum status status = await(comm, &transfer, 1);
    return status == STATUS_OK ? status : comm_break(comm, status);
}

enum status comm_finish_any(struct comm *comm, struct comm_transfer *const *any, int count,
                            int *which)
{
    if (comm->broken)
        return fail_again(comm);
    enum status status = await(comm, any, count);
    *which = find_done(any, count);
    return status == STATUS_OK ? status : comm_break(comm, status);
}

enum status comm_send(struct comm *comm, int to, const void *data, size_t bytes)
{
    struct comm_transfer transfer;
    comm_begin_send(comm, to, data, bytes, &transfer);
    return comm_finish(comm, &transfer);
}

enum status comm_receive(struct comm *comm, int from, void *data, size_t bytes)
{
    struct comm_transfer transfer;
    comm_begin_receive(comm, from, data, bytes, &transfer);
    return comm_finish(comm, &transfer);
}

enum status comm_exchange(struct comm *comm, int to, const void *out, size_t out_bytes, int from,
                          void *in, size_t in_bytes)
{
    struct comm_transfer sent, received;
    comm_begin_send(comm, to, out, out_bytes, &sent);
    comm_begin_receive(comm, from, in, in_bytes, &received);
    TRY(comm_finish(comm, &received));
    return comm_finish(comm, &sent);
}

void comm_add(enum dtype dtype, void *to, const void *from, size_t bytes)
{
    if (dtype == DTYPE_F32) {
        float *restrict sum = to;
        const float *restrict more = from;
        for (size_t i = 0; i < bytes / sizeof *sum; i++)
            sum[i] += more[i];
    } else {
        double *restrict sum = to;
        const double *restrict more = from;
        for (size_t i = 0; i < bytes / sizeof *sum; i++)
            sum[i] += more[i];
    }
}

void comm_apply(struct comm_transfer *transfer, const void *piece, size_t bytes)
{
    char *to = (char *)transfer->data + transfer->moved;
    if (transfer->adds)
        comm_add(transfer->dtype, to, piece, bytes);
    else if (bytes)
        memcpy(to, piece, bytes);
    transfer->moved += bytes;
}

enum status comm_need_scratch(struct comm *comm, size_t bytes)
{
    if (bytes <= comm->scratch_bytes)
        return STATUS_OK;
    mem_free(comm->scratch);
    comm->scratch_bytes = 0;
    comm->scratch = mem_alloc(bytes);
    if (!comm->scratch)
        return comm_break(comm, status_fail(STATUS_MEMORY, __FILE__, __LINE__, "out of memory"));
    comm->scratch_bytes = bytes;
    return STATUS_OK;
}

enum status comm_group(struct comm *comm, const int *ranks, int count, struct comm **out)
{
    *out = NULL;
    if (comm->broken)
        return fail_again(comm);
    TRY(comm->transport->group(comm, ranks, ranks ? count : comm->size, out));
    (*out)->patience_ns = comm->patience_ns;
    return STATUS_OK;
}

void comm_close(struct comm *comm)
{
    if (!comm)
        return;
    mem_free(comm->scratch);
    comm->transport->close(comm);
}
