/* job_peer.c: see job_peer.h. Every answer is read as if by a stranger: it must be one JSON object
 * with a known status, and a time that fits within what we saw pass. */
#include "bench/peer/job_peer.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/memory.h"
#include "bench/peer/child.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint64_t PEER_GRACE_NS = 1000000000, PROBE_PATIENCE_NS = 10000000000;

struct job_peer {
    struct job job;
    struct peer_work work;
    struct child child;
    struct text answer;
    struct arena about; /* what the peer said of itself */
    const struct json *software, *tuning;
    const char *unit_name;
    const char *handicap; /* why it cannot run as its users run it, or NULL; in `about` */
    uint64_t least_ns;    /* that a run took, by our clock: also what asking takes; 0: none did */
    int doubts;           /* runs in a row that say to have taken far less than passed */
    bool exports;         /* it reads the network as ONNX */
    bool answered;        /* it said what it is */
    const char *isa, *pages;     /* that it has, or NULL */
    struct peer_traffic traffic; /* sums over … */
    double told;                 /* … so many iterations */
    bool sound;                  /* every request was answered as it should be */
};

/* Asks, and gives the parsed answer (in `arena`) when its status is "ok". */
static enum status peer_ask_within(struct job_peer *peer, const char *request, uint64_t patience_ns,
                                   struct arena *arena, struct json **out)
{
    bool sound = peer->sound;
    peer->sound = false;
    enum status status =
        child_ask(&peer->child, request, patience_ns, peer->work.stopped, &peer->answer);
    if (status == STATUS_TIMEOUT)
        return status_prefix(status, "after %.3g s (--patience gives it more)",
                             (double)patience_ns * 1e-9);
    TRY(status);
    if (json_parse(arena, "answer", text_of(&peer->answer), peer->answer.length, out) != STATUS_OK)
        return status_prefix(STATUS_DEVICE, "the peer answered nonsense (\"%.60s\")",
                             text_of(&peer->answer));
    const char *state = json_text(*out, "status", "");
    const char *reason = json_text(*out, "reason", "no reason given");
    if (strcmp(state, "failed") == 0)
        FAIL(STATUS_DEVICE, "%s", reason);
    if (strcmp(state, "ok") != 0 && strcmp(state, "unsupported") != 0)
        FAIL(STATUS_DEVICE,
             "the peer answered \"%.60s\"; expected a \"status\" of ok, unsupported or failed",
             text_of(&peer->answer));
    peer->sound = sound;
    if (strcmp(state, "unsupported") == 0)
        FAIL(STATUS_UNSUPPORTED, "%s", reason);
    return STATUS_OK;
}

static enum status peer_ask(struct job_peer *peer, const char *request, struct arena *arena,
                            struct json **out)
{
    return peer_ask_within(peer, request, peer->work.patience_ns, arena, out);
}

/* A process of this executable that waits, and still answers. */
static bool bank_take(struct peer_bank *bank, const char *path, struct child *out)
{
    for (int i = 0; bank && i < bank->count; i++) {
        if (strcmp(bank->list[i].path, path) != 0)
            continue;
        *out = bank->list[i].child;
        mem_free(bank->list[i].path);
        bank->list[i] = bank->list[--bank->count];
        return true;
    }
    return false;
}

/* False: there is no room, and the process is still the caller's. */
static bool bank_put(struct peer_bank *bank, const char *path, const struct child *child)
{
    size_t length = strlen(path) + 1;
    char *copy = bank && bank->count < PEER_BANK ? mem_alloc(length) : NULL;
    if (!copy)
        return false;
    memcpy(copy, path, length);
    bank->list[bank->count++] = (struct peer_kept){copy, *child};
    return true;
}

void peer_bank_close(struct peer_bank *bank)
{
    while (bank->count) {
        struct peer_kept *kept = &bank->list[--bank->count];
        child_close(&kept->child, PEER_GRACE_NS);
        mem_free(kept->path);
    }
    arena_free(&bank->arena);
    bank->asked = NULL;
    bank->absent = NULL;
}

