#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bestride's collectives on several hosts (tests/testbed) with different settings. The variants take turns in one bed; results are not compared.

  --variant NAME=ARGUMENTS   arguments of tests/testbed/run.sh: -e NAME=VALUE, -d DEVICES, ...; the first variant is the baseline

Two links per host compared with one, and the cost of the allgather cache if no content repeats:

  bench/run_variants.py --rails 2 --rate 50mbit --variant 'one=-d data0' --variant "two=-d '' -e BESTRIDE_NICS=data0,data1" --variant 'spread=-d data0,data1'
  bench/run_variants.py --collectives allgather --rounds 12 --turns 8 --variant 'none=-e BESTRIDE_CACHE_BYTES=0' --variant cache=

Printed: the baseline's time over the variant's (with the quartiles of its calls), and the variant's time over the minimum time of its links.
"""
import json
import os
import shlex
import statistics
import sys

import summary
from launch import parser_of
from run_collectives import Bed, bits_per_second, least_bytes, leave_if_impossible, place


def measure(bed, options):
    """{(collective, variant): seconds of each call}, {collective: its bytes}"""
    build = os.path.abspath(options.build)
    common = ["-p", options.ranks, "-l", os.path.join(build, "lib", "libbestride.so"), "-e", "BESTRIDE_ALL_RANKS=1",
              "-e", "BESTRIDE_COLLECTIVES=hierarchical"]
    for setting in options.environment:
        common += ["-e", setting]
    program = [os.path.join(build, "bin", "collectives"), "--only", "ours", "--bytes", options.bytes, "--rounds", options.rounds]
    seconds, sizes = {}, {}
    for turn in range(options.turns):
        for variant in options.variants if turn % 2 == 0 else reversed(options.variants):
            text = bed.call("run.sh", *common, *options.variants[variant], *program, "--collectives", options.collectives, timeout=1800)
            for case in map(json.loads, text.splitlines()):
                seconds.setdefault((case["collective"], variant), []).extend(case["ours_s"])
                sizes[case["collective"]] = case["bytes"]
    return seconds, sizes


def rows_of(collective, size, seconds, options):
    """`seconds`: {variant: seconds of each call}. "ratio": the baseline's median time over that of the variant, and over its quartiles."""
    base = statistics.median(seconds[next(iter(options.variants))])
    least = least_bytes(collective, size, place([options.ranks] * options.hosts, "block", 1))
    limit = least * 8 / bits_per_second(options.rate) / options.rails
    rows = []
    for variant, of in seconds.items():
        fast, middle, slow = summary.quartiles_of(of)
        rows.append({"collective": collective, "bytes": size, "variant": variant, "ms": 1e3 * middle, "ratio": base / middle, "ratio_q1": base / slow,
                     "ratio_q3": base / fast, "over_limit": middle / limit, "calls": len(of)})
    return rows


def options_of(arguments):
    parser = parser_of(__doc__)
    parser.add_argument("--variant", action="append", default=[], metavar="NAME=ARGUMENTS", help="a variant; give two or more")
    parser.add_argument("--hosts", type=int, default=2, help="number of hosts (2)")
    parser.add_argument("--ranks", type=int, default=2, help="ranks a host (2)")
    parser.add_argument("--rails", type=int, default=1, help="links a host (1)")
    parser.add_argument("--rate", default="200mbit", help="rate of each direction of each rail, as in tc (200mbit)")
    parser.add_argument("--collectives", default="allgather,reduce_scatter_block,allreduce,bcast", help="list, see bench/collectives")
    parser.add_argument("--bytes", default="4m", help="one size, see bench/collectives (4m)")
    parser.add_argument("--rounds", type=int, default=3, help="calls a turn (3)")
    parser.add_argument("--turns", type=int, default=4, help="(4)")
    parser.add_argument("--environment", action="append", default=[], metavar="NAME=VALUE", help="environment variable for the ranks; may be repeated")
    options = parser.parse_args(arguments)
    options.variants = {name: shlex.split(rest) for name, equals, rest in (variant.partition("=") for variant in options.variant) if equals}
    if len(options.variants) < 2 or len(options.variants) != len(options.variant):
        parser.error("give --variant NAME=ARGUMENTS at least twice, with different names")
    if not bits_per_second(options.rate):
        parser.error(f"--rate needs a number with kbit, mbit or gbit, not '{options.rate}'")
    if options.rounds * options.turns < 2:
        parser.error("--rounds times --turns must be at least two calls")
    return options


def main():
    options = options_of(sys.argv[1:])
    leave_if_impossible()
    with Bed(options.hosts, options.rate, options.rails) as bed:
        seconds, sizes = measure(bed, options)
    print(f"{options.hosts} hosts with {options.ranks} ranks, {options.rails} rail(s) of {options.rate} each way; baseline: {next(iter(options.variants))}\n")
    rows = []
    for collective, size in sizes.items():
        rows += rows_of(collective, size, {variant: seconds[collective, variant] for variant in options.variants}, options)
    for row in rows:
        print("{collective:22} {bytes:9} {variant:12} {ratio:6.2f} ({ratio_q1:.2f} to {ratio_q3:.2f})   t/limit {over_limit:5.2f}".format(**row))
    summary.write_table(options, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
