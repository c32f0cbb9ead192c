/* simgrid_transport.c: SimGrid as a transport: ranks are its actors, messages its flows.
 *
 * A pair of ranks has a mailbox for each comm and direction, so that messages stay in order. Time
 * passes in `rest`, which waits for the first of the flows that are pending, in `wait` of a bell,
 * and where a rank computes. A flow has its share of every link of its route, and the route's
 * latency; nothing else costs time (the model CM02 without factors), so that rates and latencies of
 * a platform are those that were measured. */
#include "base/memory.h"
#include "comm/launcher.h"
#include "comm/simulator.h"
#include "core/comm/comm_inside.h"

#include <simgrid/actor.h>
#include <simgrid/comm.h>
#include <simgrid/cond.h>
#include <simgrid/engine.h>
#include <simgrid/exec.h>
#include <simgrid/host.h>
#include <simgrid/mailbox.h>
#include <simgrid/mutex.h>
#include <simgrid/version.h>
#include <stdio.h>
#include <string.h>

enum {
    WINDOW = 8,        /* messages that a rank has sent and the network may still carry */
    MOST_PENDING = 64, /* flows that a rank waits for at once */
    MANY_RANKS = 1000, /* with more, stacks have no guard pages: the kernel allows 65530 maps */
    NAME = 48,         /* of a mailbox or an actor */
    SPAN = 1 << 30,    /* bytes of a message in one piece: a flow costs nothing but its time */
};

/* What all ranks share. */
static struct world {
    const struct simulation *simulation;
    sg_host_t *hosts; /* per rank */
    int ended;
} world;

/* Where mailboxes were found last: looking one up is a turn of SimGrid's. */
enum { FOUND = 128 };
struct found {
    int key; /* peer × 2 + sending, + 1; 0: none */
    sg_mailbox_t box;
};

struct sim_end {
    struct comm comm;
    uint64_t name;   /* the same on all ranks of the comm, and on no other */
    uint64_t groups; /* that were made of it */
    int *ranks;      /* in the world; NULL: the same */
    struct found found[FOUND];
};

/* An actor: a rank, or its second thread. What it sent is its own: SimGrid gives up what an actor
 * that ends has not waited for. */
struct crew_thread;
struct self {
    struct sim_end *end;
    struct crew_thread *thread;
    sg_comm_t sent[WINDOW]; /* sends under way, the oldest at `oldest` */
    int oldest, sent_count;
};

static int world_rank(const struct comm *comm, int rank)
{
    const struct sim_end *end = (const struct sim_end *)comm;
    return end->ranks ? end->ranks[rank] : rank;
}

/* ---- messages ---- */

static sg_mailbox_t mailbox_of(struct sim_end *end, int peer, bool sending)
{
    const int key = 2 * peer + sending + 1, own = end->comm.rank;
    struct found *found = &end->found[(unsigned)key * 2654435761u >> 25];
    if (found->key != key) {
        char name[NAME];
        snprintf(name, sizeof name, "%llx:%x:%x", (unsigned long long)end->name,
                 (unsigned)(sending ? own : peer), (unsigned)(sending ? peer : own));
        *found = (struct found){key, sg_mailbox_by_name(name)};
    }
    return found->box;
}

static void end_oldest(struct self *self)
{
    sg_comm_wait(self->sent[self->oldest]);
    self->oldest = (self->oldest + 1) % WINDOW;
    self->sent_count--;
}

/* A send is the network's as soon as it was begun, up to a window of them. What it carries is its
 * size, + 1. SimGrid has detached sends too, and finds each of them by a walk through all. */
static void send(struct sim_end *end, struct comm_transfer *transfer)
{
    struct self *self = sg_actor_self_get_data();
    if (self->sent_count == WINDOW)
        end_oldest(self);
    self->sent[(self->oldest + self->sent_count++) % WINDOW] =
        sg_mailbox_put_async(mailbox_of(end, transfer->peer, true),
                             (void *)(uintptr_t)(transfer->bytes + 1), (long)transfer->bytes);
    transfer->moved = transfer->bytes;
    transfer->begun = transfer->done = true;
}

