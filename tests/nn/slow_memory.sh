#!/bin/sh
# What the tensors of ResNet-50 take at batch 16, prony's and PyTorch's: tests/pytorch/memory.py.
# Debian's package is for Debian's Python, which need not be the first one on the path.
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import torch' 2>/dev/null; then
        exec "$python" tests/pytorch/memory.py "$PRONY_BUILD/prony" resnet50 16
    fi
done
echo "skip memory: no Python module torch (Debian: python3-torch)"
