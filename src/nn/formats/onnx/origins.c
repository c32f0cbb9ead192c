/* origins.c: which layers the nodes of a file became, so that what another framework tells of a
 * node can be put beside ours. See importer.h. */
#include "nn/formats/onnx/importer.h"

#include <string.h>

/* The node became this line, or a part of it. */
static enum status origin_add(struct import *in, int32_t node, const char *line)
{
    if (in->origin_count == in->origin_room) {
        const int32_t room = in->origin_room ? 2 * in->origin_room : 64;
        struct origin *grown = arena_array(&in->arena, (size_t)room, sizeof *grown);
        NEED(grown);
        if (in->origin_count)
            memcpy(grown, in->origins, (size_t)in->origin_count * sizeof *grown);
        in->origins = grown;
        in->origin_room = room;
    }
    in->origins[in->origin_count++] = (struct origin){node, line};
    return STATUS_OK;
}

enum status origins_of_node(struct import *in, int32_t node, int32_t lines)
{
    const Onnx__NodeProto *made = in->graph->node[node];
    for (int32_t i = lines; i < in->line_count; i++)
        TRY(origin_add(in, node, in->lines[i]->name));
    for (size_t i = 0; i < made->n_output && lines == in->line_count; i++) {
        const struct value *value = *made->output[i] ? graph_find(in, made->output[i]) : NULL;
        if (value && value->line && !value->constant)
            TRY(origin_add(in, node, value->line->name));
    }
    return STATUS_OK;
}

enum status origins_of_trail(struct import *in, const int32_t *nodes, int32_t count,
                             const char *line)
{
    for (int32_t i = 0; i < count; i++)
        TRY(origin_add(in, nodes[i], line));
    return STATUS_OK;
}

/* The layer of that name; -1: the softmax that went to the loss; LAYER_GONE: it was not needed. */
enum { LAYER_GONE = -2 };
static int32_t layer_of(const struct import *in, const struct network *network,
                        const struct origin *origin)
{
    for (int32_t i = 0; i < network->layer_count; i++)
        if (strcmp(network->layers[i].name, origin->line) == 0)
            return i;
    return in->softmax_last && strcmp(in->graph->node[origin->node]->op_type, "Softmax") == 0
               ? -1
               : LAYER_GONE;
}

enum status origins_keep(const struct import *in, struct network *network)
{
    struct arena *arena = &network->arena;
    NEED(network->origins =
             arena_array(arena, (size_t)in->origin_count + 1, sizeof *network->origins));
    for (int32_t i = 0; i < in->origin_count; i++) {
        const Onnx__NodeProto *node = in->graph->node[in->origins[i].node];
        const int32_t layer = layer_of(in, network, &in->origins[i]);
        if (layer == LAYER_GONE || !node->n_output)
            continue;
        struct network_origin *origin = &network->origins[network->origin_count++];
        NEED(origin->value = arena_text(arena, node->output[0]));
        NEED(origin->node = arena_text(arena, node->name ? node->name : ""));
        NEED(origin->op = arena_text(arena, node->op_type));
        origin->layer = layer;
        origin->place = in->origins[i].node;
    }
    return STATUS_OK;
}
