/* split_server.c: finds the server of each parameter, then what goes to it and what comes back, in
 * the order in which it is complete; each rank's program follows. */
#include "core/pass/split_server.h"

#include "core/comm.h"

#include <stdio.h>
#include <stdlib.h>

static const char made_by[] = "parameter server";

/* What is shared out among servers: a parameter with what the optimiser keeps, or a statistic. */
struct served {
    int32_t entry; /* of the parameter or the statistic */
    uint64_t bytes;
};

/* A tensor that is sent in every step. */
struct passing {
    int32_t root, server;
    int32_t op; /* that completes it */
};

struct serving {
    struct arena arena;
    const struct program *program;
    const struct params *params;
    const struct server_options *options;
    int32_t *server;                /* per entry; -1: none has it */
    struct passing *pushes, *pulls; /* to the servers and back */
    int32_t push_count, pull_count;
    int32_t count; /* the root of the optimiser's count of steps */
};

static int32_t workers_of(const struct serving *serving)
{
    return serving->options->ranks - serving->options->servers;
}

static int32_t root_of(const struct serving *serving, int32_t tensor)
{
    return tensor < 0 ? -1 : program_root(serving->program, tensor);
}

static int32_t output_root(const struct serving *serving, const struct op *op, int32_t output)
{
    return root_of(serving, op_output(serving->program, op, output));
}

static bool has_role(const struct serving *serving, int32_t root, enum role role)
{
    return root >= 0 && serving->program->tensors[root].role == role;
}

/* ---- who serves what ---- */

static bool is_update(const struct op *op)
{
    return op->part == PART_UPDATE && op->kind != OP_tick && op->kind != OP_clip;
}

/* The parameter that the op updates, or the statistic that it moves; -1: neither. */
static int32_t served_entry(const struct serving *serving, const struct op *op, int32_t output)
{
    const int32_t root = output_root(serving, op, output);
    const enum role role = is_update(op) ? ROLE_PARAM : ROLE_STATISTIC;
    return has_role(serving, root, role) &&
                   serving->program->tensors[root].dtype == serving->program->real
               ? serving->program->tensors[root].entry
               : -1;
}

static uint64_t kept_bytes(const struct serving *serving, const struct op *op)
{
    uint64_t bytes = 0;
    for (int32_t i = 0; i < op->outputs; i++) {
        const int32_t root = output_root(serving, op, i);
        if (root >= 0 && role_is_kept(serving->program->tensors[root].role))
            bytes += serving->program->tensors[root].bytes;
    }
    return bytes;
}

