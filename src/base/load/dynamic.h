/* dynamic.h: libraries that are loaded when they are first needed, so that the program itself needs
 * libc only. */
#ifndef PRONY_BASE_LOAD_DYNAMIC_H
#define PRONY_BASE_LOAD_DYNAMIC_H

#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct dynamic_function {
    const char *name;
    void *pointer; /* the address of a pointer to a function of the right type */
};

struct dynamic_library {
    const char *file; /* "libsqlite3.so.0" */
    const char *need; /* the part that needs it and the package to install, for the message */
    const struct dynamic_function *functions;
    size_t count;
    pthread_mutex_t lock; /* PTHREAD_MUTEX_INITIALIZER; for the field that follows */
    bool loaded;
};

/* Loads it once and sets every pointer; it stays loaded. STATUS_UNSUPPORTED where it or one of its
 * functions is missing. Any thread may call it, any number of times. */
enum status dynamic_load(struct dynamic_library *library);

#endif
