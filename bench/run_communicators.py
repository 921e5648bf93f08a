#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Short-lived and rarely used communicators: MPICH's time over Bestride's.

    bench/run_communicators.py [--build build/release] [--ranks 2] [--rounds 7] [--lives 300] [--alive 200] [--json FILE]

Each round runs the program bench/communicators without and with the preload library, in turns. A ratio is taken within a round; the figure is
the median over rounds, between the quartiles. "life": creation, so many collectives, end. "alive": one use of one of so many communicators
that live at once; what they add to a rank's memory and mappings.
"""
import argparse
import json
import os
import statistics

import launch


def rows_of(text):
    rows = {}
    for line in text.splitlines():
        what, name, number, middle, fastest, *memory = line.split()
        rows[what, name, int(number)] = {"middle": float(middle), "fastest": float(fastest), "memory": [int(value) for value in memory]}
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--lives", default="300")
    parser.add_argument("--alive", default="200")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    library = launch.library_of(options.build)
    program = os.path.join(options.build, "bin", "communicators")
    arguments = ["--lives", options.lives, "--alive", options.alive]
    rounds = [{variant: rows_of(launch.launch(variant, library, program, arguments, options.ranks)) for variant in order}
              for order in launch.rounds_of(options.rounds)]
    print(f"{options.ranks} ranks, {os.cpu_count()} processors, {len(rounds)} rounds; microseconds")
    print()
    print("                    number      MPICH   Bestride   ratio  quartiles")
    table = []
    for key in rounds[0]["mpich"]:
        times, fastest = launch.undisturbed_times([{variant: one[variant][key] for variant in one} for one in rounds], "middle", "fastest")
        ratios = sorted(launch.ratios(times))
        quarters = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else [ratios[0]] * 3
        row = {"what": key[0], "name": key[1], "number": key[2], "mpich": statistics.median(times["mpich"]),
               "bestride": statistics.median(times["bestride"]), "ratio": statistics.median(ratios), "quartiles": [quarters[0], quarters[2]],
               "rounds": len(ratios), "fastest": fastest}
        note = "  fastest times" if fastest else ""
        if rounds[0]["mpich"][key]["memory"]:
            row["memory"] = {variant: [statistics.median(values) for values in zip(*(one[variant][key]["memory"] for one in rounds))]
                             for variant in launch.VARIANTS}
            note += "; ".join(["  KiB, mappings: MPICH {:.0f}, {:.0f}".format(*row["memory"]["mpich"]),
                               "Bestride {:.0f}, {:.0f}".format(*row["memory"]["bestride"])])
        table.append(row)
        print(f"{key[0]:6} {key[1]:12}{key[2]:7}{row['mpich'] * 1e6:11.2f}{row['bestride'] * 1e6:11.2f}{row['ratio']:8.2f}"
              f"  {quarters[0]:.2f} to {quarters[2]:.2f}{note}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"options": vars(options), "cases": table}, file, indent=1)


if __name__ == "__main__":
    main()