/* A receive begins in `rest`, in the same moment of simulated time; its `scratch` is what was sent
 * as soon as that is there, its `handle` a flow that somebody has to wait for. */
static enum status receive(struct comm *comm, struct comm_transfer *transfer)
{
    const size_t found = (size_t)(uintptr_t)transfer->scratch - 1;
    if (transfer->handle)
        sg_comm_wait(transfer->handle);
    transfer->handle = transfer->scratch = NULL;
    if (found != transfer->bytes)
        FAIL(STATUS_WRONG,
             "rank %d sent %zu bytes, rank %d expected %zu: the ranks do not run the same program",
             world_rank(comm, transfer->peer), found, world_rank(comm, comm->rank),
             transfer->bytes);
    transfer->moved = transfer->bytes;
    transfer->done = true;
    return STATUS_OK;
}

static enum status advance(struct comm *comm, struct comm_transfer *transfer, bool *active)
{
    if (transfer->sending) {
        send((struct sim_end *)comm, transfer);
        *active = true;
        return STATUS_OK;
    }
    transfer->begun = true;
    if (!transfer->scratch)
        return STATUS_OK;
    *active = true;
    return receive(comm, transfer);
}

static void begin_flow(struct sim_end *end, struct comm_transfer *transfer)
{
    if (!transfer->handle)
        transfer->handle =
            sg_mailbox_get_async(mailbox_of(end, transfer->peer, false), &transfer->scratch);
}

/* Until the first message has come. */
static void rest(struct comm *comm, uint64_t limit_ns)
{
    struct sim_end *end = (struct sim_end *)comm;
    struct comm_transfer *waited[MOST_PENDING];
    sg_comm_t flows[MOST_PENDING];
    size_t count = 0;
    (void)limit_ns;
    for (struct comm_transfer *one = comm->pending; one && count < MOST_PENDING; one = one->next)
        if (one->begun && !one->sending && !one->scratch)
            waited[count++] = one;
    if (count == 1 && !waited[0]->handle)
        waited[0]->scratch = sg_mailbox_get(mailbox_of(end, waited[0]->peer, false));
    else if (count > 0) {
        for (size_t i = 0; i < count; i++) {
            begin_flow(end, waited[i]);
            flows[i] = waited[i]->handle;
        }
        const ssize_t ended = sg_comm_wait_any(flows, count);
        if (ended >= 0)
            waited[ended]->handle = NULL; /* SimGrid let it go */
    }
}

static enum status check(struct comm *comm, int rank)
{
    (void)comm;
    (void)rank;
    return STATUS_OK;
}

static void place_of(const struct comm *comm, int rank, char *text, size_t room)
{
    snprintf(text, room, "simulated host %s",
             sg_host_get_name(world.hosts[world_rank(comm, rank)]));
}

/* ---- a second actor of a rank ---- */

struct crew_bell {
    sg_mutex_t mutex;
    sg_cond_t changed;
};

struct crew_thread {
    sg_actor_t actor;
    void *(*main)(void *);
    void *argument;
};

static enum status open_bell(struct comm *comm, struct crew_bell **out)
{
    (void)comm;
    NEED(*out = mem_alloc(sizeof **out));
    **out = (struct crew_bell){sg_mutex_init(), sg_cond_init()};
    return STATUS_OK;
}

static void close_bell(struct crew_bell *bell)
{
    sg_cond_destroy(bell->changed);
    sg_mutex_destroy(bell->mutex);
    mem_free(bell);
}

static void lock_bell(struct crew_bell *bell)
{
    sg_mutex_lock(bell->mutex);
}

static void unlock_bell(struct crew_bell *bell)
{
    sg_mutex_unlock(bell->mutex);
}

static void wait_for_bell(struct crew_bell *bell)
{
    sg_cond_wait(bell->changed, bell->mutex);
}

static void ring_bell(struct crew_bell *bell)
{
    sg_cond_notify_all(bell->changed);
}

static void end_actor(struct self *self)
{
    while (self->sent_count)
        end_oldest(self);
    mem_free(self);
}

