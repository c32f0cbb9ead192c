/* mailbox.h: calls between host and GPU through host memory that both see (pinned, mapped).
 *
 * A note is eight bytes, a float and the number of the call, which are written and read as one: who
 * sees the right number has the float, so nothing needs to be ordered or waited for. A question is
 * the notes of all inputs of a batch, an answer those of its outputs. There is a ring of both, so
 * that calls can follow each other before they are answered. Calls are numbered from 1. */
#ifndef PRONY_BACKEND_CUDA_MAILBOX_H
#define PRONY_BACKEND_CUDA_MAILBOX_H

#include <cuda_runtime.h>
#include <stdint.h>
#include <string.h>

enum {
    MAIL_SLOTS = 16,
    MAIL_LINE = 16, /* notes: who looks at a slot does not hold up who writes to the next */
    /* A kernel that waits looks so often, which takes a good part of a second, and leaves: a host
     * that has stopped, or has forgotten it, cannot keep the GPU. */
    MAIL_LOOKS = 200000,
    MAIL_STOPS = 32, /* looks between two at the host's word to stop: it leaves within 30 µs */
};

struct mailbox {
    uint64_t *stop;          /* not 0: who waits for a question leaves */
    uint64_t *questions;     /* [slot][batch][in] */
    uint64_t *answers;       /* [slot][batch][out] */
    int32_t inputs, outputs; /* of a call: batch × in, batch × out */

    static __host__ __device__ uint32_t slot_notes(int32_t count)
    {
        return ((uint32_t)count + MAIL_LINE - 1) / MAIL_LINE * MAIL_LINE;
    }
    __host__ __device__ uint64_t *question(uint32_t number) const
    {
        return questions + number % MAIL_SLOTS * slot_notes(inputs);
    }
    __host__ __device__ uint64_t *answer(uint32_t number) const
    {
        return answers + number % MAIL_SLOTS * slot_notes(outputs);
    }
};

static inline __host__ __device__ uint32_t note_number(uint64_t note)
{
    return (uint32_t)(note >> 32);
}

static inline uint64_t note_of(float value, uint32_t number)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint64_t)number << 32 | bits;
}

static inline float note_value(uint64_t note)
{
    const uint32_t bits = (uint32_t)note;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#ifdef __CUDACC__
static inline __device__ uint64_t note_look(const uint64_t *from)
{
    uint64_t note;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(note) : "l"(from) : "memory");
    return note;
}

static inline __device__ void note_put(uint64_t *to, float value, uint32_t number)
{
    const uint64_t note = (uint64_t)number << 32 | __float_as_uint(value);
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(note) : "memory");
}

/* By all threads of a block: waits for question `number`. Each of the first threads then has the
 * note of its number in *note. False: nobody asks any more. */
static inline __device__ bool mail_wait(const struct mailbox &mail, uint32_t number, uint64_t *note)
{
    const int thread = (int)threadIdx.x;
    const bool here = thread < mail.inputs;
    const uint64_t *from = mail.question(number) + thread;
    for (int look = 1; look <= MAIL_LOOKS; look++) {
        *note = here ? note_look(from) : 0;
        if (__syncthreads_and(!here || note_number(*note) == number))
            return true;
        if (look % MAIL_STOPS == 0 && __syncthreads_or(thread == 0 && note_look(mail.stop) != 0))
            return false;
    }
    return false;
}
#endif

#endif
