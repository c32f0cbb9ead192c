"""Watches the programs of watched.py with prony, and compares with torch.profiler in other runs.

    gpu_watch.py PRONY FOLDER [WAY…]

Prints a row for each and what does not hold; its status is 1 then."""
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "watched.py")
SECONDS = "0.6"
LONGEST = 140  # seconds in all
# The way, its first finding ("": none, None: any), and what it stands for.
TORCH = {
    "pageable": "R1",
    "pinned": "R2",
    "overlapped": "",
    "item": "R3",
    "foreach": "R4",
    "fused": "R4",
    "fp32": "R6",
    "bf16": "",
    "loader": "R5",
    "workers": "R5",
    "graph": None,
    "small": "R7",
    "back": "R8",
    "alloc": "R9",
}
OTHERS = {"cupy": None, "jax": None, "pageable+killed": "R1", "foreach+profiler": None}
COLUMNS = (
    "way", "steps", "kernels", "ref", "kern%", "copy%", "call%", "line%", "lost", "step_us",
    "watch%", "torch%", "replay", "finding", "gain", "line",
)


def read(text):
    for line in text.splitlines():
        if line.startswith("{"):
            return json.loads(line)
    return {}


def differs(ours, theirs):
    if theirs is None:
        return float("nan")
    return 100 * (ours / theirs - 1) if theirs else 0.0 if not ours else float("inf")


class Watch:
    def __init__(self, prony, folder):
        self.prony, self.folder, self.failed, self.details = prony, folder, [], []
        self.reference = {}

    def run(self, words, limit=60, environment=None):
        """Ends all that it started, should it take too long."""
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 start_new_session=True, env=environment)
        try:
            out, errors = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            raise
        return subprocess.CompletedProcess(words, child.returncode, out, errors)

    def expect(self, way, what, held, found):
        if not held:
            self.failed.append("%s: %s: found %s" % (way, what, found))

    def make_reference(self, ways):
        path = os.path.join(self.folder, "reference.json")
        done = self.run([sys.executable, PROGRAM, "reference", path, ",".join(ways), SECONDS])
        if done.returncode:
            self.failed.append("the reference did not run: " + done.stderr[-600:])
            return
        with open(path) as file:
            self.reference = json.load(file)

    def watch(self, way):
        """The object of the watched run, that of the advice, what the program said, its status."""
        trace = os.path.join(self.folder, way + ".trace")
        done = self.run([self.prony, "profile", "--once", "--json", "--out", trace, "--",
                         sys.executable, PROGRAM, way, SECONDS])
        seen = read(done.stdout)
        with open(os.path.join(self.folder, way + ".json"), "w") as file:
            file.write(done.stdout)
        if not seen:
            self.failed.append("%s: no report: %s" % (way, done.stderr[-400:]))
            return None, None, {}, done.returncode
        advised = self.run([self.prony, "advise", "--json", trace])
        if advised.returncode:
            self.failed.append("%s: no advice: %s" % (way, advised.stderr[-400:]))
        return seen, read(advised.stdout), read(done.stderr), done.returncode

    def check(self, way, wanted, row, seen, reference):
        gpu = seen["gpu"]
        self.expect(way, "watched", not gpu["reason"] and gpu["kernels"] > 0,
                    "%s, %s" % (gpu["reason"], seen["notes"]))
        self.expect(way, "steps", row["steps"] >= 10, row["steps"])
        self.expect(way, "records lost", row["lost"] == 0, row["lost"])
        self.expect(way, "calls known", row["call%"] >= 99, row["call%"])
        self.expect(way, "lines known", row["line%"] >= 90, row["line%"])
        self.expect(way, "replay within 5 %", abs(row["replay"] - 1) <= 0.05, row["replay"])
        if wanted is not None:
            self.expect(way, "first finding %s" % (wanted or "none"), row["finding"] == wanted,
                        row["finding"])
        if not reference:
            return
        self.expect(way, "kernels a step as torch.profiler", row["kernels"] == row["ref"],
                    "%s and %s" % (row["kernels"], row["ref"]))
        # Clocks vary between runs, and copies of pageable memory by a tenth: a CPU makes them.
        self.expect(way, "kernel time within 3 %", abs(row["kern%"]) <= 3, row["kern%"])
        self.expect(way, "copy time within 3 %",
                    abs(row["copy%"]) <= (15 if way in ("pageable", "back") else 3), row["copy%"])
        self.expect(way, "costs 0.6 × torch.profiler, or 2 %",
                    row["watch%"] <= max(2.0, 0.6 * row["torch%"]), row["watch%"])

    def one(self, way, wanted):
        seen, advice, said, status = self.watch(way)
        if not seen or "budget" not in seen["gpu"] or not advice:
            self.failed.append("%s: nothing of the GPU: %s, %s" % (
                way, seen and seen["gpu"], seen and seen["notes"]))
            return
        self.expect(way, "status", status == (137 if "killed" in way else 0), status)
        gpu, reference = seen["gpu"], self.reference.get(way, {})
        if "error" in reference:
            self.failed.append("%s: the reference: %s" % (way, reference["error"]))
            reference = {}
        steps, figures = gpu["steps"] or 1, gpu["figures"]
        started = gpu["kernels"] + gpu["copies"] + gpu["fills"]
        first = advice["findings"][0] if advice["findings"] else {}
        unwatched = reference.get("step_us", float("nan"))
        row = {
            "way": way, "steps": gpu["steps"],
            "kernels": figures["kernels"] / steps, "ref": reference.get("kernels", float("nan")),
            "kern%": differs(figures["kernel_ns"] / 1e3 / steps, reference.get("kernel_us")),
            "copy%": differs(figures["copy_ns"] / 1e3 / steps, reference.get("copy_us")),
            "call%": 100 * gpu["with_call"] / max(started, 1),
            "line%": 100 * gpu["with_line"] / max(gpu["calls"], 1),
            "lost": gpu["lost"], "step_us": unwatched,
            "watch%": differs(said.get("step_us", float("nan")), unwatched),
            "torch%": differs(reference.get("profiled_us", float("nan")), unwatched),
            "replay": advice["replay"], "finding": first.get("rule", ""),
            "gain": first.get("gain", 1.0), "line": os.path.basename(first.get("line") or ""),
        }
        line = " ".join(
            ("%.4g" % row[key] if isinstance(row[key], float) else str(row[key] or "-")).rjust(
                max(len(key), 16 if key == "way" else 6)) for key in COLUMNS)
        print(line + "\n", end="", flush=True)
        for note in seen["notes"].splitlines():
            if not note.startswith("the machine was"):
                print("%16s: %s\n" % (way, note), end="", flush=True)
        print("%16s: sampling %.1f ms, looking %.1f ms, init %.0f ms, of %.0f ms\n" % (
            way, seen["sampling_ns"] / 1e6, seen["looking_ns"] / 1e6, gpu["init_ns"] / 1e6,
            seen["watched"]["wall_ns"] / 1e6), end="", flush=True)
        self.check(way, wanted, row, seen, reference)
        if wanted is not None and row["finding"] != wanted:
            text = self.run([self.prony, "advise", os.path.join(self.folder, way + ".trace")])
            self.details.append("--- %s\n%s" % (way, (text.stdout + text.stderr)[:1800]))

    def dissect(self, way):
        """The same program alone, and with samples of the CPU only: what costs how much."""
        words = [sys.executable, PROGRAM, way, SECONDS]
        plain = read(self.run(words).stdout).get("step_us")
        keep = dict(os.environ, CUDA_INJECTION64_PATH="")
        sampled = read(self.run([self.prony, "profile", "--once", "--json", "--"] + words,
                                environment=keep).stderr).get("step_us")
        print("%s: step %s us alone, %s us with samples of the CPU only, %s us in the reference\n" % (
            way, plain, sampled, self.reference.get(way, {}).get("step_us")), end="", flush=True)

    def whole(self, way):
        """Both runs, as people call it: the time of a step that nobody watched."""
        done = self.run([self.prony, "advise", "--json", "--", sys.executable, PROGRAM, way, "3"])
        advice, truth = read(done.stdout), self.reference.get(way, {}).get("step_us")
        if not advice or not truth:
            self.failed.append("%s: no advice: %s" % (way, done.stderr[-400:]))
            return
        found = advice["step_ns"] / 1e3
        print("%s, both runs: step %.0f us (unwatched: %s), in the reference %.0f us" % (
            way, found, advice["unwatched"], truth))
        self.expect(way, "its unwatched step within 25 %", abs(differs(found, truth)) <= 25, found)


