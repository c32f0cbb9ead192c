#!/bin/sh
# The bench's check against planted faults in every network of the zoo, and against 200 random
# networks of three seeds each, which it must not take for wrong: tests/bench/test_teeth.c, all of it.
# Takes about half an hour on two cores and 4 GB.
PRONY_TEETH=all exec "$PRONY_BUILD/tests/test_teeth"
