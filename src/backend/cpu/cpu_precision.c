/* cpu_precision.c: see cpu_precision.h. */
#include "backend/cpu/cpu_precision.h"

static const char *const names[] = {[PRECISION_FP32] = "fp32", [PRECISION_BF16] = "bf16"};

bool precision_parse(const char *text, enum precision *out)
{
    *out = PRECISION_FP32;
    if (text && strcmp(text, "int8") == 0)
        return true; /* a program in 8 bits says so op by op; its reals are fp32 */
    for (size_t i = 0; text && text[0] && i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (enum precision)i;
            return true;
        }
    return !text || !text[0];
}

const char *precision_name(enum precision precision)
{
    return names[precision];
}

#define BIT(operand) (1u << (operand))

unsigned precision_factors(enum op_kind kind)
{
    switch (kind) {
    case OP_dense: return BIT(AT_dense_x) | BIT(AT_dense_w);
    case OP_dense_t: return BIT(AT_dense_t_x) | BIT(AT_dense_t_w);
    case OP_outer: return BIT(AT_outer_x) | BIT(AT_outer_dy);
    case OP_matmul: return BIT(AT_matmul_a) | BIT(AT_matmul_b);
    case OP_matmul_nt: return BIT(AT_matmul_nt_a) | BIT(AT_matmul_nt_b);
    case OP_matmul_tn: return BIT(AT_matmul_tn_a) | BIT(AT_matmul_tn_b);
    case OP_conv: return BIT(AT_conv_x) | BIT(AT_conv_w);
    case OP_conv_t: return BIT(AT_conv_t_x) | BIT(AT_conv_t_w);
    case OP_conv_dw: return BIT(AT_conv_dw_x) | BIT(AT_conv_dw_dy);
    case OP_conv_fused: return BIT(AT_conv_fused_x) | BIT(AT_conv_fused_w);
    case OP_dense_sgd: return BIT(AT_dense_sgd_x) | BIT(AT_dense_sgd_dy) | BIT(AT_dense_sgd_w);
    case OP_dense_update:
        return BIT(AT_dense_update_x) | BIT(AT_dense_update_dy) | BIT(AT_dense_update_w);
    case OP_lstm: return BIT(AT_lstm_x) | BIT(AT_lstm_wx) | BIT(AT_lstm_wh);
    case OP_lstm_grad: return BIT(AT_lstm_grad_x) | BIT(AT_lstm_grad_wx) | BIT(AT_lstm_grad_wh);
    case OP_rnn: return BIT(AT_rnn_x) | BIT(AT_rnn_wx) | BIT(AT_rnn_wh);
    case OP_rnn_grad: return BIT(AT_rnn_grad_x) | BIT(AT_rnn_grad_wx) | BIT(AT_rnn_grad_wh);
    case OP_gru: return BIT(AT_gru_x) | BIT(AT_gru_wx) | BIT(AT_gru_wh);
    case OP_gru_grad: return BIT(AT_gru_grad_x) | BIT(AT_gru_grad_wx) | BIT(AT_gru_grad_wh);
    default: return 0;
    }
}
