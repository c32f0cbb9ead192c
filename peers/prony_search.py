"""The search of a peer's settings, to its end, and its keeping.

From the usual choice on, each setting in turn takes the value with which an iteration is quickest. How
long each took is kept in a file of the user's data folder, named by everything that it depends on: the
peer, its version and libraries, the machine, the work. So the next process takes the times from there,
and goes on where time ended the last one. It first times the best and the usual choice again: where
their order or their ratio is another, as after a search on a busy machine, all is searched anew. The file is a memory of times and nothing else: what it
holds is looked up by choices made here, so a file that is damaged or made up cannot name a setting.
Standard library only."""

import hashlib
import itertools
import json
import math
import os
import tempfile
import time

BYTES_MOST = 1 << 16  # of a file
TRIED_MOST = 64  # that a record lists
WORTH = 0.98  # of the time: less is no gain
DRIFT = 0.1  # of a ratio of two kept times: more is another machine, or a busy one


class Unfinished(Exception):
    """Time has ended before this choice was tried."""


def folder():
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(data, "prony", "searches")


def has_home():
    """Nothing is made in a home that is not there."""
    return bool(os.environ.get("XDG_DATA_HOME")) or os.path.isdir(os.path.expanduser("~"))


def processor():
    """The CPU's name."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        return ""


def say(choice):
    return ", ".join(f"{name} {value}" for name, value in choice.items())


class Kept:
    """{choice in words: seconds} of one key, in a file; what was refused (None) is not kept, since
    another time there may be more memory."""

    def __init__(self, key):
        self.key = key
        about = json.dumps(key, sort_keys=True).encode()
        self.path = os.path.join(folder(), hashlib.sha256(about).hexdigest()[:32] + ".json")
        self.times = self.read()
        self.known = set(self.times)  # before this search

    def read(self):
        try:
            with open(self.path, "rb") as file:
                text = file.read(BYTES_MOST + 1)
            found = json.loads(text) if len(text) <= BYTES_MOST else {}
            tried = found["tried"] if found["key"] == json.loads(json.dumps(self.key)) else {}
            return {choice: seconds for choice, seconds in tried.items() if self.is_time(seconds)}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}

    def forget(self):
        self.times, self.known = {}, set()

    @staticmethod
    def is_time(seconds):
        return type(seconds) in (int, float) and 0 < seconds < 1e6 and math.isfinite(seconds)

    def write(self):
        """Whole or not at all; a folder that cannot be written keeps nothing."""
        times = {choice: seconds for choice, seconds in self.times.items() if seconds is not None}
        if set(times) == self.known or not has_home():
            return
        try:
            os.makedirs(folder(), exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=folder(), suffix=".tmp", delete=False) as file:
                try:
                    json.dump({"key": self.key, "tried": times}, file)
                    file.close()
                    os.replace(file.name, self.path)
                except BaseException:
                    os.unlink(file.name)
                    raise
        except OSError:
            pass


class Search:
    """`most`: the seconds that all trials of this process may take together. `refusal`: the exception
    of a trial that the framework refuses."""

    def __init__(self, key, most, refusal):
        self.key, self.most, self.refusal = key, most, refusal
        self.start = time.perf_counter()
        self.kept, self.finished, self.off = None, True, False
        self.tried = {}  # {choice in words: seconds}, in this search or kept from another

    def run(self, settings, trial, seconds):
        """The best choice of settings, {name: [usual value, other value, …]}. `trial(choice)` makes
        ready and gives a number of iterations and a function that does so many."""
        best = {name: values[0] for name, values in settings.items()}
        if all(len(values) < 2 for values in settings.values()):
            return best
        if os.environ.get("PRONY_PEER_SEARCH") == "off":
            self.off = True
            return best
        self.kept = Kept({**self.key, "settings": settings})
        if not self.holds(settings, best, trial, seconds):
            self.kept.forget()
        try:
            best = self.descend(settings, best, trial, seconds)
        finally:
            self.kept.write()
        return best

    def holds(self, settings, usual, trial, seconds):
        """Times the best kept choice and the usual one (or the next best) again. Do they compare as they
        did? Then all kept times become those of this hour."""
        times = self.kept.times
        choices = [dict(zip(settings, values)) for values in itertools.product(*settings.values())]
        best = sorted((c for c in choices if say(c) in times), key=lambda c: times[say(c)])[:2]
        if len(best) == 2 and best[0] != usual and say(usual) in times:
            best[1] = usual
        try:
            found = [self.trial_time(choice, trial, seconds) for choice in best]
        except self.refusal:
            return False
        drifts = [now / times[say(choice)] for now, choice in zip(found, best)]
        if len(best) == 2 and (found[0] >= found[1] or not 1 - DRIFT < drifts[0] / drifts[1] < 1 + DRIFT):
            return False
        for choice in choices if best else ():
            if say(choice) in times:
                times[say(choice)] *= drifts[0]
        return True

    @staticmethod
    def trial_time(choice, trial, seconds):
        count, step = trial(choice)
        return measure(step, seconds) / count

    def descend(self, settings, best, trial, seconds):
        best_seconds = self.time_of(best, trial, seconds)
        for name, values in settings.items():
            for value in values[1:]:
                choice = {**best, name: value}
                try:
                    found = self.time_of(choice, trial, seconds)
                except Unfinished:
                    self.finished = False
                    return best
                if found < WORTH * best_seconds:
                    best, best_seconds = choice, found
        return best

    def time_of(self, choice, trial, seconds):
        """Of an iteration; infinite where it cannot be used."""
        words, times = say(choice), self.kept.times
        if words not in times:
            runs = any(known is not None for known in self.tried.values())
            if runs and time.perf_counter() - self.start > self.most:
                raise Unfinished()
            try:
                times[words] = self.trial_time(choice, trial, seconds)
            except self.refusal:
                times[words] = None
        self.tried[words] = times[words]
        return float("inf") if times[words] is None else times[words]

    def about(self):
        """For the record: what was tried, with its milliseconds (null: refused)."""
        if not self.tried:
            return {}
        tried = [{"settings": words, "ms": None if t is None else round(1000 * t, 6)}
                 for words, t in list(self.tried.items())[:TRIED_MOST]]
        return {"search": {"finished": self.finished, "tried": tried}}

    def handicaps(self):
        if self.off:
            return ["its settings were not searched (PRONY_PEER_SEARCH=off)"]
        if not self.finished:
            return [f"unfinished search of settings ({len(self.tried)} tried; --patience gives it "
                    "more, and the next run goes on from here)"]
        return []


def measure(step, seconds):
    """The least time of a step within so many seconds, and of one at least; the first one warms up."""
    step()
    best, until = float("inf"), time.perf_counter() + seconds
    while best == float("inf") or time.perf_counter() < until:
        before = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - before)
    return max(best, 1e-9)
