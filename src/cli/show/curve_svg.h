/* curve_svg.h: a learning curve: the loss of every epoch, and of the rows held out, as an SVG
 * picture. */
#ifndef PRONY_CLI_SHOW_CURVE_SVG_H
#define PRONY_CLI_SHOW_CURVE_SVG_H

#include "base/status.h"

#include <stdint.h>

struct curve {
    struct curve_point {
        int64_t epoch;
        double loss, held_out; /* held_out: NaN where no rows are */
    } * points;
    int64_t count, room;
};

/* Adds the end of an epoch. A zeroed curve is empty. */
enum status curve_add(struct curve *curve, struct curve_point point);
/* Writes it whole or not at all; best_epoch 0: none is marked. Curves of one point are drawn too.
 */
enum status curve_write(const struct curve *curve, const char *path, const char *title,
                        int64_t best_epoch);
void curve_free(struct curve *curve);

#endif
