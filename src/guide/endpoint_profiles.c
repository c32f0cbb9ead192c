/* endpoint_profiles.c: /api/profiles and /api/profile/ID: where the time of kept runs went, what
 * was found in them, and how often each rule was right. */
#include "guide/endpoints.h"
#include "record/profile_line.h"
#include "record/proof_line.h"

#include <string.h>

enum { PROFILES_MOST = 100 /* that are listed, the newest */ };

#define WORD_EXPECTED "expected"
#define WORD_UP_TO "up to"
#define WORD_AT_LEAST "at least"
static const struct {
    const char *id, *word, *title;
    double low, high;
} rules[] = {
#define RULE(key, id, word, low, high, title, action) {id, WORD_##word, title, low, high},
#define OWN(key, id, axis, word, low, high, title, action) {id, WORD_##word, title, low, high},
#include "advise/rules.def"
};
enum { RULES = sizeof rules / sizeof *rules };

static void add_tree(struct json_writer *json, const char *key, const struct json *value)
{
    json_key(json, key);
    if (value)
        json_add_tree(json, value);
    else
        json_add_null(json);
}

/* ---- the list -------------------------------------------------------------------------------- */

/* What a list needs of one; the largest parts of a profile are left out. */
static void add_entry(struct json_writer *json, int64_t id, const struct record *record,
                      const struct profile_line *profile)
{
    const struct json *findings = profile->findings;
    json_object(json);
    call_add_int(json, "id", id);
    call_add_text(json, "title", profile->title);
    call_add_text(json, "at", record->at);
    call_add_text(json, "server", json_text(record->machine, "server", NULL));
    call_add_text(json, "gpu", profile->gpu);
    call_add_text(json, "format", json_text(record->profile, "format", NULL));
    call_add_int(json, "steps", profile->steps);
    call_add_real(json, "step_ns", profile->step_ns);
    json_put_bool(json, "unwatched", json_bool(record->profile, "unwatched", false));
    add_tree(json, "budget", profile->budget);
    call_add_int(json, "findings", findings ? (int64_t)findings->count : 0);
    add_tree(json, "first", findings ? findings->first : NULL);
    json_end(json);
}

/* A line that is no whole profile, in a store from elsewhere, is no reason to show none. */
static enum status list_profile(void *context, int64_t id, const char *line, size_t length)
{
    struct json_writer *json = context;
    struct arena arena = {0};
    struct record record;
    struct profile_line profile;
    if (record_read(&arena, "the store", (long)id, line, length, &record) == STATUS_OK &&
        profile_line_read(record.profile, &profile) == STATUS_OK)
        add_entry(json, id, &record, &profile);
    arena_free(&arena);
    return STATUS_OK;
}

/* ---- proofs ---------------------------------------------------------------------------------- */

static enum status count_proof(void *context, int64_t id, const char *line, size_t length)
{
    struct proof_history *histories = context;
    struct arena arena = {0};
    struct record record;
    struct proof_line proof;
    if (record_read(&arena, "the store", (long)id, line, length, &record) == STATUS_OK &&
        proof_line_read(record.proof, &proof) == STATUS_OK)
        for (int i = 0; i < RULES; i++)
            if (strcmp(rules[i].id, proof.rule) == 0)
                proof_history_add(&histories[i], &proof);
    arena_free(&arena);
    return STATUS_OK;
}

static enum status add_rules(struct call *call)
{
    struct proof_history *histories;
    struct json_writer *json = &call->json;
    NEED(histories = arena_array(&call->arena, RULES, sizeof *histories));
    if (call->store)
        TRY(store_export(call->store, "proof", count_proof, histories));
    json_key(json, "rules");
    json_array(json);
    for (int i = 0; i < RULES; i++) {
        double low = rules[i].low, high = rules[i].high;
        proof_history_correct(&histories[i], &low, &high);
        json_object(json);
        call_add_text(json, "rule", rules[i].id);
        call_add_text(json, "title", rules[i].title);
        call_add_text(json, "word", rules[i].word);
        call_add_int(json, "proofs", histories[i].proofs);
        call_add_int(json, "faster", histories[i].faster);
        call_add_int(json, "held", histories[i].held);
        call_add_real(json, "low", low);
        call_add_real(json, "high", high);
        json_end(json);
    }
    json_end(json);
    return STATUS_OK;
}

