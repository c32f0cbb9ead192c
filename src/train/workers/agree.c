/* agree.c: see agree.h. Worker 0 tells its facts to all, each compares, and the first that differs
 * tells its own. */
#include "train/workers/agree.h"

#include "base/memory.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { FACTS_MOST = 1 << 20, SHOWN = 120 };

/* A fact is one line, whatever a file is called. */
static void end_fact(struct text *facts, size_t from)
{
    for (; from < facts->length; from++)
        if (iscntrl((unsigned char)facts->data[from]))
            facts->data[from] = '?';
    text_add_char(facts, '\n');
}

void agree_fact(struct text *facts, const char *what, const char *format, ...)
{
    va_list list;
    const size_t from = facts->length;
    text_printf(facts, "%s: ", what);
    va_start(list, format);
    text_vprintf(facts, format, list);
    va_end(list);
    end_fact(facts, from);
}

void agree_hashed(struct text *facts, const char *what, uint64_t hash, const char *name)
{
    text_printf(facts, "%s: %016" PRIx64 "\t", what, hash);
    const size_t from = facts->length;
    text_add(facts, name);
    end_fact(facts, from);
}

/* What a worker that differs says: its line, and where it is. */
struct claim {
    char line[2 * SHOWN], host[64];
};

/* The facts of worker 0. */
static enum status share_facts(struct comm *comm, const struct text *own, struct text *first)
{
    uint64_t length = own->length;
    TRY(comm_broadcast(comm, 0, &length, sizeof length));
    if (length > FACTS_MOST)
        FAIL(STATUS_INPUT, "worker 0 does not run the same program: start one build on all");
    if (comm->rank == 0)
        text_add(first, text_of(own));
    while (first->length < length && !first->failed)
        text_add_char(first, ' ');
    TRY(text_done(first));
    return length ? comm_broadcast(comm, 0, first->data, length) : STATUS_OK;
}

static const char *next_line(const char *line)
{
    const size_t length = strcspn(line, "\n");
    return line + length + (line[length] != 0);
}

/* Where the first line that differs begins in each; false: none does. What stands behind a tab is
 * not compared. */
static bool find_difference(const char **a, const char **b)
{
    for (; **a || **b; *a = next_line(*a), *b = next_line(*b)) {
        const size_t length = strcspn(*a, "\t\n");
        if (length != strcspn(*b, "\t\n") || memcmp(*a, *b, length) != 0)
            return true;
    }
    return false;
}

/* The lowest worker that differs; 0: none does. All workers get the same. */
static enum status find_worker(struct comm *comm, bool differs, int *out)
{
    double *flags = mem_array((size_t)comm->size, sizeof *flags);
    NEED(flags);
    flags[comm->rank] = differs;
    enum status status = comm_all_reduce(comm, flags, (size_t)comm->size, DTYPE_F64);
    *out = 0;
    for (int rank = comm->size - 1; status == STATUS_OK && rank > 0; rank--)
        if (flags[rank] != 0)
            *out = rank;
    mem_free(flags);
    return status;
}

static void keep_line(struct claim *claim, const char *line)
{
    snprintf(claim->line, sizeof claim->line, "%.*s", (int)strcspn(line, "\n"), line);
    char *tab = strchr(claim->line, '\t');
    if (tab)
        *tab = ' ';
}

/* All say the same: "what: value" of the one, and the value of the other. */
static enum status differ(struct comm *comm, int rank, const struct claim *claim,
                          const struct claim *first)
{
    const char *found = strstr(claim->line, ": "), *expected = strstr(first->line, ": ");
    const int what = found ? (int)(found - claim->line) : 0;
    return comm_abandon(
        comm,
        status_fail(STATUS_INPUT, __FILE__, __LINE__,
                    "worker %d on %.64s differs from worker 0 on %.64s in %.*s: found %.*s, "
                    "expected %.*s: start the same command on the same files",
                    rank, claim->host, first->host, what, claim->line, SHOWN,
                    found ? found + 2 : "nothing", SHOWN, expected ? expected + 2 : "nothing"));
}

static enum status compare(struct comm *comm, const struct text *facts, const struct text *zero)
{
    const char *mine = text_of(facts), *theirs = text_of(zero);
    struct claim claim = {0}, first = {0};
    int worker = 0;
    const bool differs = find_difference(&mine, &theirs);
    TRY(find_worker(comm, differs, &worker));
    if (!worker)
        return STATUS_OK;
    keep_line(&claim, mine);
    keep_line(&first, theirs);
    gethostname(claim.host, sizeof claim.host - 1);
    gethostname(first.host, sizeof first.host - 1);
    TRY(comm_broadcast(comm, worker, &claim, sizeof claim));
    TRY(comm_broadcast(comm, worker, first.line, sizeof first.line));
    TRY(comm_broadcast(comm, 0, first.host, sizeof first.host));
    return differ(comm, worker, &claim, &first);
}

enum status agree(struct comm *comm, struct text *facts)
{
    struct text zero = {0};
    if (!comm || comm->size == 1)
        return STATUS_OK;
    TRY(text_done(facts));
    enum status status = share_facts(comm, facts, &zero);
    if (status == STATUS_OK)
        status = compare(comm, facts, &zero);
    text_free(&zero);
    return status;
}

/* Eight bytes at a time, since parameters are many; the rest one by one. */
uint64_t agree_hash(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;
    uint64_t word, at = 0;
    for (; at + sizeof word <= length; at += sizeof word) {
        memcpy(&word, byte + at, sizeof word);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    for (; at < length; at++)
        hash = (hash ^ byte[at]) * 0x100000001B3u;
    return hash ^ length;
}

uint64_t agree_hash_text(uint64_t hash, const char *text)
{
    return agree_hash(hash, text ? text : "", text ? strlen(text) : 0);
}

uint64_t agree_hash_params(const struct params *params)
{
    uint64_t hash = 0;
    for (int32_t e = 0; e < params->count; e++) {
        const struct entry *entry = &params->entries[e];
        hash = agree_hash_text(hash, entry->name);
        hash = agree_hash(hash, entry->shape.dim,
                          sizeof *entry->shape.dim * (size_t)entry->shape.rank);
        hash = agree_hash(hash, params_data(params, e), (size_t)entry->bytes);
    }
    return hash;
}
