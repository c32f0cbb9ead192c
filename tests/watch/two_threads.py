"""A thread that computes in Python (line 7), and one that waits (line 12)."""
import threading
import time

def spin(n, total=0):
    for i in range(n):
        total += i * i
    return total


def waits():
    time.sleep(2)


thread = threading.Thread(target=waits)
thread.start()
end = time.monotonic() + 2
while time.monotonic() < end:
    spin(20000)
thread.join()
