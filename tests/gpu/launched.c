/* launched.c: which kernels a process launches, so that tools/test-gpu can say which of the
 * plugin's ran in what compute-sanitizer looks at, and that none was missed.
 *
 * A library that the driver loads into the process (CUDA_INJECTION64_PATH). CUPTI calls it at every
 * launch, also of one that is captured in a graph; each name is added once to the file that
 * PRONY_LAUNCHED names. It cannot be there together with the sanitizer, so what is sanitized runs a
 * first time with it. */
#include <cupti.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MOST = 4096, TEXT_BYTES = 1 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char text[TEXT_BYTES]; /* the names so far, each with its end */
static const char *names[NAMES_MOST];
static size_t used;
static int count;
static FILE *list;

static void add_name(const char *name)
{
    const size_t size = strlen(name) + 1;
    int i = 0;
    while (i < count && strcmp(names[i], name) != 0)
        i++;
    if (i < count || count == NAMES_MOST || size > TEXT_BYTES - used)
        return;
    names[count++] = memcpy(text + used, name, size);
    used += size;
    fprintf(list, "%s\n", name);
    fflush(list); /* the process may be killed by what it tests */
}

static void CUPTIAPI on_call(void *context, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                             const void *data)
{
    const CUpti_CallbackData *call = data;
    (void)context;
    (void)domain;
    (void)id;
    if (call->callbackSite != CUPTI_API_ENTER || !call->symbolName)
        return;
    pthread_mutex_lock(&lock);
    add_name(call->symbolName);
    pthread_mutex_unlock(&lock);
}

/* What the driver calls when it has loaded this. */
int InitializeInjection(void);
int InitializeInjection(void)
{
    static const CUpti_CallbackId launches[] = {
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel};
    const char *path = getenv("PRONY_LAUNCHED");
    CUpti_SubscriberHandle subscriber;
    list = path ? fopen(path, "a") : NULL;
    if (!list || cuptiSubscribe(&subscriber, on_call, NULL) != CUPTI_SUCCESS)
        return 0;
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++)
        cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, launches[i]);
    return 1;
}
