/* memory.c: malloc with overflow checks and a failure countdown. */
#include "base/memory.h"

#include "base/machine/quota.h"

#include <assert.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static atomic_long countdown;  /* 0: off; n: the nth allocation from now fails */
static atomic_bool has_failed; /* the countdown reached its end */

void memory_fail_at(long nth)
{
    atomic_store(&has_failed, false);
    atomic_store(&countdown, nth);
}

bool memory_failed(void)
{
    return atomic_load(&has_failed);
}

static bool must_fail(void)
{
    long now = atomic_load_explicit(&countdown, memory_order_relaxed);
    if (now == 0)
        return false;
    while (now > 1)
        if (atomic_compare_exchange_weak(&countdown, &now, now - 1))
            return false;
    atomic_store(&has_failed, true);
    return true;
}

bool size_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

bool size_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

void *mem_alloc(size_t bytes)
{
    if (must_fail() || bytes > PTRDIFF_MAX)
        return NULL;
    return calloc(1, bytes ? bytes : 1);
}

void *mem_array(size_t count, size_t bytes)
{
    size_t total;
    return size_mul(count, bytes, &total) ? mem_alloc(total) : NULL;
}

void *mem_aligned(size_t align, size_t bytes)
{
    assert(align && (align & (align - 1)) == 0);
    size_t rounded;
    if (must_fail() || !size_add(bytes ? bytes : 1, align - 1, &rounded) || rounded > PTRDIFF_MAX)
        return NULL;
    rounded &= ~(align - 1);
    void *pointer = aligned_alloc(align, rounded);
    if (pointer)
        memset(pointer, 0, rounded);
    return pointer;
}

/* LARGE is more than the pages that a core keeps at hand can hold. Small pages lie anywhere, and
 * several of them may want the same places of a cache. */
enum { HUGE_PAGE = 2 << 20, LARGE = 256 << 10, CACHE_LINE = 64 };

/* The system gives addresses that suit its small pages: one huge page more, and the ends go back.
 */
void *mem_large(size_t bytes)
{
    size_t rounded;
    if (bytes < LARGE)
        return mem_aligned(CACHE_LINE, bytes);
    if (must_fail() || !size_add(bytes, 2 * HUGE_PAGE - 1, &rounded) || rounded > PTRDIFF_MAX)
        return NULL;
    rounded -= rounded % HUGE_PAGE;
    char *start = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    size_t before = (HUGE_PAGE - (uintptr_t)start % HUGE_PAGE) % HUGE_PAGE;
    char *pointer = start + before;
    if (before)
        munmap(start, before);
    munmap(pointer + rounded - HUGE_PAGE, HUGE_PAGE - before);
    madvise(pointer, rounded - HUGE_PAGE,
            MADV_HUGEPAGE); /* without it memory is slower, not wrong */
    return pointer;
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

bool mem_has_huge_pages(void)
{
    char text[64] = "";
    int file = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t count = read(file, text, sizeof text - 1);
    close(file);
    return count > 0 && !strstr(text, "[never]");
}

void mem_small_pages(void *pointer, size_t bytes)
{
    if (bytes >= LARGE)
        madvise(pointer, whole_pages(bytes), MADV_NOHUGEPAGE);
}

/* Pages are moved, not their bytes: what was not written yet takes no memory. */
void *mem_grow_large(void *old, size_t old_bytes, size_t bytes)
{
    if (old_bytes >= LARGE) {
        if (must_fail() || bytes > PTRDIFF_MAX - HUGE_PAGE)
            return NULL;
        void *moved = mremap(old, whole_pages(old_bytes), whole_pages(bytes), MREMAP_MAYMOVE);
        return moved == MAP_FAILED ? NULL : moved;
    }
    void *grown = mem_large(bytes);
    if (grown && old)
        memcpy(grown, old, old_bytes);
    if (grown)
        mem_free_large(old, old_bytes);
    return grown;
}

void mem_free_large(void *pointer, size_t bytes)
{
    if (!pointer)
        return;
    if (bytes < LARGE)
        free(pointer);
    else
        munmap(pointer, whole_pages(bytes));
}

void *mem_grow(void *old, size_t count, size_t bytes)
{
    size_t total;
    if (must_fail() || !size_mul(count, bytes, &total) || total > PTRDIFF_MAX)
        return NULL;
    return realloc(old, total ? total : 1);
}

char *mem_copy_text(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = mem_alloc(bytes);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}

void mem_free(void *pointer)
{
    free(pointer);
}

size_t mem_installed(void)
{
    return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

size_t mem_total(void)
{
    size_t total = mem_installed();
    double group = quota_memory("/proc/self/cgroup", "/sys/fs/cgroup");
    struct rlimit own;
    if (group > 0 && group < (double)total)
        total = (size_t)group;
    if (getrlimit(RLIMIT_AS, &own) == 0 && own.rlim_cur < total)
        total = (size_t)own.rlim_cur;
    return total;
}

void *mem_reserve(size_t bytes)
{
    if (must_fail())
        return NULL;
    void *pointer = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pointer == MAP_FAILED ? NULL : pointer;
}

void mem_drop(void *pointer, size_t bytes)
{
    madvise(pointer, bytes ? bytes : 1, MADV_DONTNEED);
}

void mem_unreserve(void *pointer, size_t bytes)
{
    if (pointer)
        munmap(pointer, bytes ? bytes : 1);
}
