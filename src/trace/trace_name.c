/* trace_name.c: names as people write them: of C++ functions, of threads and streams. */
#include "trace/trace.h"

#include <ctype.h>
#include <string.h>

/* The nested name at the start of a mangled one: _ZN2at6native6kernelI… */
void trace_add_name(const char *name, struct text *out)
{
    const char *at = name;
    size_t before = out->length;
    if (!strncmp(at, "_ZN", 3))
        at += 3;
    else if (!strncmp(at, "_Z", 2))
        at += 2;
    else {
        text_add(out, name);
        return;
    }
    while (isdigit((unsigned char)*at)) {
        size_t length = 0;
        while (isdigit((unsigned char)*at) && length < 1000)
            length = 10 * length + (size_t)(*at++ - '0');
        if (!length || strnlen(at, length) < length)
            break;
        if (strncmp(at, "_GLOBAL__N_", 11) != 0) {
            if (out->length > before)
                text_add(out, "::");
            text_add_bytes(out, at, length);
        }
        at += length;
    }
    if (out->length == before)
        text_add(out, name);
}

void trace_add_lane(const struct trace *trace, const struct lane *lane, struct text *out)
{
    if (lane->process)
        text_printf(out, "%s, ", trace_word(trace, lane->process));
    else if (lane->kind == LANE_STREAM)
        text_printf(out, "GPU %lld, ", (long long)lane->group);
    text_printf(out, "%s %lld", lane_kind_name(lane->kind), (long long)lane->number);
    if (lane->name)
        text_printf(out, ": %s", trace_word(trace, lane->name));
}
