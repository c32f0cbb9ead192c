"""compare.py LIBPRONY: the same training, step by step, by prony and by PyTorch.

Each row of NETWORKS is a network in prony's text and the same function written with PyTorch's
operators; each row of OPTIMISERS an optimiser in both, each of SCHEDULES a schedule of its rate.
Networks meet every optimiser; those marked `once` are large and meet one, and the rest (schedules,
clipping) do not depend on the network and meet one. prony writes its starting weights, PyTorch
reads them, and both learn from the same 20 batches. The loss of every step and all weights and
statistics at the end must agree to 1e-4, relative to the largest element. PyTorch runs in double
precision, so that what differs is prony's. Weights keep prony's layout (dense [in][out]); the
operators are given them transposed.

One line per backend, network and optimiser: "ok   pytorch.ref_small_sgd" or "FAIL …".
"""

import os
import sys
import tempfile
import typing

import torch
import torch.nn.functional as F

from library import Prony, open_library, relative

STEPS = 20
BACKENDS = ("ref", "simd")
TOLERANCE = 1e-4


def zoo(name):
    """A network of the zoo, without its optimiser."""
    with open(f"src/nn/zoo/{name}.net", encoding="utf-8") as file:
        return "".join(line for line in file if not line.startswith("optimiser"))


def dense(w, name, x):
    return x @ w[name + ".weight"] + w[name + ".bias"]


def small(w, x):
    for i in range(1, 5):
        x = torch.sigmoid(dense(w, f"dense{i}", x))
    return x


def mlp(w, x):
    return dense(w, "dense3", torch.tanh(dense(w, "dense2", torch.relu(dense(w, "dense1", x)))))


def lstm(w, x):
    units = w["lstm1.state_weight"].shape[0]
    zero = torch.zeros(1, x.shape[0], units, dtype=x.dtype)
    weights = [w["lstm1.input_weight"].t(), w["lstm1.state_weight"].t(),
               w["lstm1.input_bias"], w["lstm1.state_bias"]]
    y = torch.lstm(x, (zero, zero), weights, True, 1, 0.0, True, False, True)[0]
    return dense(w, "dense1", y[:, -1])


def recurrent(run, name):
    """PyTorch's rnn_tanh, rnn_relu or gru, as `name` of the network, and a dense layer."""
    def forward(w, x):
        zero = torch.zeros(1, x.shape[0], w[name + ".state_weight"].shape[0], dtype=x.dtype)
        weights = [w[name + ".input_weight"].t(), w[name + ".state_weight"].t(),
                   w[name + ".input_bias"], w[name + ".state_bias"]]
        y = run(x, zero, weights, True, 1, 0.0, True, False, True)[0]
        return dense(w, "dense1", y[:, -1])
    return forward


def batch_norm(w, x):
    y = F.batch_norm(x @ w["dense1.weight"], w["batch_norm1.mean"], w["batch_norm1.variance"],
                     w["batch_norm1.scale"], w["batch_norm1.shift"], training=True)
    return dense(w, "dense2", torch.relu(y))


def conv(w, name, x, **sizes):
    return F.conv2d(x, w[name + ".weight"], w.get(name + ".bias"), **sizes)


def lenet(w, x):
    x = F.max_pool2d(torch.relu(conv(w, "conv1", x, padding=2)), 2)
    x = F.max_pool2d(torch.relu(conv(w, "conv2", x)), 2).flatten(1)
    x = torch.relu(dense(w, "dense2", torch.relu(dense(w, "dense1", x))))
    return dense(w, "dense3", x)


def image(w, x):
    x = conv(w, "conv1", x, stride=(2, 1), padding=(1, 2), dilation=(2, 3), groups=2)
    x = F.batch_norm(x, w["batch_norm1.mean"], w["batch_norm1.variance"],
                     w["batch_norm1.scale"], w["batch_norm1.shift"], training=True)
    x, places = F.max_pool2d(torch.tanh(x), 2, return_indices=True)
    x = F.local_response_norm(conv(w, "conv2", x), 3, 0.5, 0.6, 2)
    x = F.max_unpool2d(x, places, 2, output_size=(6, 10))
    x = F.conv_transpose2d(x, w["conv_transpose1.weight"], w["conv_transpose1.bias"], (2, 3),
                           (1, 0), (1, 2), 2, (1, 2))
    x = F.max_pool2d(F.local_response_norm(x, 4, 0.2), (3, 2), (2, 1), 1)
    x = F.avg_pool2d(x, 3, 2, 1)
    x = F.avg_pool2d(x, (2, 3), 1, 1, count_include_pad=False)
    return dense(w, "dense1", x.mean((2, 3)) + x.amax((2, 3)))


