/* layer_peer.h: what the layers of a network take in another framework, as a peer tells it
 * (docs/peers.md: profile). */
#ifndef PRONY_BENCH_LAYERS_LAYER_PEER_H
#define PRONY_BENCH_LAYERS_LAYER_PEER_H

#include "base/json.h"
#include "bench/layers/layers.h"

/* The rows of the answer; nothing in it is trusted. */
enum status layers_peer(struct layers *layers, struct layer_side *side, const struct json *answer);

#endif
