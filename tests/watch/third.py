"""A third of its time is spent in batch(), two thirds in step()."""
import sys
import time


def work(count):
    total = 0
    for i in range(count):
        total += i * i
    return total


def batch():
    return work(20000)


def step():
    return work(40000)


if __name__ == "__main__":
    until = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < until:
        batch()
        step()
    time.sleep(0.3)