def ceil(w, x):
    """Pooling that rounds up, and a weight for each channel."""
    x = F.conv2d(x, w["x.weight"], w["x.bias"])
    gate = torch.sigmoid(dense(w, "dense1", x.mean((2, 3))))
    x = F.max_pool2d(x * gate[:, :, None, None], 3, 2, ceil_mode=True)
    x = F.avg_pool2d(x, (2, 3), (2, 2), (1, 1), ceil_mode=True)
    x = F.avg_pool2d(x, 2, 2, ceil_mode=True, count_include_pad=False)
    return dense(w, "dense2", x.flatten(1))


def layer_norm(w, name, x):
    return F.layer_norm(x, x.shape[-1:], w[name + ".scale"], w[name + ".shift"])


def transformer(w, x):
    """Two heads over [batch, time, 8], causal; then the usual two dense layers. A key has no bias:
    softmax would not see it, and its gradient would be rounding errors."""
    def heads(y):
        return y.reshape(x.shape[0], x.shape[1], 2, 4).transpose(1, 2)

    x = w["token.weight"][x.long()] + w["place.weight"]
    normal = layer_norm(w, "before", x)
    key = heads(normal @ w["key.weight"])
    scores = heads(dense(w, "query", normal)) @ key.transpose(2, 3) / 2
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    chances = torch.softmax(scores.masked_fill(hidden, float("-inf")), -1)
    seen = chances @ heads(dense(w, "value", normal))
    x = x + dense(w, "mixed", seen.transpose(1, 2).reshape(x.shape))
    x = x + dense(w, "down", F.gelu(dense(w, "up", layer_norm(w, "after", x))))
    return dense(w, "logits", x)


def shapes(w, x):
    y = dense(w, "dense1", x)
    y = torch.cat((F.leaky_relu(y[:, 2:6], 0.1), F.elu(y[:, :3]), F.softplus(x)), 1)
    y = y * torch.softmax(dense(w, "dense2", y), -1)
    return torch.cat((y.sum(1), y.mean(1), y.amax(1)), 1)


def quotients(w, x):
    y = dense(w, "a", x)
    return dense(w, "dense2", F.hardtanh(y, -0.2, 0.3) / F.softplus(y))


class Network(typing.NamedTuple):
    text: str             # prony's
    sample: tuple         # the shape of one
    classes: int          # 0: it learns numbers
    forward: typing.Callable  # (weights, x): PyTorch's
    tokens: int = 0       # > 0: the inputs are whole numbers below that
    places: tuple = ()    # where it says a class; (): one a sample
    once: str = ""        # the only optimiser it meets; "": all of them


