/* messages.h: what protobuf-c makes of onnx.proto. Included before the first line of each file
 * here: its header has a field called `free`, which banned.h forbids from then on. */
#ifndef PRONY_NN_FORMATS_ONNX_MESSAGES_H
#define PRONY_NN_FORMATS_ONNX_MESSAGES_H

#include <onnx.pb-c.h>

#include "base/banned.h"

#endif
