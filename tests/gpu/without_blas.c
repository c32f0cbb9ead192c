/* without_blas.c: preloaded, it makes a machine one where cuBLASLt is not installed, so that
 * products are our own kernels' (tools/sanitize-gpu). */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

void *dlopen(const char *name, int flags)
{
    void *(*real)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    return name && strstr(name, "libcublasLt") ? NULL : real(name, flags);
}