NETWORKS = {
    "small": Network(zoo("small"), (4,), 0, small),
    "mlp": Network("""input 6
        dense 16
        relu
        dense 12
        tanh
        dense 3
        loss cross_entropy""", (6,), 3, mlp),
    "lstm": Network("""input 7x5
        lstm 8 output=last
        dense 3
        loss cross_entropy""", (7, 5), 3, lstm),
    "zoo_lstm": Network(zoo("lstm"), (32, 64), 10, lstm, once="momentum"),
    "rnn": Network("""input 7x5
        rnn 8 output=last
        dense 3
        loss cross_entropy""", (7, 5), 3, recurrent(torch.rnn_tanh, "rnn1")),
    "rnn_relu": Network("""input 7x5
        rnn 8 output=last function=relu
        dense 3
        loss cross_entropy""", (7, 5), 3, recurrent(torch.rnn_relu, "rnn1")),
    "gru": Network("""input 7x5
        gru 8 output=last
        dense 3
        loss cross_entropy""", (7, 5), 3, recurrent(torch.gru, "gru1")),
    "batch_norm": Network("""input 6
        dense 10 bias=0
        batch_norm
        relu
        dense 3
        loss cross_entropy""", (6,), 3, batch_norm),
    "lenet": Network(zoo("lenet"), (1, 28, 28), 10, lenet),
    "image": Network("""input 4x13x9
        conv 6 3x2 stride=2x1 pad=1x2 dilation=2x3 groups=2 bias=0
        batch_norm
        tanh
        found = max_pool 2
        conv 6 1
        lrn 3 alpha=0.5 beta=0.6 k=2
        max_unpool < lrn1, found
        conv_transpose 8 3x4 stride=2x3 pad=1x0 output_pad=1x2 dilation=1x2 groups=2
        lrn 4 alpha=0.2
        max_pool 3x2 stride=2x1 pad=1
        average_pool 3 stride=2 pad=1
        last = average_pool 2x3 stride=1 pad=1 count_pad=0
        mean = global_average_pool
        most = global_max_pool < last
        add < mean, most
        dense 3
        loss cross_entropy""", (4, 13, 9), 3, image),
    "ceil": Network("""input 2x9x12
        x = conv 4 2
        global_average_pool
        dense 4
        sigmoid
        gate = reshape 4x1x1
        multiply < x, gate
        max_pool 3 stride=2 ceil=1
        average_pool 2x3 stride=2 pad=1 ceil=1
        average_pool 2 count_pad=0 ceil=1
        flatten
        dense 3
        loss cross_entropy""", (2, 9, 12), 3, ceil, once="sgd"),
    "transformer": Network("""input 6 tokens=11
        token = embedding 8
        place = position
        before = layer_norm
        query = dense 8
        reshape 6x2x4
        q = transpose 2,1,3
        key = dense 8 bias=0 < before
        reshape 6x2x4
        k = transpose 2,1,3
        value = dense 8 < before
        reshape 6x2x4
        v = transpose 2,1,3
        matmul transpose=second scale=0.5 < q, k
        chances = softmax causal=1
        matmul < chances, v
        transpose 2,1,3
        reshape 6x8
        mixed = dense 8
        seen = add < place, mixed
        after = layer_norm
        up = dense 16
        gelu
        down = dense 8
        add < seen, down
        logits = dense 11
        loss cross_entropy""", (6,), 11, transformer, tokens=11, places=(6,)),
    "shapes": Network("""input 7x5
        dense 5
        slice 4 from=2
        low = leaky_relu 0.1
        slice 3 < dense1
        elu
        softplus < input
        all = concat < low, elu1, softplus1
        dense 5
        softmax
        weighed = multiply < all, softmax1
        reduce sum axis=1
        reduce mean axis=1 < weighed
        reduce max axis=1 < weighed
        concat < reduce1, reduce2, reduce3
        loss mse""", (7, 5), 0, shapes),
    "quotients": Network("""input 6
        a = dense 5
        clip -0.2 0.3
        softplus < a
        divide < clip1, softplus1
        dense 3
        loss mse""", (6,), 0, quotients, once="sgd"),
}

# name: (prony's line, PyTorch's optimiser)
OPTIMISERS = {
    "sgd": ("sgd rate=0.1", lambda p: torch.optim.SGD(p, 0.1)),
    "decay": ("sgd rate=0.1 decay=0.02", lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.02)),
    "momentum": ("momentum rate=0.05 momentum=0.8",
                 lambda p: torch.optim.SGD(p, 0.05, momentum=0.8)),
    "nesterov": ("nesterov rate=0.05 momentum=0.8",
                 lambda p: torch.optim.SGD(p, 0.05, momentum=0.8, nesterov=True)),
    "adagrad": ("adagrad rate=0.05", lambda p: torch.optim.Adagrad(p, 0.05)),
    "rmsprop": ("rmsprop rate=0.003 smoothing=0.95",
                lambda p: torch.optim.RMSprop(p, 0.003, alpha=0.95)),
    "adam": ("adam rate=0.01 beta1=0.8", lambda p: torch.optim.Adam(p, 0.01, (0.8, 0.999))),
    "adamw": ("adamw rate=0.01 decay=0.1", lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1)),
    "rprop": ("rprop rate=0.0003", lambda p: torch.optim.Rprop(p, 0.0003)),
}

CLIP = 0.3  # of the norm of all gradients together; the networks below have more

