/* layout.h: gives every tensor of a program its place in its role's block. */
#ifndef PRONY_CORE_PASS_LAYOUT_H
#define PRONY_CORE_PASS_LAYOUT_H

#include "core/program.h"

enum { LAYOUT_ALIGN = 64 };

/* Activations whose lifetimes do not meet share bytes; everything else lies side by side, gradients
 * in the order of their parameters. Sets offsets and program->role_bytes. */
enum status layout_memory(struct program *program);

#endif
