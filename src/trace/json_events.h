/* json_events.h: the events of a JSON trace, one at a time: such files have gigabytes.
 *
 * Bytes are fed in pieces. An event is an object in the outermost array, or in the array
 * "traceEvents" of the outermost object; it alone is held in memory. Other members of the outermost
 * object are handed over where they are short. */
#ifndef PRONY_TRACE_JSON_EVENTS_H
#define PRONY_TRACE_JSON_EVENTS_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_EVENT_LONGEST = 1 << 22, JSON_MEMBER_LONGEST = 1 << 16 };

/* A value in an event: a text without its escapes, or what stands there. */
struct json_value {
    const char *text;
    size_t length;
    bool is_text;
};

struct json_events {
    const char *name; /* for messages */
    enum status (*event)(void *context, const char *object, size_t length);
    enum status (*member)(void *context, const char *key, const char *value, size_t length);
    void *context;

    size_t line, count;              /* where the reader is; events so far */
    int depth;                       /* open brackets */
    bool in_text, escaped, in_array; /* in_array: of events */
    bool over;                       /* the outermost value has ended */
    char outer;                      /* '{' or '[' */
    bool has_key, overlong;
    char key[64];
    struct text held; /* the key, the member or the event that is being read */
};

enum status json_events_feed(void *events, const char *bytes, size_t length);
/* After the last piece; frees. An array may lack its end, as the format allows. */
enum status json_events_end(struct json_events *events, enum status status);

/* Calls visit for each member of an object, and for those of its member "args" with `inside`. Texts
 * are valid during the call. False: it is no JSON. */
typedef enum status json_visit(void *context, bool inside, const char *key,
                               const struct json_value *value);
enum status json_members(const struct json_events *events, const char *object, size_t length,
                         json_visit *visit, void *context);

/* A number with a fraction × 10^`shift`, exact to the last digit that is kept; false: it is none,
 * or too large. */
bool json_scaled(const struct json_value *value, int shift, int64_t *out);

#endif
