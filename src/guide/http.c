/* http.c: see http.h. libmicrohttpd parses and polls, on a thread for each connection, so that
 * an answer that takes long keeps nobody waiting.
 *
 * A client that sends nothing is dropped after IDLE_SECONDS. One that trickles is not idle, so when
 * most places are taken, the connection that has gone longest without completing a request makes
 * room for a new one: slow clients push out each other, and the server goes on serving. Beyond its
 * limit the library accepts a connection and closes it, so before that the accepting thread slows
 * down: new clients wait in the system's queue until the dropped ones are gone. */
#include "guide/http.h"

#include "base/clock.h"
#include "base/memory.h"
#include "guide/httpd.h"
#include "guide/places.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    REQUEST_BYTES = 16384, /* request line and headers, and what parsing them takes */
    IDLE_SECONDS = 10,
    TOKEN_BYTES = 16,
    DOOR_BYTES = 300, /* of Host and Origin: a name has at most 253 */
};
static const char cookie_name[] = "prony";

struct http {
    struct MHD_Daemon *daemon;
    http_handler *handler;
    void *context;
    uint16_t port;
    char token[2 * TOKEN_BYTES + 1]; /* "": this machine only, and none is needed */
    struct places places;
};

static const struct {
    const char *name, *value;
} fixed_headers[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-store"}, /* results change, and the page changes with the program */
};

static int socket_of(struct MHD_Connection *connection)
{
    return httpd->get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http *http = context;
    size_t excess = 0;
    if (code != MHD_CONNECTION_NOTIFY_CLOSED)
        *socket_context = places_take(&http->places, socket_of(connection), &excess);
    else if (*socket_context)
        places_leave(&http->places, *socket_context);
    if (excess) /* on the accepting thread: those of the dropped ones end meanwhile */
        clock_sleep_ns(excess * 1000000);
}

static struct place *place_of(struct MHD_Connection *connection)
{
    return httpd->get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
        ->socket_context;
}

/* The answer was sent, or its client is gone. */
static void on_end(void *context, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode code)
{
    (void)state, (void)code;
    struct http *http = context;
    struct place *place = place_of(connection);
    if (place)
        places_sent(&http->places, place);
}

struct http_client {
    int fd;
    bool takes_interim; /* answers before the answer: HTTP/1.1 */
};

/* One that has closed its side has left, or only said that it has no more to ask (nc -N). It is
 * sent an answer that every client has to skip: who has left then resets the connection. */