const char *peer_bank_absent(const struct peer_bank *bank, const char *path)
{
    for (const struct peer_absent *absent = bank->absent; absent; absent = absent->next)
        if (strcmp(absent->path, path) == 0)
            return absent->reason;
    return NULL;
}

enum status peer_bank_leave_out(struct peer_bank *bank, const char *path, const char *reason)
{
    struct peer_absent *absent = arena_alloc(&bank->arena, sizeof *absent);
    NEED(absent);
    NEED(absent->path = arena_text(&bank->arena, path));
    NEED(absent->reason = arena_text(&bank->arena, reason));
    absent->next = bank->absent;
    bank->absent = absent;
    return STATUS_OK;
}

/* What it says of itself. */
static void peer_know(struct job_peer *peer, const struct json *probe)
{
    peer->software = json_get(probe, "software");
    peer->exports = json_bool(probe, "exports", false);
    peer->answered = true;
}

/* Starts the process, or takes one that waits, and asks what it is. */
static enum status peer_start(struct job_peer *peer)
{
    struct json *answer;

    peer->sound = true;
    if (bank_take(peer->work.bank, peer->work.path, &peer->child)) {
        if (peer_ask(peer, "{\"do\":\"probe\"}", &peer->about, &answer) == STATUS_OK) {
            peer_know(peer, answer);
            return STATUS_OK;
        }
        child_close(&peer->child, PEER_GRACE_NS); /* it died waiting: another one */
        peer->sound = true;
    }
    TRY(child_open(&peer->child, peer->work.path, peer->work.workers));
    TRY(peer_ask(peer, "{\"do\":\"probe\"}", &peer->about, &answer));
    peer_know(peer, answer);
    return STATUS_OK;
}

/* Whoever is asked for something on an axis that it does not know passes over it: what was asked
 * for must come back. */
static enum status peer_took(const struct job_peer *peer, const struct json *answer)
{
    const struct json *took = json_get(answer, "axes");
    for (int i = 0; i < PEER_AXES && peer->work.axes[i].key; i++) {
        const struct peer_axis *asked = &peer->work.axes[i];
        const char *found = json_text(took, asked->key, "");
        if (!found[0])
            FAIL(STATUS_UNSUPPORTED, "it does not say that it obeys %s %s", asked->key,
                 asked->value);
        if (strcmp(found, asked->value) != 0)
            FAIL(STATUS_UNSUPPORTED, "it was asked for %s %s, and has %.40s", asked->key,
                 asked->value, found);
    }
    return STATUS_OK;
}

static enum status peer_prepare(struct job *job)
{
    struct job_peer *peer = (struct job_peer *)job;
    struct json *answer;

    TRY(peer_start(peer));
    if (peer->exports && peer->work.export)
        TRY(peer->work.export(peer->work.context));
    TRY(peer_ask_within(peer, peer->work.prepare, peer->work.patience_ns + peer->work.search_ns,
                        &peer->about, &answer));
    TRY(peer_took(peer, answer));
    if (json_get(answer, "software")) /* what it chose for this work */
        peer->software = json_get(answer, "software");
    peer->tuning = json_get(answer, "tuning");
    peer->unit_name = json_text(answer, "unit_name", NULL);
    peer->isa = json_text(json_get(answer, "device"), "isa", NULL);
    peer->pages = json_text(json_get(answer, "device"), "pages", NULL);
    peer->handicap = json_text(answer, "handicap", NULL);
    return STATUS_OK;
}

static enum status peer_renew(struct job *job, int *process)
{
    struct job_peer *peer = (struct job_peer *)job;
    child_close(&peer->child, PEER_GRACE_NS);
    peer->software = NULL; /* what it said before stays in `about`: records name it */
    peer->tuning = NULL;
    peer->unit_name = peer->handicap = NULL;
    peer->least_ns = 0;
    peer->doubts = 0;
    TRY(peer_prepare(job));
    *process = peer->child.pid;
    return STATUS_OK;
}

/* Whoever reports another unit, or a part of its time. What asking takes, or a machine that is busy
 * elsewhere now and then, is not the peer's fault, but beyond that what passes must be explained:
 * an iteration to warm up is as long as one that is timed. */
