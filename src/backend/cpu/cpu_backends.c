/* cpu_backends.c: the list of the CPU's backends. */
#include "backend/cpu/cpu_backends.h"

void cpu_register(struct registry *registry)
{
    registry_add(registry, &backend_simd); /* the first that this machine can run is the default */
    registry_add(registry, &backend_ref);
    registry_add(registry, &backend_blas);
}
