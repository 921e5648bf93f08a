#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collectives on several hosts with slow links (tests/testbed): time and bytes, ours against the MPI library's own.

Times: one run in which the three variants take turns (bench/collectives). Bytes: each variant alone, as the difference between a run with
rounds and a run without, counted at every host's links. Printed per case:

  faster     the better of the library's two forms over ours, medians
  t/limit    time over the time that the links need for the minimum bytes of any algorithm; at MTU 1500 it cannot be below 1.046, because
             0.956 of the bytes that the shaper counts are payload
  bytes      bytes per call through the busiest host and direction, over that minimum
"""
import json
import os
import random
import re
import sys
import tempfile

import summary
from launch import parser_of

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "testbed"))
from bed import Bed, reason_against  # noqa: E402

VARIANTS = ("ours", "library", "library_nonblocking")
SKIPPED = 77
PAYLOAD_SHARE = 0.956  # share of a full frame at MTU 1500


def bits_per_second(rate):
    """The bits per second of a tc rate, or None for 'none'."""
    match = re.fullmatch(r"([0-9.]+)(k|m|g)bit", rate)
    return float(match[1]) * {"k": 1e3, "m": 1e6, "g": 1e9}[match[2]] if match else None


def place(per_host, how, seed):
    """The host of every rank."""
    block = [host for host, count in enumerate(per_host) for _ in range(count)]
    if how == "random":
        random.Random(seed).shuffle(block)
    if how == "cyclic":
        block = [host for turn in range(max(per_host)) for host, count in enumerate(per_host) if turn < count]
    return block


def least_bytes(collective, size, hosts):
    """The minimum bytes that the busiest host must send or receive (Chan et al., Concurrency Computat. 19, 2007, section 3, with hosts as
    nodes). `size`: as in the driver; `hosts`: the host of every rank, with rank 0 as the root."""
    ranks = len(hosts)
    on_host = [hosts.count(host) for host in sorted(set(hosts))]
    if len(on_host) == 1:
        return 0
    if collective in ("allgather", "allgatherv", "reduce_scatter_block", "reduce_scatter"):
        return size * (1 - min(on_host) / ranks)
    if collective == "allreduce":
        return 2 * size * (1 - 1 / len(on_host))
    if collective in ("gather", "scatter"):
        return size * (1 - hosts.count(hosts[0]) / ranks)
    if collective == "alltoall":
        return max(size * count * (ranks - count) / ranks for count in on_host)
    return size


class Bench:
    def __init__(self, bed, options, hosts):
        self.bed, self.options, self.hosts = bed, options, hosts
        self.known = {}  # bytes that were already counted
        self.program = os.path.join(os.path.abspath(options.build), "bin", "collectives")
        self.placement = tempfile.NamedTemporaryFile("w", suffix=".placement")
        self.placement.write("".join(f"h{host}\n" for host in hosts))
        self.placement.flush()

    def command(self, *arguments):
        options = self.options
        start = ["-r", self.placement.name]
        if options.own_rail:
            start.append("-R")
        if options.devices is not None:
            start += ["-d", options.devices]
        if options.preload:
            start += ["-l", os.path.abspath(options.preload)]
        for setting in options.environment:
            start += ["-e", setting]
        content = ["--repeat-content"] if options.change == 0 else ["--change", options.change] if options.change < 1 else []
        return [*start, self.program, "--type", options.type, *content, *arguments]

    def times(self, collective):
        """The driver's lines, for each size and form. If results differ, the exit status is 1 and the line reports it."""
        options = self.options
        text = self.bed.call("run.sh", *self.command("--collectives", collective, "--bytes", options.bytes, "--forms", options.forms,
                                                     "--warmup", options.warmup, "--rounds", options.rounds), allowed=(0, 1), timeout=1800)
        return [json.loads(line) for line in text.splitlines()]

    def bytes_of(self, case, variant):
        """{host: [sent, received]} per call."""
        totals = {}
        for sign, rounds in ((-1, 0), (1, self.options.count_rounds)):
            command = self.command("--collectives", case["collective"], "--bytes", case["bytes"], "--forms", case["form"],
                                   "--only", variant, "--warmup", 1, "--rounds", rounds)
            counted, _ = self.bed.counted(*command, timeout=1800)
            for (host, _), both in counted.items():
                total = totals.setdefault(host, [0, 0])
                for direction in (0, 1):
                    total[direction] += sign * both[direction] / self.options.count_rounds
        return totals

    def measure(self, collective):
        for case in self.times(collective):
            case["least_bytes"] = least_bytes(collective, case["bytes"], self.hosts)
            # The library's variants do not depend on the form of our call, so they are counted only with the first form.
            case["bytes_per_call"] = {}
            for variant in VARIANTS if not self.options.no_bytes else ():
                key = (collective, case["bytes"], variant, case["form"] if variant == "ours" else "")
                if key not in self.known:
                    self.known[key] = self.bytes_of(case, variant)
                case["bytes_per_call"][variant] = self.known[key]
            yield case