static enum status peer_doubt(struct job_peer *peer, int64_t iterations, uint64_t claimed_ns,
                              uint64_t passed_ns)
{
    enum { TIMES = 4, DOUBTS = 5, LONG_NS = 20000000 };
    const uint64_t beyond_ns = passed_ns > peer->least_ns ? passed_ns - peer->least_ns : 0;
    const bool first = peer->least_ns == 0;

    peer->least_ns = first || passed_ns < peer->least_ns ? passed_ns : peer->least_ns;
    if (!first && (beyond_ns < LONG_NS || beyond_ns / TIMES <= claimed_ns))
        peer->doubts = 0;
    else if (!first && ++peer->doubts == DOUBTS)
        FAIL(
            STATUS_DEVICE,
            "the peer gives %.3g ms for %" PRId64
            " iterations that took %.3g ms, %d times in a row: it must give the nanoseconds of all",
            (double)claimed_ns * 1e-6, iterations, (double)passed_ns * 1e-6, DOUBTS);
    return STATUS_OK;
}

/* What workers say of their communication; of the last runs, the first being warm-up. */
static void peer_communicated(struct job_peer *peer, const struct json *answer, int64_t iterations)
{
    const double count = (double)iterations;
    const double exposed = json_real(answer, "exposed_ns", -1);
    if (!(exposed >= 0))
        return;
    peer->traffic.exposed_ns += count * exposed;
    peer->traffic.hidden_ns += count * json_real(answer, "hidden_ns", 0);
    peer->traffic.sent_bytes += count * json_real(answer, "sent_bytes", 0);
    peer->traffic.staleness = json_real(answer, "staleness", -1); /* of all so far */
    peer->traffic.staleness_most = json_real(answer, "staleness_most", -1);
    peer->told += count;
}

static enum status peer_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    struct job_peer *peer = (struct job_peer *)job;
    struct arena scratch = {0};
    struct json *answer;
    char request[80];
    enum status status = STATUS_OK;

    snprintf(request, sizeof request, "{\"do\":\"run\",\"warm\":%s,\"iterations\":%" PRId64 "}",
             peer->work.exactly ? "false" : "true", iterations);
    uint64_t start_ns = clock_ns();
    TRY_OR(done, peer_ask(peer, request, &scratch, &answer));
    uint64_t passed_ns = clock_ns() - start_ns;
    const struct json *claim = json_get(answer, "elapsed_ns");
    int64_t claimed_ns = json_int(answer, "elapsed_ns", -1);
    if (claimed_ns <= 0 && !(claim && claim->kind == JSON_NUMBER && claim->number <= 0))
        status = status_fail(STATUS_DEVICE, __FILE__, __LINE__,
                             "the peer answered \"%.60s\"; expected \"elapsed_ns\": a whole number",
                             text_of(&peer->answer));
    else if (claimed_ns <= 0 || (uint64_t)claimed_ns > passed_ns)
        status = status_fail(STATUS_DEVICE, __FILE__, __LINE__,
                             "the peer says that it took %" PRId64 " ns; %" PRIu64 " ns passed",
                             claimed_ns, passed_ns);
    else {
        *elapsed_ns = (uint64_t)claimed_ns;
        peer_communicated(peer, answer, iterations);
        status = peer_doubt(peer, iterations, *elapsed_ns, passed_ns);
    }
done:
    arena_free(&scratch);
    return status;
}

static enum status peer_check(struct job *job, double *error)
{
    struct job_peer *peer = (struct job_peer *)job;
    struct arena scratch = {0};
    const struct json *answers[PEER_CHECKS] = {NULL};
    enum status status = STATUS_OK;

    for (int i = 0; i < PEER_CHECKS && peer->work.checks[i] && status == STATUS_OK; i++) {
        struct json *answer = NULL;
        status = peer_ask(peer, peer->work.checks[i], &scratch, &answer);
        answers[i] = answer;
    }
    if (status == STATUS_OK)
        status = peer->work.compare(peer->work.context, answers, error);
    arena_free(&scratch);
    return status;
}

