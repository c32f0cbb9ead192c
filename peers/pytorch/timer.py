#!/usr/bin/env python3
"""The pytorch peer under another clock: its steps are timed by torch.utils.benchmark. Both must show
the same time:

    PRONY_PEER_SEARCH=off prony bench fcn --batch 64 --framework pytorch --against peers/pytorch/timer.py
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
from peer import Shipped
from prony_peer import Server, serve


class Timed(Server):
    def run(self, request):
        from torch.utils.benchmark import Timer

        places = {"peer": self.peer, "place": self.place, "batches": self.work.batches}
        timer = Timer("peer.step(place % batches); place += 1", "global place", globals=places,
                      num_threads=self.work.threads)
        count = request["iterations"]
        seconds = timer.timeit(count).raw_times[0]
        self.place = (self.place + count) % self.work.batches
        return {"elapsed_ns": max(int(seconds * 1e9), 1)}


serve(Shipped(), Timed)
