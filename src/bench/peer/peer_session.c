/* peer_session.c: see peer_session.h. */
#include "bench/peer/peer_session.h"

#include "bench/job/describe.h"
#include "bench/job/job_network.h"
#include "bench/job/job_workers.h"
#include "bench/layers/layer_own.h"
#include "bench/scenario.h"
#include "nn/formats/safetensors.h"
#include "record/facts.h"
#include "record/version.h"

#include <string.h>

static const uint64_t SHORT_NS = 20000000;

void peer_session_close(struct peer_session *session)
{
    if (session->job)
        session->job->kind->close(session->job);
    task_close(session->task);
    session->job = NULL;
    session->task = NULL;
    session->iteration_ns = 0;
}

static void answer_probe(struct json_writer *out)
{
    json_key(out, "software");
    json_object(out);
    json_put_text(out, "prony", version_number);
    json_put_text(out, "commit", version_commit);
    json_end(out);
}

static enum status load(const struct json *request, const char *key, struct params *params)
{
    struct safetensors file = {0};
    enum status status = safetensors_open(json_text(request, key, ""), &file);
    if (status == STATUS_OK)
        status = safetensors_load(&file, SAFETENSORS_WEIGHTS, params);
    safetensors_close(&file);
    return status;
}

/* The optimiser as a flag has it: "adam:rate=0.001,beta1=0.9". */
static enum status read_optimiser(const struct json *request, struct text *out)
{
    const struct json *settings = json_get(request, "settings");
    text_add(out, json_text(request, "optimiser", ""));
    for (const struct json *s = settings ? settings->first : NULL; s; s = s->next)
        text_printf(out, "%s%s=%.17g", s == settings->first ? ":" : ",", s->key, s->number);
    return text_done(out);
}

/* What is computed with; what it has not it refuses. */
static enum status read_options(const struct peer_session *session, const struct json *request,
                                struct network_options *out)
{
    const struct json *asked = json_get(request, "axes");
    const char *backend = json_text(request, "backend", ""), *isa = json_text(asked, "isa", "");
    const char *unit = json_text(request, "unit", "");

    *out = (struct network_options){
        .device = {.threads = (int)json_int(request, "threads", 1),
                   .isa = ISA_BEST,
                   .precision = json_text(request, "precision", "fp32"),
                   .small_pages = strcmp(json_text(asked, "pages", ""), "4k") == 0},
        .fusion = strcmp(json_text(asked, "fusion", ""), "off") != 0,
        .recompute = strcmp(json_text(asked, "recompute", ""), "on") == 0,
        .answering = scenario_answering(json_text(request, "scenario", "iterate"))};
    if (isa[0] && !isa_parse(isa, &out->device.isa, &out->device.isa_only))
        FAIL(STATUS_UNSUPPORTED, "there is no isa \"%s\"", isa);
    TRY(!backend[0] || strcmp(backend, "default") == 0
            ? registry_first(session->registry, unit[0] ? unit : NULL, &out->backend)
            : registry_find(session->registry, backend, &out->backend));
    if (unit[0] && strcmp(unit, out->backend->unit) != 0)
        FAIL(STATUS_UNSUPPORTED, "the backend %s computes on %s, not on %s", out->backend->name,
             out->backend->unit, unit);
    return STATUS_OK;
}

static int workers_of(const struct peer_session *session)
{
    return session->comm ? session->comm->size : 1;
}

/* The axes that say how several workers share the work out. */
static enum status read_sharing(const struct peer_session *session, const struct json *request,
                                struct sharing *out)
{
    const struct json *asked = json_get(request, "axes");
    int64_t workers = 1, servers = 0;
    *out = (struct sharing){.comm = session->comm};
    text_to_int(json_text(asked, "workers", "1"), &workers);
    if (workers != workers_of(session))
        FAIL(STATUS_UNSUPPORTED, "found %d workers, expected %lld", workers_of(session),
             (long long)workers);
    if (session->comm && strcmp(json_text(request, "phase", ""), "training") != 0)
        FAIL(STATUS_UNSUPPORTED, "--workers needs --phase training");
    const struct sharing_flags flags = {.parallelism = json_text(asked, "parallelism", NULL)};
    text_to_int(json_text(asked, "servers", "0"), &servers);
    TRY(sharing_read(&flags, PARALLEL_DATA, out));
    if (servers && !out->servers)
        FAIL(STATUS_UNSUPPORTED, "--servers are of --parallelism server and async-server");
    out->servers = servers ? (int32_t)servers : out->servers;
    return sharing_check_servers(out, workers_of(session));
}

