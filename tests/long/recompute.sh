# 2,000 random networks, trained with all activations and with few: the same bits.

PRONY_RANDOM_NETWORKS=2000 exec "$PRONY_BUILD/tests/test_recompute" random_networks_learn_the_same
