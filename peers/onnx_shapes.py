"""Operators of ONNX that make, cut, join and pick: see onnx_ops.py."""

from onnx_graph import Tensor
from onnx_ops import operator


def whole(values):
    return [int(v) for v in values]


@operator("Constant")
def constant(at):
    torch, get = at.torch, at.get
    if isinstance(get("value"), Tensor):
        value = at.builder.read(get("value")).tensor
    else:
        kinds = {"value_float": at.dtype(1), "value_floats": at.dtype(1), "value_int": torch.int64,
                 "value_ints": torch.int64}
        found = [(get(name), kind) for name, kind in kinds.items() if get(name) is not None]
        if not found:
            at.refuse("it has no numbers")
        value = torch.tensor(found[0][0], dtype=found[0][1], device=at.builder.device)
    return lambda: value


@operator("ConstantOfShape")
def constant_of_shape(at):
    torch, shape = at.torch, whole(at.list(0))
    value = at.builder.read(at.get("value")).tensor if at.get("value") else torch.zeros(1, dtype=at.dtype(1))
    return lambda _: value.reshape(-1)[0].expand(shape).clone().to(at.builder.device)


@operator("Shape")
def shape_of(at):
    torch, start, end = at.torch, at.get("start", 0), at.get("end")
    return lambda x: torch.tensor(list(x.shape)[start:end], dtype=torch.int64, device=at.builder.device)


@operator("Size")
def size_of(at):
    return lambda x: at.torch.tensor(x.numel(), dtype=at.torch.int64, device=at.builder.device)


@operator("Range")
def spread(at):
    torch = at.torch
    ends = [at.known(i) for i in range(3)]
    return lambda *_: torch.arange(*[e.item() for e in ends], dtype=ends[0].dtype, device=at.builder.device)


@operator("EyeLike")
def eye_like(at):
    torch, shape, offset = at.torch, at.shape(0), at.get("k", 0)
    kind = at.dtype(at.get("dtype")) if at.get("dtype") else at.tensor(0).dtype
    value = torch.diag_embed(torch.ones(max(shape) + abs(offset)), offset)[: shape[0], : shape[1]].to(kind)
    return lambda x: value.to(x.device)


@operator("Reshape")
def reshape(at):
    sizes = whole(at.list(1, "shape"))
    if not at.get("allowzero", 0):
        sizes = [at.shape(0)[i] if size == 0 else size for i, size in enumerate(sizes)]
    return lambda x, *_: x.reshape(sizes)


@operator("Flatten")
def flatten(at):
    axis = at.get("axis", 1)
    rows = 1
    for size in at.shape(0)[: axis if axis >= 0 else axis + len(at.shape(0))]:
        rows *= size
    return lambda x: x.reshape(rows, -1)


@operator("Squeeze")
def squeeze(at):
    axes, shape = at.list(1, "axes"), at.shape(0)
    gone = {int(a) % len(shape) for a in axes} if axes else {i for i, s in enumerate(shape) if s == 1}
    sizes = [size for i, size in enumerate(shape) if i not in gone]
    return lambda x, *_: x.reshape(sizes)


@operator("Unsqueeze")
def unsqueeze(at):
    axes, sizes = at.list(1, "axes"), at.shape(0)
    rank = len(sizes) + len(axes)
    for axis in sorted(int(a) % rank for a in axes):
        sizes.insert(axis, 1)
    return lambda x, *_: x.reshape(sizes)


@operator("Transpose")
def transpose(at):
    order = at.get("perm") or list(range(len(at.shape(0))))[::-1]
    return lambda x: x.permute(order)


@operator("Concat")
def concat(at):
    torch, axis = at.torch, at.get("axis", 1)
    return lambda *inputs: torch.cat(inputs, axis)


