#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of an intercepted call that Bestride does not change: bare, preloaded without recording (BESTRIDE_RECORD=off),
recorded, and preloaded but disabled, interleaved; nanoseconds and, if valgrind is installed, instructions per call (difference of two runs,
so that start-up cancels out)."""
import argparse, json, os, re, shutil, statistics, subprocess, sys, tempfile

here = os.path.dirname(os.path.abspath(__file__))


def environment(kind, library):
    env = dict(os.environ)
    if kind != "bare":
        env["LD_PRELOAD"] = library
    if kind == "disabled":
        env["BESTRIDE_DISABLE"] = "1"
    env["BESTRIDE_RECORD"] = "on" if kind == "recorded" else "off"
    return env


def timed(program, env):
    """One run: a row for each case, with the nanoseconds per group of calls and the calls of a group."""
    text = subprocess.run([program, "time"], env=env, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def collected(program, case, count, env):
    with tempfile.TemporaryDirectory() as folder:
        out = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", program, "count", str(case), str(count)],
            env=env, capture_output=True, text=True)
        found = re.search(r"Collected\s*:\s*(\d+)", out.stderr)
        return int(found.group(1)) if found else None


def instructions(program, case, env):
    """Instructions per group of calls, or None. The difference of two runs: both pay for the lazy resolution of the first call. MPI_Init
    varies by some hundred thousand instructions from run to run, which is little compared with many calls."""
    low, high = (collected(program, case, count, env) for count in (10000, 410000))
    return (high - low) / 400000 if low and high else None


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--build", default=os.path.join(here, "..", "build", "release"))
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--json", help="write the raw figures to this file")
    options.add_argument("--no-instructions", action="store_true")
    arguments = options.parse_args()
    program = os.path.join(arguments.build, "bin", "call_overhead")
    library = os.path.abspath(os.path.join(arguments.build, "lib", "libbestride.so"))
    kinds = ["bare", "preloaded", "recorded", "disabled"]
    raw = {kind: {} for kind in kinds}
    calls = {}
    for _ in range(arguments.rounds):
        for kind in kinds:
            for row in timed(program, environment(kind, library)):
                calls[row["case"]] = row["calls"]
                raw[kind].setdefault(row["case"], []).append(row["ns"])
    counts = {kind: {} for kind in kinds}
    if shutil.which("valgrind") and not arguments.no_instructions:
        for i, case in enumerate(calls):
            for kind in kinds:
                counted = instructions(program, i, environment(kind, library))
                if counted is not None:
                    counts[kind][case] = counted
    print(f"{'case':34} {'bare ns':>9} {'+preload':>9} {'+recorded':>10} {'+disabled':>10}   {'bare ins':>9} {'+preload':>9} {'+recorded':>10} {'+disabled':>10}   (added per call)")
    worst = {"preloaded": 0.0, "recorded": 0.0, "disabled": 0.0}
    for case, n in calls.items():
        bare = statistics.median(raw["bare"][case])
        # Rounds are paired, so this is the median of differences, not the difference of medians.
        added = {k: statistics.median(a - b for a, b in zip(raw[k][case], raw["bare"][case])) / n for k in kinds[1:]}
        for k in added:
            worst[k] = max(worst[k], added[k])
        ins = [counts[k].get(case) for k in kinds]
        columns = f"{ins[0] / n:9.1f} {(ins[1] - ins[0]) / n:9.1f} {(ins[2] - ins[0]) / n:10.1f} {(ins[3] - ins[0]) / n:10.1f}" if all(v is not None for v in ins) else ""
        print(f"{case:34} {bare / n:9.1f} {added['preloaded']:9.1f} {added['recorded']:10.1f} {added['disabled']:10.1f}   {columns}")
    print(f"largest cost added to a call: preloaded {worst['preloaded']:.1f} ns (goal 25), recorded {worst['recorded']:.1f} ns, disabled {worst['disabled']:.1f} ns (goal 10)")
    if arguments.json:
        with open(arguments.json, "w") as out:
            json.dump({"nanoseconds_per_group": raw, "instructions_per_group": counts, "calls_per_group": calls}, out, indent=1)


if __name__ == "__main__":
    sys.exit(main())