enum status endpoint_profiles(struct call *call)
{
    struct json_writer *json = &call->json;
    json_object(json);
    json_key(json, "profiles");
    json_array(json);
    if (call->store)
        TRY(store_recent(call->store, "profile", PROFILES_MOST, list_profile, json));
    json_end(json);
    TRY(add_rules(call));
    json_end(json);
    return STATUS_OK;
}

/* ---- one profile ----------------------------------------------------------------------------- */

/* Proofs of one program, by the command that was profiled. */
struct proofs_of {
    struct json_writer *json;
    const char *rule, *command;
};

static enum status add_proof(void *context, int64_t id, const char *line, size_t length)
{
    const struct proofs_of *of = context;
    struct arena arena = {0};
    struct record record;
    struct proof_line proof;
    if (record_read(&arena, "the store", (long)id, line, length, &record) == STATUS_OK &&
        proof_line_read(record.proof, &proof) == STATUS_OK && strcmp(proof.rule, of->rule) == 0 &&
        strcmp(proof.command, of->command) == 0) {
        json_object(of->json);
        call_add_text(of->json, "at", record.at);
        call_add_text(of->json, "change", proof.change);
        call_add_real(of->json, "expected", proof.expected);
        call_add_real(of->json, "measured", proof.measured);
        call_add_real(of->json, "low", proof.measured_low);
        call_add_real(of->json, "high", proof.measured_high);
        call_add_text(of->json, "verdict", verdict_name(proof.verdict));
        json_put_bool(of->json, "held", proof_held(&proof));
        json_end(of->json);
    }
    arena_free(&arena);
    return STATUS_OK;
}

static enum status add_findings(struct call *call, const struct profile_line *profile)
{
    struct json_writer *json = &call->json;
    json_key(json, "findings");
    json_array(json);
    for (const struct json *finding = profile->findings ? profile->findings->first : NULL; finding;
         finding = finding->next) {
        struct proofs_of of = {json, json_text(finding, "rule", ""), profile->command};
        json_object(json);
        for (const struct json *member = finding->first; member; member = member->next)
            if (strcmp(member->key, "proofs") != 0)
                add_tree(json, member->key, member);
        json_key(json, "proofs");
        json_array(json);
        if (*profile->command)
            TRY(store_export(call->store, "proof", add_proof, &of));
        json_end(json);
        json_end(json);
    }
    json_end(json);
    return STATUS_OK;
}

/* The trace is asked for on its own. */
static bool is_passed_on(const char *key)
{
    static const char *const others[] = {"id", "at", "machine", "findings", "trace"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(key, others[i]) == 0)
            return false;
    return true;
}

enum status call_profile(struct call *call, int64_t *id, struct record *record,
                         struct profile_line *profile)
{
    struct text line = {0};
    if (!text_to_int(call->rest, id) || *id < 1)
        return call_refuse(call, "ID", call->rest, "a whole number: %s1", call->endpoint->path);
    call->code = 404;
    if (!call->store)
        FAIL(STATUS_INPUT, "there is no profile %lld", (long long)*id);
    enum status status = store_get(call->store, *id, &line);
    if (status == STATUS_OK)
        status =
            record_read(&call->arena, "the store", (long)*id, text_of(&line), line.length, record);
    text_free(&line);
    TRY(status);
    if (record->kind != RECORD_PROFILE)
        FAIL(STATUS_INPUT, "record %lld is no profile; /api/profiles lists them", (long long)*id);
    return profile_line_read(record->profile, profile);
}

enum status endpoint_profile(struct call *call)
{
    struct json_writer *json = &call->json;
    struct record record;
    struct profile_line profile;
    int64_t id;
    TRY(call_profile(call, &id, &record, &profile));
    json_object(json);
    call_add_int(json, "id", id);
    call_add_text(json, "at", record.at);
    add_tree(json, "machine", record.machine);
    for (const struct json *member = record.profile->first; member; member = member->next)
        if (is_passed_on(member->key))
            add_tree(json, member->key, member);
    TRY(add_findings(call, &profile));
    TRY(add_rules(call));
    json_end(json);
    return STATUS_OK;
}
