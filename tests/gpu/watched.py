"""Small programs of PyTorch, CuPy and JAX, each with one thing that is slow, for gpu_watch.py.

    watched.py WAY [SECONDS [STEPS]]    runs its loop and prints the time of a step
    watched.py reference FILE   all ways of PyTorch: times, and what torch.profiler counts
"""
import fcntl
import json
import os
import signal
import sys
import tempfile
import time

WARM = 10


def take_turn():
    """One program computes at a time; the next may begin Python meanwhile."""
    path = os.environ.get("GPU_WATCH_TURN")
    if path:
        fcntl.flock(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_EX)


def mlp(torch, sizes, dtype=None):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers[:-1]).cuda()
    return net.to(dtype) if dtype else net


def trainer(torch, sizes, batch, optimiser="sgd", dtype=None, **more):
    """A training step of an MLP: a function of its input."""
    torch.backends.cuda.matmul.allow_tf32 = True
    net = mlp(torch, sizes, dtype)
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
    adjust = kinds[optimiser](net.parameters(), lr=1e-4, **more)
    x = torch.randn(batch, sizes[0], device="cuda", dtype=dtype)

    def step(x=x):
        loss = net(x).square().mean()
        adjust.zero_grad()
        loss.backward()
        adjust.step()
        return loss

    return step


COPIED = (24576, 1024)  # 100 MB of floats


def way_pageable(torch):
    train, host = trainer(torch, [1024, 256, 10], 8), torch.randn(COPIED)
    return lambda: train(host.to("cuda"))


def way_pinned(torch):
    train, host = trainer(torch, [1024, 256, 10], 8), torch.randn(COPIED).pin_memory()
    return lambda: train(host.to("cuda", non_blocking=True))


def way_overlapped(torch):
    train, host = trainer(torch, [1024, 256, 10], 8), torch.randn(COPIED).pin_memory()
    side, ready = torch.cuda.Stream(), torch.cuda.Event()
    slots = [torch.empty(COPIED, device="cuda") for _ in range(2)]
    used = [torch.cuda.Event() for _ in range(2)]
    at = [0]

    def fetch(slot):
        with torch.cuda.stream(side):
            side.wait_event(used[slot])
            slots[slot].copy_(host, non_blocking=True)
            ready.record(side)

    fetch(0)

    def step():
        now, at[0] = at[0], 1 - at[0]
        torch.cuda.current_stream().wait_event(ready)
        fetch(at[0])
        train(slots[now])
        used[now].record()

    return step


def way_item(torch):
    train, total = trainer(torch, [1024] * 8 + [10], 8192), [0.0]

    def step():
        total[0] += train().item()

    return step


def way_foreach(torch):
    return trainer(torch, [64] * 24, 32, "adam", foreach=True)


def way_fused(torch):
    return trainer(torch, [64] * 24, 32, "adam", fused=True)


def way_fp32(torch):
    train = trainer(torch, [4096] * 4, 4096)
    torch.backends.cuda.matmul.allow_tf32 = False
    return train


def way_bf16(torch):
    return trainer(torch, [4096] * 4, 8192, dtype=torch.bfloat16)


class Slow:
    """Samples that are made by a loop in Python."""

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        import torch

        value = 0
        for i in range(1500):
            value += i * index % 7
        return torch.full((256,), float(value % 5))


def loader(torch, workers):
    train = trainer(torch, [256, 512, 10], 64)
    batches = iter(torch.utils.data.DataLoader(Slow(), 64, num_workers=workers))
    return lambda: train(next(batches).cuda())


def way_loader(torch):
    return loader(torch, 0)


def way_workers(torch):
    return loader(torch, 2)


