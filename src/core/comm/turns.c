/* turns.c: see turns.h. The message by which a rank comes is awaited from all ranks that will come
 * at once; no more of them than will, since other messages follow. */
#include "core/comm/turns.h"

#include "base/memory.h"

struct turn {
    struct comm_transfer transfer;
    int32_t said;        /* what it came with */
    bool awaited;        /* the message is begun */
    int64_t left, taken; /* times it will come; turns that had been taken after its last one */
};

enum status turns_open(struct turns *turns, struct comm *comm, int ranks)
{
    *turns = (struct turns){.comm = comm, .now = ranks - 1, .ranks = ranks};
    NEED(turns->of = mem_array((size_t)ranks, sizeof *turns->of));
    return STATUS_OK;
}

void turns_close(struct turns *turns)
{
    mem_free(turns->of);
    *turns = (struct turns){0};
}

void turns_expect(struct turns *turns, int rank, int64_t times)
{
    turns->of[rank].left += times;
}

static void await_all(struct turns *turns)
{
    for (int rank = 0; rank < turns->ranks; rank++) {
        struct turn *turn = &turns->of[rank];
        if (turn->awaited || !turn->left)
            continue;
        comm_begin_receive(turns->comm, rank, &turn->said, sizeof turn->said, &turn->transfer);
        turn->awaited = true;
    }
}

static void note(struct turns *turns, struct turn *turn)
{
    const double stale = (double)(turns->taken - turn->taken);
    turn->awaited = false;
    turn->left--;
    turn->taken = ++turns->taken;
    turns->stale.updates++;
    turns->stale.sum += stale;
    turns->stale.most = stale > turns->stale.most ? stale : turns->stale.most;
}

enum status turns_take(struct turns *turns, bool *any)
{
    enum { MOST = 256 };
    struct comm_transfer *awaited[MOST];
    int ranks[MOST], count = 0, which;
    await_all(turns);
    for (int i = 1; i <= turns->ranks && count < MOST; i++) {
        const int rank = (turns->now + i) % turns->ranks;
        if (!turns->of[rank].awaited)
            continue;
        ranks[count] = rank;
        awaited[count++] = &turns->of[rank].transfer;
    }
    *any = count > 0;
    if (!count)
        return STATUS_OK;
    TRY(comm_finish_any(turns->comm, awaited, count, &which));
    turns->now = ranks[which];
    note(turns, &turns->of[turns->now]);
    return STATUS_OK;
}
