"""prony's layers as PyTorch modules: what layers.def names, in the words of torch.nn."""

from prony_peer import Unsupported


def whole(values):
    """An argument that is a list (5x5), for torch: one number or a tuple."""
    return int(values[0]) if len(values) == 1 else tuple(map(int, values))


def functions(torch):
    """Kinds that are one expression: of the layer's arguments and its inputs."""

    def causal(scores):
        ahead = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        return scores.masked_fill(ahead, float("-inf"))

    def reduce(l, x):
        axis = int(l["axis"])
        x, axis = (x, axis) if axis else (x.flatten(1), 1)
        y = [torch.sum, torch.mean, torch.amax][int(l["function"])](x, dim=axis)
        return y if y.dim() > 1 else y[:, None]

    def matmul(l, a, b):
        a = a.transpose(-1, -2) if l["transpose"] == 1 else a
        b = b.transpose(-1, -2) if l["transpose"] == 2 else b
        return torch.matmul(a, b) * l["scale"]

    def gather(l, table, tokens):
        return table.gather(1, tokens[..., None].expand(-1, -1, table.shape[2]))

    return {
        "global_average_pool": lambda l, x: x.mean((2, 3)),
        "global_max_pool": lambda l, x: x.amax((2, 3)),
        "add": lambda l, a, b: a + b,
        "multiply": lambda l, a, b: a * b,
        "divide": lambda l, a, b: a / b,
        "erf": lambda l, x: torch.erf(x),
        "sqrt": lambda l, x: torch.sqrt(x),
        "reciprocal": lambda l, x: torch.reciprocal(x),
        "exp": lambda l, x: torch.exp(x),
        "log": lambda l, x: torch.log(x),
        "softmax": lambda l, x: (causal(x) if l["causal"] else x).softmax(-1),
        "reshape": lambda l, x: x.reshape(len(x), *map(int, l["sizes"])),
        "transpose": lambda l, x: x.permute(0, *map(int, l["axes"])),
        "slice": lambda l, x: x.narrow(int(l["axis"]), int(l["from"]), int(l["size"])),
        "concat": lambda l, *parts: torch.cat(parts, dim=int(l["axis"])),
        "matmul": matmul,
        "gather": gather,
        "reduce": reduce,
    }


def activations(nn):
    return {
        "sigmoid": lambda l: nn.Sigmoid(),
        "tanh": lambda l: nn.Tanh(),
        "relu": lambda l: nn.ReLU(),
        "leaky_relu": lambda l: nn.LeakyReLU(l["slope"]),
        "elu": lambda l: nn.ELU(l["alpha"]),
        "gelu": lambda l: nn.GELU(),
        "softplus": lambda l: nn.Softplus(),
        "clip": lambda l: nn.Hardtanh(bound(l["low"]), bound(l["high"])),
        "dropout": lambda l: nn.Dropout(l["rate"]),
        "flatten": lambda l: nn.Flatten(),
        "lrn": lambda l: nn.LocalResponseNorm(int(l["size"]), l["alpha"], l["beta"], l["k"]),
        "max_pool": lambda l: nn.MaxPool2d(*window(l)),
        "average_pool": lambda l: nn.AvgPool2d(*window(l), count_include_pad=bool(l["count_pad"])),
    }


def bound(value):
    """Infinite where there is none."""
    return value if abs(value) < 3.4e38 else value * float("inf")


def window(l):
    size, stride = whole(l["window"]), whole(l["stride"])
    return size, stride or size, whole(l["pad"])


