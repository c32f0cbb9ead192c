/* cache.h: answers that were given, as long as the store stays as it is: a page asks the same again
 * and again. */
#ifndef PRONY_GUIDE_CACHE_H
#define PRONY_GUIDE_CACHE_H

#include "guide/http.h"

enum { CACHE_PLACES = 256, CACHE_BYTES = 64 << 20 /* of all answers that are kept */ };

/* A zeroed struct is empty and ready. */
struct cache {
    struct cached {
        char *request; /* NULL: empty */
        uint64_t hash;
        struct text body;
        uint64_t used; /* when, by `clock`, last */
    } places[CACHE_PLACES];
    uint64_t clock; /* counts requests */
    size_t bytes;   /* of all answers */
};

/* What distinguishes requests: the path and every parameter; appended. */
void cache_name(const struct http_request *request, struct text *out);

/* Appends the answer that is kept under this name; false when there is none. */
bool cache_find(struct cache *cache, const char *name, struct text *out);
void cache_keep(struct cache *cache, const char *name, const struct text *body);
void cache_clear(struct cache *cache);

#endif
