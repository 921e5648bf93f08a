# SPDX-License-Identifier: Apache-2.0
"""Medians, quartiles and ratios of samples, and the table of them that a benchmark writes with --table.

A table has one line for each case and no samples. A line that begins with "#" has the command, followed by the columns that have the same
value in every case. Then come the names of the other columns, and the cases; tabs separate columns. NAME_q1 and NAME_q3 are the
quartiles of NAME. Numbers have four significant digits, quartiles three. A file may have several tables, one after the other.
"""
import math
import os
import shlex
import statistics
import sys

LICENSE = "# SPDX-License-Identifier: Apache-2.0"


def quartiles_of(values):
    """The lower quartile, the median and the upper quartile."""
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else list(values) * 3


def spread(name, values):
    """The columns of one figure: median and quartiles."""
    low, middle, high = quartiles_of(values)
    return {name: middle, f"{name}_q1": low, f"{name}_q3": high}


def ratios(times, above="mpich", below="bestride"):
    """The time of one variant over that of another, round by round, from {variant: [time per round]}."""
    return [one / other for one, other in zip(times[above], times[below])]


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


# A launch is disturbed by other work on the machine if its median sample takes more than this factor times the fastest of all launches.
# Both ranks poll, and a rank that loses its core waits for a time slice, which takes many times as long as a message.
DISTURBED = 3


def undisturbed_times(pairs, middle, fastest):
    """From [{variant: row} per round] to ({variant: [time per round]}, whether these are fastest times instead of medians).

    Uses only rounds in which no launch was disturbed. If fewer than two, or fewer than a third, remain, the machine is too busy
    for medians, and the fastest time of all rounds is used for each variant. `middle` and `fastest` are the names of a row's fields.
    """
    best = {variant: min(pair[variant][fastest] for pair in pairs) for variant in pairs[0]}
    clean = [pair for pair in pairs if all(pair[variant][middle] <= DISTURBED * best[variant] for variant in best)]
    if len(clean) >= max(2, len(pairs) / 3):
        return {variant: [pair[variant][middle] for pair in clean] for variant in best}, False
    return {variant: [time] for variant, time in best.items()}, True


def compared(times, unit="us", scale=1):
    """The columns of one case from {variant: [time per round]}: median times, and MPICH's time over Bestride's within a round. `scale`: from
    the times to the unit."""
    return {f"mpich_{unit}": scale * statistics.median(times["mpich"]), f"bestride_{unit}": scale * statistics.median(times["bestride"]),
            **spread("ratio", ratios(times)), "rounds": len(times["mpich"])}


COLUMNS = "      MPICH   Bestride   ratio  quartiles"


def columns(row, digits=1):
    """The text of these columns in microseconds, below COLUMNS."""
    return f"{row['mpich_us']:11.{digits}f}{row['bestride_us']:11.{digits}f}{row['ratio']:8.2f}  {row['ratio_q1']:.2f} to {row['ratio_q3']:.2f}"


def cell(value, digits=4):
    if value is None or isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{float(f'{value:.{digits - 1}e}'):.12g}"  # 12780, not 1.278e+04
    return " ".join(str(value).split())


def command():
    """The command line of this program without the names of the build folder and the table."""
    words = [os.path.basename(sys.argv[0])]
    for before, word in zip(sys.argv, sys.argv[1:]):
        if before not in ("--build", "--table") and not word.startswith(("--build", "--table")):
            words.append(word)
    return shlex.join(words)


def table_text(made_by, rows):
    """`made_by`: the first words of the comment. `rows`: {column: value} for each case; the cell of a column that a row lacks is empty."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = {name: [cell(row[name], 3 if name.endswith(("_q1", "_q3")) else 4) if name in row else "" for row in rows] for name in names}
    same = [name for name in names[1:] if len(rows) > 1 and len(set(cells[name])) == 1]
    names = [name for name in names if name not in same]
    lines = [LICENSE, "; ".join([f"# {made_by}", *(f"{name}: {cells[name][0]}" for name in same if cells[name][0])]), "\t".join(names)]
    lines += ["\t".join(words).rstrip("\t") for words in zip(*(cells[name] for name in names))]
    return "\n".join(lines) + "\n"


def write_table(options, rows, **facts):
    """Writes the table if the options want one. `facts`: what else was found about the run as a whole."""
    if options.table:
        with open(options.table, "w", encoding="utf-8") as file:
            file.write(table_text("; ".join([command(), *(f"{name}: {cell(value)}" for name, value in facts.items())]), rows))
