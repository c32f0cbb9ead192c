# A training program on the GPU that cuda_stand_in.c stands in for. Arguments: the library, a way.
import ctypes
import os
import signal
import sys

cuda = ctypes.CDLL(sys.argv[1])
way = sys.argv[2]
cuda.stand_copy.argtypes = [ctypes.c_uint64, ctypes.c_int, ctypes.c_uint64]
cuda.stand_launch.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
cuda.stand_launch_elsewhere.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
cuda.stand_allocate.argtypes = [ctypes.c_uint64]
NAMES = [b"forward_%d" % i for i in range(3)] + [b"backward", b"update"]


def load(pageable):
    cuda.stand_copy(64 << 20, pageable, 8000000 if pageable else 1200000)  # 8 GB/s, 55 GB/s


def step(pageable):
    load(pageable)
    for name in NAMES[:3]:
        cuda.stand_launch(name, 200000)
        cuda.stand_other()
    cuda.stand_launch_elsewhere(NAMES[3], 400000)
    cuda.stand_launch(NAMES[4], 100000)


cuda.stand_init()
if way == "fork":
    if os.fork() == 0:
        step(True)  # CUDA refuses it; the agent must not note it
        os._exit(0)
    os.wait()
for i in range(30 if way != "killed" else 300):
    step(way != "pinned")
    if way == "killed" and i == 200:
        os.kill(os.getpid(), signal.SIGKILL)
    if i == 9:
        cuda.stand_wait()
cuda.stand_allocate(4096)
cuda.stand_wait()
