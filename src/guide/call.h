/* call.h: one request of the API on its way to an answer: its parameters, checked against what the
 * endpoint takes, and the JSON being written. */
#ifndef PRONY_GUIDE_CALL_H
#define PRONY_GUIDE_CALL_H

#include "base/arena.h"
#include "base/json.h"
#include "guide/http.h"
#include "store/store.h"

enum { CALL_OWN = 5 }; /* parameters of an endpoint beside the filters, at most */

struct call;

struct endpoint {
    const char *path;
    enum status (*answer)(struct call *call);
    const char *own[CALL_OWN]; /* its parameters */
    bool filters;              /* every axis is a parameter too */
    bool has_rest;             /* the path goes on after this */
    bool lasts;                /* the answer stays right as long as the store is as it is */
};

struct call {
    struct store *store; /* NULL: nothing is stored yet */
    const char *store_path;
    const struct endpoint *endpoint;
    const char *rest;          /* of the path, after the endpoint's */
    const char *own[CALL_OWN]; /* values of the endpoint's parameters; NULL: not given */
    struct store_filter filters[HTTP_PARAMETERS];
    size_t filter_count;
    struct arena arena;
    struct text *body;
    struct json_writer json; /* writes to body */
    unsigned code;
    const char *parameter, *found, *expected; /* what is wrong, when code is 400 */
};

/* Reads the request's parameters. A wrong one is answered with 400, its name, what was found and
 * what was expected; so does whoever calls call_refuse. */
enum status call_read(struct call *call, const struct http_request *request);
enum status call_refuse(struct call *call, const char *parameter, const char *found,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));

/* `key` must be an axis, measured or derived, or a metric; else refused, naming the nearest. */
enum status call_need_axis(struct call *call, const char *parameter, const char *key);
enum status call_need_metric(struct call *call, const char *parameter, const char *key);
/* The parameter own[own] as a number; *number keeps its value when it was not given. */
enum status call_number(struct call *call, size_t own, int64_t least, int64_t most,
                        int64_t *number);

struct store_where call_where(const struct call *call); /* its filters */

void call_add_text(struct json_writer *json, const char *key, const char *value);
void call_add_int(struct json_writer *json, const char *key, int64_t number);
void call_add_real(struct json_writer *json, const char *key, double number); /* NaN: null */

#endif
