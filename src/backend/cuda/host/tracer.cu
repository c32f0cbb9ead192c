/* tracer.cu: see tracer.h. Which op a kernel belongs to is said by CUPTI's external correlation: a
 * record for each call of CUDA made between push and pop has the op and a number, and what the call
 * made run has the same number. */
#include "backend/cuda/host/tracer.h"

#if __has_include(<cupti.h>) && __CUDACC_VER_MAJOR__ >= 13
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>

extern "C" {
#include "base/clock.h"
#include "base/memory.h"
}

#define CUPTI_FUNCTIONS(DO)                                                                        \
    DO(GetTimestamp)                                                                               \
    DO(ActivityRegisterCallbacks)                                                                  \
    DO(ActivityEnable)                                                                             \
    DO(ActivityDisable)                                                                            \
    DO(ActivityFlushAll)                                                                           \
    DO(ActivityGetNextRecord)                                                                      \
    DO(ActivityPushExternalCorrelationId)                                                          \
    DO(ActivityPopExternalCorrelationId)

enum { BUFFER_BYTES = 1 << 20, NOTES_MOST = 1 << 16 };
static const CUpti_ExternalCorrelationKind OURS = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                           CUPTI_ACTIVITY_KIND_RUNTIME,
                                           CUPTI_ACTIVITY_KIND_DRIVER,
                                           CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                           CUPTI_ACTIVITY_KIND_MEMCPY,
                                           CUPTI_ACTIVITY_KIND_MEMSET};

/* Something that ran, or which op a call was made for. */
struct note {
    uint32_t call;
    int32_t op;          /* -1: this says when it ran */
    uint64_t start, end; /* by CUPTI's clock */
};

/* The process's, as CUPTI is: its callbacks are given no context, and may come in a thread of its
 * own. */
static pthread_mutex_t tracer_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int users;
    void *library;
    struct note *notes;
    int32_t count;
    bool overflowed;        /* not all were noted */
    uint64_t zero, zero_ns; /* the same moment by CUPTI's clock and by ours */
#define DO(name) decltype(&cupti##name) name;
    CUPTI_FUNCTIONS(DO)
#undef DO
} tracer;

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *records)
{
    *buffer = (uint8_t *)mem_alloc(BUFFER_BYTES);
    *size = *buffer ? BUFFER_BYTES : 0;
    *records = 0; /* as many as there is room for */
}

template <class record> static struct note note_run(const CUpti_Activity *activity)
{
    const record *ran = (const record *)activity;
    return {ran->correlationId, -1, ran->start, ran->end};
}

static void add_note(const struct note &note)
{
    if (tracer.count < NOTES_MOST)
        tracer.notes[tracer.count++] = note;
    else
        tracer.overflowed = true;
}

static void take_record(const CUpti_Activity *record)
{
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        add_note(note_run<CUpti_ActivityKernel10>(record));
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
        add_note(note_run<CUpti_ActivityMemcpy6>(record));
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
        add_note(note_run<CUpti_ActivityMemset4>(record));
    else if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
        const CUpti_ActivityExternalCorrelation *external =
            (const CUpti_ActivityExternalCorrelation *)record;
        if (external->externalKind == OURS)
            add_note({external->correlationId, (int32_t)external->externalId, 0, 0});
    }
}

static void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t used)
{
    CUpti_Activity *record = NULL;
    pthread_mutex_lock(&tracer_lock);
    while (tracer.notes && tracer.ActivityGetNextRecord(buffer, used, &record) == CUPTI_SUCCESS)
        take_record(record);
    pthread_mutex_unlock(&tracer_lock);
    mem_free(buffer);
}

/* The CUPTI of the CUDA this was built with: records change from one to the next. */
static bool library_read(void)
{
#define CUPTI_NAME_(major) "libcupti.so." #major
#define CUPTI_NAME(major) CUPTI_NAME_(major)
    static const char *const names[] = {
        CUPTI_NAME(__CUDACC_VER_MAJOR__), "/usr/local/cuda/lib64/" CUPTI_NAME(__CUDACC_VER_MAJOR__),
        "/usr/local/cuda/extras/CUPTI/lib64/" CUPTI_NAME(__CUDACC_VER_MAJOR__)};
    for (int i = 0; i < 3 && !tracer.library; i++)
        tracer.library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!tracer.library)
        return false;