static bool client_left(const struct http_request *request)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct http_client *client = request->client;
    struct pollfd look = {.fd = client->fd, .events = POLLRDHUP};
    if (poll(&look, 1, 0) > 0 && !(look.revents & (POLLERR | POLLHUP)) && client->takes_interim) {
        client->takes_interim = false; /* once is enough */
        send(client->fd, interim, sizeof interim - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    return look.revents & (POLLERR | POLLHUP);
}

static size_t count_parameters(const char *address)
{
    const char *at = strchr(address, '?');
    size_t count = at != NULL;
    while (at && (at = strchr(at + 1, '&')))
        count++;
    return count;
}

static bool has_coded_nul(const char *address)
{
    const char *nul = strstr(address, "%00");
    return nul && nul < address + strcspn(address, "?");
}

/* Where the library has no room for all the parameters it closes the connection without a word. So
 * they are counted before it reads them; that there are too many is said here, past the library,
 * and ends the connection. */
static void *on_address(void *context, const char *address, struct MHD_Connection *connection)
{
    (void)context;
    struct text answer = {0}, why = {0};
    struct place *place = place_of(connection);
    size_t count = count_parameters(address);
    if (place) {
        place->address = strlen(address);
        place->path_cut = has_coded_nul(address);
    }
    if (count <= HTTP_PARAMETERS)
        return NULL;
    int fd = socket_of(connection);
    text_printf(&why, "found %zu parameters, expected at most %d", count, HTTP_PARAMETERS);
    text_printf(&answer, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n");
    for (size_t i = 0; i < sizeof fixed_headers / sizeof *fixed_headers; i++)
        text_printf(&answer, "%s: %s\r\n", fixed_headers[i].name, fixed_headers[i].value);
    text_printf(&answer, "Connection: close\r\nContent-Length: %zu\r\n\r\n%s", why.length,
                text_of(&why));
    if (text_done(&answer) == STATUS_OK)
        send(fd, answer.data, answer.length, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(fd, SHUT_WR); /* what the library still says is not sent; it then closes */
    text_free(&answer);
    text_free(&why);
    return NULL;
}

static bool is_loopback(struct in_addr address)
{
    return ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* "localhost", "[::1]" or an address 127.x.y.z, alone or with a port. Any port: behind a tunnel it
 * is not ours, and a foreign page cannot make its browser call our address by another page's name.
 */
static bool host_is_local(const char *host)
{
    char name[INET_ADDRSTRLEN] = "";
    struct in_addr address;
    uint64_t port;
    size_t length = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    if (length >= sizeof name || length > strlen(host))
        return false;
    memcpy(name, host, length);
    const char *rest = host + length;
    if (*rest && (*rest != ':' || !text_to_uint(rest + 1, &port) || port > UINT16_MAX))
        return false;
    return !strcasecmp(name, "localhost") || !strcmp(name, "[::1]") ||
           (inet_pton(AF_INET, name, &address) == 1 && is_loopback(address));
}

/* Without the blanks at its end, which are no part of a header's value. */
static size_t trimmed(const char *value)
{
    size_t length = strlen(value);
    while (length && (value[length - 1] == ' ' || value[length - 1] == '\t'))
        length--;
    return length;
}

/* The headers that decide whether a request is let in. */
struct door {
    char host[DOOR_BYTES], origin[DOOR_BYTES]; /* cut where they are longer */
    int hosts, origins;
    bool has_body;
    size_t bytes; /* of their lines */
};

static enum MHD_Result read_header(void *context, enum MHD_ValueKind kind, const char *key,
                                   size_t key_length, const char *value, size_t value_length)
{
    (void)kind;
    struct door *door = context;
    value = value ? value : key + key_length;
    /* Both lie in what was read, so that their distance is what stands between them. */
    door->bytes += (value > key ? (size_t)(value - key) : key_length + 1) + value_length + 2;
    if (!strcasecmp(key, MHD_HTTP_HEADER_HOST)) {
        snprintf(door->host, sizeof door->host, "%.*s", (int)trimmed(value), value);
        door->hosts++;
    } else if (!strcasecmp(key, MHD_HTTP_HEADER_ORIGIN)) {
        snprintf(door->origin, sizeof door->origin, "%.*s", (int)trimmed(value), value);
        door->origins++;
    } else if (!strcasecmp(key, MHD_HTTP_HEADER_TRANSFER_ENCODING) ||
               (!strcasecmp(key, MHD_HTTP_HEADER_CONTENT_LENGTH) &&
                (trimmed(value) != 1 || value[0] != '0'))) {
        door->has_body = true;
    }
    return MHD_YES;
}

/* Takes as long wherever they differ; the length is no secret. */
static bool same_token(const char *token, const char *given)
{
    size_t length = strlen(token);
    unsigned char difference = 0;
    if (trimmed(given) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        difference |= (unsigned char)(token[i] ^ given[i]);
    return difference == 0;
}

static bool has_token(const struct http *http, struct MHD_Connection *connection)
{
    static const char bearer[] = "Bearer ";
    const char *cookie = httpd->lookup_connection_value(connection, MHD_COOKIE_KIND, cookie_name);
    const char *header =
        httpd->lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    if (header && text_starts(header, bearer))
        return same_token(http->token, header + sizeof bearer - 1);
    return cookie && same_token(http->token, cookie);
}

/* For the library a NUL ends a header or the path, and what follows on the line is lost: then there
 * are more bytes than those of the lines it gave. */
static bool has_nul(struct MHD_Connection *connection, const char *method, size_t headers)
{
    const struct place *place = place_of(connection);
    const union MHD_ConnectionInfo *info =
        httpd->get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (!place || !info)
        return false;
    size_t first = strlen(method) + 1 + place->address + strlen(" HTTP/1.1\r\n");
    return place->path_cut || info->header_size > first + headers + strlen("\r\n");
}

/* NULL when the request may come in; else why not, and *code. */
static const char *refusal(const struct http *http, struct MHD_Connection *connection,
                           const char *method, unsigned *code)
{
    struct door door = {0};
    httpd->get_connection_values_n(connection, MHD_HEADER_KIND, read_header, &door);
    *code = MHD_HTTP_BAD_REQUEST;
    if (has_nul(connection, method, door.bytes))
        return "a request with a NUL or a folded line in it";
    *code = MHD_HTTP_FORBIDDEN;
    if (door.hosts != 1 || (!http->token[0] && !host_is_local(door.host)))
        return "the Host header is not this machine's: use http://localhost or http://127.0.0.1";
    if (door.origins > 1 ||
        (door.origins && (!text_starts(door.origin, "http://") ||
                          strcasecmp(door.origin + strlen("http://"), door.host))))
        return "the Origin header is another site's: only the guide's own page may ask";
    *code = MHD_HTTP_METHOD_NOT_ALLOWED;
    if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
        return "the guide only answers GET and HEAD";
    *code = MHD_HTTP_CONTENT_TOO_LARGE;
    if (door.has_body)
        return "a request to the guide has no body";
    *code = MHD_HTTP_UNAUTHORIZED;
    if (http->token[0] && !has_token(http, connection))
        return "this needs the token: open the address that prony guide printed";
    return NULL;
}

/* Takes over answer->text. */
static enum MHD_Result send_answer(struct MHD_Connection *connection, struct http_answer *answer)
{
    struct MHD_Response *response;
    if (answer->bytes)
        response = httpd->create_response_from_buffer(answer->length, (void *)answer->bytes,
                                                      MHD_RESPMEM_PERSISTENT);
    else
        response = httpd->create_response_from_buffer_with_free_callback(
            answer->text.length, answer->text.data, mem_free);
    if (!response) {
        text_free(&answer->text);
        return MHD_NO; /* no memory: the connection is closed */
    }
    enum MHD_Result good =
        httpd->add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
    if (answer->encoding)
        good &= httpd->add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING,
                                           answer->encoding);
    for (size_t i = 0; i < sizeof fixed_headers / sizeof *fixed_headers; i++)
        good &= httpd->add_response_header(response, fixed_headers[i].name, fixed_headers[i].value);
    if (answer->code == MHD_HTTP_METHOD_NOT_ALLOWED)
        good &= httpd->add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    if (good == MHD_YES)
        good = httpd->queue_response(connection, answer->code, response);
    httpd->destroy_response(response);
    return good;
}

/* Instead of an answer that waits for others to be read. */
static enum MHD_Result send_busy(struct MHD_Connection *connection, struct http_answer *answer)
{
    static const char why[] = "large answers are being sent to others; ask again in some seconds, "
                              "or for less with filters, limit or samples=no";
    text_free(&answer->text);
    *answer = (struct http_answer){.code = MHD_HTTP_SERVICE_UNAVAILABLE,
                                   .type = "text/plain; charset=utf-8",
                                   .bytes = why,
                                   .length = sizeof why - 1};
    return send_answer(connection, answer);
}

/* Whoever opens the address with the token is given a cookie and sent to the page. */
static enum MHD_Result send_welcome(const struct http *http, struct MHD_Connection *connection)
{
    char cookie[128];
    struct MHD_Response *response =
        httpd->create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    snprintf(cookie, sizeof cookie, "%s=%s; HttpOnly; SameSite=Strict; Path=/", cookie_name,
             http->token);
    enum MHD_Result good = httpd->add_response_header(response, MHD_HTTP_HEADER_SET_COOKIE, cookie);
    good &= httpd->add_response_header(response, MHD_HTTP_HEADER_LOCATION, "/");
    good &= httpd->add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (good == MHD_YES)
        good = httpd->queue_response(connection, MHD_HTTP_SEE_OTHER, response);
    httpd->destroy_response(response);
    return good;
}

static bool brings_token(const struct http *http, struct MHD_Connection *connection,
                         const char *path)
{
    const char *given = httpd->lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token");
    return http->token[0] && given && !strcmp(path, "/") && same_token(http->token, given);
}

/* "br, gzip;q=0.8": one of the names is gzip, and its weight is not 0. */
static bool takes_gzip(struct MHD_Connection *connection)
{
    const char *at = httpd->lookup_connection_value(connection, MHD_HEADER_KIND,
                                                    MHD_HTTP_HEADER_ACCEPT_ENCODING);
    for (size_t length; at && *at; at += length) {
        at += strspn(at, ", \t");
        length = strcspn(at, ",");
        if (strcspn(at, ",; \t") == strlen("gzip") && !strncasecmp(at, "gzip", strlen("gzip"))) {
            const char *weight = memchr(at, '=', length);
            return !weight || strtod(weight + 1, NULL) > 0;
        }
    }
    return false;
}

struct parameters {
    struct http_parameter list[HTTP_PARAMETERS];
    size_t count;
    bool bad;
};

static enum MHD_Result read_parameter(void *context, enum MHD_ValueKind kind, const char *key,
                                      size_t key_length, const char *value, size_t value_length)
{
    (void)kind;
    struct parameters *parameters = context;
    value = value ? value : "";
    if (parameters->count == HTTP_PARAMETERS || strlen(key) != key_length ||
        strlen(value) != value_length) { /* too many, of which on_address told; a NUL inside */
        parameters->bad = true;
        return MHD_NO;
    }
    parameters->list[parameters->count++] = (struct http_parameter){key, value};
    return MHD_YES;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *upload, size_t *upload_length, void **state)
{
    (void)upload, (void)upload_length;
    struct http *http = context;
    struct http_answer answer = {.type = "text/plain; charset=utf-8"};

    if (!*state) { /* the headers are there: a refusal now ends the connection with its answer */
        const char *why = refusal(http, connection, method, &answer.code);
        *state = http;
        if (!why)
            return MHD_YES;
        if (answer.code == MHD_HTTP_UNAUTHORIZED && brings_token(http, connection, path))
            return send_welcome(http, connection);
        answer.bytes = why;
        answer.length = strlen(why);
        return send_answer(connection, &answer);
    }
    struct place *place = place_of(connection);
    if (place)
        places_note(&http->places, place);
    struct parameters parameters = {0};
    httpd->get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, read_parameter, &parameters);
    if (parameters.bad) {
        static const char why[] = "a parameter with a NUL in it";
        answer.code = MHD_HTTP_BAD_REQUEST;
        answer.bytes = why;
        answer.length = sizeof why - 1;
        return send_answer(connection, &answer);
    }
    struct http_client client = {socket_of(connection), !strcmp(version, MHD_HTTP_VERSION_1_1)};
    struct http_request request = {
        path, parameters.list, parameters.count, takes_gzip(connection), client_left, &client};
    http->handler(http->context, &request, &answer);
    if (place && !answer.bytes && !places_send(&http->places, place, answer.text.length))
        return send_busy(connection, &answer);
    return send_answer(connection, &answer);
}

static enum status read_place(const struct http_place *place, struct sockaddr_in *out)
{
    *out = (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(place->port),
                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (place->address && strcmp(place->address, "localhost") != 0 &&
        inet_pton(AF_INET, place->address, &out->sin_addr) != 1)
        FAIL(STATUS_INPUT,
             "found \"%s\", expected an IPv4 address of this machine, or 0.0.0.0 for all",
             place->address);
    return STATUS_OK;
}

/* Beyond this machine nobody comes in without it. */
static enum status make_token(char token[2 * TOKEN_BYTES + 1])
{
    unsigned char bytes[TOKEN_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        FAIL(STATUS_IO, "cannot make a token: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return STATUS_OK;
}

static enum status listen_at(struct sockaddr_in address, int *out_fd, uint16_t *out_port)
{
    socklen_t length = sizeof address;
    uint16_t port = ntohs(address.sin_port);
    int on = 1; /* a server that was just stopped does not block the port */
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        FAIL(STATUS_IO, "cannot make a socket: %s", strerror(errno));
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
        bind(fd, (struct sockaddr *)&address, length) || listen(fd, SOMAXCONN) ||
        getsockname(fd, (struct sockaddr *)&address, &length)) {
        int reason = errno;
        close(fd);
        if (reason == EADDRINUSE)
            FAIL(STATUS_IO,
                 "another program uses port %u, perhaps a guide that is already running; stop it, "
                 "or give another --port (0: any free one)",
                 port);
        char name[INET_ADDRSTRLEN] = "";
        inet_ntop(AF_INET, &address.sin_addr, name, sizeof name);
        if (reason == EADDRNOTAVAIL)
            FAIL(STATUS_INPUT,
                 "found %s, expected an IPv4 address of this machine: no network of it "
                 "has this one",
                 name);
        if (reason == EACCES)
            FAIL(STATUS_IO, "port %u needs rights that you do not have; give one from 1024 on",
                 port);
        FAIL(STATUS_IO, "cannot listen on port %u of %s: %s", port, name, strerror(reason));
    }
    *out_fd = fd;
    *out_port = ntohs(address.sin_port);
    return STATUS_OK;
}

enum status http_start(const struct http_place *place, http_handler *handler, void *context,
                       struct http **out)
{
    struct http *http;
    struct sockaddr_in address;
    TRY(httpd_load());
    TRY(read_place(place, &address));
    NEED(http = mem_alloc(sizeof *http));
    int fd = -1;
    enum status status = STATUS_OK;
    if (!is_loopback(address.sin_addr))
        status = make_token(http->token);
    if (status == STATUS_OK)
        status = listen_at(address, &fd, &http->port);
    if (status != STATUS_OK) {
        mem_free(http);
        return status;
    }
    http->handler = handler;
    http->context = context;
    pthread_mutex_init(&http->places.lock, NULL);
    http->daemon = httpd->start_daemon(
        MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_ITC, 0, NULL, NULL,
        on_request, http, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)PLACES_MOST, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_NOTIFY_COMPLETED, on_end,
        http, MHD_OPTION_URI_LOG_CALLBACK, on_address, NULL, MHD_OPTION_END);
    if (!http->daemon) {
        close(fd);
        mem_free(http);
        FAIL(STATUS_IO, "cannot start the web server: %s", strerror(errno));
    }
    *out = http;
    return STATUS_OK;
}

uint16_t http_port(const struct http *http)
{
    return http->port;
}

const char *http_token(const struct http *http)
{
    return http->token;
}

void http_stop(struct http *http)
{
    if (!http)
        return;
    httpd->stop_daemon(http->daemon);
    mem_free(http);
}
