#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training step partitioned over all ranks (apps/zero_step) on several hosts with slow links (tests/testbed): MPICH without and with the
preload library.

The two take turns in one bed, in each form of the program. A job's bytes are counted at the links, including its start. Printed per phase:
milliseconds per step (slowest rank, medians over jobs) and their ratio; then the whole step (median of all steps of all jobs), and the bytes
that the busiest host sent or received per step. Float sums use the hierarchy only with --environment BESTRIDE_REASSOCIATE=1.
"""
import json
import os
import statistics
import sys

import summary
from launch import VARIANTS, library_of, parser_of, rounds_of
from run_collectives import Bed, bits_per_second, leave_if_impossible


def measure(bed, options):
    """{form: {variant: [report of each job]}}. A report is that of zero_step with the bytes of the busiest host."""
    build = os.path.abspath(options.build)
    preload = ["-l", library_of(build), "-e", "BESTRIDE_ALL_RANKS=1"]
    for setting in options.environment:
        preload += ["-e", setting]
    reports = {form: {variant: [] for variant in VARIANTS} for form in options.forms.split(",")}
    for order in rounds_of(options.turns):
        for form, of in reports.items():
            for variant in order:
                program = [os.path.join(build, "bin", "zero_step"), "--layers", options.layers, "--hidden", options.hidden, "--micro", options.micro,
                           "--steps", options.steps, "--form", form, "--json", "-"]
                links, text = bed.counted("-p", options.ranks, *(preload if variant == "bestride" else []), *program, timeout=1800)
                of[variant].append({**json.loads(text), "busiest_host_bytes": max(max(both) for both in links.values())})
    return reports


def figures_of(reports, steps):
    """{phase or 'step' or 'bytes': {variant: milliseconds, or bytes, of a step}} of one form."""
    def phase(report, name):
        return report["phases"][name]["seconds"] / steps * 1e3
    figures = {name: {variant: statistics.median(phase(report, name) for report in of) for variant, of in reports.items()}
               for name in reports[VARIANTS[0]][0]["phases"]}
    figures["step"] = {variant: statistics.median(time for report in of for time in report["step_s"]) * 1e3 for variant, of in reports.items()}
    figures["bytes"] = {variant: statistics.median(report["busiest_host_bytes"] / steps for report in of) for variant, of in reports.items()}
    return figures


def rows_of(form, figures):
    """The rows of one form of the program. The ratio is one of medians."""
    rows = []
    for name, both in figures.items():
        mpich, ours = (both[variant] / (1e6 if name == "bytes" else 1) for variant in VARIANTS)
        rows.append({"form": form, "what": name, "unit": "MB" if name == "bytes" else "ms", "mpich": mpich, "bestride": ours,
                     "ratio": mpich / ours if ours else 1.0})
    return rows


def options_of(arguments):
    parser = parser_of(__doc__)
    parser.add_argument("--hosts", type=int, default=2, help="number of hosts (2)")
    parser.add_argument("--ranks", type=int, default=2, help="ranks a host (2)")
    parser.add_argument("--rate", default="200mbit", help="rate of each direction, as in tc (200mbit)")
    parser.add_argument("--layers", type=int, default=4, help="layers of the model (4)")
    parser.add_argument("--hidden", type=int, default=384, help="their width (384)")
    parser.add_argument("--micro", type=int, default=2, help="micro-batches per step (2)")
    parser.add_argument("--steps", type=int, default=4, help="steps per job (4)")
    parser.add_argument("--forms", default="blocking,nonblocking", help="list, see apps/zero_step (blocking,nonblocking)")
    parser.add_argument("--turns", type=int, default=3, help="jobs of each variant (3)")
    parser.add_argument("--environment", action="append", default=[], metavar="NAME=VALUE", help="environment variable for the preloaded ranks; may be repeated")
    options = parser.parse_args(arguments)
    if not bits_per_second(options.rate):
        parser.error(f"--rate needs a number with kbit, mbit or gbit, not '{options.rate}'")
    return options


def main():
    options = options_of(sys.argv[1:])
    leave_if_impossible()
    with Bed(options.hosts, options.rate) as bed:
        reports = measure(bed, options)
    first = next(iter(reports.values()))[VARIANTS[0]][0]
    print(f"{options.hosts} hosts with {options.ranks} ranks, {options.rate} each way; {first['parameters']} parameters in {first['units']} units, "
          f"{options.micro} micro-batches\n\n{'a step':30} {'MPICH':>12} {'Bestride':>12} {'ratio':>7}")
    rows = [row for form, of in reports.items() for row in rows_of(form, figures_of(of, options.steps))]
    for row in rows:
        print(f"{row['form'] + ', ' + row['what']:30} {row['mpich']:9.1f} {row['unit']} {row['bestride']:9.1f} {row['unit']} {row['ratio']:6.2f}x")
    summary.write_table(options, rows, parameters=first["parameters"])


if __name__ == "__main__":
    main()
