/* cpu_backends.h: the backends that run on the CPU. They share the framework in this folder
 * (device, instance, plan) and differ in how their kernel table is filled. */
#ifndef PRONY_BACKEND_CPU_CPU_BACKENDS_H
#define PRONY_BACKEND_CPU_CPU_BACKENDS_H

#include "core/registry.h"

extern const struct backend backend_simd; /* AVX2, AVX-512; weights in blocks */
extern const struct backend backend_ref;  /* plain scalar C: the oracle; also f64 */
extern const struct backend backend_blas; /* simd, its products by OpenBLAS or BLIS */

/* Adds all of them. */
void cpu_register(struct registry *registry);

#endif
