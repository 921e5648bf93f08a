#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs fault_lab under `bestride run --watch` and compares the verdicts with those that fault_lab expects.

For each run it prints the kind, the verdict, and the time from the fault to the verdict. It fails if a verdict is wrong, or if a
clean run has one. Times are printed, not compared. With --second, each run has two faults, both of which have to be in the first
two findings, unless nobody waits for the rank.
"""
import argparse
import concurrent.futures
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
import summary  # noqa: E402

# Classes of the detector that are right for a class of fault_lab.
CLASSES = {
    "crash": {"crash"},
    "non-communication hang": {"non-communication hang", "stopped"},
    "hang": {"communication hang", "unmatched message", "starvation"},
    "deadlock": {"deadlock"},
    "mismatch": {"mismatch"},
    "slow": {"slow"},
}
# A message with a wrong tag is a mismatch of a message, not of collective calls.
ALSO = {"tag_mismatch": {"unmatched message"}, "missing_receive": {"unmatched message"}, "all_poll": {"deadlock"}}


def expected(lab, ranks, words):
    listing = subprocess.run([lab, "--list", "--json", "--ranks", str(ranks), *words], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {kind["kind"]: kind for kind in json.loads(listing)["kinds"]}


# All ranks are outside MPI for longer than --patience, but do something.
WORKING = {"computing_child", "computing_thread", "polling_computation", "late_input", "long_computation"}


def is_slow(kind):
    return kind.startswith(("slow_", "cpu_"))


def lab_words(options, kind, seed):
    """Options of fault_lab. A rank becomes slow when a third of the run has shown how fast it was; a step has four phases."""
    if not is_slow(kind):
        return ["--seed", str(seed), "--steps", str(options.steps), "--work-us", str(options.work_us)]
    steps = round(options.slow_seconds / (4e-6 * options.slow_work_us))
    return ["--seed", str(seed), "--steps", str(steps), "--work-us", str(options.slow_work_us), "--fault-step", str(steps // 3)]


def numbers(text):
    """The set of numbers in a list such as "0,3-5"."""
    result = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first:
            result |= set(range(int(first), int(last or first) + 1))
    return result


def right_classes(kind, classes):
    return set().union(*(CLASSES.get(name, set()) for name in classes), ALSO.get(kind, set()))


class Run:
    """One launch. `second`: the kind of a second fault, or ""."""

    def __init__(self, options, kind, second, ranks, seed):
        self.kind, self.second, self.ranks, self.seed = kind, second, ranks, seed
        lab = lab_words(options, kind, seed) + (["--second-fault", second] if second else [])
        self.kinds = expected(options.lab, ranks, lab)
        self.expected = self.kinds[kind]
        limit = {"clean": 120, "slow": 4 * options.slow_seconds}.get(self.expected["class"], options.limit)
        with tempfile.TemporaryDirectory(prefix="bestride-watch-") as folder:
            log = os.path.join(folder, "log")
            # Correct programs work as long as they like; a rank that works for ever, or a job that does nothing, is to be named soon.
            works = kind in WORKING
            patience = [] if self.expected["class"] == "clean" and not works else ["--patience", str(options.patience)]
            pause = max(options.pause, 1.5 * options.patience) if works else options.pause
            words = [options.bestride, "run", "--watch", *patience, "--verdict-folder", folder, options.mpiexec, "-n", str(ranks), options.lab,
                     "--fault", kind, *lab, "--limit", str(limit), "--log", log, "--checkpoint-seconds", str(pause), "--pause-seconds", str(pause)]
            self.output, self.exit_code = self.launch(words, folder, limit)
            self.verdict, self.fault_times = self.read_verdict(folder), {}
            if os.path.exists(log):
                with open(log, encoding="utf-8") as file:
                    for name, rank, seconds in re.findall(r"(\w+) rank (\d+) .* time ([0-9.]+)", file.read()):
                        self.fault_times.setdefault((name, int(rank)), float(seconds))

    @staticmethod
    def read_verdict(folder):
        for name in os.listdir(folder):
            if name.endswith(".verdict.json"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    return json.load(file)
        return {"findings": []}

    def launch(self, words, folder, limit):
        """Output and exit code. A run that hangs is ended soon after its verdict; with two faults, after a verdict that names both
        ranks or when there has been one for 7 s."""
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)  # pylint: disable=consider-using-with
            until = time.monotonic() + 4 * limit + 60
            begun = ending = None
            while process.poll() is None:
                time.sleep(0.05)
                findings = self.read_verdict(folder)["findings"]
                named = set().union(*(finding["culprits"] for finding in findings))
                complete = not self.second or {self.expected["rank"], self.expected["second_rank"]} <= named
                begun = begun or (time.monotonic() if findings else None)
                if ending is None and findings and (self.second or self.expected["end"] in ("limit", "any") or self.expected["class"] == "slow"):
                    if complete or time.monotonic() > begun + 7:
                        ending = time.monotonic() + 0.5
                if ending is not None and time.monotonic() > ending:
                    process.send_signal(signal.SIGTERM)
                    ending = float("inf")
                if time.monotonic() > until:
                    process.kill()
            output.seek(0)
            return output.read(), process.returncode

    @property
    def findings(self):
        """The findings without stops that have ended, which are not faults."""
        return [finding for finding in self.verdict["findings"] if not (finding["class"] == "stopped" and "ended" in finding)]

    def latency(self):
        """Seconds from the last fault to the finding that completes the verdict."""
        if not self.findings or not self.fault_times:
            return None
        return self.verdict["started"] + self.findings[:len(self.fault_times)][-1]["found"] - max(self.fault_times.values())

    def problem(self):
        """What is wrong with the verdict; "" if nothing is."""
        if self.expected["class"] == "clean":
            return "a verdict on a clean run" if self.findings else f"exit code {self.exit_code}" if self.exit_code != 0 else ""
        if not self.findings:
            # Some faults do not make the job hang: what it does depends on the MPI library.
            return "" if self.expected["end"] in ("any", "wrong") and self.exit_code == 0 else "no verdict"
        if not self.fault_times:
            return "a verdict before the fault"
        if len(self.fault_times) == 2:
            return self.problem_of_two()
        (kind, rank), = self.fault_times
        facts = self.kinds[kind]
        culprits = [rank] if kind == self.second else facts["culprits"]
        first = self.findings[0]
        if first["class"] not in right_classes(kind, [facts["class"], *facts["also"]]):
            return f"class {first['class']}"
        if first["culprits"] != culprits:
            # With two ranks there is no minority.
            if not (self.ranks == 2 and set(culprits) <= set(first["culprits"])):
                return f"culprits {first['culprits']} instead of {culprits}"
        # In a build without debugging information, by the symbols only.
        if facts.get("function") and not re.search(rf"(stack: | at ).*\b{facts['function']}\b", self.output):
            return f"the stack does not show {facts['function']}"
        return ""

    def nobody_waits_for(self, rank):
        """True if no line of a rank in the verdict waits for this rank: then its fault has no visible effect."""
        return not any(rank in numbers(text) for text in re.findall(r"waits for ranks? ([0-9,-]+)", self.output))

    def problem_of_two(self):
        named = self.findings[:2]
        for kind, rank in self.fault_times:
            right = right_classes(kind, [self.kinds[kind]["class"], *self.kinds[kind]["also"]])
            if not any(rank in finding["culprits"] and finding["class"] in right for finding in named):
                if self.nobody_waits_for(rank):
                    continue
                return f"{kind} of rank {rank} is not among {[(finding['class'], finding['culprits']) for finding in named]}"
        # If one of three ranks does not reach the mismatched call, the other two have no minority.
        if self.ranks == 3 and self.expected["class"] == "mismatch":
            return ""
        others = set().union(*(finding["culprits"] for finding in named)) - {rank for _, rank in self.fault_times}
        return f"ranks {sorted(others)} are named, too" if others else ""


def result_of(options, kind, second, ranks, seed):
    """Makes a run, prints what it showed, and returns it."""
    run = Run(options, kind, second, ranks, seed)
    problem, latency = run.problem(), run.latency()
    said = run.findings[:max(1, len(run.fault_times))]
    names = ", ".join(f"{one['class']} {one['culprits']}" for one in said)
    text = (f"{'FAILED' if problem else 'ok':6}  {kind + (' + ' + second if second else ''):22} ranks {ranks} seed {seed}  " +
            (f"{names} after {latency if latency is None else round(latency, 2)} s" if said else "no finding") +
            (f"  ({problem})\n{run.output[-4000:]}" if problem else ""))
    print(text, flush=True)
    result = {"kind": kind, "ranks": ranks, "seed": seed, "problem": problem, "seconds": latency, "class": said[0]["class"] if said else None,
              "culprits": said[0]["culprits"] if said else None}
    if second:
        result |= {"second": second, "faults": len(run.fault_times),
                   "named": sum(any(rank in one["culprits"] for one in said) for _, rank in run.fault_times), "findings": [[one["class"], one["culprits"]] for one in said]}
    return result


def rows_of(results):
    """The lines of the table: for each verdict, and for each kind of fault."""
    groups = {}
    for column in ("class", "kind"):
        for result in results:
            groups.setdefault((column, result[column] or "none"), []).append(result)
    rows = []
    for (column, name), of in groups.items():
        times = [result["seconds"] for result in of if result["seconds"] is not None and not result["problem"]]
        row = {"of": {"class": "verdict", "kind": "fault"}[column], "name": name, "runs": len(of), "right": sum(not result["problem"] for result in of)}
        if of[0].get("second"):
            row |= {"two_faults": sum(result["faults"] == 2 for result in of), "both_named": sum(result["named"] == 2 for result in of)}
        rows.append({**row, "median_s": statistics.median(times) if times else None, "longest_s": max(times, default=None)})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bestride", required=True)
    parser.add_argument("--lab", required=True, help="path of fault_lab")
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("--kinds", nargs="+", help="default: all but the slow ones")
    parser.add_argument("--second", nargs="+", default=[""], help="kinds of a second fault (fault_lab --second-fault)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[4])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--work-us", type=int, default=300)
    parser.add_argument("--slow-seconds", type=float, default=60, help="computation of a run whose rank becomes slow after a third of it")
    parser.add_argument("--slow-work-us", type=int, default=3000, help="--work-us of such a run")
    parser.add_argument("--patience", type=float, default=4, help="of bestride run, for runs with a fault")
    parser.add_argument("--limit", type=int, default=12, help="seconds after which a run that hangs is ended")
    parser.add_argument("--pause", type=float, default=5, help="seconds of the interruptions that are no faults")
    parser.add_argument("--table", metavar="FILE", help="write the numbers of runs and the delays to this file (bench/summary.py has the format)")
    parser.add_argument("--jobs", type=int, default=1, help="launches at a time")
    options = parser.parse_args()
    runs = []
    for ranks in options.ranks:
        for seed in options.seeds:
            for second in options.second:
                words = ["--second-fault", second] if second else []
                known = expected(options.lab, ranks, ["--seed", str(seed), "--steps", str(options.steps), *words])
                kinds = options.kinds or [name for name, facts in known.items() if facts["class"] != "slow"]
                runs += [(kind, second, ranks, seed) for kind in kinds if known[kind]["possible"]]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda run: result_of(options, *run), runs))
    wrong = sum(bool(result["problem"]) for result in results)
    times = [result["seconds"] for result in results if result["seconds"] is not None and not result["problem"]]
    if times:
        print(f"from the fault to the verdict: median {statistics.median(times):.2f} s, longest {max(times):.2f} s")
    print(f"{len(results)} runs, {wrong} wrong")
    summary.write_table(options, rows_of(results))
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