@operator("Split")
def split(at):
    torch, axis = at.torch, at.get("axis", 0)
    sizes, length, count = at.list(1, "split"), at.shape(0)[axis], len(at.node.outputs)
    if not sizes:
        each = -(-length // count)
        sizes = [each] * (length // each) + ([length % each] if length % each else [])
    sizes = whole(sizes)
    return lambda x, *_: torch.split(x, sizes, axis)


@operator("Slice")
def cut(at):
    starts, ends = whole(at.list(1, "starts")), whole(at.list(2, "ends"))
    axes = whole(at.list(3, "axes") or range(len(starts)))
    steps = whole(at.list(4) or [1] * len(starts))
    shape = at.shape(0)
    index, turned = [slice(None)] * len(shape), []
    for start, end, axis, step in zip(starts, ends, axes, steps):
        axis %= len(shape)
        if step < 0:  # PyTorch has no way back: the same from the other end
            places = range(shape[axis])[slice(start, end if end > -(1 << 31) else None, step)]
            turned.append((axis, places))
        else:
            index[axis] = slice(start, end, step)
    torch = at.torch
    chosen = [(axis, torch.tensor(list(places), dtype=torch.int64, device=at.builder.device))
              for axis, places in turned]
    index = tuple(index)

    def compute(x, *_):
        x = x[index]
        for axis, places in chosen:
            x = torch.index_select(x, axis, places)
        return x

    return compute


@operator("Gather")
def gather(at):
    torch, axis, rank = at.torch, at.get("axis", 0), len(at.shape(1))
    size = at.shape(0)[axis]

    def compute(x, places):
        if rank == 0 and places.dtype != torch.int64:
            places = places.long()
        places = torch.where(places < 0, places + size, places)
        if rank == 1:
            return torch.index_select(x, axis, places)
        found = torch.index_select(x, axis, places.reshape(-1))
        return found.reshape(x.shape[:start] + places.shape + x.shape[start + 1 :])

    def embed(x, places):
        return torch.nn.functional.embedding(places, x)

    start = axis % len(at.shape(0))
    if len(at.shape(0)) == 2 and start == 0 and at.builder.torch.is_floating_point(at.tensor(0)):
        if bool((at.tensor(1) >= 0).all()) and not at.stays(1):
            return embed
    return compute


@operator("GatherElements")
def gather_elements(at):
    torch, axis = at.torch, at.get("axis", 0)
    size = at.shape(0)[axis]
    return lambda x, places: torch.gather(x, axis, torch.where(places < 0, places + size, places))


@operator("GatherND")
def gather_nd(at):
    if at.get("batch_dims", 0):
        at.refuse("it has batch_dims")
    return lambda x, places: x[tuple(places.movedim(-1, 0))]


@operator("ScatterND")
def scatter_nd(at):
    if at.get("reduction", "none") != "none":
        at.refuse("it adds or multiplies where it puts")
    torch = at.torch
    return lambda x, places, updates: torch.index_put(x, tuple(places.movedim(-1, 0)), updates)


@operator("ScatterElements", "Scatter")
def scatter(at):
    if at.get("reduction", "none") != "none":
        at.refuse("it adds or multiplies where it puts")
    torch, axis = at.torch, at.get("axis", 0)
    size = at.shape(0)[axis]
    return lambda x, places, updates: torch.scatter(
        x, axis, torch.where(places < 0, places + size, places), updates)


@operator("Expand")
def expand(at):
    torch, sizes = at.torch, whole(at.list(1))
    sizes = list(torch.broadcast_shapes(at.shape(0), sizes))
    return lambda x, _: x.expand(sizes)


@operator("Tile")
def tile(at):
    times = whole(at.list(1))
    return lambda x, _: x.repeat(times)


@operator("Pad")
def pad(at):
    pads, shape = whole(at.list(1, "pads")), at.shape(0)
    mode, value = at.get("mode", "constant"), at.list(2)
    value = value[0] if value else at.get("value", 0.0)
    axes = [a % len(shape) for a in whole(at.list(3))] if at.has(3) else list(range(len(shape)))
    before, behind = [0] * len(shape), [0] * len(shape)
    for i, axis in enumerate(axes):
        before[axis], behind[axis] = pads[i], pads[i + len(axes)]
    first = min((i for i in range(len(shape)) if before[i] or behind[i]), default=len(shape))
    flat = [size for i in reversed(range(first, len(shape))) for size in (before[i], behind[i])]
    function = at.torch.nn.functional.pad
    if not flat:
        return lambda x, *_: x
    if mode == "constant":
        return lambda x, *_: function(x, flat, value=value)
    how = {"reflect": "reflect", "edge": "replicate"}.get(mode) or at.refuse(f"it pads by '{mode:.20}'")
    sides = len(flat) // 2
    # PyTorch takes as many sides as dimensions behind two others
    return lambda x, *_: function(x.reshape([1, -1] + shape[-sides:]), flat, how).reshape(
        shape[:first] + [s + before[first + i] + behind[first + i] for i, s in enumerate(shape[first:])])


@operator("Trilu")
def triangle(at):
    torch, offset = at.torch, int(at.list(1)[0]) if at.has(1) else 0
    function = torch.triu if at.get("upper", 1) else torch.tril
    return lambda x, *_: function(x, offset)


@operator("OneHot")
def one_hot(at):
    torch, depth, axis = at.torch, int(at.list(1)[0]), at.get("axis", -1)

    def compute(places, _, values):
        hot = torch.nn.functional.one_hot(places.long() % depth, depth).movedim(-1, axis)
        return torch.where(hot.bool(), values[1], values[0])

    return compute


@operator("NonZero")
def non_zero(at):
    return lambda x: at.torch.nonzero(x).t()


@operator("DepthToSpace")
def depth_to_space(at):
    n, c, h, w = at.shape(0)
    b = at.get("blocksize")
    if at.get("mode", "DCR") == "CRD":
        return lambda x: x.reshape(n, c // b**2, b, b, h, w).permute(0, 1, 4, 2, 5, 3).reshape(
            n, c // b**2, h * b, w * b)
    return lambda x: x.reshape(n, b, b, c // b**2, h, w).permute(0, 3, 4, 1, 5, 2).reshape(
        n, c // b**2, h * b, w * b)


@operator("SpaceToDepth")
def space_to_depth(at):
    n, c, h, w = at.shape(0)
    b = at.get("blocksize")
    return lambda x: x.reshape(n, c, h // b, b, w // b, b).permute(0, 3, 5, 1, 2, 4).reshape(
        n, c * b * b, h // b, w // b)
