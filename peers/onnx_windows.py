"""Operators of ONNX with windows, with other sizes of images, and with a state: see onnx_ops.py."""

from onnx_ops import operator


def window_sides(at, kernel, strides, dilations):
    """([before …], [behind …]): what is padded on either side of each dimension."""
    how, spatial = at.get("auto_pad", "NOTSET"), at.shape(0)[2:]
    if how in ("SAME_UPPER", "SAME_LOWER"):
        total = [max(0, (-(-size // stride) - 1) * stride + (k - 1) * dilation + 1 - size)
                 for size, k, stride, dilation in zip(spatial, kernel, strides, dilations)]
        less, more = [t // 2 for t in total], [t - t // 2 for t in total]
        return (less, more) if how == "SAME_UPPER" else (more, less)
    pads = at.get("pads") if how == "NOTSET" else None
    pads = pads or [0] * 2 * len(kernel)
    return pads[: len(kernel)], pads[len(kernel) :]


def flat_sides(before, behind):
    return [size for pair in zip(reversed(before), reversed(behind)) for size in pair]


def by_rank(at, name, count):
    if not 1 <= count <= 3:
        at.refuse(f"its windows have {count} dimensions")
    return getattr(at.torch.nn.functional, f"{name}{count}d")


@operator("Conv")
def conv(at):
    kernel = at.get("kernel_shape") or at.shape(1)[2:]
    strides, dilations = at.get("strides") or [1] * len(kernel), at.get("dilations") or [1] * len(kernel)
    before, behind = window_sides(at, kernel, strides, dilations)
    function, groups, pad = by_rank(at, "conv", len(kernel)), at.get("group", 1), at.torch.nn.functional.pad
    if before == behind:
        return lambda x, w, b=None: function(x, w, b, strides, before, dilations, groups)
    sides = flat_sides(before, behind)
    return lambda x, w, b=None: function(pad(x, sides), w, b, strides, 0, dilations, groups)


@operator("ConvTranspose")
def conv_transpose(at):
    kernel = at.get("kernel_shape") or at.shape(1)[2:]
    rank = len(kernel)
    strides, dilations = at.get("strides") or [1] * rank, at.get("dilations") or [1] * rank
    more, groups = at.get("output_padding") or [0] * rank, at.get("group", 1)
    spatial, sizes, how = at.shape(0)[2:], at.get("output_shape"), at.get("auto_pad", "NOTSET")
    full = [(n - 1) * s + (k - 1) * d + 1 + m for n, s, k, d, m in zip(spatial, strides, kernel, dilations, more)]
    if how.startswith("SAME") and not sizes:
        sizes = [n * s for n, s in zip(spatial, strides)]
    if sizes:
        total = [f - size for f, size in zip(full, sizes[-rank:])]
        small, large = [t // 2 for t in total], [t - t // 2 for t in total]
        before, behind = (large, small) if how == "SAME_LOWER" else (small, large)
    else:
        before, behind = window_sides(at, kernel, strides, dilations)
    function = by_rank(at, "conv_transpose", rank)
    if before == behind and min(before) >= 0:
        return lambda x, w, b=None: function(x, w, b, strides, before, more, groups, dilations)
    cut = tuple([slice(None)] * 2 + [slice(b, f - e) for b, e, f in zip(before, behind, full)])
    if min(before + behind) < 0:
        at.refuse("its output is larger than its windows reach")
    return lambda x, w, b=None: function(x, w, b, strides, 0, more, groups, dilations)[cut]


@operator("MaxPool", "AveragePool")
def pool(at):
    kernel, largest = at.get("kernel_shape"), at.node.op == "MaxPool"
    rank, functions = len(kernel), at.torch.nn.functional
    strides, dilations = at.get("strides") or [1] * rank, at.get("dilations") or [1] * rank
    before, behind = window_sides(at, kernel, strides, dilations)
    ceil, counts = bool(at.get("ceil_mode", 0)), bool(at.get("count_include_pad", 0))
    if any(at.used[1:]):
        at.refuse("its places are used, expected only the first output")
    even = before == behind and all(2 * b <= k for b, k in zip(before, kernel))
    if largest:
        function = by_rank(at, "max_pool", rank)
        if even:
            return lambda x: function(x, kernel, strides, before, dilations, ceil_mode=ceil)
        sides = flat_sides(before, behind)
        return lambda x: function(functions.pad(x, sides, value=float("-inf")), kernel, strides, 0, dilations,
                                  ceil_mode=ceil)
    if dilations != [1] * rank:
        at.refuse("it has gaps in its windows")
    function = by_rank(at, "avg_pool", rank)
    if even:
        return lambda x: function(x, kernel, strides, before, ceil, counts)
    sides = flat_sides(before, behind)
    if counts:
        return lambda x: function(functions.pad(x, sides), kernel, strides, 0, ceil)
    ones = function(functions.pad(at.torch.ones_like(at.tensor(0)[:1, :1]), sides), kernel, strides, 0, ceil)
    return lambda x: function(functions.pad(x, sides), kernel, strides, 0, ceil) / ones


@operator("GlobalAveragePool", "GlobalMaxPool")
def pool_all(at):
    axes = list(range(2, len(at.shape(0))))
    if at.node.op == "GlobalMaxPool":
        return lambda x: x.amax(axes, keepdim=True)
    return lambda x: x.mean(axes, keepdim=True)


@operator("Resize", "Upsample")
def resize(at):
    """To the sizes that ONNX finds, by what PyTorch has: nearest, linear and cubic."""
    shape, first = at.shape(0), 2 if at.node.op == "Resize" and at.opset >= 11 else 1
    scales = at.list(first, "scales")
    sizes = [int(s) for s in at.list(3)] if at.has(3) else None
    uneven = bool(scales) and any(int(size * scale) != size * scale for size, scale in zip(shape, scales))
    if scales:
        sizes = [int(size * scale) for size, scale in zip(shape, scales)]
    if not sizes or len(sizes) != len(shape) or sizes[:2] != shape[:2] or len(shape) > 5:
        at.refuse(f"it makes {sizes} of {shape}, expected the samples and the channels to stay")
    mode = at.get("mode", "nearest")
    usual = "half_pixel" if at.node.op == "Resize" and at.opset >= 11 else "asymmetric"
    place = at.get("coordinate_transformation_mode", usual)
    if mode == "nearest":
        return nearest(at, shape, sizes, place)
    corners = place == "align_corners"
    if corners and uneven or place == "pytorch_half_pixel" and 1 in sizes[2:]:
        at.refuse(f"it makes {sizes} of {shape} by '{place:.40}', which PyTorch has otherwise")
    if place not in ("align_corners", "half_pixel", "pytorch_half_pixel") or at.get("antialias", 0):
        if any(a != b for a, b in zip(sizes, shape)):
            at.refuse(f"it finds places by '{place:.40}', which PyTorch has not for {mode:.20}")
    if mode == "cubic" and at.get("cubic_coeff_a", -0.75) != -0.75:
        at.refuse("its cubic has another coefficient than PyTorch's")
    names = {"linear": {3: "linear", 4: "bilinear", 5: "trilinear"}, "cubic": {4: "bicubic"}}
    name = names.get(mode, {}).get(len(shape)) or at.refuse(f"it resizes by '{mode:.20}'")
    function = at.torch.nn.functional.interpolate
    if uneven:
        return lambda x, *_: function(x, scale_factor=scales[2:], mode=name, align_corners=corners,
                                      recompute_scale_factor=False)
    return lambda x, *_: function(x, sizes[2:], mode=name, align_corners=corners)


def nearest(at, shape, sizes, place):
    """By whole factors as PyTorch does, where both mean the same; else by the places themselves."""
    torch, functions = at.torch, at.torch.nn.functional
    rounding = at.get("nearest_mode", "round_prefer_floor" if at.opset >= 11 else "floor")
    whole = all(new % old == 0 for old, new in zip(shape, sizes))
    middle = place.endswith("half_pixel") and rounding.startswith("round")
    if whole and (middle or place == "asymmetric" and rounding == "floor"):
        return lambda x, *_: functions.interpolate(x, sizes[2:], mode="nearest")
    picks = []
    for axis, (old, new) in enumerate(zip(shape, sizes)):
        if old != new:
            found = [position(i, old, new, place, rounding, at) for i in range(new)]
            picks.append((axis, torch.tensor(found, dtype=torch.int64, device=at.builder.device)))

    def compute(x, *_):
        for axis, places in picks:
            x = torch.index_select(x, axis, places)
        return x

    return compute


def position(i, old, new, place, rounding, at):
    if place == "asymmetric":
        x = i * old / new
    elif place == "align_corners":
        x = i * (old - 1) / (new - 1) if new > 1 else 0
    elif place == "half_pixel" or (place == "pytorch_half_pixel" and new > 1):
        x = (i + 0.5) * old / new - 0.5
    elif place == "pytorch_half_pixel":
        x = 0
    else:
        at.refuse(f"it finds places by '{place:.40}'")
    low = int(x // 1)
    found = {"floor": low, "ceil": low + (x > low), "round_prefer_floor": low + (x - low > 0.5),
             "round_prefer_ceil": low + (x - low >= 0.5)}[rounding]
    return min(max(int(found), 0), old - 1)


@operator("GridSample")
def grid_sample(at):
    function, corners = at.torch.nn.functional.grid_sample, bool(at.get("align_corners", 0))
    modes = {"linear": "bilinear", "cubic": "bicubic"}
    mode, outside = at.get("mode", "bilinear"), at.get("padding_mode", "zeros")
    return lambda x, grid: function(x, grid, modes.get(mode, mode), outside, corners)


GATES = {"LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2], "RNN": [0]}  # PyTorch's, among those of ONNX
USUAL = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


def recurrent_weights(at, directions, units):
    """Of each direction w, r and, where there is a bias, both: PyTorch's order of gates."""
    torch, order = at.torch, GATES[at.node.op]
    found = []

    def ordered(x):
        return torch.cat([x[gate * units : (gate + 1) * units] for gate in order]).contiguous()

    for d in range(directions):
        found += [ordered(at.known(1)[d]), ordered(at.known(2)[d])]
        if at.has(3):
            bias = at.known(3)[d]
            found += [ordered(bias[: len(bias) // 2]), ordered(bias[len(bias) // 2 :])]
    return found


@operator("LSTM", "GRU", "RNN")
def recurrent(at):
    kind, units, way = at.node.op, at.get("hidden_size"), at.get("direction", "forward")
    directions, torch = 2 if way == "bidirectional" else 1, at.torch
    times, samples = at.shape(0)[:2]
    plain = not at.get("clip") and not at.get("layout", 0) and not at.get("input_forget", 0)
    plain = plain and (not at.node.attributes.get("activations") or kind_usual(at, directions))
    if not plain or at.has(7) or (at.has(4) and any(n != times for n in at.list(4))):
        at.refuse("it has a clip, lengths, peepholes, a layout or activations that PyTorch has not")
    if kind == "GRU" and not at.get("linear_before_reset", 0):
        at.refuse("it resets before the product, which PyTorch has not")
    weights = recurrent_weights(at, directions, units)
    run = {"LSTM": torch._VF.lstm, "GRU": torch._VF.gru, "RNN": torch._VF.rnn_tanh}[kind]
    zeros = torch.zeros(directions, samples, units, dtype=at.tensor(0).dtype, device=at.builder.device)
    back, bias = way == "reverse", at.has(3)

    def compute(x, w, r, b=None, lengths=None, h=None, c=None, p=None):
        h = zeros if h is None else h
        state = (h, zeros if c is None else c) if kind == "LSTM" else h
        found = run(x.flip(0) if back else x, state, weights, bias, 1, 0.0, False, directions == 2, False)
        y = found[0].reshape(times, samples, directions, units).transpose(1, 2)
        return (y.flip(0) if back else y, *found[1:])

    return compute


def kind_usual(at, directions):
    """Are its activations the usual ones?"""
    from onnx_graph import text

    return [text(v) for v in at.node.attributes["activations"].get(9, [])] == USUAL[at.node.op] * directions
