# 1,000 random networks in 8 bits: the reference's bits on the CPU with every level of instructions,
# with weights of 8, 4 and 2 bits, plain and not.
PRONY_RANDOM_NETWORKS=1000 exec "$PRONY_BUILD/tests/test_int8_networks" random_networks_are_the_references_simd
