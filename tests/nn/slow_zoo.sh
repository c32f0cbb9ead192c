#!/bin/sh
# Networks of the zoo run a training and an inference iteration on the CPU, and agree with PyTorch
# from the same weights: tests/pytorch/zoo.py. One of each family is run here, large ones with smaller
# images; PRONY_ZOO=all (`make slow TESTS=zoo`) takes all of them as they are (docs/zoo.md), another value
# the networks it names.
most="small lenet lstm jet_tagger ad_autoencoder deep_mnist googlenet@96 resnet18@96 resnet50@64 vgg11@64"
all="small lenet lstm fcn_r deep_mnist sensor_net jet_tagger ad_autoencoder large fcn wide fcn_s acoustic
grey512 ptb_lstm alexnet alexnet_owt googlenet inception3 vgg11 vgg13 vgg16 vgg19 resnet18 resnet34 resnet50 resnet101
resnet152"
case ${PRONY_ZOO:-most} in
most) names=$most ;;
all) names=$all ;;
*) names=$PRONY_ZOO ;;
esac
# Debian's package is for Debian's Python, which need not be the first one on the path.
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import torch' 2>/dev/null; then
        # shellcheck disable=SC2086 # a list of names
        exec "$python" tests/pytorch/zoo.py "$PRONY_BUILD/libprony.so" $names
    fi
done
echo "skip zoo: no Python module torch (Debian: python3-torch)"
