/* http.h: a small web server that only this machine can reach, unless it is told otherwise.
 *
 * It listens on 127.0.0.1, answers GET and HEAD, and guards the door: a request whose Host or
 * Origin is not this server's own is refused (a page of another site must not read results through
 * the user's browser), every answer carries a strict content-security policy, and connections,
 * header size and idle time are limited. Any address 127.x.y.z is this machine's. On another
 * address it lets in who shows a token: once as
 * /?token=…, which is answered with a cookie, or in an Authorization header. What is behind the
 * door is the handler's business. */
#ifndef PRONY_GUIDE_HTTP_H
#define PRONY_GUIDE_HTTP_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_PARAMETERS = 64 }; /* of one request, at most */

struct http_parameter {
    const char *key, *value; /* decoded, never NULL */
};

struct http_request {
    const char *path; /* decoded, begins with '/' */
    const struct http_parameter *parameters;
    size_t count;
    bool gzip; /* the client takes an answer that gzip compressed */
    /* Has the client gone away? Whoever works long on an answer asks now and then. NULL: no. */
    bool (*left)(const struct http_request *request);
    struct http_client *client;
};

/* Either `bytes`, which must outlive the server, or `text`, which the server frees. */
struct http_answer {
    unsigned code;
    const char *type;     /* Content-Type, a static string */
    const char *encoding; /* Content-Encoding, also static; NULL: none */
    const void *bytes;
    size_t length;
    struct text text;
};

/* Called on the thread of a connection: several may run at once. */
typedef void http_handler(void *context, const struct http_request *request,
                          struct http_answer *answer);

struct http;

/* Where to listen: an IPv4 address, and a port, of which 0 takes a free one. */
struct http_place {
    const char *address; /* NULL: 127.0.0.1 */
    uint16_t port;
};
/* The port being taken is STATUS_IO with a message that says what to do; without libmicrohttpd:
 * STATUS_UNSUPPORTED with the package to install. */
enum status http_start(const struct http_place *place, http_handler *handler, void *context,
                       struct http **out);
uint16_t http_port(const struct http *http);
const char *http_token(const struct http *http); /* "" where none is needed */
void http_stop(struct http *http); /* waits for the request being answered; NULL is fine */

#endif
