/* query_draw.h: a chart in a terminal, with the characters Unicode has for it. */
#ifndef PRONY_CLI_QUERY_DRAW_H
#define PRONY_CLI_QUERY_DRAW_H

#include "store/store.h"

/* `how`: "bar", "line", "none", or "auto": lines over numbers, else bars. */
enum status query_draw(const struct store_query *query, const struct store_chart *chart,
                       const char *how, struct text *out);

#endif
