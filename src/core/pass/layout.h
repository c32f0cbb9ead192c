/* layout.h: gives every tensor of a program its place in its role's block. */
#ifndef PRONY_CORE_PASS_LAYOUT_H
#define PRONY_CORE_PASS_LAYOUT_H

#include "core/program.h"

enum { LAYOUT_ALIGN = 64 };

/* Activations whose lifetimes do not meet share bytes; everything else lies side by side, gradients
 * in the order of their parameters. Sets offsets and program->role_bytes. */
enum status layout_memory(struct program *program);

/* For a backend that keeps no gradient beyond a step: places each gradient, of bytes[entry], in the
 * block of the activations, where those that lay there are not needed any more when it is written;
 * it stays to the end of the step. One that is longer than its tensor has places that stay 0: its
 * bytes are its own. Sets offsets[entry], and how long the block then is. */
enum status layout_grads(const struct program *program, const uint64_t *bytes, uint64_t *offsets,
                         uint64_t *block_bytes);

#endif
