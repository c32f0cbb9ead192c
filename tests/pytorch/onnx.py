"""onnx.py FOLDER: small networks of PyTorch as its exporter writes them (opset 9, 13, 17), each with rows
of inputs and what PyTorch says of them: FOLDER/NAME_OPSET.onnx, NAME.csv, NAME.out. Prints the names."""
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional

ROWS = 3


class Residual(nn.Module):
    """Batch-norm behind convolutions, with and without a bias; a softmax at the end."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 7, stride=2, padding=3)
        self.left = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
                                  nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8))
        self.last = nn.Linear(8, 5)

    def forward(self, x):
        x = functional.max_pool2d(self.first(x), 3, 2, 1)
        x = functional.adaptive_avg_pool2d(torch.relu(self.left(x) + x), 1)
        return torch.softmax(self.last(torch.flatten(x, 1)), 1)


class Attention(nn.Module):
    """Tokens, heads by view and transpose, layer-norm and gelu, which old opsets have in pieces."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.table = nn.Embedding(11, width)
        self.place = nn.Parameter(torch.randn(6, width))
        self.norm = nn.LayerNorm(width)
        self.query, self.key, self.value, self.mix = (nn.Linear(width, width) for _ in range(4))
        self.wide, self.narrow = nn.Linear(width, 32), nn.Linear(32, width)

    def split(self, x):
        batch, time, width = x.shape
        return x.view(batch, time, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, tokens):
        x = self.table(tokens) + self.place
        y = self.norm(x)
        query, key, value = (self.split(part(y)) for part in (self.query, self.key, self.value))
        y = torch.softmax(query @ key.transpose(-2, -1) / 8 ** 0.5, -1) @ value
        batch, heads, time, width = y.shape
        x = x + self.mix(y.transpose(1, 2).reshape(batch, time, heads * width))
        return x + self.narrow(functional.gelu(self.wide(self.norm(x))))


class Encoder(nn.Module):
    """PyTorch's own layers, whose heads lie beside the samples and whose times beside both."""

    def __init__(self, width=8):
        super().__init__()
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 2, 12, activation=kind)
                                    for kind in ('gelu', 'relu'))
        self.register_buffer('mask', nn.Transformer.generate_square_subsequent_mask(4))

    def forward(self, x):
        x = x.transpose(0, 1)
        for layer in self.layers:
            x = layer(x, self.mask)
        return x.transpose(0, 1)


class Rows(nn.Module):
    """A dense layer over all samples' times as rows."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / inputs ** 0.5)
        self.bias = nn.Parameter(torch.randn(outputs))

    def forward(self, x):
        size = x.size()[:-1] + (self.bias.size(0),)
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(size)


class Decoder(nn.Module):
    """As GPT-2 is written: rows, a mask that is chosen by, gelu by tanh and by erf, norms by hand."""

    def __init__(self, width=8, time=6):
        super().__init__()
        self.table, self.place = nn.Embedding(11, width), nn.Embedding(time, width)
        self.inward, self.outward = Rows(width, 3 * width), Rows(width, width)
        self.wide, self.narrow = Rows(width, 12), Rows(12, width)
        self.scale = nn.Parameter(torch.rand(width) + 0.5)
        mask = torch.tril(torch.ones(time, time, dtype=torch.bool)).view(1, 1, time, time)
        self.register_buffer('mask', mask)

    def norm(self, x):
        return self.scale * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    def heads(self, x):
        return x.view(x.size()[:-1] + (2, x.size(-1) // 2)).permute(0, 2, 1, 3)

    def forward(self, tokens):
        x = self.table(tokens) + self.place(torch.arange(tokens.size(-1)))
        query, key, value = (self.heads(part) for part in self.inward(self.norm(x)).split(x.size(-1), 2))
        scores = query @ key.transpose(-1, -2) / value.size(-1) ** 0.5
        scores = torch.where(self.mask[:, :, :scores.size(-2), :scores.size(-1)], scores, torch.tensor(-1e4))
        y = (torch.softmax(scores, -1) @ value).permute(0, 2, 1, 3).contiguous()
        x = x + self.outward(y.view(y.size()[:-2] + (-1,)))
        y = self.wide(self.norm(x))
        by_tanh = 0.5 * y * (1 + torch.tanh(0.7978845608 * (y + 0.044715 * torch.pow(y, 3))))
        by_erf = y * 0.5 * (1 + torch.erf(y / 2 ** 0.5))
        return self.narrow(by_tanh + by_erf)


class Recurrent(nn.Module):
    """Two layers over a sequence, of which the last step counts."""

    def __init__(self, kind):
        super().__init__()
        self.layers = kind(5, 7, num_layers=2, batch_first=True)
        self.last = nn.Linear(7, 3)

    def forward(self, x):
        return self.last(self.layers(x)[0][:, -1])


class Both(nn.Module):
    """Both directions, of two layers; what the last step leaves behind, cells too."""

    def __init__(self, kind):
        super().__init__()
        self.layers = kind(5, 4, num_layers=2, batch_first=True, bidirectional=True)
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        every, states = self.layers(x)
        states = torch.cat(states, 0) if isinstance(states, tuple) else states
        return self.last(every).flatten(1), states.transpose(0, 1).flatten(1)


class Join(nn.Module):
    """What a module gives, side by side."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return torch.cat(self.inner(x), 1)


class Begun(nn.Module):
    """Two inputs: a sequence, and the state to begin with."""

    def __init__(self):
        super().__init__()
        self.layer, self.last = nn.LSTM(5, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x, state):
        state = state.unsqueeze(0)
        return self.last(self.layer(x, (state, state * 2))[0])


