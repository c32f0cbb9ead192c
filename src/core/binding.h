/* binding.h: is a binding (backend.h) one that a program can run with? The same answer for every
 * backend, before any of them copies or remembers something. */
#ifndef PRONY_CORE_BINDING_H
#define PRONY_CORE_BINDING_H

#include "core/backend.h"

/* The op that loads or stores this tensor, or NULL: then nothing can be bound to it. */
const struct op *binding_port(const struct program *program, int32_t tensor);

/* Does this op move one row a sample, rather than its whole tensor as one row a step? */
bool binding_per_sample(const struct program *program, const struct op *port);

/* Of the view bound to this tensor, which has a port. */
uint64_t binding_row_bytes(const struct program *program, int32_t tensor);

/* STATUS_INPUT when a view is bound to a tensor that is neither loaded nor stored, is empty, or is
 * not the tensor's only one. Also when it has fewer rows than the order names or, without an order,
 * not as many as the other per-sample views. *samples is the length of the order or of the data, 0
 * when there is neither. */
enum status binding_check(const struct program *program, const struct binding *binding,
                          uint64_t *samples);

/* A number for data that will not change from now on (binding.version): no other call gives the
 * same. */
uint64_t binding_version(void);

#endif