class Builder:
    """Makes the module; `places` then says which of its tensors holds which parameter, and whether
    it is turned. `turned`: dense weights are [out, in], as torch.nn.Linear has them."""

    def __init__(self, torch, work, turned):
        self.torch, self.nn, self.weights = torch, torch.nn, work.weights
        self.turned, self.places = turned, {}
        self.activations, self.functions = activations(torch.nn), functions(torch)
        layers = self.layers = [self.layer(l) for l in work.layers]
        chain = all(l["inputs"] == [i - 1] for i, l in enumerate(work.layers))
        inputs = [l["inputs"] for l in work.layers]
        self.module = self.nn.Sequential(*layers) if chain else self.graph(layers, inputs)

    def graph(self, layers, inputs):
        class Graph(self.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = layers_list

            def forward(self, x):
                values = [x]  # layer i is at i + 1: -1 is the network's input
                del x
                for layer, places, done in zip(self.layers, inputs, spent):
                    values.append(layer(*[values[i + 1] for i in places]))
                    for i in done:  # as a function's variables would be
                        values[i + 1] = None
                return values[-1]

        layers_list = self.nn.ModuleList(layers)
        last = {i: place for place, places in enumerate(inputs) for i in places}
        spent = [[i for i in set(places) if last[i] == place]
                 for place, places in enumerate(inputs)]
        return Graph()

    def layer(self, l):
        kind, nn = l["kind"], self.nn
        if kind in self.activations:
            return self.activations[kind](l)
        if kind in self.functions:
            return self.function(l)
        if not hasattr(self, kind):
            raise Unsupported(f"this peer has no layer {kind}")
        return getattr(self, kind)(l)

    def function(self, l):
        class Function(self.nn.Module):
            def forward(self, *inputs):
                return compute(l, *inputs)

        compute = self.functions[l["kind"]]
        return Function()

    def shape(self, l, part):
        return self.weights[f"{l['name']}.{part}"][0]

    def keep(self, l, turned=False, **tensors):
        for part, tensor in tensors.items():
            if tensor is not None:
                self.places[f"{l['name']}.{part}"] = (tensor, turned and tensor.dim() == 2)

    def dense(self, l):
        inputs, outputs = self.shape(l, "weight")
        if self.turned:
            module = self.nn.Linear(inputs, outputs, bias=bool(l["bias"]))
        else:
            module = self.plain_dense(inputs, outputs, bool(l["bias"]))
        self.keep(l, turned=self.turned, weight=module.weight, bias=module.bias)
        return module

    def plain_dense(self, inputs, outputs, has_bias):
        torch, nn = self.torch, self.nn

        class Dense(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.empty(inputs, outputs))
                self.bias = nn.Parameter(torch.empty(outputs)) if has_bias else None

            def forward(self, x):
                if self.bias is None or x.dim() != 2:
                    y = torch.matmul(x, self.weight)
                    return y if self.bias is None else y + self.bias
                return torch.addmm(self.bias, x, self.weight)

        return Dense()

    def sliding(self, l, module, **more):
        module = module(
            kernel_size=whole(l["kernel"]), stride=whole(l["stride"]), padding=whole(l["pad"]),
            dilation=whole(l["dilation"]), groups=int(l["groups"]), bias=bool(l["bias"]), **more)
        self.keep(l, weight=module.weight, bias=module.bias)
        return module

    def conv(self, l):
        outputs, inputs = self.shape(l, "weight")[:2]
        inputs *= int(l["groups"])
        return self.sliding(l, self.nn.Conv2d, in_channels=inputs, out_channels=outputs)

    def conv_transpose(self, l):
        inputs, outputs = self.shape(l, "weight")[0], int(l["channels"])
        return self.sliding(l, self.nn.ConvTranspose2d, in_channels=inputs, out_channels=outputs,
                            output_padding=whole(l["output_pad"]))

    def recurrent(self, l, kind, **more):
        class Recurrent(self.nn.Module):
            def __init__(self):
                super().__init__()
                self.run = run

            def forward(self, x):
                y = self.run(x)[0]
                return y[:, -1] if last else y

        inputs, units, last = self.shape(l, "input_weight")[0], int(l["units"]), bool(l["output"])
        run = kind(inputs, units, batch_first=True, **more)
        self.keep(l, turned=True, input_weight=run.weight_ih_l0, state_weight=run.weight_hh_l0,
                  input_bias=run.bias_ih_l0, state_bias=run.bias_hh_l0)
        return Recurrent()

    def lstm(self, l):
        return self.recurrent(l, self.nn.LSTM)

    def gru(self, l):
        return self.recurrent(l, self.nn.GRU)

    def rnn(self, l):
        return self.recurrent(l, self.nn.RNN, nonlinearity=["tanh", "relu"][int(l["function"])])

    def batch_norm(self, l):
        class BatchNorm(self.nn.modules.batchnorm._BatchNorm):
            def _check_input_dim(self, x):
                pass  # of any rank, the channels second

        module = BatchNorm(self.shape(l, "scale")[0], l["epsilon"], l["momentum"])
        self.keep(l, scale=module.weight, shift=module.bias, mean=module.running_mean,
                  variance=module.running_var)
        return module

    def layer_norm(self, l):
        module = self.nn.LayerNorm(self.shape(l, "scale"), l["epsilon"])
        self.keep(l, scale=module.weight, shift=module.bias)
        return module

    def embedding(self, l):
        module = self.nn.Embedding(*self.shape(l, "weight"))
        self.keep(l, weight=module.weight)
        return module

    def position(self, l):
        class Position(self.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = weight

            def forward(self, x):
                return x + self.weight

        weight = self.nn.Parameter(self.torch.empty(self.shape(l, "weight")))
        self.keep(l, weight=weight)
        return Position()