/* Of the axes that were asked for, what it has. */
static enum status answer_axes(struct peer_session *session, const struct json *request,
                               const struct network_options *options, struct json_writer *out)
{
    const struct json *asked = json_get(request, "axes");
    struct job_info info;
    TRY(session->job->kind->describe(session->job, &session->task->arena, &info));
    const struct device_info *device = &info.device;
    char workers[16];
    TRY(describe_check_threads(options->backend->name, device, options->device.threads));
    snprintf(workers, sizeof workers, "%d", workers_of(session));
    const struct {
        const char *axis, *has;
    } rows[] = {{"workers", workers},
                {"parallelism", json_text(asked, "parallelism", "")}, /* or it was refused */
                {"servers", json_text(asked, "servers", "")},
                {"isa", device->isa ? device->isa : json_text(asked, "isa", "")},
                {"fusion", options->fusion ? "on" : "off"},
                {"recompute", options->recompute ? "on" : "off"},
                {"pages", device->pages ? device->pages : json_text(asked, "pages", "")},
                {"precision", options->device.precision}};
    json_key(out, "axes");
    json_object(out);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!json_get(asked, rows[i].axis))
            continue;
        json_put_text(out, rows[i].axis, rows[i].has);
    }
    json_end(out);
    json_key(out, "device");
    json_object(out);
    json_put_text(out, "isa", device->isa ? device->isa : "");
    json_put_text(out, "pages", device->pages ? device->pages : "");
    json_end(out);
    return STATUS_OK;
}

/* A debug or sanitized build is not what its users run. */
static void answer_handicap(struct json_writer *out)
{
    struct text why = {0};
    struct facts facts;
    facts_find(&facts);
    if (strcmp(facts.build, "release") == 0)
        return;
    text_printf(&why, "%s build of prony", facts.build);
    json_put_text(out, "handicap", text_of(&why));
    text_free(&why);
}

static enum status answer_prepare(struct peer_session *session, const struct json *request,
                                  struct json_writer *out)
{
    struct network_options options;
    struct sharing sharing;
    bool training = strcmp(json_text(request, "phase", ""), "training") == 0;
    struct text optimiser = {0};

    peer_session_close(session);
    TRY(read_options(session, request, &options));
    TRY(read_sharing(session, request, &sharing));
    enum status status = read_optimiser(request, &optimiser);
    const struct task_options wanted = {.model = json_text(request, "model", ""),
                                        .phase = training ? PHASE_TRAINING : PHASE_INFERENCE,
                                        .batch = (int32_t)json_int(request, "batch", 1),
                                        .optimiser = text_of(&optimiser),
                                        .precision = options.device.precision};
    if (status == STATUS_OK)
        status = task_open(&wanted, &session->task);
    text_free(&optimiser);
    TRY(status);
    if (json_get(request, "weights")) { /* else it is a file that the other one cannot import */
        TRY(load(request, "weights", &session->task->params));
        TRY(load(request, "data", &session->task->data));
    }
    for (int64_t i = 0; i < session->task->rows; i++)
        session->task->order[i] = (uint32_t)i; /* the file has them as they are visited */
    TRY(session->comm ? job_workers_open(session->task, &options, &sharing, &session->job)
                      : job_network_open(session->task, &options, &session->job));
    TRY(session->job->kind->prepare(session->job));
    answer_handicap(out);
    return answer_axes(session, request, &options, out);
}

/* All workers decide by the time that the first one saw. */
static enum status agree_on(const struct peer_session *session, uint64_t *iteration_ns)
{
    return session->comm ? comm_broadcast(session->comm, 0, iteration_ns, sizeof *iteration_ns)
                         : STATUS_OK;
}

/* What communication took, of an iteration. */
static enum status answer_traffic(struct peer_session *session, int64_t iterations,
                                  struct json_writer *out)
{
    struct traffic traffic;
    struct staleness stale;
    TRY(job_workers_traffic(session->job, &traffic));
    TRY(job_workers_staleness(session->job, &stale));
    if (stale.updates > 0) {
        json_put_real(out, "staleness", stale.sum / stale.updates);
        json_put_real(out, "staleness_most", stale.most);
    }
    json_put_real(out, "exposed_ns", (double)traffic.waited_ns / (double)iterations);
    json_put_real(out, "hidden_ns", (double)traffic.hidden_ns / (double)iterations);
    json_put_real(out, "sent_bytes", (double)traffic.bytes / (double)iterations);
    return STATUS_OK;
}

/* Whoever has just been woken finds cold caches: a short iteration is run once before it is timed,
 * unless each is a call that somebody waits for, or is counted. */
static enum status answer_run(struct peer_session *session, const struct json *request,
                              struct json_writer *out)
{
    int64_t iterations = json_int(request, "iterations", 1), warm = 0;
    uint64_t elapsed_ns;

    if (iterations < 1)
        FAIL(STATUS_INPUT, "iterations: found %lld, expected 1 or more", (long long)iterations);
    if (json_bool(request, "warm", true) && session->iteration_ns &&
        session->iteration_ns < SHORT_NS)
        TRY(session->job->kind->run(session->job, warm = 1, &elapsed_ns));
    TRY(session->job->kind->run(session->job, iterations, &elapsed_ns));
    session->iteration_ns = elapsed_ns / (uint64_t)iterations;
    TRY(agree_on(session, &session->iteration_ns));
    json_put_uint(out, "elapsed_ns", elapsed_ns ? elapsed_ns : 1);
    return session->comm ? answer_traffic(session, iterations + warm, out) : STATUS_OK;
}

