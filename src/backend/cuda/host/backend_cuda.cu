/* backend_cuda.cu: the table of the backend, and the one symbol the plugin exports.
 *
 * Where to begin reading is in ../README.md. */
#include "backend/cuda/host/cuda_device.h"

static const struct backend backend_cuda = {
    BACKEND_ABI,   "cuda",        "gpu",        cuda_probe,   cuda_open,
    cuda_close,    cuda_describe, cuda_attach,  cuda_detach,  cuda_upload,
    cuda_download, cuda_supports, cuda_prepare, cuda_bind,    cuda_run,
    cuda_sync,     cuda_fetch,    cuda_explain, cuda_release, cuda_burst,
};

/* The same but for convolutions, which are cuDNN's: to compare with. */
static const struct backend backend_cudnn = {
    BACKEND_ABI,   "cudnn",       "gpu",        cuda_probe_cudnn, cuda_open_cudnn,
    cuda_close,    cuda_describe, cuda_attach,  cuda_detach,      cuda_upload,
    cuda_download, cuda_supports, cuda_prepare, cuda_bind,        cuda_run,
    cuda_sync,     cuda_fetch,    cuda_explain, cuda_release,     cuda_burst,
};

extern "C" {
extern const struct plugin prony_plugin __attribute__((visibility("default")));
const struct plugin prony_plugin = {BACKEND_ABI, &backend_cuda, status_share, &backend_cudnn};
}
