"""The operators of ONNX in the functions of PyTorch. Of each, a function of its node (onnx_torch.At: its
attributes, and the inputs that are known) gives the function of tensors that is run. What has windows,
states or other sizes is in onnx_windows.py."""


OPERATORS = {}


def operator(*names):
    def keep(make):
        for name in names:
            OPERATORS[name] = make
        return make

    return keep


def plain(name, choose):
    OPERATORS[name] = lambda at: choose(at.torch)


for _name, _function in {
    "Sigmoid": "sigmoid", "Tanh": "tanh", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Abs": "abs",
    "Neg": "neg", "Floor": "floor", "Ceil": "ceil", "Round": "round", "Erf": "erf", "Sin": "sin",
    "Cos": "cos", "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan", "Sinh": "sinh",
    "Cosh": "cosh", "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh", "Sign": "sign", "Relu": "relu",
    "Reciprocal": "reciprocal", "Not": "logical_not", "IsNaN": "isnan", "Det": "det",
    "MatMul": "matmul",
}.items():
    plain(_name, lambda torch, function=_function: getattr(torch, function))
for _name, _function in {"Softplus": "softplus", "Softsign": "softsign", "HardSwish": "hardswish",
                         "Mish": "mish"}.items():
    plain(_name, lambda torch, function=_function: getattr(torch.nn.functional, function))


@operator("Identity", "Dropout")
def same(at):
    if len(at.used) > 1 and at.used[1]:
        at.refuse("its mask is used, expected only the first output")
    return lambda x, *_: x


def older_axis(at, function):
    """Before opset 7 the second input lies at an axis of the first."""
    if at.opset < 7 and at.get("broadcast", 0) and "axis" in at.node.attributes:
        axis = at.get("axis") % len(at.shape(0))
        behind = len(at.shape(0)) - axis - len(at.shape(1))
        return lambda a, b: function(a, b.reshape(list(b.shape) + [1] * behind))
    return function


@operator("Add", "Sub", "Mul", "And", "Or", "Xor", "Equal", "Greater", "Less", "GreaterOrEqual",
          "LessOrEqual")
def binary(at):
    names = {"And": "logical_and", "Or": "logical_or", "Xor": "logical_xor", "Equal": "eq", "Greater": "gt",
             "Less": "lt", "GreaterOrEqual": "ge", "LessOrEqual": "le"}
    return older_axis(at, getattr(at.torch, names.get(at.node.op, at.node.op.lower())))


@operator("Div")
def divide(at):
    torch = at.torch
    if at.tensor(0).is_floating_point():
        return older_axis(at, torch.div)
    return older_axis(at, lambda a, b: torch.div(a, b, rounding_mode="trunc"))


@operator("Pow")
def power(at):
    torch = at.torch
    if at.stays(1) and at.tensor(1).dim() == 0:
        exponent = at.known(1).item()
        return lambda a, b: torch.pow(a, exponent).to(a.dtype)
    return older_axis(at, lambda a, b: torch.pow(a, b).to(a.dtype))


@operator("Mod")
def modulo(at):
    return at.torch.fmod if at.get("fmod", 0) else at.torch.remainder


@operator("Max", "Min", "Sum", "Mean")
def several(at):
    function = {"Max": at.torch.maximum, "Min": at.torch.minimum}.get(at.node.op, at.torch.add)
    count = len(at.inputs)

    def compute(first, *others):
        for other in others:
            first = function(first, other)
        return first / count if mean else first

    mean = at.node.op == "Mean"
    return compute


@operator("LeakyRelu")
def leaky_relu(at):
    slope, function = at.get("alpha", 0.01), at.torch.nn.functional.leaky_relu
    return lambda x: function(x, slope)


@operator("Elu", "Celu")
def elu(at):
    alpha, function = at.get("alpha", 1.0), getattr(at.torch.nn.functional, at.node.op.lower())
    return lambda x: function(x, alpha)


@operator("Selu")
def selu(at):
    alpha, gamma = at.get("alpha", 1.67326319217681884765625), at.get("gamma", 1.05070102214813232421875)
    functions = at.torch.nn.functional
    if "alpha" not in at.node.attributes and "gamma" not in at.node.attributes:
        return functions.selu
    return lambda x: gamma * functions.elu(x, alpha)


@operator("IsInf")
def is_infinite(at):
    infinities = [float(sign + "inf") for sign, asked in (("-", "detect_negative"), ("", "detect_positive"))
                  if at.get(asked, 1)]
    return lambda x: sum((x == infinity for infinity in infinities), at.torch.zeros_like(x, dtype=at.torch.bool))


@operator("ThresholdedRelu")
def thresholded(at):
    alpha, torch = at.get("alpha", 1.0), at.torch
    return lambda x: torch.where(x > alpha, x, torch.zeros_like(x))


