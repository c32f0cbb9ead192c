/* cache.c: see cache.h. A new answer takes the place of the one that was asked for longest ago. */
#include "guide/cache.h"

#include "base/memory.h"

#include <string.h>

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

void cache_name(const struct http_request *request, struct text *out)
{
    text_add(out, request->path);
    for (size_t i = 0; i < request->count; i++)
        text_printf(out, "\n%zu %s\n%s", strlen(request->parameters[i].key),
                    request->parameters[i].key, request->parameters[i].value);
}

bool cache_find(struct cache *cache, const char *name, struct text *out)
{
    uint64_t hash = hash_of(name);
    for (size_t i = 0; i < CACHE_PLACES; i++) {
        struct cached *place = &cache->places[i];
        if (place->request && place->hash == hash && strcmp(place->request, name) == 0) {
            text_add_bytes(out, text_of(&place->body), place->body.length);
            place->used = ++cache->clock;
            return true;
        }
    }
    return false;
}

static void empty_place(struct cache *cache, struct cached *place)
{
    cache->bytes -= place->body.length;
    mem_free(place->request);
    text_free(&place->body);
    *place = (struct cached){0};
}

/* The place that was used longest ago, of those that are filled; else an empty one. */
static struct cached *stalest(struct cache *cache)
{
    struct cached *found = cache->places;
    for (size_t i = 1; i < CACHE_PLACES; i++) {
        struct cached *place = &cache->places[i];
        if (place->request && (!found->request || place->used < found->used))
            found = place;
    }
    return found;
}

static struct cached *empty_one(struct cache *cache)
{
    for (size_t i = 0; i < CACHE_PLACES; i++)
        if (!cache->places[i].request)
            return &cache->places[i];
    struct cached *place = stalest(cache);
    empty_place(cache, place);
    return place;
}

/* Without memory for it the answer is not kept. */
void cache_keep(struct cache *cache, const char *name, const struct text *body)
{
    if (body->length > CACHE_BYTES / 4)
        return;
    while (cache->bytes + body->length > CACHE_BYTES)
        empty_place(cache, stalest(cache));
    struct cached *place = empty_one(cache);
    place->request = mem_copy_text(name);
    text_add_bytes(&place->body, text_of(body), body->length);
    place->hash = hash_of(name);
    place->used = ++cache->clock;
    cache->bytes += place->body.length;
    if (!place->request || place->body.failed)
        empty_place(cache, place);
}

void cache_clear(struct cache *cache)
{
    for (size_t i = 0; i < CACHE_PLACES; i++)
        empty_place(cache, &cache->places[i]);
}
