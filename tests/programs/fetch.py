# SPDX-License-Identifier: Apache-2.0
"""Gets the programs: packages that are installed, packages that are only unpacked, package sources, and a virtual environment.

A package that depends on another MPI library is unpacked in the build folder and not installed: its maintainer scripts would change
mpicc and mpiexec for all users of the machine.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile

OTHER_MPI = re.compile(r"^Inst \S*(openmpi|mpi-default)", re.M)


class Missing(Exception):
    """A suite is not available here; the text is the reason."""


class Place:
    """The build folder of the suites: downloads, sources, the virtual environment."""

    def __init__(self, folder, may_install):
        self.folder = os.path.abspath(folder)
        self.may_install = may_install and os.geteuid() == 0
        self.root = f"{self.folder}/root"  # unpacked packages
        self.environment = {"CC": "mpicc.mpich", "CXX": "mpicxx.mpich", "F77": "mpif77.mpich", "FC": "mpif90.mpich", "MPICC": "mpicc.mpich",
                            "MPICXX": "mpicxx.mpich", "MPIF77": "mpif77.mpich", "MPIF90": "mpif90.mpich", "MPIFC": "mpif90.mpich"}
        os.makedirs(self.folder, exist_ok=True)

    def run(self, words, folder=None, limit=1800, **environment):
        """Runs a step of a build; its output is in the folder's build.log."""
        folder = folder or self.folder
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/build.log", "ab") as log:
            log.write(f"+ {words}\n".encode())
            log.flush()
            try:
                done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, shell=isinstance(words, str),
                                      env={**os.environ, **self.environment, **environment}, timeout=limit, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                raise Missing(f"{error} ({folder}/build.log)") from error
        if done.returncode:
            raise Missing(f"{words if isinstance(words, str) else ' '.join(words)}: exit status {done.returncode} ({folder}/build.log)")

    def install(self, *packages):
        known = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *packages], capture_output=True, text=True,
                               check=False).stdout.split("\n")
        absent = [name for name in packages if f"{name} installed" not in known]
        if not absent:
            return
        if not self.may_install:
            raise Missing(f"not installed: {' '.join(absent)}")
        words = ["apt-get", "install", "-y", "--no-install-recommends"]
        plan = subprocess.run([*words, "-s", *absent], capture_output=True, text=True, check=False)
        if plan.returncode:
            raise Missing(plan.stderr.strip().splitlines()[-1] if plan.stderr else "apt-get can't install it")
        if OTHER_MPI.search(plan.stdout):
            raise Missing(f"installing {' '.join(absent)} would install another MPI library; unpack it instead")
        self.run([*words, *absent], DEBIAN_FRONTEND="noninteractive")

    def unpack(self, *packages):
        """Unpacks packages into root/ without running their scripts. Their programs need library_path()."""
        downloads = f"{self.folder}/packages"
        os.makedirs(downloads, exist_ok=True)
        for name in packages:
            if not glob.glob(f"{downloads}/{name}_*.deb"):
                self.run(["apt-get", "download", name], downloads)
                self.run(["dpkg", "-x", *glob.glob(f"{downloads}/{name}_*.deb"), self.root], downloads)

    def library_path(self):
        return os.pathsep.join(sorted(glob.glob(f"{self.root}/usr/lib/*-linux-gnu*")))

    def source(self, package):
        """The unpacked upstream source of a package. Does not change the system's list of sources."""
        target = f"{self.folder}/source/{package}"
        if os.path.isdir(target):
            return target
        state = f"{self.folder}/apt"
        for folder in (f"{state}/parts", f"{state}/lists/partial", f"{self.folder}/source"):
            os.makedirs(folder, exist_ok=True)
        options = ["-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::Etc::sourceparts={state}/parts", "-o", f"Dir::State::lists={state}/lists"]
        if not os.listdir(f"{state}/parts"):
            for path in ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*.list"), *glob.glob("/etc/apt/sources.list.d/*.sources")]:
                if os.path.exists(path):
                    with open(path, encoding="utf-8") as file:
                        text = re.sub(r"^(Types: *)deb *$", r"\1deb-src", re.sub(r"^deb ", "deb-src ", file.read(), flags=re.M), flags=re.M)
                    with open(f"{state}/parts/{os.path.basename(path).replace('sources.list', 'main.list')}", "w", encoding="utf-8") as file:
                        file.write(text)
            self.run(["apt-get", *options, "update"], state)
        downloads = f"{self.folder}/packages/source-{package}"
        self.run(["apt-get", *options, "source", "--download-only", package], downloads)
        for archive in glob.glob(f"{downloads}/*.orig.tar.*"):
            if not archive.endswith(".asc"):
                extract(archive, target)
        return target

    def python(self, *packages):
        """The interpreter of the virtual environment, with these packages built for the installed MPI library."""
        python = f"{self.folder}/venv/bin/python"
        if not os.path.exists(python):
            self.run([sys.executable, "-m", "venv", f"{self.folder}/venv"])
            self.run([python, "-m", "pip", "install", "wheel", "setuptools<81", "cython", "numpy", "pytest"])
        done = f"{self.folder}/venv/installed"
        have = open(done, encoding="utf-8").read().split("\n") if os.path.exists(done) else []
        for words in packages:
            if words not in have:
                self.run([python, "-m", "pip", "install", *words.split()])
                with open(done, "a", encoding="utf-8") as file:
                    file.write(words + "\n")
        return python

    def python_source(self, package, version):
        target = f"{self.folder}/source/{package}"
        if not os.path.isdir(target):
            downloads = f"{self.folder}/packages/source-{package}"
            self.run([self.python(), "-m", "pip", "download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", "-d", downloads,
                      f"{package}=={version}"])
            extract(*glob.glob(f"{downloads}/*.tar.gz"), target)
        return target


def extract(archive, target):
    """Unpacks an archive without its top folder."""
    passing = f"{target}.part"
    shutil.rmtree(passing, ignore_errors=True)
    with tarfile.open(archive) as file:
        file.extractall(passing)
    top = os.listdir(passing)
    os.rename(f"{passing}/{top[0]}" if len(top) == 1 else passing, target)
    shutil.rmtree(passing, ignore_errors=True)
