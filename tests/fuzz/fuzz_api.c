/* Any bytes as a path and parameters of the API: answered without harm, with JSON, and never with a
 * failure of the server's own. */
#include "base/json.h"
#include "guide/api.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum status fill(struct store *store)
{
    for (int64_t batch = 1; batch <= 8; batch *= 2) {
        struct record record;
        struct text line = {0};
        record_start(&record);
        record.point.batch = batch;
        record.time_ns.median = 100;
        record.throughput = (double)batch * 1e7;
        record_write(&record, &line);
        enum status status = store_add(store, text_of(&line), line.length, &record, NULL, NULL);
        text_free(&line);
        TRY(status);
    }
    return STATUS_OK;
}

static enum status add_line(void *context, const struct record *record, const char *line,
                            size_t length)
{
    return store_add(context, line, length, record, NULL, NULL);
}

/* A profile with a timeline, and a proof: records 5 and 6. */
static enum status fill_profile(struct store *store)
{
    static const char lines[] =
        "{\"prony\":1,\"kind\":\"profile\",\"profile\":{\"title\":\"a\",\"command\":\"a\","
        "\"budget\":{\"window_ns\":9,\"compute\":9},"
        "\"findings\":[{\"rule\":\"R1\",\"title\":\"b\",\"gain\":2}],"
        "\"trace\":\"prony trace 1\\ntext\\tmain\\nlane\\tthread\\t0\\t1\\t4\\t0\\n"
        "op\\t0\\t100\\t600\\t1\\nop\\t0\\t100\\t200\\t1\\n\"}}\n"
        "{\"prony\":1,\"kind\":\"proof\",\"proof\":{\"rule\":\"R1\",\"command\":\"a\","
        "\"expected\":2,\"measured\":2,\"rounds\":8,\"verdict\":\"faster\"}}\n";
    return record_read_all("lines", lines, sizeof lines - 1, add_line, store);
}

static struct api *open_once(void)
{
    static struct api *api;
    char path[] = "/tmp/prony-fuzz-api-XXXXXX";
    struct store *store;
    if (api)
        return api;
    if (mkstemp(path) < 0 || store_open(path, STORE_WRITE, &store) != STATUS_OK ||
        fill(store) != STATUS_OK || fill_profile(store) != STATUS_OK ||
        api_open(path, &api) != STATUS_OK)
        abort();
    store_close(store);
    return api;
}

/* Lines: the path, then a parameter each, up to its first '='. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_parameter parameters[HTTP_PARAMETERS];
    struct http_answer answer = {0};
    struct arena arena = {0};
    struct json *tree;
    size_t count = 0;
    char *text = arena_bytes(&arena, (const char *)data, size);
    for (char *at = strchr(text, '\n'); at && count < HTTP_PARAMETERS; at = strchr(at, '\n')) {
        *at++ = '\0';
        char *end = at + strcspn(at, "=\n"), *value = end;
        if (*end == '=') {
            *end = '\0';
            value = end + 1;
        }
        parameters[count++] = (struct http_parameter){at, value};
        at = value;
    }
    for (size_t i = 0; i < count; i++) /* values end where the next line begins */
        ((char *)parameters[i].value)[strcspn(parameters[i].value, "\n")] = '\0';
    api_answer(open_once(),
               &(struct http_request){.path = text, .parameters = parameters, .count = count},
               &answer);
    if (answer.code == 500 || !answer.text.data ||
        json_parse(&arena, "answer", text_of(&answer.text), answer.text.length, &tree) != STATUS_OK)
        abort();
    text_free(&answer.text);
    arena_free(&arena);
    return 0;
}
