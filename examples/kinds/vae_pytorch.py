"""vae_pytorch.py EPOCHS: the zoo's `vae` in PyTorch: the same layers, starting distribution, optimiser,
batch and loss; the negative ELBO of MNIST's test rows after so many epochs."""
import sys

import numpy
import torch

import data

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
torch.manual_seed(1)
train, test = (torch.from_numpy(rows / 255) for rows in data.mnist())


def dense(inputs, outputs):
    layer = torch.nn.Linear(inputs, outputs)
    torch.nn.init.xavier_uniform_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    return layer


encoder = torch.nn.Sequential(dense(784, 400), torch.nn.ReLU(), dense(400, 40))
decoder = torch.nn.Sequential(dense(20, 400), torch.nn.ReLU(), dense(400, 784))
optimiser = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)


def negative_elbo(rows):
    mean, log = encoder(rows).chunk(2, dim=1)
    code = mean + torch.exp(log / 2) * torch.randn_like(mean)
    off = torch.nn.functional.binary_cross_entropy_with_logits(decoder(code), rows, reduction="sum")
    far = 0.5 * (mean**2 + log.exp() - 1 - log).sum()
    return (off + far) / len(rows)


for epoch in range(epochs):
    order = torch.randperm(len(train))
    for first in range(0, len(train), 128):
        loss = negative_elbo(train[order[first : first + 128]])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
with torch.no_grad():
    parts = [negative_elbo(test[i : i + 1000]).item() for i in range(0, len(test), 1000)]
print(f"PyTorch {torch.__version__}, {epochs} epochs: negative ELBO of the test rows {numpy.mean(parts):.2f}")
