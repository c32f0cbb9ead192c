/* guide.c: see guide.h. Paths under /api/ go to the API; the others are names of embedded files, so
 * that there is no file system to reach. */
#include "guide/guide.h"

#include "base/embed.h"
#include "base/memory.h"
#include "base/text.h"
#include "guide/api.h"
#include "guide/http.h"

#include <string.h>

extern const struct embedded guide_files[]; /* src/guide/ui, bundled */

struct guide {
    struct api *api;
    struct http *http;
};

static const char *type_of(const char *name)
{
    static const struct {
        const char *suffix, *type;
    } types[] = {
        {".html", "text/html; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".svg", "image/svg+xml"},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (text_ends(name, types[i].suffix))
            return types[i].type;
    return "application/octet-stream";
}

/* NULL when there is none of this name and suffix. */
static const struct embedded *find_file(const char *name, const char *suffix)
{
    for (const struct embedded *file = guide_files; file->name; file++)
        if (text_starts(file->name, name) && text_equal(file->name + strlen(name), suffix))
            return file;
    return NULL;
}

/* Large files are there twice, as they are and with .gz after the name. */
static void answer_file(const char *name, bool gzip, struct http_answer *answer)
{
    static const char missing[] = "there is no page of this name; the guide begins at /";
    const struct embedded *packed = gzip ? find_file(name, ".gz") : NULL;
    const struct embedded *file = packed ? packed : find_file(name, "");
    if (file) {
        answer->code = 200;
        answer->type = type_of(name);
        answer->encoding = packed ? "gzip" : NULL;
        answer->bytes = file->bytes;
        answer->length = file->length;
        return;
    }
    answer->code = 404;
    answer->type = "text/plain; charset=utf-8";
    answer->bytes = missing;
    answer->length = sizeof missing - 1;
}

static void answer_request(void *context, const struct http_request *request,
                           struct http_answer *answer)
{
    struct guide *guide = context;
    if (text_starts(request->path, "/api/"))
        api_answer(guide->api, request, answer);
    else if (text_equal(request->path, "/"))
        answer_file("index.html", request->gzip, answer);
    else
        answer_file(request->path + 1, request->gzip, answer);
}

enum status guide_start(const char *store, const struct http_place *place, struct guide **out)
{
    struct guide *guide;
    NEED(guide = mem_alloc(sizeof *guide));
    enum status status;
    TRY_OR(failed, api_open(store, &guide->api));
    TRY_OR(failed, http_start(place, answer_request, guide, &guide->http));
    *out = guide;
    return STATUS_OK;
failed:
    guide_stop(guide);
    return status;
}

uint16_t guide_port(const struct guide *guide)
{
    return http_port(guide->http);
}

const char *guide_token(const struct guide *guide)
{
    return http_token(guide->http);
}

void guide_stop(struct guide *guide)
{
    if (!guide)
        return;
    http_stop(guide->http);
    api_close(guide->api);
    mem_free(guide);
}