def figures_of(case, rate):
    """Adds the printed ratios. `rate`: bits per second and host, or None."""
    least = case["least_bytes"]
    library = min(case["library_median_s"], case["library_nonblocking_median_s"])
    case["faster"] = library / case["ours_median_s"]
    if rate and least:
        limit = least * 8 / rate
        case["limit_s"] = limit
        case["ours_over_limit"], case["library_over_limit"] = case["ours_median_s"] / limit, library / limit
    if least:
        case["bytes_over_least"] = {variant: max(max(both) for both in hosts.values()) / least
                                    for variant, hosts in case["bytes_per_call"].items()}
    return case


def row_of(case):
    """The columns of a case. faster_q1 and faster_q3: quartiles of the ratio, round by round, to the library's form with the lower median.
    ..._bytes: over the least bytes."""
    better = min(("library", "library_nonblocking"), key=lambda form: case[f"{form}_median_s"])
    low, _, high = summary.quartiles_of([one / ours for one, ours in zip(case[f"{better}_s"], case["ours_s"])])
    row = {name: case[name] for name in ("collective", "bytes", "form")}
    short = dict(zip(VARIANTS, ("ours", "library", "nonblocking")))
    row |= {f"{short[variant]}_ms": 1e3 * case[f"{variant}_median_s"] for variant in VARIANTS}
    row |= {"faster": case["faster"], "faster_q1": low, "faster_q3": high}
    row |= {name: case[name] for name in ("ours_over_limit", "library_over_limit") if name in case}
    row |= {f"{short[variant]}_bytes": ratio for variant, ratio in case.get("bytes_over_least", {}).items()}
    return {**row, "rounds": len(case["ours_s"]), "wrong": case["wrong"], "disputed": case["disputed"] or None}


def number(value, pattern="{:.2f}"):
    return "-" if value is None else pattern.format(value)


HEADER = (f"{'collective':20} {'bytes':>9} {'form':11} {'ours ms':>9} {'library':>9} {'nonbl.':>9} {'faster':>7} | "
          f"{'t/limit':>7} {'library':>7} | {'bytes':>7} {'library':>7} {'nonbl.':>7} | results")


def line_of(case):
    ratios = case.get("bytes_over_least", {})
    return (f"{case['collective']:20} {case['bytes']:9} {case['form']:11} "
            + " ".join(f"{case[variant + '_median_s'] * 1e3:9.2f}" for variant in VARIANTS)
            + f" {case['faster']:6.2f}x | {number(case.get('ours_over_limit')):>7} {number(case.get('library_over_limit')):>7} | "
            + " ".join(f"{number(ratios.get(variant), '{:.3f}'):>7}" for variant in VARIANTS)
            + f" | {'same, ' + case['compared'] if case['wrong'] == 0 else str(case['wrong']) + ' WRONG'}"
            + (", the library's two forms differ" if case["disputed"] else ""))


