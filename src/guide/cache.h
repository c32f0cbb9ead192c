/* cache.h: answers that were given, as long as the store stays as it is: a page asks the same again
 * and again. */
#ifndef PRONY_GUIDE_CACHE_H
#define PRONY_GUIDE_CACHE_H

#include "guide/http.h"

enum { CACHE_PLACES = 512, CACHE_ANSWER = 1 << 20 /* larger ones are not kept */ };

/* A zeroed struct is empty and ready. */
struct cache {
    struct cached {
        char *request; /* NULL: empty */
        uint64_t hash;
        struct text body;
    } places[CACHE_PLACES];
    size_t next; /* the place that was filled longest ago */
};

/* What distinguishes requests: the path and every parameter; appended. */
void cache_name(const struct http_request *request, struct text *out);

/* Appends the answer that is kept under this name; false when there is none. */
bool cache_find(const struct cache *cache, const char *name, struct text *out);
void cache_keep(struct cache *cache, const char *name, const struct text *body);
void cache_clear(struct cache *cache);

#endif