#define DO(name)                                                                                   \
    tracer.name = (decltype(&cupti##name))dlsym(tracer.library, "cupti" #name);                    \
    if (!tracer.name)                                                                              \
        return false;
    CUPTI_FUNCTIONS(DO)
#undef DO
    return true;
}

static bool listen(void)
{
    bool ok = (tracer.GetTimestamp || library_read()) &&
              tracer.ActivityRegisterCallbacks(give_buffer, take_buffer) == CUPTI_SUCCESS;
    for (CUpti_ActivityKind kind : kinds)
        ok = ok && tracer.ActivityEnable(kind) == CUPTI_SUCCESS;
    ok = ok && tracer.GetTimestamp(&tracer.zero) == CUPTI_SUCCESS;
    tracer.zero_ns = clock_ns();
    return ok;
}

static void listen_no_more(void)
{
    for (CUpti_ActivityKind kind : kinds)
        if (tracer.ActivityDisable)
            tracer.ActivityDisable(kind);
    if (tracer.ActivityFlushAll)
        tracer.ActivityFlushAll(0);
    pthread_mutex_lock(&tracer_lock);
    mem_free(tracer.notes);
    tracer.notes = NULL;
    tracer.count = 0;
    pthread_mutex_unlock(&tracer_lock);
}

bool tracer_open(void)
{
    if (tracer.users == 0) {
        tracer.notes = (struct note *)mem_array(NOTES_MOST, sizeof *tracer.notes);
        if (!tracer.notes || !listen()) {
            listen_no_more();
            return false;
        }
    }
    tracer.users++;
    return true;
}

void tracer_close(void)
{
    if (--tracer.users == 0)
        listen_no_more();
}

void tracer_begin(void)
{
    tracer.ActivityFlushAll(0);
    pthread_mutex_lock(&tracer_lock);
    tracer.count = 0;
    tracer.overflowed = false;
    pthread_mutex_unlock(&tracer_lock);
}

void tracer_op(int32_t op)
{
    tracer.ActivityPushExternalCorrelationId(OURS, (uint64_t)op);
}

void tracer_pause(void)
{
    tracer.ActivityPopExternalCorrelationId(OURS, NULL);
}

/* The op of the call with this number, or -1: nobody's. */
static int32_t op_of(uint32_t call)
{
    for (int32_t i = 0; i < tracer.count; i++)
        if (tracer.notes[i].op >= 0 && tracer.notes[i].call == call)
            return tracer.notes[i].op;
    return -1;
}

static void add_span(struct span *span, const struct note *note)
{
    const uint64_t start_ns = note->start - tracer.zero + tracer.zero_ns;
    if (!span->start_ns || start_ns < span->start_ns)
        span->start_ns = start_ns;
    span->busy_ns += note->end - note->start;
}

bool tracer_collect(struct span *spans, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        spans[i] = {};
    tracer.ActivityFlushAll(0);
    pthread_mutex_lock(&tracer_lock);
    for (int32_t i = 0; i < tracer.count; i++) {
        const int32_t op = tracer.notes[i].op < 0 ? op_of(tracer.notes[i].call) : -1;
        if (op >= 0 && op < count)
            add_span(&spans[op], &tracer.notes[i]);
    }
    const bool all = !tracer.overflowed;
    pthread_mutex_unlock(&tracer_lock);
    return all;
}

#else /* built without the CUPTI of CUDA 13 or newer */

bool tracer_open(void)
{
    return false;
}

void tracer_close(void)
{
}

void tracer_begin(void)
{
}

void tracer_op(int32_t)
{
}

void tracer_pause(void)
{
}

bool tracer_collect(struct span *, int32_t)
{
    return false;
}

#endif
