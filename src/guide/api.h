/* api.h: the JSON API over a store, as docs/api.md describes it. It knows requests and answers, not
 * sockets. */
#ifndef PRONY_GUIDE_API_H
#define PRONY_GUIDE_API_H

#include "base/status.h"
#include "guide/http.h"

struct api;

/* A store that does not exist yet counts as empty and is opened once it is there; one that cannot
 * be read is an error. `path` is copied. */
enum status api_open(const char *path, struct api **out);
void api_close(struct api *api); /* NULL is fine */

/* Answers a request whose path begins with "/api/". Several threads may ask at once. */
void api_answer(struct api *api, const struct http_request *request, struct http_answer *answer);

#endif
