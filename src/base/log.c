/* log.c: formats a message and hands it to the one sink. */
#include "base/log.h"

#include "base/plain.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

static log_sink *to_sink;
static void *to_context;
static enum log_level least_level;

void log_to(log_sink *sink, void *context, enum log_level least)
{
    to_sink = sink;
    to_context = context;
    least_level = least;
}

__attribute__((format(printf, 2, 0))) static void say(enum log_level level, const char *format,
                                                      va_list list)
{
    if (!to_sink || level < least_level)
        return;
    char message[1000], shown[1000];
    vsnprintf(message, sizeof message, format, list);
    plain_copy(shown, sizeof shown, message);
    to_sink(to_context, level, shown);
}

void log_debug(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(LOG_DEBUG, format, list);
    va_end(list);
}

void log_info(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(LOG_INFO, format, list);
    va_end(list);
}

void log_warning(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(LOG_WARNING, format, list);
    va_end(list);
}
