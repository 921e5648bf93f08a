#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Short-lived and rarely used communicators: MPICH's time over Bestride's.

    bench/run_communicators.py [--build build/release] [--ranks 2] [--rounds 7] [--lives 300] [--alive 200] [--table FILE]

Each round runs the program bench/communicators without and with the preload library, in turns. A ratio is taken within a round; the figure is
the median over rounds, between the quartiles. "life": creation, so many collectives, end. "alive": one use of one of so many communicators
that live at once; what they add to a rank's memory and mappings.
"""
import statistics

import launch
import summary


def rows_of(text):
    rows = {}
    for line in text.splitlines():
        what, name, number, middle, fastest, *memory = line.split()
        rows[what, name, int(number)] = {"middle": float(middle), "fastest": float(fastest), "memory": [int(value) for value in memory]}
    return rows


def main():
    comparison = launch.Comparison(__doc__)
    comparison.parser.add_argument("--lives", default="300")
    comparison.parser.add_argument("--alive", default="200")
    options = comparison.parse()
    rounds = list(comparison.rounds("communicators", rows_of, ["--lives", options.lives, "--alive", options.alive]))
    comparison.title("microseconds")
    print("                    number" + summary.COLUMNS)
    table = []
    for key in rounds[0]["mpich"]:
        times, fastest = summary.undisturbed_times([{variant: one[variant][key] for variant in one} for one in rounds], "middle", "fastest")
        row = {"what": key[0], "name": key[1], "number": key[2], **summary.compared(times, scale=1e6), "fastest": fastest}
        note = "  fastest times" if fastest else ""
        if rounds[0]["mpich"][key]["memory"]:
            for place, what in enumerate(("kib", "mappings")):
                row |= {f"{variant}_{what}": statistics.median(one[variant][key]["memory"][place] for one in rounds) for variant in launch.VARIANTS}
            note += "  KiB, mappings: MPICH {mpich_kib:.0f}, {mpich_mappings:.0f}; Bestride {bestride_kib:.0f}, {bestride_mappings:.0f}".format(**row)
        table.append(row)
        print(f"{key[0]:6} {key[1]:12}{key[2]:7}{summary.columns(row, digits=2)}{note}")
    comparison.write(table)


if __name__ == "__main__":
    main()
