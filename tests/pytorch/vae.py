"""vae.py PRONY [FLAG…]: a variational auto-encoder of the small digits, by prony and by PyTorch.

Both learn from the same rows, with the layers, optimiser, batch and epochs of NETWORK, and are judged by
rows that neither has seen. The loss that prony shows must be the negative ELBO as PyTorch computes it with
prony's weights, and that of what PyTorch has learnt must be within 5 % of it. Starts and draws are their
own; the model is that of examples/kinds/vae_pytorch.py, which does this with MNIST. Flags (`--backend cuda`)
are prony's.
"""

import os
import re
import struct
import subprocess
import sys
import tempfile

import torch

from library import read_safetensors

sys.path.append("examples/kinds")
import vae_pytorch  # noqa: E402

PIXELS, HIDDEN, CODE, RATE, BATCH, EPOCHS, TEST = 64, 64, 8, 0.003, 32, 20, 359
NETWORK = f"""recipe vae
optimiser adam rate={RATE}
loss binary_cross_entropy
network encoder
input {PIXELS}
dense {HIDDEN}
relu
dense {2 * CODE}
network decoder
input {CODE}
dense {HIDDEN}
relu
dense {PIXELS}
"""


def digits():
    """Pixels, 0 to 16, of the rows to learn from and of those of the test."""
    with open("datasets/digits.csv", encoding="utf-8") as file:
        rows = torch.tensor([[int(field) for field in line.split(",")[:PIXELS]] for line in file],
                            dtype=torch.uint8)
    return rows[:-TEST], rows[-TEST:]


def write_folder(folder, train, test):
    """As the files of MNIST are: pictures, and a label for each, which nobody looks at."""
    for name, rows in (("train", train), ("t10k", test)):
        with open(os.path.join(folder, name + "-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">4i", 0x803, len(rows), 8, 8) + bytes(rows.flatten().tolist()))
        with open(os.path.join(folder, name + "-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">2i", 0x801, len(rows)) + bytes(len(rows)))


def train_prony(prony, flags, folder):
    """The test loss that it shows, and its weights."""
    net, weights = os.path.join(folder, "vae.net"), os.path.join(folder, "weights")
    with open(net, "w", encoding="utf-8") as file:
        file.write(NETWORK)
    said = subprocess.run([prony, "train", net, folder, "--epochs", str(EPOCHS), "--batch", str(BATCH),
                           "--out", weights, *flags], capture_output=True, text=True, check=False)
    found = re.search(r"^test loss ([0-9.]+)", said.stdout, re.MULTILINE)
    if not found:
        raise RuntimeError(said.stdout + said.stderr)
    return float(found[1]), read_safetensors(weights)


def take(part, weights, name):
    """prony's weights, which are [in][out], into PyTorch's layers."""
    with torch.no_grad():
        for layer, dense in ((part[0], "dense1"), (part[2], "dense2")):
            layer.weight.copy_(weights[f"{name}.{dense}.weight"].t())
            layer.bias.copy_(weights[f"{name}.{dense}.bias"])


def measure(vae, rows, draws=20):
    with torch.no_grad():
        return sum(vae_pytorch.negative_elbo(*vae, rows).item() for _ in range(draws)) / draws


def report(name, found, expected, most):
    """True when they are that near each other."""
    off = abs(found - expected) / expected
    print(f"{'ok  ' if off <= most else 'FAIL'} pytorch.{name} ({found:.3f} against {expected:.3f})")
    return off <= most


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    train, test = digits()
    with tempfile.TemporaryDirectory() as folder:
        write_folder(folder, train, test)
        shown, weights = train_prony(sys.argv[1], sys.argv[2:], folder)
    train, test = train / 16, test / 16
    ours, theirs = (vae_pytorch.make(PIXELS, HIDDEN, CODE) for _ in range(2))
    take(ours[0], weights, "encoder")
    take(ours[1], weights, "decoder")
    vae_pytorch.learn(*theirs, train, EPOCHS, BATCH, RATE)
    agree = report("vae_loss_is_the_negative_elbo", shown, measure(ours, test), 0.02)
    agree = report("vae_learns_as_pytorch_does", shown, measure(theirs, test), 0.05) and agree
    sys.exit(not agree)


main()
