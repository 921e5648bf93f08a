#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `bestride run --watch` costs with many hosts, and how soon it names a rank that hangs on one of them.

The agents are simulated (simulated_agents): their messages are those of real ones, over TCP on this host. Prints and writes, for each
number of hosts, the share of a core and the memory of the watching process, without a fault and after one, and the time from the fault to
the verdict.
"""
import os
import re
import resource
import statistics
import subprocess
import tempfile
import threading
import time

import summary
from launch import parser_of

HERE = os.path.dirname(os.path.abspath(__file__))
VERDICT = "bestride: non-communication hang:"


class Watched:
    """One run. The CPU time of the watching process is read before and after the fault."""

    def __init__(self, options, hosts, folder):
        self.verdict_at, self.stuck_at, self.text, self.connections, self.messages = None, None, [], 0, float("nan")
        # The rank that hangs computes, which by default has a verdict only after 60 s.
        words = [options.bestride, "run", "--watch", "--patience", "4", "--verdict-folder", folder, "--", options.agents, str(hosts), str(options.ranks),
                 str(options.seconds + options.stuck), str(options.stuck)]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=os.environ | {"BESTRIDE_LOG": "info"}) as process:
            reader = threading.Thread(target=self.read_verdict, args=(process.stderr,))
            reader.start()
            settled = 2 + 0.01 * hosts + 2
            time.sleep(settled)
            first = self.used(process.pid)
            for line in process.stdout:
                if match := re.match(r"stuck at ([0-9.]+)", line):
                    self.stuck_at = float(match.group(1))
                    break
            middle = self.used(process.pid)
            last, self.memory = middle, float("nan")
            # A process that has ended and was not waited for still has its CPU time, but no memory.
            while self.verdict_at is None and self.is_running(process.pid):
                last, self.memory = self.used(process.pid), self.peak(process.pid)
                time.sleep(0.1)
            self.relayed = sum(int(count) for count in re.findall(r"relayed (\d+)", process.stdout.read()))
            process.wait()
            reader.join()
        self.calm = (middle[0] - first[0]) / (middle[1] - first[1])
        self.suspecting = (last[0] - middle[0]) / max(last[1] - middle[1], 1e-3)

    def read_verdict(self, stream):
        for line in stream:
            self.text.append(line)
            if match := re.search(r"(\d+) of them connected here, ([0-9.]+) messages a second", line):
                self.connections, self.messages = int(match.group(1)), float(match.group(2))
            elif self.verdict_at is None and line.startswith(VERDICT):
                self.verdict_at = time.time()

    @staticmethod
    def used(pid):
        """(CPU seconds, now)"""
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), time.monotonic()

    @staticmethod
    def is_running(pid):
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"

    @staticmethod
    def peak(pid):
        """MiB"""
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            found = re.search(r"VmHWM:\s+(\d+)", file.read())
            return int(found.group(1)) / 1024 if found else float("nan")


def row_of(results):
    """The medians of the runs with one number of hosts, and the verdict of the first."""
    return {**{name: statistics.median(result[name] for result in results) for name in results[0] if name != "verdict"},
            "rounds": len(results), "verdict": results[0]["verdict"]}


def main():
    parser = parser_of(__doc__, rounds=1, build=False)
    build = os.path.join(HERE, "..", "build", "release", "bin")
    parser.add_argument("--bestride", default=os.path.join(build, "bestride"))
    parser.add_argument("--agents", default=os.path.join(build, "simulated_agents"))
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--ranks", type=int, default=8, help="on each host")
    parser.add_argument("--stuck", type=float, default=20, help="seconds until the fault")
    parser.add_argument("--seconds", type=float, default=30, help="after it")
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    results = []
    print("hosts   ranks   relayed   messages/s   share of a core   while it suspects   memory     fault to verdict   verdict")
    for _ in range(options.rounds):
        for hosts in options.hosts:
            with tempfile.TemporaryDirectory(prefix="bestride-watch-") as folder:
                run = Watched(options, hosts, folder)
            delay = run.verdict_at - run.stuck_at if run.verdict_at and run.stuck_at else float("nan")
            verdict = next((line.strip() for line in run.text if line.startswith(VERDICT)), "none")
            results.append({"hosts": hosts, "ranks": hosts * options.ranks, "core_share": run.calm, "core_share_suspecting": run.suspecting, "memory_mib": run.memory,
                            "relayed": run.relayed, "connections": run.connections, "messages_per_second": run.messages, "delay_s": delay, "verdict": verdict})
            print(f"{hosts:5}   {hosts * options.ranks:5}   {run.relayed:7}   {run.messages:10.1f}   {100 * run.calm:13.2f} %   {100 * run.suspecting:15.2f} %   {run.memory:4.0f} MiB"
                  f"   {delay:14.2f} s   {verdict[:90]}", flush=True)
    rows = [row_of([result for result in results if result["hosts"] == hosts]) for hosts in options.hosts]
    if options.rounds > 1:
        for row in rows:
            print(f"{row['hosts']} hosts: median {row['delay_s']:.2f} s")
    summary.write_table(options, rows, cores=os.cpu_count())


if __name__ == "__main__":
    main()