def options_of(arguments):
    parser = parser_of(__doc__)
    parser.add_argument("--hosts", type=int, default=2, help="number of hosts (2)")
    parser.add_argument("--ranks", default="2", help="ranks per host, or a list: 2,1,3 (2)")
    parser.add_argument("--placement", choices=("block", "cyclic", "random"), default="block")
    parser.add_argument("--seed", type=int, default=1, help="seed of random placement (1)")
    parser.add_argument("--rate", default="200mbit", help="rate of each direction of each rail, as in tc, or none (200mbit)")
    parser.add_argument("--rails", type=int, default=1, help="links a host (1)")
    parser.add_argument("--own-rail", action="store_true", help="local rank l uses only rail l modulo the number of rails")
    parser.add_argument("--devices", help="UCX_NET_DEVICES of the ranks; '' leaves it to the library (all rails)")
    parser.add_argument("--collectives", default="allgather,reduce_scatter_block,allreduce,bcast", help="list, see bench/collectives")
    parser.add_argument("--bytes", default="64k,4m", help="list (64k,4m)")
    parser.add_argument("--forms", default="blocking", help="list: blocking,nonblocking,persistent (blocking)")
    parser.add_argument("--type", default="int32", help="int32 or float32 (int32)")
    parser.add_argument("--change", type=float, default=1, help="fraction of 16-bit words that change each time; 0: always the same content (1)")
    parser.add_argument("--rounds", type=int, default=5, help="measured turns (5)")
    parser.add_argument("--warmup", type=int, default=1, help="turns before them (1)")
    parser.add_argument("--count-rounds", type=int, default=3, help="number of calls whose bytes are counted (3)")
    parser.add_argument("--no-bytes", action="store_true", help="times only")
    parser.add_argument("--preload", help="library (BUILD/lib/libbestride.so); '' for none: then ours is the MPI library's, too")
    parser.add_argument("--environment", action="append", default=[], metavar="NAME=VALUE", help="environment variable for the ranks; may be repeated")
    options = parser.parse_args(arguments)
    if options.preload is None:
        options.preload = os.path.join(options.build, "lib", "libbestride.so")
    for needed in filter(None, (options.preload, os.path.join(options.build, "bin", "collectives"))):
        if not os.path.exists(needed):
            parser.error(f"{needed} does not exist: build it with scripts/build")
    try:
        counts = [int(word) for word in options.ranks.split(",")]
    except ValueError:
        parser.error(f"--ranks needs a number or numbers separated by commas, not '{options.ranks}'")
    options.per_host = counts * options.hosts if len(counts) == 1 else counts
    if len(options.per_host) != options.hosts or sum(options.per_host) == 0 or min(options.per_host) < 0:
        parser.error(f"--ranks {options.ranks} does not fit {options.hosts} hosts")
    if options.rate != "none" and not bits_per_second(options.rate):
        parser.error(f"--rate needs a number with kbit, mbit or gbit, or none, not '{options.rate}'")
    return options


def leave_if_impossible():
    reason = reason_against()
    if reason:
        print(reason)
        sys.exit(SKIPPED)


def main():
    options = options_of(sys.argv[1:])
    leave_if_impossible()
    hosts = place(options.per_host, options.placement, options.seed)
    rate = bits_per_second(options.rate)
    cases = []
    with Bed(options.hosts, options.rate, options.rails) as bed:
        bench = Bench(bed, options, hosts)
        print(f"{options.hosts} hosts with {','.join(map(str, options.per_host))} ranks ({options.placement}), "
              f"{options.rails} rail(s) of {options.rate} each way, "
              f"{'preloaded ' + options.preload if options.preload else 'no preload library: ours is the MPI library, too'}\n"
              f"t/limit cannot be below {1 / PAYLOAD_SHARE:.3f}; bytes: of the busiest host over the minimum\n\n{HEADER}",
              flush=True)
        for collective in options.collectives.split(","):
            for case in bench.measure(collective):
                cases.append(figures_of(case, rate * options.rails if rate else None))
                print(line_of(cases[-1]), flush=True)
    summary.write_table(options, [row_of(case) for case in cases], host_of_rank=hosts)
    return 1 if any(case["wrong"] for case in cases) else 0


if __name__ == "__main__":
    sys.exit(main())