static int is_larger(const void *a, const void *b)
{
    const struct served *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* The largest first, each to the server that has least. */
static enum status share_out(struct serving *serving, struct served *served, int32_t count)
{
    const int32_t servers = serving->options->servers;
    uint64_t *bytes = arena_array(&serving->arena, (size_t)servers, sizeof *bytes);
    NEED(bytes);
    if (servers > count)
        FAIL(STATUS_INPUT,
             "%s: found %d servers, expected at most %d: a server has at least one of the "
             "parameters; --servers %d",
             serving->program->name, servers, count, count);
    qsort(served, (size_t)count, sizeof *served, is_larger);
    for (int32_t i = 0; i < count; i++) {
        int32_t least = 0;
        for (int32_t s = 1; s < servers; s++)
            if (bytes[s] < bytes[least])
                least = s;
        serving->server[served[i].entry] = least;
        bytes[least] += served[i].bytes;
    }
    return STATUS_OK;
}

/* What the optimiser keeps of a parameter is where that is. */
static void place_states(const struct serving *serving)
{
    const struct program *program = serving->program;
    for (int32_t o = program->parts[PART_UPDATE].from; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        int32_t server = -1;
        for (int32_t i = 0; is_update(op) && i < op->outputs; i++)
            if (served_entry(serving, op, i) >= 0)
                server = serving->server[served_entry(serving, op, i)];
        for (int32_t i = 0; server >= 0 && i < op->outputs; i++)
            if (has_role(serving, output_root(serving, op, i), ROLE_STATE))
                serving->server[program->tensors[output_root(serving, op, i)].entry] = server;
    }
}

static enum status find_servers(struct serving *serving)
{
    const struct program *program = serving->program;
    const size_t entries = (size_t)serving->params->count + 1;
    struct served *served = arena_array(&serving->arena, entries, sizeof *served);
    int32_t count = 0;
    NEED(served);
    NEED(serving->server = arena_array(&serving->arena, entries, sizeof *serving->server));
    for (size_t e = 0; e < entries; e++)
        serving->server[e] = -1;
    for (int32_t o = 0; o < program->op_count; o++)
        for (int32_t i = 0; i < program->ops[o].outputs; i++) {
            const int32_t entry = served_entry(serving, &program->ops[o], i);
            if (entry < 0 || serving->server[entry] >= 0)
                continue;
            serving->server[entry] = 0;
            served[count++] = (struct served){entry, kept_bytes(serving, &program->ops[o])};
        }
    TRY(share_out(serving, served, count));
    place_states(serving);
    return STATUS_OK;
}

/* ---- what goes back and forth ---- */

/* The server of a gradient, a statistic or a parameter; -1: none has it. */
static int32_t server_of(const struct serving *serving, int32_t root)
{
    const int32_t entry = root < 0 ? -1 : serving->program->tensors[root].entry;
    return entry < 0 ? -1 : serving->server[entry];
}

/* Adds what the op writes and no later one of [from, to) does. */
static void collect(const struct serving *serving, int32_t o, int32_t to, enum role role,
                    struct passing *list, int32_t *count)
{
    const struct program *program = serving->program;
    for (int32_t i = 0; i < program->ops[o].outputs; i++) {
        const int32_t root = output_root(serving, &program->ops[o], i);
        bool again = !has_role(serving, root, role) || server_of(serving, root) < 0;
        for (int32_t later = o + 1; !again && later < to; later++)
            for (int32_t k = 0; k < program->ops[later].outputs; k++)
                again |= output_root(serving, &program->ops[later], k) == root;
        if (!again)
            list[(*count)++] = (struct passing){root, server_of(serving, root), o};
    }
}

static enum status find_passings(struct serving *serving)
{
    const struct program *program = serving->program;
    const int32_t update = program->parts[PART_UPDATE].from, all = program->op_count;
    const size_t most = (size_t)program->operand_count + 1;
    NEED(serving->pushes = arena_array(&serving->arena, most, sizeof *serving->pushes));
    NEED(serving->pulls = arena_array(&serving->arena, most, sizeof *serving->pulls));
    for (int32_t o = 0; o < update; o++) {
        collect(serving, o, update, ROLE_GRAD, serving->pushes, &serving->push_count);
        collect(serving, o, update, ROLE_STATISTIC, serving->pushes, &serving->push_count);
    }
    for (int32_t o = update; o < all; o++) {
        collect(serving, o, all, ROLE_PARAM, serving->pulls, &serving->pull_count);
        if (program->ops[o].kind == OP_tick)
            serving->count = root_of(serving, op_operand(program, &program->ops[o], AT_tick_count));
    }
    for (int32_t o = 0; o < update; o++)
        collect(serving, o, update, ROLE_STATISTIC, serving->pulls, &serving->pull_count);
    return STATUS_OK;
}

/* ---- which ops a rank has ---- */

static void need_inputs(const struct serving *serving, const struct op *op, bool *needed)
{
    for (int32_t i = 0; i < op->inputs; i++) {
        const int32_t root = root_of(serving, op_input(serving->program, op, i));
        if (root >= 0)
            needed[root] = true;
    }
}

static bool writes_needed(const struct serving *serving, const struct op *op, const bool *needed)
{
    for (int32_t i = 0; i < op->outputs; i++)
        if (output_root(serving, op, i) >= 0 && needed[output_root(serving, op, i)])
            return true;
    return false;
}

/* All that is not for the update alone. */
static void find_work(const struct serving *serving, bool *needed, bool *has)
{
    const struct program *program = serving->program;
    for (int32_t o = program->op_count - 1; o >= 0; o--) {
        const struct op *op = &program->ops[o];
        has[o] = op->kind == OP_tick ||
                 (op->part != PART_UPDATE && (!op->outputs || writes_needed(serving, op, needed)));
        for (int32_t i = 0; !has[o] && op->part != PART_UPDATE && i < op->outputs; i++) {
            const int32_t root = output_root(serving, op, i);
            has[o] = root >= 0 && (has_role(serving, root, ROLE_GRAD) ||
                                   role_is_kept(program->tensors[root].role));
        }
        if (has[o])
            need_inputs(serving, op, needed);
    }
}

/* Is the op of the update this server's? Refused where it is several servers'. */
static enum status is_served(const struct serving *serving, const struct op *op, int32_t server,
                             bool *out)
{
    int32_t first = -1;
    *out = op->kind == OP_tick;
    for (int32_t i = 0; op->kind != OP_tick && i < op->inputs + op->outputs; i++) {
        const int32_t own =
            server_of(serving, root_of(serving, serving->program->operands[op->first + i]));
        if (own >= 0 && first >= 0 && own != first)
            FAIL(STATUS_INPUT,
                 "%s: found %s, which needs the parameters of several servers; expected one: "
                 "--servers 1, or --parallelism data",
                 serving->program->name, op_name(op->kind));
        first = own >= 0 ? own : first;
    }
    *out |= first == server;
    return STATUS_OK;
}

/* Its own updates and what they are computed from, which cannot be samples. */
static enum status find_service(const struct serving *serving, int32_t server, bool *needed,
                                bool *has)
{
    const struct program *program = serving->program;
    for (int32_t o = program->op_count - 1; o >= 0; o--) {
        const struct op *op = &program->ops[o];
        if (op->part == PART_UPDATE)
            TRY(is_served(serving, op, server, &has[o]));
        else
            has[o] = writes_needed(serving, op, needed);
        if (has[o] && op->part != PART_UPDATE && op->part != PART_PREPARE)
            FAIL(STATUS_UNSUPPORTED,
                 "%s: found an update that needs the samples, expected one that needs gradients "
                 "alone: --parallelism data",
                 program->name);
        if (!has[o])
            continue;
        need_inputs(serving, op, needed);
        for (int32_t i = 0; i < op->inputs; i++) { /* these come from workers, or lie here */
            const int32_t root = root_of(serving, op_input(program, op, i));
            if (root >= 0 &&
                (has_role(serving, root, ROLE_GRAD) || role_is_kept(program->tensors[root].role)))
                needed[root] = false;
        }
    }
    return STATUS_OK;
}

/* ---- programs ---- */

static void write_send(struct rank_writer *writer, int32_t tensor, int32_t peer)
{
    struct op *op = draft_op(&writer->draft, OP_send, IN(rank_tensor(writer, tensor)), NOTHING);
    op->attr.send.peer = peer;
    op->made_by = made_by;
}

static void write_receive(struct rank_writer *writer, int32_t tensor, int32_t peer, bool adds)
{
    const int32_t x = rank_tensor(writer, tensor);
    struct op *op = adds ? draft_op(&writer->draft, OP_receive_add, IN(x), OUT(x))
                         : draft_op(&writer->draft, OP_receive, NOTHING, OUT(x));
    if (adds)
        op->attr.receive_add.peer = peer;
    else
        op->attr.receive.peer = peer;
    op->made_by = made_by;
}

static void write_push(const struct serving *serving, struct rank_writer *writer,
                       const struct passing *push)
{
    const struct server_options *options = serving->options;
    write_send(writer, push->root, workers_of(serving) + push->server);
    struct draft *draft = &writer->draft;
    if (draft->status != STATUS_OK || options->alone)
        return;
    struct op *op = &draft->program->ops[draft->program->op_count - 1];
    op->attr.send.samples = options->samples;
    op->attr.send.of = options->of;
}

/* What the worker and a server say to each other in an update: all at once where servers serve one
 * worker at a time. So it waits for one server at a time, and they never for each other. */
static void write_visit(const struct serving *serving, struct rank_writer *writer, int32_t server)
{
    const int32_t peer = workers_of(serving) + server;
    if (serving->options->alone)
        write_send(writer, serving->count, peer);
    for (int32_t i = 0; serving->options->alone && i < serving->push_count; i++)
        if (serving->pushes[i].server == server)
            write_push(serving, writer, &serving->pushes[i]);
    for (int32_t i = 0; i < serving->pull_count; i++)
        if (serving->pulls[i].server == server)
            write_receive(writer, serving->pulls[i].root, peer, false);
}

static void write_worker(const struct serving *serving, struct rank_writer *writer, const bool *has)
{
    const struct program *program = serving->program;
    const int32_t update = program->parts[PART_UPDATE].from;
    for (int32_t o = 0; o < program->op_count; o++) {
        if (o == update) {
            draft_part(&writer->draft, PART_UPDATE);
            writer->draft.layer = "";
            for (int32_t s = 0; s < serving->options->servers; s++)
                write_visit(serving, writer, s);
        }
        if (has[o])
            rank_op(writer, &program->ops[o]);
        for (int32_t i = 0; !serving->options->alone && i < serving->push_count; i++)
            if (serving->pushes[i].op == o)
                write_push(serving, writer, &serving->pushes[i]);
    }
}

/* The sum over the workers, or what the one has whose turn it is. */
static void write_sum(const struct serving *serving, struct rank_writer *writer, int32_t tensor)
{
    if (serving->options->alone) {
        write_receive(writer, tensor, COMM_TURN, false);
        return;
    }
    for (int32_t w = 0; w < workers_of(serving); w++)
        write_receive(writer, tensor, w, w > 0);
}

static void write_pull(const struct serving *serving, struct rank_writer *writer, int32_t tensor)
{
    const int32_t workers = serving->options->alone ? 1 : workers_of(serving);
    for (int32_t w = 0; w < workers; w++)
        write_send(writer, tensor, serving->options->alone ? COMM_TURN : w);
}

static void write_server(const struct serving *serving, struct rank_writer *writer, int32_t server,
                         const bool *has)
{
    const struct program *program = serving->program;
    const int32_t update = program->parts[PART_UPDATE].from;
    draft_part(&writer->draft, PART_BACKWARD);
    for (int32_t i = 0; i < serving->push_count; i++)
        if (serving->pushes[i].server == server)
            write_sum(serving, writer, serving->pushes[i].root);
    for (int32_t o = 0; o < program->op_count; o++) {
        if (!has[o])
            continue;
        rank_op(writer, &program->ops[o]);
        for (int32_t i = 0; o >= update && i < serving->pull_count; i++)
            if (serving->pulls[i].op == o && serving->pulls[i].server == server)
                write_pull(serving, writer, serving->pulls[i].root);
    }
    draft_part(&writer->draft, PART_UPDATE);
    for (int32_t i = 0; i < serving->pull_count; i++)
        if (serving->pulls[i].op < update && serving->pulls[i].server == server)
            write_pull(serving, writer, serving->pulls[i].root);
}

static enum status write_rank(const struct serving *serving, int32_t rank, struct split_ranks *out)
{
    const struct program *program = serving->program;
    const int32_t workers = workers_of(serving);
    struct arena arena = {0};
    struct rank_writer writer = {0};
    char name[300];
    enum status status = STATUS_OK;
    bool *needed, *has;
    snprintf(name, sizeof name, "%s: %s %d of %d", program->name,
             rank < workers ? "worker" : "server", rank < workers ? rank + 1 : rank - workers + 1,
             rank < workers ? workers : serving->options->servers);
    NEED_OR(done, needed = arena_array(&arena, (size_t)program->tensor_count + 1, sizeof *needed));
    NEED_OR(done, has = arena_array(&arena, (size_t)program->op_count + 1, sizeof *has));
    if (rank < workers)
        find_work(serving, needed, has);
    else
        TRY_OR(done, find_service(serving, rank - workers, needed, has));
    TRY_OR(done, rank_writer_begin(&writer, out, rank, program, serving->params, name));
    if (rank < workers)
        write_worker(serving, &writer, has);
    else
        write_server(serving, &writer, rank - workers, has);
    out->ranks[rank].copies = rank < workers;
    status = rank_writer_finish(&writer);
done:
    arena_free(&arena);
    return status;
}

static enum status write_ranks(struct serving *serving, struct split_ranks *out)
{
    const struct server_options *options = serving->options;
    TRY(find_servers(serving));
    TRY(find_passings(serving));
    TRY(split_ranks_begin(out, options->ranks, serving->params, options->own));
    for (int32_t rank = 0; rank < options->ranks; rank++)
        TRY(write_rank(serving, rank, out));
    return STATUS_OK;
}

enum status split_server(const struct program *program, const struct params *params,
                         const struct server_options *options, struct split_ranks *out)
{
    struct serving serving = {.program = program, .params = params, .options = options};
    *out = (struct split_ranks){0};
    enum status status = write_ranks(&serving, out);
    if (status != STATUS_OK)
        split_ranks_free(out);
    arena_free(&serving.arena);
    return status;
}