static enum status peer_describe(struct job *job, struct arena *arena, struct job_info *out)
{
    const struct job_peer *peer = (const struct job_peer *)job;
    (void)arena;
    *out = (struct job_info){.device = {.isa = peer->isa, .pages = peer->pages},
                             .software = peer->software,
                             .tuning = peer->tuning,
                             .unit_name = peer->unit_name,
                             .handicap = peer->handicap};
    return STATUS_OK;
}

static void peer_close(struct job *job)
{
    struct job_peer *peer = (struct job_peer *)job;

    if (!peer->sound || !peer->child.pid ||
        !bank_put(peer->work.bank, peer->work.path, &peer->child))
        child_close(&peer->child, PEER_GRACE_NS);
    text_free(&peer->answer);
    arena_free(&peer->about);
    mem_free(peer);
}

static const struct job_kind peer_kind = {"peer",     peer_prepare,  peer_run,  peer_renew,
                                          peer_check, peer_describe, peer_close};

enum status job_peer_open(const struct peer_work *work, struct job **out)
{
    struct job_peer *peer = mem_alloc(sizeof *peer);

    NEED(peer);
    peer->job.kind = &peer_kind;
    peer->work = *work;
    *out = &peer->job;
    return STATUS_OK;
}

/* Starts the executable and asks what it is: a job to be closed, and the answer, NULL for none. */
static enum status peer_probe(const char *path, struct job **job, const struct json **software)
{
    const struct peer_work work = {.path = path, .patience_ns = PROBE_PATIENCE_NS};

    TRY(job_peer_open(&work, job));
    enum status status = peer_start((struct job_peer *)*job);
    *software = ((struct job_peer *)*job)->software;
    if (status != STATUS_OK)
        peer_close(*job);
    return status;
}

enum status job_peer_probe(const char *path, struct text *out)
{
    const struct json *software;
    struct job *job;

    TRY(peer_probe(path, &job, &software));
    const struct json *part = software ? software->first : NULL;
    for (const char *comma = ""; part; part = part->next, comma = ", ")
        if (part->kind == JSON_STRING)
            text_printf(out, "%s%s %s", comma, part->key, part->string);
    peer_close(job);
    return text_done(out);
}

static bool peer_is_prony(const char *path)
{
    const struct json *software;
    struct job *job;

    if (peer_probe(path, &job, &software) != STATUS_OK)
        return false;
    bool is_prony = software && json_get(software, "prony");
    peer_close(job);
    return is_prony;
}

enum status peer_bank_is_prony(struct peer_bank *bank, const char *path, bool *out)
{
    struct peer_asked *known = bank->asked;
    while (known && strcmp(known->path, path) != 0)
        known = known->next;
    if (!known) {
        NEED(known = arena_alloc(&bank->arena, sizeof *known));
        NEED(known->path = arena_text(&bank->arena, path));
        known->is_prony = peer_is_prony(path);
        known->next = bank->asked;
        bank->asked = known;
    }
    *out = known->is_prony;
    return STATUS_OK;
}

bool job_peer_traffic(const struct job *job, struct peer_traffic *out)
{
    const struct job_peer *peer = (const struct job_peer *)job;
    *out = (struct peer_traffic){.exposed_ns = peer->traffic.exposed_ns / peer->told,
                                 .hidden_ns = peer->traffic.hidden_ns / peer->told,
                                 .sent_bytes = peer->traffic.sent_bytes / peer->told,
                                 .staleness = peer->traffic.staleness,
                                 .staleness_most = peer->traffic.staleness_most};
    return peer->told > 0;
}

void job_peer_run_exactly(struct job *job)
{
    ((struct job_peer *)job)->work.exactly = true;
}

enum status job_peer_profile(struct job *job, int64_t iterations, struct arena *arena,
                             const struct json **out)
{
    struct json *answer;
    char request[80];
    snprintf(request, sizeof request, "{\"do\":\"profile\",\"iterations\":%" PRId64 "}",
             iterations);
    TRY(peer_ask((struct job_peer *)job, request, arena, &answer));
    *out = answer;
    return STATUS_OK;
}

bool job_peer_answered(const struct job *job)
{
    return ((const struct job_peer *)job)->answered;
}

pid_t job_peer_process(const struct job *job)
{
    return ((const struct job_peer *)job)->child.pid;
}
