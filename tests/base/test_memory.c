/* The allocator's checks and countdown, arenas above it, and the record of the last failure. */
#include "base/arena.h"
#include "base/memory.h"
#include "base/status.h"
#include "check.h"

#include <stdint.h>

#ifndef __has_feature /* gcc's word for it is __SANITIZE_ADDRESS__ */
#define __has_feature(name) 0
#endif
#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif

static bool is_zero(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i])
            return false;
    return true;
}

TEST(sizes_are_checked)
{
    size_t size = 5;
    CHECK(!size_mul(SIZE_MAX, 2, &size) && !size_add(SIZE_MAX, 1, &size));
    CHECK(size_mul(6, 7, &size) && size == 42);
    CHECK(size_add(40, 2, &size) && size == 42);
    CHECK(mem_array(SIZE_MAX / 2, 3) == NULL);
    CHECK(mem_alloc(SIZE_MAX) == NULL);
    CHECK(mem_aligned(64, SIZE_MAX - 10) == NULL);
    CHECK(mem_grow(NULL, SIZE_MAX, 8) == NULL);
}

TEST(memory_is_zeroed_and_aligned)
{
    for (size_t bytes = 0; bytes < 300; bytes += 37) {
        char *plain = mem_alloc(bytes), *aligned = mem_aligned(128, bytes);
        CHECK(plain && aligned && (uintptr_t)aligned % 128 == 0);
        CHECK(is_zero(plain, bytes) && is_zero(aligned, bytes));
        memset(plain, 1, bytes);
        memset(aligned, 1, bytes);
        mem_free(plain);
        mem_free(aligned);
    }
    char *copy = mem_copy_text("abc");
    CHECK_EQUAL_TEXT(copy, "abc");
    copy = mem_grow(copy, 1000, 4);
    CHECK_EQUAL_TEXT(copy, "abc");
    mem_free(copy);
    mem_free(NULL);
}

TEST(large_memory_is_zeroed_aligned_and_given_back)
{
    static const size_t sizes[] = {1, (2 << 20) - 1, 2 << 20, (6 << 20) + 5};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *block = mem_large(sizes[i]);
        if (!CHECK(block != NULL))
            continue;
        CHECK((uintptr_t)block % (sizes[i] < 2 << 20 ? 64 : 2 << 20) == 0);
        CHECK(block[0] == 0 && block[sizes[i] - 1] == 0);
        memset(block, 1, sizes[i]);
        mem_free_large(block, sizes[i]);
    }
    mem_free_large(NULL, 5);
    CHECK(mem_large(SIZE_MAX) == NULL && mem_large((size_t)PTRDIFF_MAX + 1) == NULL);
}

TEST(large_memory_grows)
{
    static const size_t sizes[] = {100, 3 << 20, (6 << 20) + 5};
    char *block = NULL;
    size_t before = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *grown = mem_grow_large(block, before, sizes[i]);
        if (!CHECK(grown != NULL))
            break;
        block = grown;
        CHECK((uintptr_t)block % 64 == 0);
        CHECK(!before || block[before - 1] == 1);
        CHECK(block[before] == 0 && block[sizes[i] - 1] == 0);
        memset(block, 1, sizes[i]);
        before = sizes[i];
        CHECK(mem_grow_large(block, before, SIZE_MAX) == NULL);
    }
    mem_free_large(block, before);
}

TEST(the_nth_allocation_fails)
{
    memory_fail_at(2);
    void *first = mem_alloc(1);
    CHECK(first && !memory_failed());
    CHECK(mem_alloc(1) == NULL && memory_failed());
    CHECK(mem_aligned(16, 1) == NULL && mem_grow(NULL, 1, 1) == NULL);
    memory_fail_at(0);
    CHECK(!memory_failed());
    void *second = mem_alloc(1);
    CHECK(second != NULL);
    mem_free(first);
    mem_free(second);
}

/* A mixed load; false when memory ran out. What was allocated must stay intact. */
static bool fill(struct arena *arena)
{
    enum { COUNT = 400 };
    const char *names[COUNT];
    for (int i = 0; i < COUNT; i++) {
        size_t size = (size_t)(i * 37 % 1000);
        char *bytes = arena_alloc(arena, size);
        if (!bytes)
            return false;
        CHECK((uintptr_t)bytes % 16 == 0 && is_zero(bytes, size));
        memset(bytes, 0xAA, size);
        names[i] = arena_format(arena, "name %d", i);
        if (!names[i])
            return false;
    }
    for (int i = 0; i < COUNT; i++) {
        char expected[20];
        snprintf(expected, sizeof expected, "name %d", i);
        CHECK_EQUAL_TEXT(names[i], expected);
    }
    return arena_array(arena, 3, 1 << 20) && arena_text(arena, "text");
}

TEST(arenas_survive_every_failed_allocation)
{
    bool filled = false;
    long nth = 1;
    for (; !filled && nth < 1000; nth++) {
        struct arena arena = {0};
        memory_fail_at(nth);
        filled = fill(&arena);
        CHECK_EQUAL_INT(filled, !memory_failed());
        memory_fail_at(0);
        CHECK(arena_alloc(&arena, 10) != NULL); /* goes on when memory is back */
        arena_free(&arena);
        CHECK(arena.newest == NULL);
    }
    CHECK(filled && nth > 5);
}

#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
/* What lies behind an allocation is out of bounds, as on the heap. */
TEST(arenas_show_the_address_sanitizer_their_ends)
{
    struct arena arena = {0};
    for (size_t bytes = 0; bytes < 40; bytes++) {
        const char *taken = arena_alloc(&arena, bytes);
        CHECK(!bytes || !__asan_address_is_poisoned(taken + bytes - 1));
        CHECK(__asan_address_is_poisoned(taken + bytes));
    }
    arena_free(&arena);
}
#endif

TEST(arenas_refuse_overflow)
{
    struct arena arena = {0};
    CHECK(arena_alloc(&arena, SIZE_MAX) == NULL);
    CHECK(arena_alloc(&arena, PTRDIFF_MAX) == NULL);
    CHECK(arena_array(&arena, SIZE_MAX / 4, 8) == NULL);
    CHECK(arena_bytes(&arena, "", SIZE_MAX) == NULL);
    CHECK_EQUAL_TEXT(arena_bytes(&arena, "abcdef", 3), "abc");
    CHECK_EQUAL_TEXT(arena_bytes(&arena, NULL, 0), "");
    arena_free(&arena);
}

static enum status refuse(void)
{
    FAIL(STATUS_INPUT, "line %d is wrong", 3);
}

static enum status forward(void)
{
    enum status status = STATUS_OK;
    TRY_OR(end, refuse());
    TRY(STATUS_OK);
end:
    return status_prefix(status, "%s", "a.net");
}

TEST(a_failure_is_recorded_once)
{
    CHECK_STATUS(STATUS_INPUT, forward());
    CHECK_EQUAL_TEXT(status_message(), "a.net: line 3 is wrong");
    CHECK(strstr(status_last()->file, "test_memory.c") != NULL);
    CHECK_EQUAL_TEXT(status_name(status_last()->code), "input");
    char endless[3000];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    status_fail(STATUS_IO, __FILE__, __LINE__, "%s", endless);
    status_prefix(STATUS_IO, "%s", endless);
    CHECK_EQUAL_INT(strlen(status_message()), sizeof status_last()->message - 1);
}

CHECK_MAIN