class Volume(nn.Module):
    """Convolution and pooling of three dimensions, strides and pads that differ."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv3d(2, 4, (3, 2, 3), stride=(2, 1, 2), padding=(1, 0, 2), dilation=(1, 2, 1))
        self.up = nn.ConvTranspose3d(4, 3, (2, 3, 4), stride=(3, 2, 1), padding=(0, 1, 2),
                                     output_padding=(2, 1, 0))

    def forward(self, x):
        x = functional.max_pool3d(torch.relu(self.down(x)), 2, 1)
        return functional.avg_pool3d(self.up(x), (1, 2, 3), (1, 2, 1)).flatten(1)


class Steps(nn.Module):
    """Places taken in steps and backwards; windows that are dilated."""

    def forward(self, x):
        x = functional.max_pool2d(x, (3, 2), stride=(2, 1), padding=1, dilation=(2, 3))
        return torch.cat([x[:, :, ::2, 1::3].flatten(1), x.flip(3)[:, 1].flatten(1)], 1)


class Mobile(nn.Module):
    """A convolution for each channel, activations that are clipped, a mean over the image."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.each = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.BatchNorm2d(8))
        self.last = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        x = functional.relu6(self.each(functional.relu6(self.first(x))))
        return self.last(x).mean([2, 3])


class Excite(nn.Module):
    """A weight for each channel; parts, numbers and signs."""

    def __init__(self):
        super().__init__()
        self.first, self.gate = nn.Conv2d(3, 8, 3), nn.Linear(8, 8)

    def forward(self, x):
        x = self.first(x)
        gate = torch.sigmoid(self.gate(x.mean((2, 3)))).unsqueeze(-1).unsqueeze(-1)
        left, right = (x * gate).chunk(2, 1)
        return torch.cat([left, right * 2 - 1, -left], 1)


class Grow(nn.Module):
    """Images that become larger, by four ways, edges that are mirrored, groups that are normalised."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.Conv2d(2, 4, 3)

    def forward(self, x):
        x = self.norm(self.first(functional.pad(x, (1, 1, 2, 2), mode='reflect')))
        x = functional.interpolate(functional.pixel_shuffle(x, 2), scale_factor=2)
        x = functional.interpolate(self.last(x), size=(9, 13), mode='bilinear', align_corners=True)
        return functional.interpolate(x, scale_factor=1.5, mode='bilinear', align_corners=False)


class Choices(nn.Module):
    """Functions of a few layers, of elements and of rows."""

    def __init__(self):
        super().__init__()
        self.first, self.slope = nn.Linear(5, 6), nn.PReLU(4)

    def forward(self, x):
        x = self.slope(self.first(x))
        parts = [functional.selu(x), functional.celu(x, 0.5), functional.softsign(x),
                 torch.sign(x), functional.normalize(x, dim=2), functional.log_softmax(x, 2),
                 torch.maximum(x, x.amin(2, keepdim=True)),
                 torch.minimum(x, x.mean(1, keepdim=True)), x.cumsum(1), torch.tril(x)]
        rows = [x.logsumexp(2), x.norm(dim=2), x.norm(p=1, dim=2), x.prod(2)]
        return torch.cat([torch.cat(parts, 2).flatten(1), torch.cat(rows, 1)], 1)


def cases():
    image = torch.randn(ROWS, 3, 16, 16)
    sequence = torch.randn(ROWS, 4, 5)
    yield 'residual', Residual(), torch.randn(ROWS, 3, 32, 32)
    yield 'attention', Attention(), torch.randint(0, 11, (ROWS, 6))
    yield 'encoder', Encoder(), torch.randn(ROWS, 4, 8)
    yield 'decoder', Decoder(), torch.randint(0, 11, (ROWS, 6))
    yield 'lstm', Recurrent(nn.LSTM), sequence
    yield 'gru', Recurrent(nn.GRU), sequence
    yield 'rnn', Recurrent(nn.RNN), sequence
    yield 'mobile', Mobile(), image
    yield 'excite', Excite(), image
    yield 'rows', nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.BatchNorm1d(8), nn.ELU(),
                                nn.Linear(8, 3), nn.Softplus()), torch.randn(ROWS, 4)
    yield 'lstms', Join(Both(nn.LSTM)), sequence
    yield 'grus', Join(Both(nn.GRU)), sequence
    yield 'begun', Begun(), sequence, torch.randn(ROWS, 4)
    yield 'volume', Volume(), torch.randn(ROWS, 2, 6, 7, 8)
    yield 'steps', Steps(), image
    yield 'grow', Grow(), image
    yield 'choices', Choices(), sequence


def write(path, rows, header):
    with open(path, 'w') as file:
        if header:
            file.write(','.join(f'f{i}' for i in range(rows.shape[1])) + '\n')
        for row in rows.tolist():
            file.write(','.join(f'{number:.9g}' for number in row) + '\n')


def main(folder):
    warnings.simplefilter('ignore')
    torch.manual_seed(0)
    for name, model, *inputs in cases():
        model.eval()
        write(f'{folder}/{name}.csv', torch.cat([x.reshape(ROWS, -1) for x in inputs], 1), True)
        write(f'{folder}/{name}.out', model(*inputs).detach().reshape(ROWS, -1), False)
        names = [f'input{i}' for i in range(len(inputs))]
        old = {'steps': (13,), 'decoder': (13, 17), 'grow': (13, 17), 'choices': (14, 17)}  # 9 has less
        for opset in old.get(name, (9, 13, 17)):
            torch.onnx.export(model, tuple(inputs), f'{folder}/{name}_{opset}.onnx',
                              opset_version=opset, input_names=names,
                              dynamic_axes={name: {0: 'batch'} for name in names})
            print(f'{name}_{opset}', flush=True)


main(sys.argv[1])
