/* onnx_gives.h: what a model of ONNX written by hand gives, number by number. Its messages' header
 * comes first in the file that includes this one. */
#ifndef PRONY_TESTS_ONNX_GIVES_H
#define PRONY_TESTS_ONNX_GIVES_H

#include "onnx_answer.h"
#include "onnx_hand.h"

/* Does a model over three features give what the function does, element by element? */
static inline void check_gives(struct rig *rig, struct hand *hand,
                               double (*expected)(double x, int place))
{
    struct network *network;
    struct answer found = {0};
    float x[BATCH * 3];
    fill_random(x, BATCH * 3, 5);
    if (CHECK_OK(hand_read(hand, "given.onnx", NULL, &network)) &&
        answer(rig, network, true, &found) && CHECK_EQUAL_INT(found.count, BATCH * 3))
        for (int i = 0; i < BATCH * 3; i++) {
            float wanted = (float)expected((double)x[i], i % 3), off = found.y[i] - wanted;
            if (!CHECK(found.y[i] == wanted || fabsf(off) <= 1e-5f * fabsf(wanted) ||
                       (isnan(found.y[i]) && isnan(wanted))))
                printf("    %g became %g, expected %g\n%s", (double)x[i], (double)found.y[i],
                       (double)wanted, network->text);
        }
    answer_free(&found);
    network_free(network);
}

#endif
