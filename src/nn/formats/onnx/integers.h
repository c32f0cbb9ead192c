/* integers.h: a model of 8 bits computes in integers where it can. */
#ifndef PRONY_NN_FORMATS_ONNX_INTEGERS_H
#define PRONY_NN_FORMATS_ONNX_INTEGERS_H

#include "nn/network.h"

/* Does it round to 8 bits? */
bool integers_wanted(const struct network *network);
/* `quantised` of the network, which is for inference alone, is set where a layer has a form in
 * integers; its weights become theirs. */
enum status integers_settle(struct network *network);

#endif