static void thread_main(int argc, char **argv)
{
    struct self *self = sg_actor_self_get_data();
    (void)argc;
    (void)argv;
    self->thread->main(self->thread->argument);
    end_actor(self);
}

static enum status start_actor(const char *name, sg_host_t host, void (*code)(int, char **),
                               const struct self *like, sg_actor_t *out)
{
    char *const arguments[] = {(char *)(uintptr_t)name, NULL};
    struct self *self;
    NEED(self = mem_alloc(sizeof *self));
    *self = *like;
    *out = sg_actor_init(name, host);
    sg_actor_set_data(*out, self);
    sg_actor_start(*out, code, 1, arguments);
    return STATUS_OK;
}

static enum status start_thread(struct comm *comm, void *(*main)(void *), void *argument,
                                struct crew_thread **out)
{
    NEED(*out = mem_alloc(sizeof **out));
    (*out)->main = main;
    (*out)->argument = argument;
    TRY(start_actor("queue", world.hosts[world_rank(comm, comm->rank)], thread_main,
                    &(struct self){.thread = *out}, &(*out)->actor));
    sg_actor_ref((*out)->actor);
    return STATUS_OK;
}

static void join_thread(struct crew_thread *thread)
{
    sg_actor_join(thread->actor, -1);
    sg_actor_unref(thread->actor);
    mem_free(thread);
}

static uint64_t now_ns(void)
{
    return (uint64_t)(simgrid_get_clock() * 1e9);
}

static const struct comm_crew crew = {
    .open_bell = open_bell,
    .close_bell = close_bell,
    .lock = lock_bell,
    .unlock = unlock_bell,
    .wait = wait_for_bell,
    .ring = ring_bell,
    .start = start_thread,
    .join = join_thread,
    .now_ns = now_ns,
};

/* ---- ends ---- */

static enum status open_group(struct comm *comm, const int *ranks, int count, struct comm **out);

static void close_end(struct comm *comm)
{
    struct sim_end *end = (struct sim_end *)comm;
    mem_free(end->ranks);
    mem_free(end);
}

static const struct comm_transport simgrid_transport = {
    .name = "simgrid",
    .posts_ahead = true,
    .advance = advance,
    .rest = rest,
    .check = check,
    .group = open_group,
    .place = place_of,
    .close = close_end,
    .crew = &crew,
};

static enum status open_end(int rank, int size, uint64_t name, struct sim_end **out)
{
    struct sim_end *end;
    NEED(end = mem_alloc(sizeof *end));
    end->name = name;
    end->comm = (struct comm){.transport = &simgrid_transport,
                              .rank = rank,
                              .size = size,
                              .segment = SPAN,
                              .full_duplex = true,
                              .patience_ns = UINT64_MAX};
    *out = end;
    return STATUS_OK;
}

/* All members make as many groups of a comm in the same order; groups of one turn that share no
 * rank differ in their first one. */
static enum status open_group(struct comm *comm, const int *ranks, int count, struct comm **out)
{
    struct sim_end *from = (struct sim_end *)comm, *end = NULL;
    const uint64_t first = (uint64_t)world_rank(comm, ranks ? ranks[0] : 0);
    uint64_t name = (from->name * 0x9e3779b97f4a7c15u + ++from->groups) * 0xbf58476d1ce4e5b9u;
    int own = comm->rank;
    name = ((name ^ (name >> 29)) + first) * 0x94d049bb133111ebu;
    for (int i = 0; ranks && i < count; i++)
        if (ranks[i] == comm->rank)
            own = i;
    TRY(open_end(own, count, name, &end));
    if (ranks || from->ranks) {
        end->ranks = mem_array((size_t)count, sizeof *end->ranks);
        if (!end->ranks) {
            close_end(&end->comm);
            FAIL(STATUS_MEMORY, "out of memory");
        }
    }
    for (int i = 0; end->ranks && i < count; i++)
        end->ranks[i] = world_rank(comm, ranks ? ranks[i] : i);
    *out = &end->comm;
    return STATUS_OK;
}

