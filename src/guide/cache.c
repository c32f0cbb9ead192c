/* cache.c: see cache.h. A ring: a new answer takes the place of the oldest. */
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

bool cache_find(const struct cache *cache, const char *name, struct text *out)
{
    uint64_t hash = hash_of(name);
    for (size_t i = 0; i < CACHE_PLACES; i++) {
        const struct cached *place = &cache->places[i];
        if (place->request && place->hash == hash && strcmp(place->request, name) == 0) {
            text_add_bytes(out, text_of(&place->body), place->body.length);
            return true;
        }
    }
    return false;
}

static void empty_place(struct cached *place)
{
    mem_free(place->request);
    text_free(&place->body);
    *place = (struct cached){0};
}

/* Without memory for it the answer is not kept. */
void cache_keep(struct cache *cache, const char *name, const struct text *body)
{
    struct cached *place = &cache->places[cache->next];
    if (body->length > CACHE_ANSWER)
        return;
    empty_place(place);
    place->request = mem_copy_text(name);
    text_add_bytes(&place->body, text_of(body), body->length);
    place->hash = hash_of(name);
    if (!place->request || place->body.failed)
        empty_place(place);
    else
        cache->next = (cache->next + 1) % CACHE_PLACES;
}

void cache_clear(struct cache *cache)
{
    for (size_t i = 0; i < CACHE_PLACES; i++)
        empty_place(&cache->places[i]);
}
