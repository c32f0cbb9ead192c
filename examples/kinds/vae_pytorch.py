"""vae_pytorch.py EPOCHS: the zoo's `vae` in PyTorch: the same layers, starting distribution, optimiser,
batch and loss; the negative ELBO of MNIST's test rows after so many epochs. (tests/pytorch/vae.py does the
same with a smaller one.)"""
import sys

import data
import needs

torch = needs.module("torch")


def dense(inputs, outputs):
    layer = torch.nn.Linear(inputs, outputs)
    torch.nn.init.xavier_uniform_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    return layer


def make(pixels, hidden, code):
    """An encoder and a decoder."""
    return (torch.nn.Sequential(dense(pixels, hidden), torch.nn.ReLU(), dense(hidden, 2 * code)),
            torch.nn.Sequential(dense(code, hidden), torch.nn.ReLU(), dense(hidden, pixels)))


def negative_elbo(encoder, decoder, rows):
    """The mean over the rows, with one draw of each code."""
    mean, log = encoder(rows).chunk(2, dim=1)
    code = mean + torch.exp(log / 2) * torch.randn_like(mean)
    off = torch.nn.functional.binary_cross_entropy_with_logits(decoder(code), rows, reduction="sum")
    far = 0.5 * (mean**2 + log.exp() - 1 - log).sum()
    return (off + far) / len(rows)


def learn(encoder, decoder, rows, epochs, batch, rate):
    optimiser = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=rate)
    for _ in range(epochs):
        order = torch.randperm(len(rows))
        for first in range(0, len(rows), batch):
            loss = negative_elbo(encoder, decoder, rows[order[first : first + batch]])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


def main():
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    torch.manual_seed(1)
    train, test = (torch.from_numpy(rows / 255) for rows in data.mnist())
    vae = make(784, 400, 20)
    learn(*vae, train, epochs, batch=128, rate=1e-3)
    with torch.no_grad():
        found = negative_elbo(*vae, test).item()
    print(f"PyTorch {torch.__version__}, {epochs} epochs: negative ELBO of the test rows {found:.2f}")


if __name__ == "__main__":
    main()
