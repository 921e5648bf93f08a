#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs MPI programs of other projects without and with the preload library and compares the results.

    tests/programs/run.py --lib build/release/lib [--suites mpich,hdf5] [--modes default,two-node] [--only REGEX] [--jobs 2]

A case runs once without the library, then once in every mode. If something differs, it runs twice more without the library, to find output
that varies anyway, and twice more in that mode; a difference counts if two of three runs have it. The exit status is 1 if there is one.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import time

import compare
import fetch
import job
import suites

REPEATS = 3
PROGRESS_EVERY = 50  # commands between two lines of progress


def two_nodes(ranks):
    half = (ranks + 1) // 2
    return "".join(f"node {first}{'' if first == last else f'-{last}'}\n" for first, last in ((0, half - 1), (half, ranks - 1)) if first <= last)


def environment(mode, case, library, folder):
    if mode == "bare":
        return {"LD_PRELOAD": f"{folder}/yield.so"}
    variables = {"LD_PRELOAD": f"{library}:{folder}/yield.so"}
    if mode == "packed":
        variables |= {"BESTRIDE_STRATEGY": "pack", "BESTRIDE_PARANOID": "1"}
    if mode == "two-node":
        topology = f"{folder}/topologies/{case.ranks}"
        variables |= {"BESTRIDE_ALL_RANKS": "1", "BESTRIDE_COLLECTIVES": "hierarchical", "BESTRIDE_TOPOLOGY": topology}
    return variables


class Runner:
    def __init__(self, options):
        self.options = options
        self.folder = os.path.abspath(options.build)
        self.library = os.path.join(os.path.abspath(options.lib), "libbestride.so")
        os.makedirs(f"{self.folder}/topologies", exist_ok=True)
        here = os.path.dirname(os.path.abspath(__file__))
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", f"{self.folder}/yield.so", f"{here}/yield.c", "-ldl"], check=True)
        for ranks in range(1, 17):
            with open(f"{self.folder}/topologies/{ranks}", "w", encoding="utf-8") as file:
                file.write(two_nodes(ranks))

    def once(self, suite, case, mode, number):
        name = re.sub(r"[^\w.+-]+", "_", case.name)[:120]
        folder = f"{self.folder}/runs/{suite}/{name}/{mode}.{number}"
        return job.launch(case, environment(mode, case, self.library, self.folder), folder, self.options.scale)

    def case(self, suite, case):
        """Mode -> descriptions of the differences."""
        bare = [self.once(suite, case, "bare", 1)]
        results = {"bare": bare[0].status, "seconds": bare[0].seconds}
        if bare[0].status == "hang":
            print(f"  hangs bare {suite}: {case.name}", flush=True)
            return results  # nothing to compare with
        modes = [mode for mode in self.options.modes if mode not in case.avoid]
        for mode in modes:
            failures, last = 0, []
            for number in range(1, REPEATS + 1):
                found = compare.differences(bare, self.once(suite, case, mode, number))
                while found and len(bare) < REPEATS:
                    bare.append(self.once(suite, case, "bare", len(bare) + 1))
                    if len(bare) == REPEATS:
                        found = compare.differences(bare, self.once(suite, case, mode, number))
                if not found:
                    if failures < number:  # this run agrees, an earlier one did not
                        break
                    continue
                failures, last = failures + 1, found
                if failures == 2:
                    break
            results[mode] = last if failures > 1 else []
            if failures > 1:
                print(f"  DIFFERS {suite}: {case.name}: {mode}", *last[:6], sep="\n      ", flush=True)
            if failures == 1:
                results[f"{mode}.once"] = last
        if not any(results[mode] or f"{mode}.once" in results for mode in modes):
            name = re.sub(r"[^\w.+-]+", "_", case.name)[:120]
            shutil.rmtree(f"{self.folder}/runs/{suite}/{name}", ignore_errors=True)
        return results


def report(suite, cases, results, modes, seconds):
    counts = collections.Counter()
    for case, result in zip(cases, results):
        counts["bare fails"] += result["bare"] not in (0, "hang")
        counts["bare hangs"] += result["bare"] == "hang"
        for mode in modes:
            counts[mode] += mode in result and not result[mode]
            if f"{mode}.once" in result:
                print(f"  once, not again {suite.name}: {case.name}: {mode}", *result[f"{mode}.once"][:3], sep="\n      ")
    failing = [case.name for case, result in zip(cases, results) if result["bare"] not in (0, "hang")]
    if failing:
        print(f"  fail bare {suite.name}: {', '.join(failing)}")
    compared = {mode: sum(result["bare"] != "hang" and mode not in case.avoid for case, result in zip(cases, results)) for mode in modes}
    print(f"{suite.name}: {len(cases)} commands, {counts['bare fails']} fail bare, {counts['bare hangs']} hang bare and are skipped; "
          + ", ".join(f"{mode}: {counts[mode]} of {compared[mode]} same" for mode in modes) + f" ({seconds:.0f} s)", flush=True)
    return all(counts[mode] == compared[mode] for mode in modes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--lib", required=True, help="folder of libbestride.so")
    parser.add_argument("--build", default=f"{here}/../../build/programs", help="folder in which programs are built and run")
    parser.add_argument("--suites", default=",".join(suite.name for suite in suites.SUITES))
    parser.add_argument("--modes", default="default,two-node", help="modes, separated by commas: default, two-node, packed")
    parser.add_argument("--only", default="", help="run only commands whose name matches this regular expression")
    parser.add_argument("--jobs", type=int, default=1, help="number of commands that run at the same time")
    parser.add_argument("--scale", type=float, default=1.0, help="factor for all time limits")
    parser.add_argument("--no-install", action="store_true", help="skip a suite if its packages are not installed")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    options.modes = options.modes.split(",")
    if not set(options.modes) <= {"default", "two-node", "packed"}:
        parser.error(f"unknown mode in {options.modes}")
    runner = Runner(options)
    if not os.path.exists(runner.library):
        parser.error(f"{runner.library} does not exist")
    place = fetch.Place(options.build, not options.no_install)
    same = True
    for suite in suites.SUITES:
        if suite.name not in options.suites.split(","):
            continue
        begin = time.monotonic()
        try:
            suite.build(place)
            cases = [case for case in suite.cases(place) if re.search(options.only, case.name)]
        except fetch.Missing as missing:
            print(f"{suite.name}: skipped: {missing}", flush=True)
            continue
        if options.list:
            print(*(f"{suite.name}: {case.name}" for case in cases), sep="\n")
            continue
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            results = []
            for result in pool.map(lambda case: runner.case(suite.name, case), cases):
                results.append(result)
                if len(results) % PROGRESS_EVERY == 0:
                    print(f"{suite.name}: {len(results)} of {len(cases)} commands ({time.monotonic() - begin:.0f} s)", flush=True)
        same = report(suite, cases, results, options.modes, time.monotonic() - begin) and same
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
