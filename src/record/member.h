/* member.h: the members of a JSON object that came from elsewhere, with messages that say which
 * member, what was found and what was expected: "result.time_ns.count: found -1, expected …".
 *
 * `path` is the object's own place ("result.time_ns", "" for the outermost). A member that is
 * absent or null is not an error here. */
#ifndef PRONY_RECORD_MEMBER_H
#define PRONY_RECORD_MEMBER_H

#include "base/json.h"
#include "base/status.h"

/* The error for a member that is not as expected; value may be NULL (absent). */
enum status member_fail(const char *path, const char *key, const struct json *value,
                        const char *expected);

enum status member_text(const struct json *object, const char *path, const char *key,
                        const char **out); /* absent: NULL */
enum status member_real(const struct json *object, const char *path, const char *key,
                        double *out); /* absent: NaN */
/* The same, above 0. */
enum status member_time(const struct json *object, const char *path, const char *key, double *out);
enum status member_int(const struct json *object, const char *path, const char *key, int64_t least,
                       int64_t *out); /* absent: *out as it was */
enum status member_of_kind(const struct json *object, const char *path, const char *key,
                           enum json_kind kind, const struct json **out); /* absent: NULL */
/* The place in `names` of a text that must be there and be one of them. */
enum status member_choice(const struct json *object, const char *path, const char *key,
                          const char *const *names, size_t count, size_t *out);

#endif
