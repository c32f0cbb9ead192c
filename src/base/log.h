/* log.h: what the program says beside its results. Modules below cli/ never print: they log, and
 * cli/ decides where that goes (stderr, a progress line, nowhere). */
#ifndef PRONY_BASE_LOG_H
#define PRONY_BASE_LOG_H

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING };

typedef void log_sink(void *context, enum log_level level, const char *message);

/* Where messages go; NULL (the default) drops them. Set once, before threads start. */
void log_to(log_sink *sink, void *context, enum log_level least);

void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
