/* ring.c: see ring.h. */
#include "watch/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum status ring_open(struct ring *ring, const char *path)
{
    struct stat found;
    *ring = (struct ring){0};
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        FAIL(STATUS_IO, "%s: cannot be opened: %s", path, strerror(errno));
    void *map = MAP_FAILED;
    if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_size == AGENT_BYTES)
        map = mmap(NULL, AGENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        FAIL(STATUS_UNSUPPORTED, "%s: found no file of %d bytes", path, AGENT_BYTES);
    ring->head = map;
    if (memcmp(ring->head->magic, AGENT_MAGIC, sizeof ring->head->magic) != 0 ||
        ring->head->version != AGENT_VERSION) {
        ring_close(ring);
        FAIL(STATUS_UNSUPPORTED, "%s: not ready, or of another prony", path);
    }
    const struct agent_head *head = ring->head;
    ring->python = (struct python_place){.process = head->process,
                                         .runtime = head->python_runtime,
                                         .code_type = head->python_code_type};
    ring->python_readable =
        head->python_readable && python_layout_find(head->python_version, head->process,
                                                    head->python_runtime, &ring->python.layout);
    return STATUS_OK;
}

void ring_close(struct ring *ring)
{
    if (ring->head)
        munmap(ring->head, AGENT_BYTES);
    ring->head = NULL;
}

bool ring_sample_fits(const struct agent_sample *sample)
{
    return sample->record.bytes >= sizeof *sample && sample->native_count <= AGENT_NATIVE_MOST &&
           sample->python_count <= AGENT_PYTHON_MOST &&
           sample->record.bytes >= sizeof *sample + sample->native_count * sizeof(uint64_t) +
                                       sample->python_count * sizeof(struct agent_python);
}

bool ring_code_fits(const struct agent_code *code)
{
    return code->record.bytes >= sizeof *code && code->name_bytes <= AGENT_NAME_MOST &&
           code->file_bytes <= AGENT_FILE_MOST && code->table_bytes <= AGENT_TABLE_MOST &&
           code->record.bytes >=
               sizeof *code + code->name_bytes + code->file_bytes + code->table_bytes;
}

enum status ring_read(struct ring *ring, ring_visit *visit, void *context)
{
    struct agent_head *head = ring->head;
    const uint64_t written = atomic_load(&head->written);
    enum status status = STATUS_OK;
    while (ring->freed < written && status == STATUS_OK) {
        unsigned char *at = (unsigned char *)head + AGENT_HEAD + ring->freed % AGENT_RING;
        const size_t left = AGENT_RING - ring->freed % AGENT_RING;
        struct agent_record *record = (struct agent_record *)(void *)at;
        const uint32_t kind = atomic_load_explicit(&record->kind, memory_order_acquire);
        const uint32_t bytes = record->bytes;
        if (kind == AGENT_UNFINISHED)
            break;
        if (bytes < sizeof *record || bytes > left || bytes % sizeof(uint64_t))
            FAIL(STATUS_INPUT, "process %d: its samples cannot be read: found a record of %u bytes",
                 (int)head->process, bytes);
        if (kind != AGENT_PADDING)
            status = visit(context, record, kind);
        memset(at, 0, bytes);
        ring->freed += bytes;
        atomic_store(&head->freed, ring->freed);
    }
    return status;
}