@operator("HardSigmoid")
def hard_sigmoid(at):
    alpha, beta, torch = at.get("alpha", 0.2), at.get("beta", 0.5), at.torch
    if abs(alpha - 1 / 6) < 1e-6 and beta == 0.5:
        return torch.nn.functional.hardsigmoid
    return lambda x: torch.clamp(alpha * x + beta, 0, 1)


@operator("PRelu")
def prelu(at):
    torch, rank = at.torch, len(at.shape(0))
    if len(at.shape(1)) == 1 and at.opset < 7:  # a slope for each channel
        return lambda x, slope: torch.where(x < 0, x * slope.reshape([-1] + [1] * (rank - 2)), x)
    return lambda x, slope: torch.where(x < 0, x * slope, x)


@operator("Gelu")
def gelu(at):
    how, function = at.get("approximate", "none"), at.torch.nn.functional.gelu
    return lambda x: function(x, approximate=how)


@operator("Shrink")
def shrink(at):
    bias, lambd, torch = at.get("bias", 0.0), at.get("lambd", 0.5), at.torch
    return lambda x: torch.where(x < -lambd, x + bias, torch.where(x > lambd, x - bias, torch.zeros_like(x)))


@operator("Clip")
def clip(at):
    torch = at.torch
    if not (at.stays(1) and at.stays(2)):
        return lambda x, low=None, high=None: torch.clamp(x, low, high)
    ends = [at.list(i) for i in (1, 2)] if at.opset >= 11 else [at.get("min"), at.get("max")]
    low, high = (e[0] if isinstance(e, list) else e for e in ends)
    if low == 0 and high == 6:
        return lambda x, *_: torch.nn.functional.relu6(x)
    if low is None and high is None:
        return lambda x, *_: x
    return lambda x, *_: torch.clamp(x, low, high)


@operator("Cast")
def cast(at):
    kind = at.dtype(at.get("to"))
    return lambda x: x.to(kind)


@operator("CastLike")
def cast_like(at):
    return lambda x, other: x.to(other.dtype)


@operator("Where")
def where(at):
    return at.torch.where


@operator("Gemm")
def gemm(at):
    torch, alpha, beta = at.torch, at.get("alpha", 1.0), at.get("beta", 1.0)
    left, right = at.get("transA", 0), at.get("transB", 0)
    if not left and alpha == beta == 1.0 and right and at.has(2) and len(at.shape(2)) == 1:
        return torch.nn.functional.linear

    def compute(a, b, c=None):
        a, b = a.t() if left else a, b.t() if right else b
        if c is None:
            return alpha * torch.mm(a, b) if alpha != 1 else torch.mm(a, b)
        return torch.addmm(c, a, b, alpha=alpha, beta=beta)

    return compute


@operator("Einsum")
def einsum(at):
    equation, function = at.get("equation"), at.torch.einsum
    return lambda *inputs: function(equation, *inputs)


@operator("Softmax", "LogSoftmax", "Hardmax")
def softmax(at):
    functions, axis = at.torch.nn.functional, at.get("axis", -1 if at.opset >= 13 else 1)
    torch = at.torch

    def hard(x, dim):
        return functions.one_hot(x.argmax(dim), x.shape[dim]).movedim(-1, dim).to(x.dtype)

    function = {"Softmax": functions.softmax, "LogSoftmax": functions.log_softmax}.get(at.node.op, hard)
    rank = len(at.shape(0))
    if at.opset >= 13 or axis % rank == rank - 1:
        return lambda x: function(x, dim=axis)
    axis %= rank  # what lies behind the axis is one row
    return lambda x: function(torch.flatten(x, axis), dim=axis).reshape(x.shape)


