#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the JSON of bench_kernels and compares the automatic choice with the best family and with memcpy for each case."""
import collections
import json
import statistics
import sys

times = collections.defaultdict(lambda: collections.defaultdict(list))
labels = {}
for run in json.load(open(sys.argv[1]))["benchmarks"]:
    if run.get("run_type") != "iteration":
        continue
    name = run["run_name"] if "run_name" in run else run["name"]
    case, family = name.rsplit("/", 1)
    times[case][family].append(run["cpu_time"])
    labels[name] = run.get("label", "")
limit = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
ratios = []
for case, families in times.items():
    median = {family: statistics.median(values) for family, values in families.items()}
    if "automatic" not in median:
        continue
    rivals = {f: t for f, t in median.items() if f not in ("memcpy", "automatic")}
    best = min(rivals, key=rivals.get) if rivals else "automatic"
    ratio = median["automatic"] / median[best]
    ratios.append(ratio)
    if ratio < limit:
        continue
    others = " ".join(f"{f} {t / median['automatic']:.2f}" for f, t in sorted(rivals.items(), key=lambda item: item[1]))
    print(f"{case:32} auto/best {ratio:5.2f}  auto/memcpy {median['automatic'] / median['memcpy']:6.2f}  "
          f"{labels[case + '/automatic']:40.40}  {others}")
print(f"{len(ratios)} cases, {sum(r > 1.1 for r in ratios)} above 1.10, {sum(r > 1.15 for r in ratios)} above 1.15")
