/* gpu_writer.c: see gpu_writer.h. */
#include "agent/gpu_writer.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file is allocated and mapped piece by piece, so that writing to it never fails. */
enum {
    PIECE = 1 << 23,
    PIECES = GPU_BLOCKS_MOST / (PIECE / GPU_BLOCK),
    SLOTS = 1 << 16,
    DESKS = 1024
};

static struct gpu_head *head; /* NULL: not open */
static _Atomic bool is_open;
static int file = -1;
static unsigned char *pieces[PIECES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of blocks and desks */
static pthread_key_t key;
static struct gpu_desk desks[DESKS]; /* no allocation: the program's own may not be entered again */
static struct gpu_desk
    *free_desks[DESKS]; /* of threads that ended, with what is left of their block */
static size_t desk_count, free_count;
static _Atomic uint64_t texts[SLOTS], stacks[SLOTS];

/* A place + 1 in the table, the same for the same key; 0: it is full there. */
static uint32_t number_of(_Atomic uint64_t *table, uint64_t wanted, bool *is_new)
{
    enum { TRIES = 256 };
    *is_new = false;
    for (uint64_t i = 0; i < TRIES; i++) {
        const uint64_t at = (wanted + i) % SLOTS;
        uint64_t there = atomic_load_explicit(&table[at], memory_order_relaxed);
        if (there == wanted)
            return (uint32_t)at + 1;
        if (there)
            continue;
        if (atomic_compare_exchange_strong(&table[at], &there, wanted)) {
            *is_new = true;
            return (uint32_t)at + 1;
        }
        if (there == wanted)
            return (uint32_t)at + 1;
    }
    return 0;
}

/* With the lock held. */
static bool map_piece(size_t piece)
{
    const off_t from = (off_t)piece * PIECE;
    if (pieces[piece])
        return true;
    if (posix_fallocate(file, from, PIECE) != 0)
        return false;
    void *map = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED, file, from);
    pieces[piece] = map == MAP_FAILED ? NULL : map;
    return pieces[piece] != NULL;
}

static unsigned char *next_block(void)
{
    unsigned char *block = NULL;
    pthread_mutex_lock(&lock);
    const uint32_t number = atomic_load(&head->blocks);
    const size_t piece = number / (PIECE / GPU_BLOCK);
    if (number < GPU_BLOCKS_MOST && map_piece(piece)) {
        block = pieces[piece] + (size_t)(number % (PIECE / GPU_BLOCK)) * GPU_BLOCK;
        atomic_store(&head->blocks, number + 1);
    }
    pthread_mutex_unlock(&lock);
    return block;
}

/* A thread ends: the next one goes on in its block. */
static void return_desk(void *desk)
{
    if (!atomic_load(&is_open))
        return;
    pthread_mutex_lock(&lock);
    free_desks[free_count++] = desk;
    pthread_mutex_unlock(&lock);
}

struct gpu_desk *gpu_desk(void)
{
    if (!atomic_load_explicit(&is_open, memory_order_relaxed))
        return NULL;
    struct gpu_desk *desk = pthread_getspecific(key);
    if (desk)
        return desk;
    pthread_mutex_lock(&lock);
    if (free_count)
        desk = free_desks[--free_count];
    else if (desk_count < DESKS)
        desk = &desks[desk_count++];
    pthread_mutex_unlock(&lock);
    if (!desk) {
        gpu_writer_lost(1);
        return NULL;
    }
    *desk =
        (struct gpu_desk){.block = desk->block, .used = desk->used, .thread = (uint32_t)gettid()};
    pthread_setspecific(key, desk);
    return desk;
}

struct gpu_head *gpu_writer_open(const char *folder, uint64_t start_ns)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" GPU_PREFIX "%d.%llu", folder, (int)getpid(),
             (unsigned long long)start_ns);
    file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0 || pthread_key_create(&key, return_desk) != 0 || !map_piece(0))
        return NULL;
    head = (struct gpu_head *)(void *)pieces[0];
    head->version = GPU_VERSION;
    head->process = getpid();
    head->start_ns = start_ns;
    atomic_store(&head->blocks, 1);
    atomic_store(&is_open, true);
    atomic_thread_fence(memory_order_release);
    memcpy(head->magic, GPU_MAGIC, sizeof head->magic);
    return head;
}

void gpu_writer_leave(void)
{
    atomic_store(&is_open, false);
}

bool gpu_writer_is_open(void)
{
    return atomic_load(&is_open);
}

void gpu_writer_lost(uint64_t count)
{
    if (atomic_load(&is_open))
        atomic_fetch_add(&head->lost, count);
}

/* Room for a record in the thread's block. */
static void *take(struct gpu_desk *desk, uint32_t bytes)
{
    if (!desk->block || desk->used + bytes > GPU_BLOCK - sizeof(struct gpu_block)) {
        desk->block = next_block();
        desk->used = 0;
    }
    if (desk->block)
        return desk->block + sizeof(struct gpu_block) + desk->used;
    gpu_writer_lost(1);
    return NULL;
}

static void finish(struct gpu_desk *desk, uint32_t bytes)
{
    struct gpu_block *block = (struct gpu_block *)(void *)desk->block;
    desk->used += bytes;
    atomic_store_explicit(&block->used, desk->used, memory_order_release);
}

static uint32_t whole_words(size_t bytes)
{
    return (uint32_t)((bytes + 7) & ~(size_t)7);
}

void gpu_write_span(struct gpu_desk *desk, const struct gpu_span *span)
{
    struct gpu_span *out = take(desk, sizeof *span);
    if (!out)
        return;
    *out = *span;
    out->record.bytes = sizeof *span;
    finish(desk, sizeof *span);
}

static void write_text(struct gpu_desk *desk, uint16_t kind, uint32_t number, const char *text,
                       size_t length)
{
    const uint32_t bytes = whole_words(sizeof(struct gpu_text) + length);
    struct gpu_text *out = take(desk, bytes);
    if (!out)
        return;
    *out = (struct gpu_text){{kind, (uint16_t)bytes, number}, (uint32_t)length};
    memcpy(out + 1, text, length);
    finish(desk, bytes);
}

uint32_t gpu_write_text(struct gpu_desk *desk, const char *text, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    bool is_new;
    length = length < GPU_TEXT_MOST ? length : GPU_TEXT_MOST;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    hash ^= hash >> 29;
    const uint32_t number = number_of(texts, hash ? hash : 1, &is_new);
    if (is_new)
        write_text(desk, GPU_TEXT, number, text, length);
    return number;
}

void gpu_write_gpu(struct gpu_desk *desk, uint32_t device, const char *name)
{
    write_text(desk, GPU_GPU, device, name, strnlen(name, GPU_TEXT_MOST));
}

uint32_t gpu_stack_number(uint64_t wanted, bool *is_new)
{
    return number_of(stacks, wanted, is_new);
}

void gpu_write_stack(struct gpu_desk *desk, uint32_t number, const struct gpu_frame *frames,
                     size_t count)
{
    const uint32_t bytes = whole_words(sizeof(struct gpu_stack) + count * sizeof *frames);
    struct gpu_stack *out = take(desk, bytes);
    if (!out)
        return;
    *out = (struct gpu_stack){{GPU_STACK, (uint16_t)bytes, number}, (uint32_t)count};
    memcpy(out + 1, frames, count * sizeof *frames);
    finish(desk, bytes);
}