@operator("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
          "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
def reduce(at):
    torch, keep = at.torch, bool(at.get("keepdims", 1))
    axes = at.list(1, "axes")
    if not axes and at.get("noop_with_empty_axes", 0):
        return lambda x, *_: x
    axes = [int(a) for a in axes] if axes else list(range(len(at.shape(0))))

    def product(x):
        for axis in sorted((a % x.dim() for a in axes), reverse=True):
            x = x.prod(axis, keepdim=keep)
        return x

    functions = {
        "ReduceMean": lambda x: x.mean(axes, keepdim=keep) if axes else x,
        "ReduceSum": lambda x: x.sum(axes, keepdim=keep) if axes else x,
        "ReduceMax": lambda x: x.amax(axes, keepdim=keep), "ReduceMin": lambda x: x.amin(axes, keepdim=keep),
        "ReduceProd": product, "ReduceL1": lambda x: x.abs().sum(axes, keepdim=keep),
        "ReduceL2": lambda x: x.square().sum(axes, keepdim=keep).sqrt(),
        "ReduceSumSquare": lambda x: x.square().sum(axes, keepdim=keep),
        "ReduceLogSum": lambda x: x.sum(axes, keepdim=keep).log(),
        "ReduceLogSumExp": lambda x: torch.logsumexp(x, axes, keepdim=keep)}
    function = functions[at.node.op]
    return lambda x, *_: function(x)


@operator("ArgMax", "ArgMin")
def place(at):
    axis, keep = at.get("axis", 0), bool(at.get("keepdims", 1))
    function = at.torch.argmax if at.node.op == "ArgMax" else at.torch.argmin
    if at.get("select_last_index", 0):
        at.refuse("it selects the last of equal ones")
    return lambda x: function(x, dim=axis, keepdim=keep)


@operator("TopK")
def top(at):
    count = int(at.list(1)[0]) if at.opset >= 10 else at.get("k")
    axis, largest, ordered = at.get("axis", -1), bool(at.get("largest", 1)), bool(at.get("sorted", 1))
    function = at.torch.topk
    return lambda x, *_: tuple(function(x, count, axis, largest, ordered))


@operator("CumSum")
def cumulate(at):
    axis, torch = int(at.list(1)[0]), at.torch
    if at.get("exclusive", 0):
        at.refuse("it leaves out each element's own value")
    if at.get("reverse", 0):
        return lambda x, _: torch.cumsum(x.flip(axis), axis).flip(axis)
    return lambda x, _: torch.cumsum(x, axis)


@operator("BatchNormalization")
def batch_norm(at):
    function, epsilon = at.torch.nn.functional.batch_norm, at.get("epsilon", 1e-5)
    if at.get("training_mode", 0):
        at.refuse("it is in training mode")
    return lambda x, scale, shift, mean, variance: function(x, mean, variance, scale, shift, False, 0.0, epsilon)


@operator("InstanceNormalization")
def instance_norm(at):
    function, epsilon = at.torch.nn.functional.instance_norm, at.get("epsilon", 1e-5)
    return lambda x, scale, shift: function(x, weight=scale, bias=shift, eps=epsilon)


@operator("LayerNormalization")
def layer_norm(at):
    function, epsilon = at.torch.nn.functional.layer_norm, at.get("epsilon", 1e-5)
    if any(at.used[1:]):
        at.refuse("its mean is used, expected only the first output")
    rank = len(at.shape(0))
    shape = at.shape(0)[at.get("axis", -1) % rank :]
    torch = at.torch
    return lambda x, scale, shift=None: function(
        x, shape, torch.broadcast_to(scale, shape), None if shift is None else torch.broadcast_to(shift, shape),
        epsilon)


@operator("LpNormalization")
def lp_norm(at):
    axis, degree, function = at.get("axis", -1), at.get("p", 2), at.torch.nn.functional.normalize
    return lambda x: function(x, degree, axis)


@operator("MeanVarianceNormalization")
def mean_variance(at):
    axes = at.get("axes", [0, 2, 3])
    return lambda x: (x - x.mean(axes, keepdim=True)) / (x.var(axes, unbiased=False, keepdim=True).sqrt() + 1e-9)


@operator("LRN")
def local_norm(at):
    size, alpha, beta, bias = at.get("size"), at.get("alpha", 1e-4), at.get("beta", 0.75), at.get("bias", 1.0)
    function = at.torch.nn.functional.local_response_norm
    if size % 2 == 0:
        at.refuse("its size is even, which PyTorch has otherwise")
    return lambda x: function(x, size, alpha, beta, bias)


@operator("DequantizeLinear")
def dequantize(at):
    axis, rank = at.get("axis", 1), len(at.shape(0))

    def along(x):
        return x.reshape([-1 if d == axis % rank else 1 for d in range(rank)]) if x.dim() == 1 and x.numel() > 1 else x

    def compute(x, scale, zero=None):
        x = x.to(scale.dtype)
        return (x if zero is None else x - along(zero).to(scale.dtype)) * along(scale)

    return compute


@operator("QuantizeLinear")
def quantize(at):
    torch, axis, rank = at.torch, at.get("axis", 1), len(at.shape(0))
    kind = at.tensor(2).dtype if at.has(2) else torch.uint8
    low, high = torch.iinfo(kind).min, torch.iinfo(kind).max

    def along(x):
        return x.reshape([-1 if d == axis % rank else 1 for d in range(rank)]) if x.dim() == 1 and x.numel() > 1 else x

    def compute(x, scale, zero=None):
        x = torch.round(x / along(scale))
        return torch.clamp(x if zero is None else x + along(zero), low, high).to(kind)

    return compute


import onnx_shapes  # noqa: E402  they add rows to the table
import onnx_windows  # noqa: E402
