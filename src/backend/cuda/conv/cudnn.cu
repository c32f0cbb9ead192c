/* cudnn.cu: convolution through cuDNN. In tf32 it works on images in NHWC order (nhwc.h);
 * what lies the other way is transposed in the workspace, and so are weights, whose channels are
 * filled up to a multiple of four. In fp32, and where there are groups or an odd number of results,
 * images are taken as they lie everywhere in prony. What follows a convolution in a fused op is one
 * pass of ours. fp32 never runs on tensor cores.
 *
 * Pads that are not the same on both sides stay with our own kernels. */
#include "backend/cuda/conv/cudnn.h"

#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/plan/kernel_families.h"

extern "C" {
#include "base/memory.h"
}

#if __has_include(<cudnn.h>)
#include "backend/cuda/conv/cudnn_plan.h"

#include <dlfcn.h>

static void *library_open(void)
{
    static const char *const names[] = {"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"};
    for (const char *name : names) {
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    return NULL;
}

enum status cudnn_probe(void)
{
    void *library = library_open();
    if (!library)
        FAIL(STATUS_UNSUPPORTED,
             "cuDNN (libcudnn.so.9) is not installed: install NVIDIA's cuDNN 9");
    dlclose(library);
    return STATUS_OK;
}

static bool library_read(struct cudnn *cudnn)
{
#define DO(name)                                                                                   \
    cudnn->name = (decltype(&cudnn##name))dlsym(cudnn->library, "cudnn" #name);                    \
    if (!cudnn->name)                                                                              \
        return false;
    CUDNN_FUNCTIONS(DO)
#undef DO
    return cudnn->Create(&cudnn->handle) == CUDNN_STATUS_SUCCESS;
}

enum status cudnn_open(bool tf32, struct cudnn **out)
{
    TRY(cudnn_probe());
    struct cudnn *cudnn = (struct cudnn *)mem_alloc(sizeof *cudnn);
    NEED(cudnn);
    cudnn->library = library_open();
    cudnn->tf32 = tf32;
    if (!library_read(cudnn)) {
        dlclose(cudnn->library);
        mem_free(cudnn);
        FAIL(STATUS_UNSUPPORTED, "cuDNN (libcudnn.so.9) is there but does not start");
    }
    *out = cudnn;
    return STATUS_OK;
}

void cudnn_close(struct cudnn *cudnn)
{
    if (!cudnn)
        return;
    cudnn_forget(cudnn);
    cudnn->Destroy(cudnn->handle);
    dlclose(cudnn->library);
    mem_free(cudnn);
}

size_t cudnn_version(const struct cudnn *cudnn)
{
    return cudnn ? cudnn->GetVersion() : 0;
}

static struct conv_form form_of(const struct cudnn *cudnn, const struct program *program,
                                const struct op *op)
{
    return conv_form_of(program, op, cudnn->tf32);
}

/* All that may have to be transposed, and what cuDNN may take. */
uint64_t workspace_cudnn(const struct program *program, const struct op *op)
{
    return reorder_bytes(program, op) + cudnn_most_bytes();
}

static void run_cudnn(const struct call *call, struct queue *queue,
                      const struct conv_ending &ending, bool ends, bool sums_apart)
{
    const struct cudnn *cudnn = queue->cudnn;
    const struct reordered made =
        reorder_begin(call, form_of(cudnn, call->program, call->op), sums_apart, false);
    reorder_in(made, queue);
    queue->launches++;
    if (!queue->counting && queue->error == cudaSuccess) {
        const struct cudnn_choice *choice = cudnn_known(cudnn, &made.form);
        if (!choice || !cudnn_execute(cudnn, choice, made.at_x, made.at_w, made.at_y, made.room,
                                      queue->stream))
            queue->error = cudaErrorNotSupported;
    }
    reorder_out(made, queue, ending, ends);
}

/* conv and conv_t */
void launch_conv_cudnn(const struct call *call, struct queue *queue)
{
    struct conv_ending ending = {};
    ending.bias = call_reals(call, AT_conv_b);
    run_cudnn(call, queue, ending, call_has(call, AT_conv_b), false);
}

void launch_conv_fused_cudnn(const struct call *call, struct queue *queue)
{
    const struct conv_ending ending = conv_ending_of(call);
    run_cudnn(call, queue, ending, true,
              call_has(call, AT_conv_fused_add) && ending.add == call_reals(call, AT_conv_fused_y));
}

void launch_conv_dw_cudnn(const struct call *call, struct queue *queue)
{
    run_cudnn(call, queue, conv_ending{}, false, false);
}

/* Are there as many places as cuDNN works out from pads on both sides? */
static bool is_even(const struct conv_axis &axis)
{
    const int32_t room = axis.x + 2 * axis.pad - (axis.kernel - 1) * axis.dilation - 1;
    return room >= 0 && room / axis.stride + 1 == axis.y;
}

bool takes_cudnn(const struct choice *choice)
{
    struct cudnn *cudnn = choice->device->cudnn;
    if (!cudnn)
        return false;
    const struct conv_form form = form_of(cudnn, choice->program, choice->op);
    if (!is_even(form.conv.down) || !is_even(form.conv.across))
        return false;
    const struct cudnn_choice *found = choice->dry ? NULL : cudnn_choose(cudnn, &form);
    return choice->dry || (found && found->plan);
}

uint64_t cudnn_workspace(const struct cudnn *cudnn, const struct program *program,
                         const struct op *op, uint64_t most)
{
    const struct conv_form form = form_of(cudnn, program, op);
    const struct cudnn_choice *choice = cudnn_known(cudnn, &form);
    return choice ? reorder_bytes(program, op) + (uint64_t)choice->bytes : most;
}

#else

enum status cudnn_probe(void)
{
    FAIL(STATUS_UNSUPPORTED, "this build has no cuDNN: cudnn.h was not found when it was made");
}

enum status cudnn_open(bool, struct cudnn **)
{
    return cudnn_probe();
}

void cudnn_close(struct cudnn *)
{
}

size_t cudnn_version(const struct cudnn *)
{
    return 0;
}

bool takes_cudnn(const struct choice *)
{
    return false;
}

void launch_conv_cudnn(const struct call *, struct queue *)
{
}

void launch_conv_fused_cudnn(const struct call *, struct queue *)
{
}

void launch_conv_dw_cudnn(const struct call *, struct queue *)
{
}

uint64_t workspace_cudnn(const struct program *, const struct op *)
{
    return 0;
}

uint64_t cudnn_workspace(const struct cudnn *, const struct program *, const struct op *,
                         uint64_t most)
{
    return most;
}

#endif
