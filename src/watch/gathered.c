/* gathered.c: see gathered.h. */
#include "watch/gathered.h"

#include "base/memory.h"

#include <string.h>

void gathered_free(struct gathered *gathered)
{
    modules_free(&gathered->modules);
    arena_free(&gathered->arena);
    mem_free(gathered->codes);
    mem_free(gathered->threads);
    mem_free(gathered->sightings);
    mem_free(gathered->words);
    *gathered = (struct gathered){0};
}

/* Its place in a table of so many slots, or that where it belongs. */
static struct code *find_slot(struct code *codes, size_t slots, uint64_t key)
{
    size_t at = (size_t)(key % slots);
    while (codes[at].key && codes[at].key != key)
        at = (at + 1) % slots;
    return &codes[at];
}

const struct code *gathered_code(const struct gathered *gathered, uint64_t key)
{
    if (!gathered->code_slots)
        return NULL;
    const struct code *code = find_slot(gathered->codes, gathered->code_slots, key);
    return code->key ? code : NULL;
}

static enum status grow_codes(struct gathered *gathered)
{
    size_t slots = gathered->code_slots ? 2 * gathered->code_slots : 1024;
    struct code *grown = mem_array(slots, sizeof *grown);
    NEED(grown);
    for (size_t i = 0; i < gathered->code_slots; i++)
        if (gathered->codes[i].key)
            *find_slot(grown, slots, gathered->codes[i].key) = gathered->codes[i];
    mem_free(gathered->codes);
    gathered->codes = grown;
    gathered->code_slots = slots;
    return STATUS_OK;
}

enum status gathered_add_code(struct gathered *gathered, const struct code *code)
{
    struct arena *arena = &gathered->arena;
    if (2 * (gathered->code_count + 1) > gathered->code_slots)
        TRY(grow_codes(gathered));
    struct code *slot = find_slot(gathered->codes, gathered->code_slots, code->key);
    if (slot->key)
        return STATUS_OK;
    struct code copy = *code;
    NEED(copy.name = arena_text(arena, code->name));
    NEED(copy.file = arena_text(arena, code->file));
    NEED(copy.table = (const unsigned char *)arena_bytes(arena, (const char *)code->table,
                                                         code->table_bytes));
    *slot = copy;
    gathered->code_count++;
    return STATUS_OK;
}

/* Room for one more of `bytes`. */
static enum status grow(void *list, size_t count, size_t *room, size_t bytes)
{
    void **pointer = list;
    if (count < *room)
        return STATUS_OK;
    size_t wanted = *room ? 2 * *room : 256;
    void *grown = mem_grow(*pointer, wanted, bytes);
    NEED(grown);
    *pointer = grown;
    *room = wanted;
    return STATUS_OK;
}

enum status gathered_add_thread(struct gathered *gathered, const struct seen_thread *thread,
                                size_t *out)
{
    TRY(grow((void *)&gathered->threads, gathered->thread_count, &gathered->thread_room,
             sizeof *gathered->threads));
    *out = gathered->thread_count++;
    gathered->threads[*out] = *thread;
    return STATUS_OK;
}

enum status gathered_add(struct gathered *gathered, const struct sighting *sighting,
                         uint64_t **words)
{
    const size_t count = sighting->native + (size_t)PYTHON_WORDS * sighting->python;
    *words = NULL;
    if (gathered->word_count + count > GATHERED_WORDS_MOST)
        gathered->full = true;
    if (gathered->full)
        return STATUS_OK;
    TRY(grow((void *)&gathered->sightings, gathered->sighting_count, &gathered->sighting_room,
             sizeof *gathered->sightings));
    while (gathered->word_count + count >= gathered->word_room)
        TRY(grow((void *)&gathered->words, gathered->word_room, &gathered->word_room,
                 sizeof *gathered->words));
    struct sighting *added = &gathered->sightings[gathered->sighting_count++];
    *added = *sighting;
    added->first = gathered->word_count;
    gathered->word_count += count;
    *words = gathered->words + added->first;
    return STATUS_OK;
}
