# 200 random networks, each shared out among two to five ranks: they learn what one worker learns.

PRONY_RANDOM_NETWORKS=200 exec "$PRONY_BUILD/tests/test_split_model" random_networks_agree
