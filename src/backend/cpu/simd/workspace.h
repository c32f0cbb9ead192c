/* workspace.h: dividing a kernel's workspace. The same code says how large it must be and where its
 * parts are. */
#ifndef PRONY_BACKEND_CPU_SIMD_WORKSPACE_H
#define PRONY_BACKEND_CPU_SIMD_WORKSPACE_H

#include <stddef.h>
#include <stdint.h>

/* Takes the next part, or only counts it where there is no workspace yet. Parts are aligned to 64
 * bytes. */
static inline void *workspace_take(char *workspace, uint64_t *used, int64_t count, size_t size)
{
    void *taken = workspace ? workspace + *used : NULL;
    *used += ((uint64_t)count * size + 63) / 64 * 64;
    return taken;
}

#endif
