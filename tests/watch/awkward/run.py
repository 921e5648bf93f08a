#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs generated programs bare and under `bestride run --watch`, which must not change anything and must not report a fault.

For each seed it builds the program of generate.py, and compares standard output, the exit code, and what the program writes to
standard error. It fails if they differ, if there is a verdict, or if `bestride` prints more than the line about a rank that computes,
sleeps or moves data. Folders of programs with a problem are kept. Exit code 77: a compiler, a launcher or mpi4py is missing.
"""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

import generate

STATUS = re.compile(r"bestride: (?:no rank makes progress for|.* (?:computes?|sleeps?|waits?|reads? or writes?|makes? other calls|"
                    r"ha(?:s|ve) not called MPI_Init)) .*; this may be (?:its|their) work(?:; if it is not: .*)?$")


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


class Outcome:
    """What a launch printed and returned; `hung` if it had to be ended."""

    def __init__(self, command, folder, limit):
        os.makedirs(folder)
        started = time.monotonic()
        paths = [os.path.join(folder, name) for name in ("output", "error")]
        with open(paths[0], "wb") as output, open(paths[1], "wb") as error:
            with subprocess.Popen(command, stdout=output, stderr=error, stdin=subprocess.DEVNULL, cwd=folder, start_new_session=True) as process:
                try:
                    self.code, self.hung = process.wait(timeout=limit), False
                except subprocess.TimeoutExpired:
                    process.terminate()
                    self.hung = True
                    try:
                        self.code = process.wait(timeout=15)
                    except subprocess.TimeoutExpired:
                        process.kill()
                        self.code = process.wait()
        self.seconds = time.monotonic() - started
        self.output, self.error = map(text_of, paths)

    def split_error(self):
        """The lines of the program and those of `bestride`, to which the indented lines below them belong."""
        program, command, within = [], [], False
        for line in self.error.splitlines():
            within = line.startswith("bestride:") or within and line.startswith("  ")
            (command if within else program).append(line)
        return program, command

    def own_error(self):
        """The lines of the program without numbers, such as process ids and addresses, in an order that does not depend on time."""
        return sorted(re.sub(r"0x[0-9a-f]+|\d+", "#", line) for line in self.split_error()[0])


def differences(bare, watched):
    if watched.code != bare.code and not watched.hung:
        yield "exit code", f"{watched.code} instead of {bare.code}"
    if watched.output != bare.output:
        yield "output", watched.output
    if watched.own_error() != bare.own_error():
        yield "standard error", watched.error[:2000]


def reports(watched, files, result):
    """What `bestride` reported although nothing was wrong."""
    for path in files:
        for finding in json.loads(text_of(path))["findings"]:
            yield "verdict", f"{finding['class']} ({finding['cause']}): {finding['summary']}"
    messages = watched.split_error()[1]
    result["status_lines"] = [line for line in messages if STATUS.match(line)]
    other = [line for line in messages if not STATUS.match(line)]
    if other and not files:
        yield "message", "\n".join(other[:20])


class Runner:
    def __init__(self, options):
        self.options = options
        self.compilers = {"c": options.mpicc, "cpp": options.mpicxx, "fortran": options.mpifort}

    def problems(self, program, folder, result):
        """Yields (kind, what) for one program."""
        commands, words = program.write(folder)
        for first, *rest in commands:
            built = subprocess.run([self.compilers[first], *rest], capture_output=True, text=True, check=False)
            if built.returncode:
                yield "build", built.stderr[:2000]
                return
        python = words[0] == "python"
        words = [self.options.python, *words[1:]] if python else words
        launch = [self.options.python_mpiexec if python else self.options.mpiexec, "-n", str(program.size), *words]
        limit = 4 * program.seconds + self.options.limit
        bare = Outcome(launch, os.path.join(folder, "bare"), limit)
        result["bare_seconds"] = round(bare.seconds, 1)
        if bare.hung or (bare.output, bare.code) != (program.expected, program.code):
            yield "program", f"bare: hung {bare.hung}, code {bare.code} instead of {program.code}, output\n{bare.output}{bare.error[:2000]}"
            return
        verdicts = os.path.join(folder, "verdicts")
        os.makedirs(verdicts)
        watched = Outcome([self.options.bestride, "run", "--watch", "--verdict-folder", verdicts, *launch], os.path.join(folder, "watched"), limit)
        result["watched_seconds"] = round(watched.seconds, 1)
        if watched.hung:
            yield "hang", f"did not end within {limit:.0f} s; bare {bare.seconds:.1f} s"
        yield from differences(bare, watched)
        yield from reports(watched, glob.glob(os.path.join(verdicts, "*")), result)

    def run(self, seed):
        program = generate.Program(seed, self.options.language)
        folder = os.path.join(self.options.folder, str(seed))
        shutil.rmtree(folder, ignore_errors=True)
        result = {"seed": seed, "language": program.language, "ranks": program.size, "sections": program.names}
        result["problems"] = [{"kind": kind, "what": what} for kind, what in self.problems(program, folder, result)]
        if not result["problems"] and not self.options.keep:
            shutil.rmtree(folder)
        print(f"{seed:6} {program.language:8} {program.size} ranks {result.get('bare_seconds', 0):5.1f} s {result.get('watched_seconds', 0):5.1f} s  "
              + (", ".join(problem["kind"] + " " + problem["what"].split("\n")[0] for problem in result["problems"]) or "ok"), flush=True)
        return result


def missing(options):
    """What is needed and not there."""
    languages = {generate.Program(seed, options.language).language for seed in options.seeds}
    needed = [options.bestride, options.mpiexec] if languages != {"python"} else [options.bestride]
    needed += [path for name, path in (("c", options.mpicc), ("cpp", options.mpicxx), ("fortran", options.mpifort), ("python", options.python),
                                       ("python", options.python_mpiexec)) if name in languages]
    found = [path for path in needed if not shutil.which(path)]
    if "python" in languages and not found and subprocess.run([options.python, "-c", "import mpi4py"], check=False).returncode:
        found.append("mpi4py")
    return found


def main():
    parser = argparse.ArgumentParser(description="Runs generated programs bare and under `bestride run --watch`.")
    parser.add_argument("--bestride", required=True)
    parser.add_argument("--seeds", type=int, nargs="+", help="default: --count from --first on")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--language", choices=generate.LANGUAGES, help="only this one")
    parser.add_argument("--folder", default="awkward-programs", help="where programs are built and run")
    parser.add_argument("--keep", action="store_true", help="keep also programs without a problem")
    parser.add_argument("--json", help="a file for the results")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60, help="seconds beyond four times the expected ones before a run counts as hung")
    parser.add_argument("--mpicc", default="mpicc.mpich")
    parser.add_argument("--mpicxx", default="mpicxx.mpich")
    parser.add_argument("--mpifort", default="mpifort.mpich")
    parser.add_argument("--mpiexec", default="mpiexec.mpich")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with mpi4py")
    parser.add_argument("--python-mpiexec", help="the launcher of its MPI library; default: mpiexec beside it")
    options = parser.parse_args()
    options.folder, options.bestride = os.path.abspath(options.folder), os.path.abspath(options.bestride)
    options.seeds = options.seeds or range(options.first, options.first + options.count)
    options.python_mpiexec = options.python_mpiexec or os.path.join(os.path.dirname(options.python), "mpiexec")
    if absent := missing(options):
        print("can't run: there is no " + ", ".join(absent))
        return 77
    runner = Runner(options)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(runner.run, options.seeds))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    kinds = collections.Counter((problem["kind"], problem["what"].split(":")[0] if problem["kind"] == "verdict" else "")
                                for result in results for problem in result["problems"])
    bad = sum(bool(result["problems"]) for result in results)
    print("\nlanguage  programs  problems  seconds bare and watched  status lines")
    for language in generate.LANGUAGES:
        own = [result for result in results if result["language"] == language]
        print(f"{language:8} {len(own):9} {sum(bool(result['problems']) for result in own):9}"
              f" {sum(result.get('bare_seconds', 0) for result in own):13.0f} {sum(result.get('watched_seconds', 0) for result in own):11.0f}"
              f" {sum(len(result.get('status_lines', ())) for result in own):13}")
    for (kind, what), count in sorted(kinds.items()):
        print(f"{count} x {kind} {what}")
    print(f"{len(results)} programs, {bad} with a problem")
    return 1 if bad or not results else 0


if __name__ == "__main__":
    sys.exit(main())