def main():
    watch, chosen = Watch(sys.argv[1], sys.argv[2]), sys.argv[3:]
    begin = time.time()
    ways = [way for way in TORCH if not chosen or way in chosen]
    watch.make_reference(ways)
    print("reference: %.0f s" % (time.time() - begin))
    print(" ".join(key.rjust(max(len(key), 16 if key == "way" else 6)) for key in COLUMNS))
    os.environ["GPU_WATCH_TURN"] = os.path.join(watch.folder, "turn")

    def try_one(way, wanted):
        if time.time() - begin > LONGEST:
            watch.failed.append(way + ": there was no time left for it")
            return
        try:
            watch.one(way, wanted)
        except Exception as error:  # one that fails leaves the others
            watch.failed.append("%s: %r" % (way, error))

    with ThreadPoolExecutor(3) as pool:
        for way, wanted in list(TORCH.items()) + list(OTHERS.items()):
            if not chosen or way in chosen:
                pool.submit(try_one, way, wanted)
        for way in ("loader", "pageable"):
            if not chosen or way in chosen:
                pool.submit(watch.dissect, way)
    if not chosen or "foreach" in chosen:
        watch.whole("foreach")
    print("%.0f s in all" % (time.time() - begin))
    print("\n".join(watch.details))
    for line in watch.failed:
        print("FAIL gpu_watch: " + line)
    sys.exit(1 if watch.failed else 0)


main()
