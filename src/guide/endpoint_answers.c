/* endpoint_answers.c: /api/overview, /api/answers and /api/answer/NAME. */
#include "finding/finding.h"
#include "guide/endpoints.h"

/* With nothing stored there is no machine, and there are no findings. */
enum status endpoint_overview(struct call *call)
{
    struct overview overview = {.machine = {"", "", "", 0}, .newest = ""};
    if (call->store)
        TRY(overview_find(call->store, &call->arena, call_where(call), &overview));
    overview_write(&overview, &call->json);
    overview_free(&overview);
    return STATUS_OK;
}

static enum status add_answer(struct call *call, const struct finding_about *about, size_t index)
{
    struct finding answer;
    TRY(finding_ask(about, index, &answer));
    if (answer.known || answer.command.length) /* else nothing here could ever answer it */
        finding_write(&answer, &call->json);
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
    call_add_text(json, "machine", status == STATUS_OK ? about.machine.title : NULL);
    json_put_bool(json, "shipped", about.machine.shipped);
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
