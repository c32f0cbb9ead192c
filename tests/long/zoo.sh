# Every network of the zoo, as it is, beside PyTorch (tests/nn/slow_zoo.sh): about 10 minutes, 12 GB.

PRONY_ZOO=all exec sh tests/nn/slow_zoo.sh
