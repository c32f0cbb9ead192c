/* query_draw.h: a chart in a terminal, with the characters Unicode has for it. */
#ifndef PRONY_CLI_QUERY_DRAW_H
#define PRONY_CLI_QUERY_DRAW_H

#include "store/store.h"

/* `how`: "bar", "line", "none", or "auto": lines over numbers, else bars. `log`: which axes are
 * logarithmic, "x", "y", "xy", "none", or "auto": those that span more than a factor of 16. A bar
 * on such an axis is a dot. */
enum status query_draw(const struct store_query *query, const struct store_chart *chart,
                       const char *how, const char *log, struct text *out);

#endif
