/* test_cupti_part.c: what is declared of CUPTI is what NVIDIA's headers declare, in every version
 * of a record that they have. Skipped where the headers are not installed. */
#include "agent/cupti_part.h"
#include "agent/gpu_file.h"
#include "check.h"

#if __has_include(<cuda.h>) && __has_include(<cupti.h>)
#include <cuda.h>
#include <cupti.h>

#define SAME(ours, our_field, theirs, their_field)                                                 \
    CHECK_EQUAL_INT(offsetof(struct ours, our_field), offsetof(theirs, their_field))

#define SAME_SPAN(ours, theirs)                                                                    \
    do {                                                                                           \
        SAME(ours, kind, theirs, kind);                                                            \
        SAME(ours, start, theirs, start);                                                          \
        SAME(ours, end, theirs, end);                                                              \
        SAME(ours, device, theirs, deviceId);                                                      \
        SAME(ours, context, theirs, contextId);                                                    \
        SAME(ours, stream, theirs, streamId);                                                      \
        SAME(ours, correlation, theirs, correlationId);                                            \
    } while (0)

#define SAME_KERNEL(theirs)                                                                        \
    do {                                                                                           \
        SAME_SPAN(cupti_kernel, theirs);                                                           \
        SAME(cupti_kernel, name, theirs, name);                                                    \
        SAME(cupti_kernel, graph_node, theirs, graphNodeId);                                       \
    } while (0)

#define SAME_COPY(ours, theirs)                                                                    \
    do {                                                                                           \
        SAME_SPAN(ours, theirs);                                                                   \
        SAME(ours, bytes, theirs, bytes);                                                          \
        SAME(ours, from, theirs, srcKind);                                                         \
        SAME(ours, to, theirs, dstKind);                                                           \
    } while (0)

TEST(kernels)
{
    SAME_KERNEL(CUpti_ActivityKernel5);
    SAME_KERNEL(CUpti_ActivityKernel6);
    SAME_KERNEL(CUpti_ActivityKernel7);
    SAME_KERNEL(CUpti_ActivityKernel8);
    SAME_KERNEL(CUpti_ActivityKernel9);
    CHECK_EQUAL_INT(CUPTI_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

TEST(copies)
{
    SAME_COPY(cupti_memcpy, CUpti_ActivityMemcpy4);
    SAME_COPY(cupti_memcpy, CUpti_ActivityMemcpy5);
    SAME_COPY(cupti_memcpy_peer, CUpti_ActivityMemcpyPtoP4);
    CHECK_EQUAL_INT(CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
    CHECK_EQUAL_INT(CUPTI_MEMCPY_PEER, CUPTI_ACTIVITY_KIND_MEMCPY2);
    CHECK_EQUAL_INT(1, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
    CHECK_EQUAL_INT(2, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
}

TEST(fills)
{
    SAME_SPAN(cupti_memset, CUpti_ActivityMemset3);
    SAME_SPAN(cupti_memset, CUpti_ActivityMemset4);
    SAME(cupti_memset, bytes, CUpti_ActivityMemset4, bytes);
    CHECK_EQUAL_INT(CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
}

TEST(waits_and_events)
{
    SAME(cupti_synchronization, type, CUpti_ActivitySynchronization, type);
    SAME(cupti_synchronization, start, CUpti_ActivitySynchronization, start);
    SAME(cupti_synchronization, end, CUpti_ActivitySynchronization, end);
    SAME(cupti_synchronization, correlation, CUpti_ActivitySynchronization, correlationId);
    SAME(cupti_synchronization, stream, CUpti_ActivitySynchronization, streamId);
    SAME(cupti_synchronization, event, CUpti_ActivitySynchronization, cudaEventId);
    SAME(cupti_event, correlation, CUpti_ActivityCudaEvent, correlationId);
    SAME(cupti_event, stream, CUpti_ActivityCudaEvent, streamId);
    SAME(cupti_event, event, CUpti_ActivityCudaEvent, eventId);
    CHECK_EQUAL_INT(GPU_WAIT_EVENT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
    CHECK_EQUAL_INT(GPU_WAIT_QUEUE, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
    CHECK_EQUAL_INT(GPU_WAIT_STREAM, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
    CHECK_EQUAL_INT(GPU_WAIT_DEVICE, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
    CHECK_EQUAL_INT(CUPTI_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    CHECK_EQUAL_INT(CUPTI_EVENT, CUPTI_ACTIVITY_KIND_CUDA_EVENT);
}

TEST(calls)
{
    SAME(cupti_call, site, CUpti_CallbackData, callbackSite);
    SAME(cupti_call, function, CUpti_CallbackData, functionName);
    SAME(cupti_call, parameters, CUpti_CallbackData, functionParams);
    SAME(cupti_call, correlation, CUpti_CallbackData, correlationId);
    CHECK_EQUAL_INT(CUPTI_ENTER, CUPTI_API_ENTER);
    CHECK_EQUAL_INT(CUPTI_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
    CHECK_EQUAL_INT(CUPTI_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
    CHECK_EQUAL_INT(CUPTI_OTHER_SUBSCRIBER, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    CHECK_EQUAL_INT(CUPTI_FLUSH_ALL, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

#else

TEST(is_as_in_the_headers)
{
    check_skip("cupti.h of NVIDIA's CUDA toolkit is not installed");
}

#endif

CHECK_MAIN
