/* top_costs.c: see top_costs.h. */
#include "cli/show/top_costs.h"

#include "cli/table/show_figure.h"
#include "cli/table/wrap.h"

#include <math.h>
#include <string.h>

void top_costs_add(struct top_costs *costs, const struct top_cost *cost)
{
    int place = costs->count;
    if (isnan(cost->size) || cost->size <= 0)
        return;
    costs->all += cost->size;
    while (place > 0 && costs->list[place - 1].size < cost->size)
        place--;
    if (place == TOP_COSTS)
        return;
    costs->count += costs->count < TOP_COSTS;
    memmove(&costs->list[place + 1], &costs->list[place],
            (size_t)(costs->count - place - 1) * sizeof *costs->list);
    costs->list[place] = *cost;
}

void top_costs_print(const struct top_costs *costs, top_costs_sentence *sentence, struct text *out)
{
    text_add(out, costs->count ? "\nlargest costs\n" : "");
    for (int i = 0; i < costs->count; i++) {
        struct text line = {0}, lead = {0};
        text_printf(&lead, "  %d  ", i + 1);
        sentence(costs, i, &line);
        wrap_add(out, text_of(&lead), text_of(&line), wrap_screen());
        out->failed |= line.failed || lead.failed;
        text_free(&line);
        text_free(&lead);
    }
}

void top_cost_name(const struct top_cost *cost, struct text *out)
{
    const struct op *op = cost->op;
    text_printf(out, "%s%s%s", op->layer, *op->layer ? " " : "", op_name(op->kind));
}

void top_cost_bound(const struct top_cost *cost, struct text *out)
{
    text_add(out, show_bound(cost->bound));
    if (strcmp(cost->bound, "flop") == 0) {
        text_add(out, " (");
        show_flop(out, (double)op_flop(cost->program, cost->op));
        text_add(out, ")");
    } else if (strcmp(cost->bound, "bytes") == 0) {
        text_add(out, " (");
        text_add_size(out, (double)op_bytes(cost->program, cost->op));
        text_add(out, ")");
    }
}
