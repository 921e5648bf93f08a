#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how often the verdicts of `bestride run --watch` on generated programs with a fault (generate.py) are right.

For each program it prints a line, and at the end a table: the share of verdicts with the right class, ranks, function and line, the time
from the fault to the verdict, and for each band of confidence the share that was right. It fails if a program can't be built or
ends without its fault, if there is a verdict on a program whose fault does not stop it, or if the share of right ones is below --least.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import generate

BANDS = ((0, 0.5), (0.5, 0.8), (0.8, 0.95), (0.95, 1), (1, 1.01))


def processes_in(folder):
    """Ids of the processes whose working directory is `folder`."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/cwd") == folder:
                found.append(int(name))
        except OSError:
            pass
    return found


def end_all(process, folder):
    """Ends `bestride run`, its process group and what the ranks have left."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    for _ in range(10):
        left = processes_in(folder)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if not left:
            return
        time.sleep(0.1)


class Run:
    """One program under `bestride run --watch`, and what is right and wrong about its verdict."""

    def __init__(self, options, seed):
        self.folder = os.path.realpath(os.path.join(options.folder, str(seed)))
        shutil.rmtree(self.folder, ignore_errors=True)
        self.program = generate.generate(seed, self.folder, options.languages, options.python or sys.executable, options.numpy)
        self.findings, self.ended, self.output, self.right = [], [], "", {}
        self.problem, self.seconds, self.fault_rank, self.exit_code = self.build(options), None, None, None
        if not self.problem:
            self.launch(options)
            self.judge()

    def build(self, options):
        wrappers = {"mpicc": options.mpicc, "mpicxx": options.mpicxx, "mpifort": options.mpifort}
        for words in self.program["build"]:
            result = subprocess.run([wrappers[words[0]], *words[1:]], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if result.returncode:
                return f"can't be built: {result.stdout[-2000:]}"
        return ""

    def read_verdict(self):
        for name in os.listdir(self.folder):
            if name.endswith(".verdict.json"):
                try:
                    with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                        return json.load(file)
                except (json.JSONDecodeError, FileNotFoundError):
                    pass
        return {"findings": []}

    def launch(self, options):
        mpiexec = options.python_mpiexec if self.program["language"] == "python" else options.mpiexec
        words = [options.bestride, "run", "--watch", "--patience", "4", "--verdict-folder", self.folder, mpiexec, "-n", str(self.program["ranks"]), *self.program["run"]]
        with open(os.path.join(self.folder, "output"), "w+", errors="replace", encoding="utf-8") as output:
            process = subprocess.Popen(words, cwd=self.folder, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,  # pylint: disable=consider-using-with
                                       stdin=subprocess.PIPE if self.program["standard_input"] else subprocess.DEVNULL,
                                       env=os.environ | {"OMP_WAIT_POLICY": "passive", "PYTHONUNBUFFERED": "1"})
            until, found = time.monotonic() + self.program["limit"], None
            while process.poll() is None and time.monotonic() < until and (found is None or time.monotonic() < found + 1.5):
                time.sleep(0.1)
                if found is None and self.real_findings(self.read_verdict()):
                    found = time.monotonic()
            self.exit_code = process.poll()
            end_all(process, self.folder)
            output.seek(0)
            self.output = output.read()
        verdict = self.read_verdict()
        self.findings, self.ended = self.real_findings(verdict), [finding for finding in verdict["findings"] if "ended" in finding]
        path = os.path.join(self.folder, "fault.time")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                when, rank = file.read().split()
            self.fault_rank = int(rank)
            if self.findings:
                self.seconds = verdict["started"] + self.findings[0]["found"] - float(when)

    @staticmethod
    def real_findings(verdict):
        return [finding for finding in verdict["findings"] if "ended" not in finding]

    def judge(self):
        """Sets self.problem and self.right, a dictionary with what of class, ranks, function and line was right (absent: not judged)."""
        program = self.program
        if program["fault"] == "none":
            self.problem = f"a verdict without a fault: {self.findings[0]['class']}" if self.findings else "" if self.exit_code == 0 else "did not end"
            self.right["class"] = not self.findings
            return
        if self.fault_rank is None:
            self.problem = f"did not reach its fault; exit code {self.exit_code}"
            return
        if not self.findings:
            self.right = {"class": program["may_end"] and self.exit_code == 0}
            self.problem = "" if self.right["class"] else f"verdict taken back: {self.ended[0]['class']} {self.ended[0]['culprits']}" if self.ended else f"no verdict; exit code {self.exit_code}"
            return
        first = self.findings[0]
        self.right["class"] = first["class"] in program["classes"]
        self.right["ranks"] = self.rank_is_right(first)
        if program["judge_place"] and self.exit_code != 0:  # a job that has ended by itself has no stacks
            self.judge_place()
        wrong = [name for name, right in self.right.items() if not right]
        self.problem = "wrong " + ", ".join(wrong) if wrong else ""

    def rank_is_right(self, finding):
        program, named = self.program, set(finding["culprits"])
        # The function of a reduction is called by whichever rank combines first, and that is the one with the fault.
        culprit = self.fault_rank if program["place"] == "op" else program["culprit"]
        if named == {culprit} or named and named <= set(program["also_right"]):
            return True
        # All ranks of a cycle wait for each other, and with two members there is no minority.
        return culprit in named and (finding["class"] == "deadlock" or finding["class"] == "mismatch" and len(named) == 2)

    def judge_place(self):
        """Whether the verdict shows a function that is right and, with debugging information, the line."""
        text, program = self.output[self.output.find("bestride: "):], self.program
        names = program["functions"] + ["MAIN__"] * bool({"simulation", "main"} & set(program["functions"]))
        self.right["function"] = any(re.search(rf"(stack: | at | in | by ).*(?<![A-Za-z]){re.escape(name)}(?!_?[A-Za-z])", text) for name in names)
        if program["debug"]:
            self.right["line"] = any(f"{os.path.basename(file)}:{line})" in text for file, line in program["marks"])

    def result(self):
        first = self.findings[0] if self.findings else {}
        kept = ("seed", "fault", "language", "pattern", "place", "ranks", "classes", "culprit", "debug", "optimise")
        return {name: self.program[name] for name in kept} | {
            "problem": self.problem, "right": self.right, "seconds": self.seconds, "class": first.get("class"), "culprits": first.get("culprits"),
            "confidence": first.get("confidence"), "exit_code": self.exit_code}


def make(options, seed):
    try:
        run = Run(options, seed)
    except LookupError as error:
        print(f"left out  {seed:4}  {error}", flush=True)
        return None
    result = run.result()
    said = f"{result['class']} {result['culprits']} after {result['seconds']:.1f} s" if result["class"] and result["seconds"] is not None else result["class"] or "no verdict"
    print(f"{'WRONG' if run.problem else 'ok':6} {seed:4}  {result['fault']:26} {result['language']:8} {result['pattern']:16} {result['place']:10} "
          f"ranks {result['ranks']} culprit {result['culprit']}  {said}" + (f"  ({run.problem})" if run.problem else ""), flush=True)
    if not run.problem and not options.keep:
        shutil.rmtree(run.folder, ignore_errors=True)
    return result


def share(results, name):
    judged = [result["right"][name] for result in results if name in result["right"]]
    return f"{sum(judged)} of {len(judged)}"


def table(results):
    print(f"\n{'':34}{'programs':>9}  {'class':12}  {'ranks':12}  {'function':12}  {'line':12}  right")
    groups = {"all": results}
    for key in ("language", "place"):
        for value in sorted({result[key] for result in results}):
            groups[f"{key} {value}"] = [result for result in results if result[key] == value]
    for name, members in groups.items():
        print(f"{name:34}{len(members):9}  {share(members, 'class'):12}  {share(members, 'ranks'):12}  {share(members, 'function'):12}  {share(members, 'line')}")
    times = sorted(result["seconds"] for result in results if result["seconds"] is not None)
    if times:
        print(f"from the fault to the verdict: median {statistics.median(times):.1f} s, nine of ten within {times[int(0.9 * (len(times) - 1))]:.1f} s, longest {times[-1]:.1f} s")
    for low, high in BANDS:
        members = [result for result in results if result["confidence"] is not None and low <= result["confidence"] < high]
        right = sum(result["right"].get("class", False) and result["right"].get("ranks", True) for result in members)
        if members:
            print(f"confidence {low:.0%} to {min(high, 1):.0%}: class and ranks right in {right} of {len(members)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bestride", required=True)
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("--mpicc", default="mpicc")
    parser.add_argument("--mpicxx", default="mpicxx")
    parser.add_argument("--mpifort", default="", help="default: no programs in Fortran")
    parser.add_argument("--python", default="", help="an interpreter with mpi4py; default: no programs in Python")
    parser.add_argument("--python-mpiexec", default="", help="launcher of these programs; default: --mpiexec")
    parser.add_argument("--seeds", help="numbers of programs: 3,7,10-20; they go through all faults in turn; default: each fault twice")
    parser.add_argument("--jobs", type=int, default=1, help="launches at a time")
    parser.add_argument("--folder", help="where the programs are made; those with a wrong verdict stay there; default: a temporary folder")
    parser.add_argument("--keep", action="store_true", help="keep the others, too")
    parser.add_argument("--least", type=float, default=0.0, help="fail if a smaller share of the programs has a verdict with the right class and ranks")
    parser.add_argument("--json", help="file for the results")
    options = parser.parse_args()
    options.bestride, options.python_mpiexec = os.path.realpath(options.bestride), options.python_mpiexec or options.mpiexec
    options.languages = ["c", "c++"] + (["fortran"] if options.mpifort else []) + (["python"] if options.python else [])
    options.numpy = bool(options.python) and subprocess.run([options.python, "-c", "import numpy"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    seeds = []
    for part in (options.seeds or f"0-{2 * len(generate.FAULTS) - 1}").split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    with tempfile.TemporaryDirectory(prefix="bestride-strangers-") as temporary:
        options.folder = options.folder or temporary
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            results = [result for result in pool.map(lambda seed: make(options, seed), seeds) if result]
    table(results)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    unusable = [result["seed"] for result in results if not result["right"]]
    if unusable:
        print(f"programs without a judgement: {unusable}")
    false = [result["seed"] for result in results if result["class"] and not result["classes"]]
    if false:
        print(f"verdicts without a fault that stops the job: {false}")
    right = sum(result["right"].get("class", False) and result["right"].get("ranks", True) for result in results)
    print(f"{right} of {len(results)} verdicts have the right class and ranks, {sum(not result['problem'] for result in results)} are right in everything")
    return bool(unusable or false) or right < options.least * len(results)


if __name__ == "__main__":
    sys.exit(main())
