# A training program on the GPU that cuda_stand_in.c stands in for. Arguments: the library, a way.
import ctypes
import os
import signal
import sys
import threading

cuda = ctypes.CDLL(sys.argv[1])
way = sys.argv[2]
cuda.stand_copy.argtypes = [ctypes.c_uint64, ctypes.c_int, ctypes.c_uint64]
cuda.stand_launch.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
NAMES = [b"forward_kernel_%d" % i for i in range(3)]


def load(pageable):
    cuda.stand_copy(64 << 20, pageable, 8000000 if pageable else 1200000)  # 8 GB/s, 55 GB/s


def backward():
    cuda.stand_launch(b"backward_kernel", 400000)


def step(pageable):
    load(pageable)
    for name in NAMES:
        cuda.stand_launch(name, 200000)
        cuda.stand_other()
    thread = threading.Thread(target=backward)
    thread.start()
    thread.join()
    cuda.stand_launch(b"update_kernel", 100000)


cuda.stand_init()
if way == "fork":
    if os.fork() == 0:
        step(True)  # what CUDA would refuse, the agent must not note
        sys.exit(0)
    os.wait()
for i in range(60 if way != "killed" else 400):
    step(way != "pinned")
    if way == "killed" and i == 300:
        os.kill(os.getpid(), signal.SIGKILL)
cuda.stand_wait()
