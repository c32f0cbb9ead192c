/* onnx_absent.c: what stands in for onnx/ where there is no protobuf-c. */
#include "nn/formats/onnx.h"

#define REFUSE(name)                                                                               \
    FAIL(STATUS_UNSUPPORTED,                                                                       \
         "%s: this prony was built without ONNX; install protobuf-c (Debian: libprotobuf-c-dev "   \
         "protobuf-c-compiler) and build again",                                                   \
         name)

enum status onnx_parse(const char *name, const void *bytes, size_t length, const char *shapes,
                       struct network **out, struct onnx_batch *batch)
{
    (void)bytes, (void)length, (void)shapes, (void)out, (void)batch;
    REFUSE(name);
}

enum status onnx_read(const char *spec, struct network **out)
{
    (void)out;
    REFUSE(spec);
}

enum status onnx_write(const char *path, const struct network *network, const struct params *params,
                       const struct onnx_ends *ends)
{
    (void)network, (void)params, (void)ends;
    REFUSE(path);
}
