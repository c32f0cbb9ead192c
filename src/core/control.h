/* control.h: all that changes from step to step, in one block per instance.
 *
 * Ops read it where they run (on the device), so that many steps run without the host. Only ops of
 * the update part write it. The place in the data is in the plan (see backend.h). Plans that update
 * nothing may run at once and must not disturb each other or the training. Included by C and CUDA.
 */
#ifndef PRONY_CORE_CONTROL_H
#define PRONY_CORE_CONTROL_H

#include <stdint.h>

struct control {
    uint64_t step; /* updates done on this instance, by any of its programs; feeds the RNG */
    uint64_t seed;
    double rate; /* learning rate, before the schedule */
    /* Set by download: updates that the device left out since it was attached to, because gradients
     * overflowed its type whatever the loss scale (fp16). */
    uint64_t left_out;
    /* Set by download, used by upload: the scale of the loss (fp16) and the updates since it was
     * changed; 0: not scaled yet. */
    uint64_t scale, scaled;
};

#endif
