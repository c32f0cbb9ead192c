/* recurrent_choice.cu: which layers one persistent kernel takes through all steps. */
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/recurrent/lstm_persistent.h"

static const int64_t *dims_of(const struct choice *choice, int32_t operand)
{
    return choice->program->tensors[op_input(choice->program, choice->op, operand)].shape.dim;
}

bool takes_lstm_persistent(const struct choice *choice)
{
    return lstm_is_persistent(dims_of(choice, AT_rnn_wh)[0],
                              choice->device->properties.multiProcessorCount);
}

bool takes_rnn_persistent(const struct choice *choice)
{
    enum { MOST = 128 };
    return dims_of(choice, AT_rnn_wh)[0] <= MOST;
}

bool takes_gru_persistent(const struct choice *choice)
{
    enum { MOST = 96, GATES = 3 }; /* their weights take 111 KB of shared memory */
    const int64_t *x = dims_of(choice, AT_rnn_x), hidden = dims_of(choice, AT_rnn_wh)[0];
    const struct persistent_layer layer = lay_out({x[0], x[1], hidden, NULL}, GATES);
    return hidden <= MOST && layer.bytes() <= choice->device->properties.sharedMemPerBlockOptin;
}
