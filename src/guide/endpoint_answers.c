/* endpoint_answers.c: /api/answers and /api/answer/NAME. */
#include "finding/finding.h"
#include "guide/endpoints.h"

static enum status add_answer(struct call *call, const struct finding_about *about, size_t index)
{
    struct json_writer *json = &call->json;
    struct finding answer;
    TRY(finding_ask(about, index, &answer));
    if (!answer.known && !answer.command.length) { /* nothing here could ever answer it */
        finding_free(&answer);
        return STATUS_OK;
    }
    json_object(json);
    call_add_text(json, "name", answer.name);
    call_add_text(json, "question", answer.question);
    call_add_text(json, "answer", text_of(&answer.sentence));
    json_key(json, "known");
    json_add_bool(json, answer.known);
    call_add_text(json, "chart", text_of(&answer.chart));
    call_add_text(json, "command", answer.command.length ? text_of(&answer.command) : NULL);
    json_key(json, "ids");
    json_array(json);
    for (size_t i = 0; i < answer.id_count; i++)
        json_add_int(json, answer.ids[i]);
    json_end(json);
    json_end(json);
    finding_free(&answer);
    return STATUS_OK;
}

/* With nothing to answer from there are no answers, and no model. */
static enum status add_answers(struct call *call, size_t from, size_t to)
{
    struct json_writer *json = &call->json;
    struct finding_about about = {0};
    enum status status = STATUS_INPUT;
    if (call->store)
        status = finding_about(call->store, &call->arena, call_where(call), &about);
    if (status != STATUS_OK && status != STATUS_INPUT)
        return status;
    json_object(json);
    call_add_text(json, "model", status == STATUS_OK ? about.model : NULL);
    json_key(json, "answers");
    json_array(json);
    for (size_t i = from; i < to && status == STATUS_OK; i++)
        TRY(add_answer(call, &about, i));
    json_end(json);
    json_end(json);
    return STATUS_OK;
}

enum status endpoint_answers(struct call *call)
{
    return add_answers(call, 0, FINDINGS);
}

enum status endpoint_answer(struct call *call)
{
    size_t index;
    if (!finding_named(call->rest, &index)) {
        call->code = 404;
        FAIL(STATUS_INPUT, "there is no answer \"%s\"; /api/answers has all", call->rest);
    }
    return add_answers(call, index, index + 1);
}