# name: (prony's line, the factor of the rate by PyTorch's scheduler)
SCHEDULES = {
    "step": ("step period=6 factor=0.5", lambda o: torch.optim.lr_scheduler.StepLR(o, 6, 0.5)),
    "cosine": (f"cosine period={STEPS} least=0.1",
               lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(
                   o, STEPS, o.defaults["lr"] * 0.1)),
    "warmup": ("constant warmup=8",
               lambda o: torch.optim.lr_scheduler.LinearLR(o, 1 / 8, 1, 7)),
}


def make_batches(network, outputs):
    """Another number of rows every third step: prony has a program for each."""
    generator = torch.Generator().manual_seed(1)
    for step in range(STEPS):
        rows = 5 if step % 3 == 2 else 16
        x = (torch.randint(network.tokens, (rows, *network.sample), generator=generator).float()
             if network.tokens else torch.randn(rows, *network.sample, generator=generator))
        target = (torch.randint(network.classes, (rows, *network.places), generator=generator,
                                dtype=torch.int32)
                  if network.classes else torch.rand(rows, outputs, generator=generator))
        yield x, target


def is_learnt(name):
    """Statistics are moved by the forward pass, all else by the optimiser."""
    return not name.endswith((".mean", ".variance"))


def loss_of(network, y, target):
    if network.classes:
        return F.cross_entropy(y.flatten(0, -2), target.long().flatten())
    return F.mse_loss(y, target.double())


def compare(library, backend, network, optimiser, path, schedule=None, clip=0):
    """What differs, a line each."""
    line, make_optimiser = OPTIMISERS[optimiser]
    text = f"{network.text}\noptimiser {line} clip={clip}\n"
    if schedule:
        text += f"schedule {SCHEDULES[schedule][0]}\n"
    prony = Prony(library, backend, text, network.classes)
    w = prony.weights(path)
    learnt = [w[name].requires_grad_() for name in w if is_learnt(name)]
    theirs = make_optimiser(learnt)
    scheduler = SCHEDULES[schedule][1](theirs) if schedule else None
    wrong = []
    for step, (x, target) in enumerate(make_batches(network, prony.outputs())):
        ours = prony.train(x, target)
        theirs.zero_grad()
        loss = loss_of(network, network.forward(w, x.double()), target)
        loss.backward()
        if clip and torch.nn.utils.clip_grad_norm_(learnt, clip) <= clip:
            wrong.append(f"step {step + 1}: nothing to clip")
        theirs.step()
        if scheduler:
            scheduler.step()
        if not abs(ours - loss.item()) <= TOLERANCE * abs(loss.item()):
            wrong.append(f"loss of step {step + 1}: found {ours:.9g}, expected {loss.item():.9g}")
    for name, found in prony.weights(path).items():
        difference = relative(found, w[name].detach())
        if not difference <= TOLERANCE:
            wrong.append(f"{name}: differs by {difference:.3g}, expected at most {TOLERANCE}")
    prony.close()
    return wrong


def cases():
    """(name, network, optimiser, schedule, clip) of every comparison."""
    for name, network in NETWORKS.items():
        for optimiser in OPTIMISERS:
            if network.once in ("", optimiser):
                yield f"{name}_{optimiser}", network, optimiser, None, 0
    for schedule in SCHEDULES:
        yield f"mlp_{schedule}", NETWORKS["mlp"], "momentum", schedule, 0
    yield "mlp_clip", NETWORKS["mlp"], "sgd", None, CLIP
    yield "transformer_clip", NETWORKS["transformer"], "adam", None, CLIP


def run_cases(library, backend, path):
    """True when all agree."""
    agree = True
    for name, network, optimiser, schedule, clip in cases():
        try:
            wrong = compare(library, backend, network, optimiser, path, schedule, clip)
        except (RuntimeError, KeyError) as problem:
            wrong = [repr(problem)]
        for line in wrong:
            print(line)
        print(f"{'FAIL' if wrong else 'ok  '} pytorch.{backend}_{name}")
        agree = agree and not wrong
    return agree


def main():
    torch.set_num_threads(1)
    library = open_library(sys.argv[1])
    agree = True
    with tempfile.TemporaryDirectory() as folder:
        for backend in BACKENDS:
            try:
                Prony(library, backend, "input 1\ndense 1\n", 0).close()
            except RuntimeError as problem:
                print(f"skip pytorch.{backend}: {problem}")
                continue
            agree = run_cases(library, backend, os.path.join(folder, "weights")) and agree
    sys.exit(not agree)


main()