/* The places that are asked for, in the place of the task's own. */
static enum status use_samples(struct task *task, const struct json *samples)
{
    int64_t count = 0;
    NEED(task->places = arena_array(&task->arena, samples->count + 1, sizeof *task->places));
    for (const struct json *sample = samples->first; sample; sample = sample->next) {
        const struct json *name = sample->first, *element = name ? name->next : NULL;
        if (!element || name->kind != JSON_STRING)
            FAIL(STATUS_INPUT, "samples: expected [name, element] each");
        int32_t entry = params_find(&task->params, name->string);
        if (entry < 0 || element->integer < 0 ||
            element->integer >= shape_count(&task->params.entries[entry].shape))
            FAIL(STATUS_INPUT, "there is no parameter %s[%lld]", name->string,
                 (long long)element->integer);
        task->places[count++] = (struct task_place){entry, element->integer};
    }
    task->value_count = count;
    return STATUS_OK;
}

static enum status answer_check(struct peer_session *session, const struct json *request,
                                struct json_writer *out)
{
    struct task *task = session->task;
    const struct json *samples = json_get(request, "samples");
    struct outcome found;

    task->check_steps = (int32_t)json_int(request, "steps", 1);
    const int64_t most = json_int(request, "most", task->value_count);
    if (task->phase == PHASE_TRAINING && samples)
        TRY(use_samples(task, samples));
    else if (task->phase == PHASE_INFERENCE && most > 0 && most < task->value_count)
        task->value_count = most;
    TRY(outcome_make(task, &task->arena, &found));
    TRY(session->comm ? job_workers_outcome(session->job, &found)
                      : job_network_outcome(session->job, &found));
    const int32_t stage = task_stages(task) - 1;
    json_put_real(out, "loss", found.loss[stage]);
    json_key(out, "values");
    json_array(out);
    for (int64_t i = 0; i < task->value_count; i++)
        json_add_float(out, (float)found.values[stage * task->value_count + i]);
    json_end(out);
    return STATUS_OK;
}

static void write_row(const struct layers *layers, const struct layer_row *row,
                      struct json_writer *out)
{
    json_object(out);
    json_put_text(out, "name", row->name);
    json_put_text(out, "op", row->op);
    json_put_text(out, "part", part_name(row->part));
    json_put_real(out, "ns", row->ns);
    if (row->note)
        json_put_text(out, "note", row->note);
    json_key(out, "covers");
    json_array(out);
    for (int32_t c = 0; c < row->cover_count; c++)
        json_add_text(out, layers->atoms[row->covers[c]].key);
    json_end(out);
    json_end(out);
}

/* What each layer takes: as many steps as ours are watched for. */
static enum status answer_profile(struct peer_session *session, struct json_writer *out)
{
    struct layers layers = {0};
    struct layer_side *side = NULL;
    enum status status = layers_name(&layers, session->task->network);
    if (status == STATUS_OK)
        status = layers_side(&layers, "prony", &side);
    if (status == STATUS_OK)
        status = layers_own(&layers, side, session->task, session->job);
    if (status == STATUS_OK) {
        json_put_int(out, "iterations", side->steps);
        json_put_text(out, "how", side->how);
        json_key(out, "rows");
        json_array(out);
        for (int32_t r = 0; r < side->row_count; r++)
            write_row(&layers, &side->rows[r], out);
        json_end(out);
    }
    layers_free(&layers);
    return status;
}

static enum status answer_request(struct peer_session *session, const struct json *request,
                                  struct json_writer *out)
{
    const char *what = json_text(request, "do", "");
    if (strcmp(what, "probe") == 0) {
        answer_probe(out);
        return STATUS_OK;
    }
    if (strcmp(what, "prepare") == 0)
        return answer_prepare(session, request, out);
    if (!session->job)
        FAIL(STATUS_INPUT, "found \"%s\", expected prepare first", what);
    if (strcmp(what, "run") == 0)
        return answer_run(session, request, out);
    if (strcmp(what, "check") == 0)
        return answer_check(session, request, out);
    if (strcmp(what, "profile") == 0)
        return answer_profile(session, out);
    FAIL(STATUS_INPUT, "found \"%s\", expected probe, prepare, run, check or profile", what);
}

/* What was begun of a refused answer is dropped. */
enum status peer_session_answer(struct peer_session *session, const char *line, size_t length,
                                struct text *out)
{
    struct arena arena = {0};
    struct json_writer writer;
    struct json *request;

    json_begin(&writer, out);
    json_object(&writer);
    enum status status = json_parse(&arena, "request", line, length, &request);
    if (status == STATUS_OK)
        status = answer_request(session, request, &writer);
    if (status != STATUS_OK) {
        text_clear(out);
        json_begin(&writer, out);
        json_object(&writer);
    }
    json_put_text(&writer, "status",
                  status == STATUS_OK            ? "ok"
                  : status == STATUS_UNSUPPORTED ? "unsupported"
                                                 : "failed");
    if (status != STATUS_OK) {
        json_put_text(&writer, "reason", status_message());
    }
    json_end(&writer);
    arena_free(&arena);
    return text_done(out);
}
