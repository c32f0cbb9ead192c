#!/usr/bin/env python3
"""Does the pytorch peer show the time that torch.utils.benchmark shows?

    peers/pytorch/timer.py build/prony lenet --batch 16

runs `prony bench` with itself as the framework: the pytorch peer, whose every run is timed a second
time, by torch.utils.benchmark, in the same process (two processes differ by some per cent by where
their memory lies). Prints both medians; ends with 1 when they differ by more than 3 %.
"""

import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
from peer import Shipped
from prony_peer import Server, serve

NOTES = "PRONY_TIMER_NOTES"  # the file with a line for each run: nanoseconds by either clock
MOST = 0.03


class Timed(Server):
    def run(self, request):
        count, answer = request["iterations"], super().run(request)
        with open(os.environ[NOTES], "a") as notes:
            print(answer["elapsed_ns"] / count, self.by_torch(count), file=notes)
        return answer

    def by_torch(self, count):
        from torch.utils.benchmark import Timer

        places = {"peer": self.peer, "place": 0, "batches": self.work.batches}
        setup = "import gc; gc.enable(); global place"  # timeit turns it off; training does not
        timer = Timer("peer.step(place % batches); place += 1", setup, globals=places,
                      num_threads=self.work.threads)
        return timer.timeit(count).raw_times[0] / count * 1e9


def compare(command):
    with tempfile.NamedTemporaryFile("r") as notes:
        environment = {**os.environ, NOTES: notes.name}
        command += ["--framework", os.path.abspath(__file__)]
        subprocess.run([command[0], "bench", *command[1:]], env=environment, check=True)
        runs = [tuple(map(float, line.split())) for line in notes]
    ours, theirs = map(statistics.median, zip(*runs))
    print(f"the peer {ours:.0f} ns, torch.utils.benchmark {theirs:.0f} ns: {ours / theirs - 1:+.1%}")
    return abs(ours / theirs - 1) > MOST


if sys.argv[1:] == ["peer"]:
    serve(Shipped(), Timed)
else:
    sys.exit(compare(sys.argv[1:]))
