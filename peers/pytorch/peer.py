#!/usr/bin/env python3
"""Neural networks in PyTorch, on the CPU, as its tutorials write them."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from prony_torch import serve_network


def network(torch, work):
    functions = {"sigmoid": torch.nn.Sigmoid, "relu": torch.nn.ReLU}
    layers = []
    for weight, _, activation in work.dense_stack(losses=("mse", "cross_entropy")):
        layers.append(torch.nn.Linear(*work.weights[weight][0]))
        if activation:
            layers.append(functions[activation]())
    return torch.nn.Sequential(*layers)


serve_network(network)