/* ---- the simulation ---- */

static void rank_main(int argc, char **argv)
{
    struct self *self = sg_actor_self_get_data();
    struct comm *comm = &self->end->comm;
    (void)argc;
    (void)argv;
    if (world.simulation->main(comm, world.simulation->context) == STATUS_OK)
        world.ended++;
    end_actor(self);
    comm_close(comm);
}

/* The hosts of the platform, in the order of their names. */
static enum status place_ranks(const struct simulation *simulation)
{
    const int hosts = (int)sg_host_count(), ranks = simulation->ranks;
    sg_host_t *all = simulation->host ? NULL : sg_host_list();
    NEED(world.hosts = mem_array((size_t)ranks, sizeof(sg_host_t)));
    if (all && hosts < ranks)
        FAIL(STATUS_INPUT, "the platform has %d hosts, found %d workers", hosts, ranks);
    for (int i = 0; i < ranks; i++) {
        world.hosts[i] = all ? all[i] : sg_host_by_name(simulation->host(simulation->context, i));
        if (!world.hosts[i])
            FAIL(STATUS_INPUT, "the platform has no host for worker %d", i);
    }
    return STATUS_OK; /* the list is SimGrid's to free, and the process ends soon */
}

static enum status run(const struct simulation *simulation)
{
    char program[] = "prony", model[] = "--cfg=network/model:CM02",
         cross[] = "--cfg=network/crosstraffic:0", window[] = "--cfg=network/TCP-gamma:0",
         stack[] = "--cfg=contexts/stack-size:64", log[] = "--log=root.thres:error",
         guard[] = "--cfg=contexts/guard-size:0";
    char *arguments[] = {program, model, cross, window, stack, log, guard, NULL};
    int count = simulation->ranks > MANY_RANKS ? 7 : 6;
    arguments[count] = NULL;
    world.simulation = simulation;
    simgrid_init(&count, arguments);
    simgrid_load_platform(simulation->platform);
    TRY(place_ranks(simulation));
    for (int i = 0; i < simulation->ranks; i++) {
        struct sim_end *end = NULL;
        sg_actor_t actor;
        char name[NAME];
        snprintf(name, sizeof name, "%d", i);
        TRY(open_end(i, simulation->ranks, 1, &end));
        TRY(start_actor(name, world.hosts[i], rank_main, &(struct self){.end = end}, &actor));
    }
    simgrid_run();
    mem_free(world.hosts);
    if (world.ended < simulation->ranks)
        FAIL(STATUS_WRONG, "%d of %d workers wait for each other and never end",
             simulation->ranks - world.ended, simulation->ranks);
    return STATUS_OK;
}

static double now_s(void)
{
    return simgrid_get_clock();
}

static void compute(double seconds)
{
    if (seconds > 0)
        sg_actor_sleep_for(seconds);
}

static enum status begin_work(const char *host, double amount, struct simulated_work **out)
{
    sg_host_t found = sg_host_by_name(host);
    if (!found)
        FAIL(STATUS_INPUT, "the platform has no host %s", host);
    sg_exec_t work = sg_actor_exec_init(amount);
    sg_exec_set_host(work, found);
    sg_exec_start(work);
    *out = (struct simulated_work *)work;
    return STATUS_OK;
}

static void end_work(struct simulated_work *work)
{
    sg_exec_wait((sg_exec_t)work);
}

static const struct simulator simulator = {run, now_s, compute, begin_work, end_work};

static enum status open_world(struct comm **out)
{
    *out = NULL;
    FAIL(STATUS_UNSUPPORTED, "SimGrid's ranks run inside prony simulate alone");
}

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

extern const struct comm_plugin prony_plugin;
__attribute__((visibility("default"))) const struct comm_plugin prony_plugin = {
    .abi = COMM_ABI,
    .name = "simgrid",
    .version = "SimGrid " TEXT(SIMGRID_VERSION_MAJOR) "." TEXT(SIMGRID_VERSION_MINOR),
    .share = status_share,
    .open = open_world,
    .simulator = &simulator,
};