def way_graph(torch):
    net, x = mlp(torch, [64] * 24), torch.randn(32, 64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    for _ in range(3):
        net(x)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        net(x).square().mean()
    return graph.replay


def way_small(torch):
    train = trainer(torch, [256, 512, 10], 64)
    parts = [torch.randn(64).pin_memory() for _ in range(256)]
    return lambda: train(torch.stack([part.to("cuda") for part in parts[:64]])[:, :].repeat(1, 4))


def way_back(torch):
    train = trainer(torch, [1024] * 4, 4096)
    x = torch.randn(4096, 4096, device="cuda")

    def step():
        train()
        return (x * 2).cpu()

    return step


def way_alloc(torch):
    train = trainer(torch, [1024] * 4, 4096)

    def step():
        train()
        torch.cuda.empty_cache()

    return step


WAYS = [name[4:] for name in list(globals()) if name.startswith("way_")]


def timed(step, wait, seconds, count=None):
    """Steps for so long, or so many; the time of one."""
    for _ in range(WARM):
        step()
    wait()
    begin = time.perf_counter()
    step(), step(), step()
    wait()
    count = count or max(30, min(1000, int(seconds * 3 / (time.perf_counter() - begin))))
    begin = time.perf_counter()
    for _ in range(count):
        step()
    wait()
    return (time.perf_counter() - begin) / count


def profiled(torch, step, steps=20):
    """What torch.profiler says of a step."""
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=activities):  # its own start
        step()
        torch.cuda.synchronize()
    with profile(activities=activities) as found:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        took = (time.perf_counter() - begin) / steps
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        found.export_chrome_trace(path)
        with open(path) as file:
            events = json.load(file)["traceEvents"]
    answer = {"profiled_us": 1e6 * took}
    for name, category in ("kernel", "kernel"), ("copy", "gpu_memcpy"), ("fill", "gpu_memset"):
        times = [event["dur"] for event in events if event.get("cat") == category]
        answer[name + "s"] = len(times) / steps
        answer[name + "_us"] = sum(times) / steps
    return answer


def reference(path, ways, seconds):
    import torch

    answers = {}
    for way in ways:
        try:
            step = globals()["way_" + way](torch)
            step_us = 1e6 * timed(step, torch.cuda.synchronize, seconds)
            answers[way] = dict(profiled(torch, step), step_us=step_us)
        except Exception as error:  # what this one cannot do, the others can
            answers[way] = {"error": repr(error)}
        step = None
        torch.cuda.empty_cache()
    with open(path, "w") as file:
        json.dump(answers, file)


def run_cupy():
    import cupy
    import numpy

    take_turn()
    host = numpy.random.rand(1 << 21).astype(numpy.float32)

    def step():
        x = cupy.asarray(host)
        y = cupy.sqrt(x * 2 + 1)
        float(y.sum())

    return step, cupy.cuda.Device().synchronize


def run_jax():
    import jax
    import jax.numpy as jnp

    take_turn()
    weights = jnp.ones((1024, 1024))
    x = jnp.ones((2048, 1024))
    loss = lambda w: jnp.mean(jnp.tanh(x @ w) ** 2)
    change = jax.jit(lambda w: w - 0.1 * jax.grad(loss)(w))
    state = [weights]

    def step():
        state[0] = change(state[0])

    return step, lambda: state[0].block_until_ready()


def run_torch(way):
    import torch

    take_turn()
    return globals()["way_" + way](torch), torch.cuda.synchronize


def main():
    way = sys.argv[1]
    if way == "reference":
        reference(sys.argv[2], sys.argv[3].split(","), float(sys.argv[4]))
        return
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    others = {"cupy": run_cupy, "jax": run_jax}
    step, wait = others[way]() if way in others else run_torch(way.split("+")[0])
    if way.endswith("+killed"):
        timed(step, wait, seconds)
        os.kill(os.getpid(), signal.SIGKILL)
    if way.endswith("+profiler"):
        import torch

        profiled(torch, step)
    count = int(sys.argv[3]) if len(sys.argv) > 3 else None
    print(json.dumps({"step_us": 1e6 * timed(step, wait, seconds, count)}))


if __name__ == "__main__":
    main()
