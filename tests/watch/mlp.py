"""An MLP of PyTorch on the CPU whose batches are made in pure Python: threads, steps, batch, width.

With two threads and products that OpenBLAS shares out as well, two pools of threads are at work.
"""
import random
import sys

import torch

threads, steps, batch_size, width = [int(word) for word in sys.argv[1:5]] + [1, 100, 64, 512][len(sys.argv) - 1:]
torch.manual_seed(0)
torch.set_num_threads(threads)
model = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(),
                            torch.nn.Linear(width, width), torch.nn.ReLU(),
                            torch.nn.Linear(width, 10))
optimiser = torch.optim.SGD(model.parameters(), lr=0.01)


def batch(rows):
    return torch.tensor([[random.random() for _ in range(64)] for _ in range(rows)])


def train():
    for _ in range(steps):
        loss = torch.nn.functional.cross_entropy(model(batch(batch_size)),
                                                 torch.randint(0, 10, (batch_size,)))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


train()
