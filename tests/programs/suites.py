# SPDX-License-Identifier: Apache-2.0
"""The table of suites. An entry has the steps to get the programs and the commands to run."""
import dataclasses
import glob
import os
import re
import typing

from job import Case

FLOAT = r"[-+]?\d+\.\d*(?:[eEdD][-+]?\d+)?"


@dataclasses.dataclass(frozen=True)
class Suite:
    name: str
    what: str
    build: typing.Callable  # takes a Place; builds the programs once; raises Missing
    cases: typing.Callable  # takes a Place; yields the commands


def once(place, name, steps):
    """Runs the steps of a build unless the mark of a finished build exists."""
    folder = f"{place.folder}/{name}"
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(f"{folder}/.built"):
        steps(folder)
        with open(f"{folder}/.built", "w", encoding="utf-8"):
            pass
    return folder


# MPICH's own test suite: the programs and arguments of its testlist files.
MPICH_AVOID = re.compile(  # see README.md
    r"spawn|connect|ctxsplit|^timeout |^redscatblk |^p?scancel|^cancelrecv|disconnect|namepub|join|singleton|abort|mem=|manyrma2|ctxalloc|taskmanager|large_|manyget|rget_?test$|gather_big|uoplong 16|"
    r"comm_create_group_idle|allredmany|MPIR_CVAR_ASYNC|nonblocking3|adlb_mimic1|mutex_bench|win_large_shm|test_skip")
MPICH_FOLDERS = ("attr", "coll", "comm", "datatype", "errhan", "group", "info", "init", "io", "pt2pt", "rma", "topo", "part", "errors/coll",
                 "errors/comm", "errors/datatype", "errors/group", "errors/io", "errors/pt2pt", "errors/rma", "errors/topo", "threads/pt2pt",
                 "threads/comm", "threads/coll", "threads/rma", "threads/init",
                 *(f"{language}/{part}" for language in ("f77", "f90", "cxx") for part in (
                     "attr", "coll", "comm", "datatype", "ext", "info", "init", "io", "pt2pt", "rma", "topo")))
# Programs that use the suite's pools of derived datatypes: program, ranks, and arguments other than type and size.
MPICH_POOLS = (("coll/bcast", 4, "-count={}"), ("pt2pt/pingping", 2, "-sendcnt={0} -recvcnt={0}"), ("pt2pt/sendrecv1", 2, "-sendcnt={0} -recvcnt={0}"),
               ("pt2pt/sendself", 1, "-sendcnt={0} -recvcnt={0}"), ("part/pingping", 2, "-sendcnt={0} -recvcnt={0}"), ("rma/accfence1", 4, "-count={}"),
               ("rma/getfence1", 2, "-count={}"), ("rma/putfence1", 2, "-count={}"), ("rma/putpscw1", 4, "-count={}"), ("rma/lock_dt", 2, "-count={}"),
               ("rma/epochtest", 4, "-count={}"))


def mpich_build(place):
    place.install("mpich", "libmpich-dev", "gfortran")

    def steps(folder):
        source = place.source("mpich")
        place.run([f"{source}/test/mpi/configure", "--disable-ft-tests", "--disable-spawn", "--without-cuda"], folder)  # with CUDA, the tests need a device
        place.run("make -k -j2 || true", folder, limit=3600)
    once(place, "mpich", steps)


def mpich_cases(place):
    built = f"{place.folder}/mpich"
    for part in MPICH_FOLDERS:
        lists = [path for path in (f"{built}/{part}/testlist", f"{place.source('mpich')}/test/mpi/{part}/testlist") if os.path.exists(path)]
        seen = set()
        for line in open(lists[0], encoding="utf-8") if lists else ():
            words = line.split()
            if len(words) < 2 or line.startswith("#") or not words[1].isdigit() or MPICH_AVOID.search(line) or line in seen:
                continue
            seen.add(line)
            program = f"{built}/{part}/{words[0]}"
            if int(words[1]) > 4 or not os.access(program, os.X_OK):
                continue
            arguments = [word[4:] for word in words[2:] if word.startswith("arg=")]
            variables = [tuple(word[4:].split("=", 1)) for word in words[2:] if word.startswith("env=")]
            name = " ".join([f"{part}/{words[0]}", *arguments, *("=".join(pair) for pair in variables), words[1]])
            avoid = ("two-node",) if words[0].endswith("length") else ()  # see README.md
            yield Case(name, int(words[1]), (program, *arguments), environment=tuple(variables), avoid=avoid)
    for program, ranks, form in MPICH_POOLS:
        for kind in ("MPI_INT", "MPI_INT:4+MPI_DOUBLE:8"):
            for count in (17, 512, 65530):
                arguments = form.format(count).split() + [f"-type={kind}", f"-seed={count}", f"-testsize={8 if count > 1000 else 32}"]
                if os.access(f"{built}/{program}", os.X_OK):
                    yield Case(f"{program} {' '.join(arguments)} {ranks}", ranks, (f"{built}/{program}", *arguments))


# mpi4py's tests from the source distribution, built for this MPI library.
def mpi4py_build(place):
    place.install("mpich", "libmpich-dev", "python3-venv", "python3-dev")
    place.python("--no-binary mpi4py mpi4py==4.1.2")
    place.python_source("mpi4py", "4.1.2")


def mpi4py_cases(place):
    source = place.python_source("mpi4py", "4.1.2")
    python = f"{place.folder}/venv/bin/python"
    modules = sorted(os.path.basename(path)[5:-3] for path in glob.glob(f"{source}/test/test_*.py"))
    for module in modules:
        if module in ("spawn", "dynproc", "ulfm", "mpiabi", "toplevel", "doc", "mpiapi", "package", "cffi", "ctypes", "exceptions"):
            continue  # process creation, fault tolerance, and modules without relevant MPI calls
        for ranks in (1, 2, 4):
            yield Case(f"test_{module} {ranks}", ranks, (python, f"{source}/test/main.py", "--no-builddir", "-v", "-i", rf"test_{module}\.py"), limit=300,
                       mask=(r"in \d+\.\d+s", rf"{FLOAT}(?= *s)", r"host '.*?'", r"\(pid \d+\)", r"^\[\d@[^]]*\]"))


# Demo programs of mpi4py.
def mpi4py_demo_cases(place):
    source = place.python_source("mpi4py", "4.1.2")
    python = f"{place.folder}/venv/bin/python"
    for program in ("reductions/test_reductions.py", "nxtval/nxtval-threads.py", "nxtval/nxtval-onesided.py", "nxtval/nxtval-scalable.py",
                    "mpi-ref-v1/ex-2.01.py", "mpi-ref-v1/ex-2.08.py", "mpi-ref-v1/ex-2.16.py", "mpi-ref-v1/ex-2.29.py", "mpi-ref-v1/ex-2.32.py",
                    "mpi-ref-v1/ex-2.34.py", "mpi-ref-v1/ex-2.35.py", "mpi-ref-v1/ex-3.01.py", "mpi-ref-v1/ex-3.02.py", "mpi-ref-v1/ex-3.04.py",
                    "mpi-ref-v1/ex-3.05.py", "mpi-ref-v1/ex-3.06.py", "mpi-ref-v1/ex-3.07.py", "mpi-ref-v1/ex-3.08.py", "mpi-ref-v1/ex-3.09.py",
                    "mpi-ref-v1/ex-3.11.py", "mpi-ref-v1/ex-3.12.py", "mpi-ref-v1/ex-3.13.py", "threads/sendrecv.py", "futures/perf_primes.py",
                    "sequential/test_seq.py", "helloworld.py"):
        if os.path.exists(f"{source}/demo/{program}"):
            yield Case(f"{program} 2", 2, (python, f"{source}/demo/{program}"), mask=(FLOAT, r"Process \d of \d on .*"))


def fft_build(place):
    mpi4py_build(place)
    place.install("libfftw3-dev")
    place.python("--no-build-isolation --no-deps --no-binary :all: mpi4py-fft==2.0.6")


FFT_PROGRAM = """import sys
import numpy
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray
comm = MPI.COMM_WORLD
for shape in ((12, 14, 10), (16, 9, 5, 4), (33, 18)):
    for kind in (numpy.float64, numpy.complex128, numpy.float32):
        for slab in (True, False):
            fft = PFFT(comm, shape, dtype=kind, slab=slab)
            u = newDistArray(fft, False)
            index = numpy.ravel_multi_index(numpy.ix_(*[numpy.arange(*part.indices(1 << 30)[:2]) for part in fft.local_slice(False)]), shape)
            u[:] = numpy.sin(index).astype(kind)
            there = fft.forward(u)
            print(shape, kind.__name__, slab, fft.local_slice(True), f"{float(abs(there).sum()):.6g}")  # measured plans round differently
            back = fft.backward(there)
            assert numpy.allclose(back, u, rtol=1e-4, atol=1e-4)
            v = u.redistribute(out=newDistArray(fft, False))
            assert numpy.array_equal(u, v)
"""


def fft_cases(place):
    for ranks in (1, 2, 3, 4):
        yield Case(f"mpi4py-fft transforms {ranks}", ranks, (f"{place.folder}/venv/bin/python", "program.py"), inputs=(("program.py", FFT_PROGRAM),))


# The testers of ScaLAPACK, PBLAS and BLACS, with the problems in their packages.
def scalapack_build(place):
    place.install("mpich", "libblas3", "liblapack3")
    place.unpack("scalapack-mpi-test", "scalapack-test-common", "libscalapack-mpich2.2")


def scalapack_cases(place):
    folder = f"{place.root}/usr/lib/x86_64-linux-gnu/scalapack/mpich-tests"
    shared = f"{place.root}/usr/share/scalapack"
    path = (("LD_LIBRARY_PATH", place.library_path()),)
    timing = (rf"(?<= ){FLOAT}(?= )", rf"^(WALL|CPU ).*?$(?<!PASSED)(?<!FAILED)")
    for program in sorted(glob.glob(f"{folder}/x?*")):
        name = os.path.basename(program)
        if name in ("xCbtest", "xFbtest") or name[1] in "cs":  # only double and double complex: the others have the same communication
            continue
        yield Case(f"{name} 2", 2, (program,), inputs=tuple(sorted(glob.glob(f"{shared}/*.dat"))), environment=path, limit=400, mask=timing)
    for name in ("xCbtest", "xFbtest"):
        yield Case(f"BLACS {name} 2", 2, (f"{folder}/{name}",), inputs=tuple(glob.glob(f"{shared}/BLACS/*.dat")), environment=path, limit=400)
    for program in sorted(glob.glob(f"{folder}/PBLAS/[dz]*tst")):
        yield Case(f"PBLAS {os.path.basename(program)} 2", 2, (program,), inputs=tuple(sorted(glob.glob(f"{shared}/PBLAS/*.dat"))), environment=path,
                   limit=400, mask=timing)


# HDF5's parallel tests, compiled against the packaged library.
def hdf5_build(place):
    place.install("libhdf5-mpich-dev")

    def steps(folder):
        source = place.source("hdf5")
        with open(f"{folder}/H5srcdir_str.h", "w", encoding="utf-8") as file:
            file.write(f'static const char *config_srcdir = "{source}/test";\n')
        words = f"-w -O1 -D_GNU_SOURCE -DH5_HAVE_PARALLEL -I. -I{source}/src -I{source}/test -I{source}/testpar -I/usr/include/hdf5/mpich"
        library = "-L/usr/lib/x86_64-linux-gnu/hdf5/mpich -lhdf5"
        for name in ("h5test", "testframe", "cache_common"):
            place.run(f"mpicc.mpich {words} -c {source}/test/{name}.c", folder)
        for name in HDF5:
            parts = "dset file file_image mdset ph5basic coll_chunk span_tree chunk_alloc filter_read prop coll_md_read".split()
            more = " ".join(f"{source}/testpar/t_{part}.c" for part in parts) if name == "testphdf5" else ""
            cache = "" if name == "t_cache" else "cache_common.o"  # it has its own copy
            place.run(f"mpicc.mpich {words} -o {name} {source}/testpar/{name}.c {more} h5test.o testframe.o {cache} {library}", folder)
    once(place, "hdf5", steps)


HDF5 = ("t_mpi", "t_bigio", "testphdf5", "t_cache", "t_cache_image", "t_pshutdown", "t_prestart", "t_init_term", "t_shapesame", "t_filters_parallel")


def hdf5_cases(place):
    mask = (rf"{FLOAT}(?= *(s|seconds|Mb))", r"^.*(elapsed|seconds|Alarm).*$", r"nerrors|PID=\d+")
    for name, ranks, produced in (("t_mpi", 2, ()), ("t_mpi", 4, ()), ("testphdf5", 2, ("*.h5",)), ("testphdf5", 3, ("*.h5",)),
                                  ("t_pshutdown", 2, ("*.h5",)), ("t_init_term", 2, ()), ("t_shapesame", 2, ()), ("t_cache_image", 2, ()),
                                  ("t_filters_parallel", 2, ("*.h5",)), ("t_cache", 2, ())):
        yield Case(f"{name} {ranks}", ranks, (f"{place.folder}/hdf5/{name}",), produced=produced, mask=mask, limit=500,
                   environment=(("HDF5_ALARM_SECONDS", "0"), ("HDF5TestExpress", "3")))


# PnetCDF with its tests. The files that they write are compared byte by byte.
def pnetcdf_build(place):
    place.install("autoconf", "automake", "libtool", "m4")

    def steps(folder):
        source = place.source("pnetcdf")
        place.run(["autoreconf", "-fi"], source)
        place.run([f"{source}/configure", "--disable-cxx", "--disable-fortran", "--disable-static", "--enable-shared"], folder)
        place.run("make -j2 && make -j2 check TESTS=", folder, limit=3600)
    once(place, "pnetcdf", steps)


def pnetcdf_cases(place):
    for part in ("testcases", "C", "fandc", "nonblocking", "header"):
        for program in sorted(glob.glob(f"{place.folder}/pnetcdf/test/{part}/*")):
            name = os.path.basename(program)
            if os.access(program, os.X_OK) and os.path.isfile(program) and "." not in name and "large" not in name:
                for ranks in (1, 2, 4):
                    yield Case(f"{part}/{name} {ranks}", ranks, (program, "out.nc"), produced=("*.nc*",), mask=(FLOAT,), limit=200)


# FFTW's MPI transforms, checked by its bench program. Plans are estimated, so that they are the same in every run.
def fftw_build(place):
    place.install("libfftw3-dev")

    def steps(folder):
        source = place.source("fftw3")
        place.run([f"{source}/configure", "--enable-mpi", "--disable-fortran"], folder)
        place.run(["make", "-C", "libbench2"], folder)
        place.run(f"mpicc.mpich -w -O1 -DHAVE_CONFIG_H -I. -I{source} -I{source}/api -I{source}/mpi -I{source}/libbench2 -o mpi-bench "
                  f"$(ls {source}/mpi/*.c | grep -v -E 'testsched|f03-wrap') {source}/tests/hook.c {source}/tests/fftw-bench.c "
                  "libbench2/libbench2.a -lfftw3 -lm", folder)
    once(place, "fftw", steps)


def fftw_cases(place):
    problems = "ic64x48 ofc31x20 obc12x10x14 irf60x42 orf24x18x10 icf4096 ocf625 irf16x15x8 obr20x32 ic9x7x5v3 okd24e10x18e00 ofr128x96".split()
    for ranks in (1, 2, 3, 4):
        for problem in problems:
            yield Case(f"mpi-bench {problem} {ranks}", ranks, (f"{place.folder}/fftw/mpi-bench", "-oestimate", "-v1", f"--verify={problem}"))
            yield Case(f"mpi-bench {problem} transposed {ranks}", ranks,
                       (f"{place.folder}/fftw/mpi-bench", "-oestimate", "-ompi-transposed-in", "-ompi-transposed-out", "-v1", f"--verify={problem}"))


# hypre's struct, sstruct and ij drivers with the command lines of its test scripts.
def hypre_build(place):
    def steps(folder):
        source = place.source("hypre")
        place.run(f"cp -a {source}/. .", folder)
        place.run(["./configure", "--disable-fortran", "--without-superlu", "CFLAGS=-O1", "CXXFLAGS=-O1"], f"{folder}/src")
        place.run("make -j2 all && make -j2 -C test struct sstruct ij", f"{folder}/src", limit=3600)
    once(place, "hypre", steps)


def hypre_cases(place):
    test = f"{place.folder}/hypre/src/test"
    for part, take in (("struct", 25), ("sstruct", 25), ("ij", 40)):
        found = []
        for path in sorted(glob.glob(f"{test}/TEST_{part}/*.jobs")):
            for match in re.finditer(r"^mpirun -np ([234]) +\./(struct|sstruct|ij) ([^>&|$]*)>", open(path, encoding="utf-8").read().replace("\\\n", " "), re.M):
                found.append((os.path.basename(path), int(match[1]), match[2], match[3].split()))
        for number, (script, ranks, program, arguments) in enumerate(found[::max(1, len(found) // take)]):
            yield Case(f"{part} {script} {number} {ranks}", ranks, (f"{test}/{program}", *arguments), inputs=tuple(glob.glob(f"{test}/TEST_{part}/*.in*")
                       + glob.glob(f"{test}/TEST_{part}/data*")), mask=(r"^.*(seconds|MFLOPS|time|Time|size =).*$",), limit=100)


# p4est: its whole test directory.
def p4est_build(place):
    place.install("autoconf", "automake", "libtool", "zlib1g-dev")

    def steps(folder):
        source = place.source("p4est")
        place.run("echo 2.2 >.tarball-version && echo 2.2 >sc/.tarball-version && ./bootstrap", source)
        place.run([f"{source}/configure", "--enable-mpi", "--enable-mpiio", "--disable-static"], folder)
        place.run("make -j2 V=0 && make -j2 check TESTS=", folder, limit=3600)
    once(place, "p4est", steps)


def p4est_cases(place):
    for program in sorted(glob.glob(f"{place.folder}/p4est/test/p[468]est_test_*")):
        if os.access(program, os.X_OK) and os.path.isfile(program):
            for ranks in (2, 4):
                yield Case(f"{os.path.basename(program)} {ranks}", ranks, (program,), produced=("*.p4*", "*.vtu", "*.p8*"),
                           mask=(r"^.*(seconds|Summary|time).*$", FLOAT))


# Programs as packaged, and MPICH's examples.
def packaged_build(place):
    place.install("mpich-doc", "netpipe-mpich2", "bagel")
    place.unpack("nwchem-mpich", "nwchem-data", "libscalapack-mpich2.2")

    def steps(folder):
        for name in ("cpi", "hellow", "icpi", "ircpi", "srtest", "pmandel_fence"):
            place.run(f"mpicc.mpich -w -o {name} /usr/share/doc/mpich/examples/{name}.c -lm || true", folder)
    once(place, "packaged", steps)


WATER = """start water
geometry units angstrom noautosym
 O 0.0 0.0 0.0
 H 0.0 0.76 0.59
 H 0.0 -0.76 0.59
end
basis
 * library 6-31g
end
task scf gradient
"""


def packaged_cases(place):
    folder = f"{place.folder}/packaged"
    for name in ("cpi", "hellow", "srtest"):
        for ranks in (1, 2, 4):
            yield Case(f"{name} {ranks}", ranks, (f"{folder}/{name}",), mask=(r"wall clock time.*", r"(?<= on ).*"))
    yield Case("netpipe 2", 2, ("NPmpich2", "-u", "65536", "-n", "20"), compare="status")
    yield Case("netpipe both ways 2", 2, ("NPmpich2", "-2", "-u", "65536", "-n", "20"), compare="status")
    yield Case("netpipe integrity 2", 2, ("NPmpich2", "-i", "-u", "65536"), mask=(FLOAT,), compare="status")
    library = f"{place.root}/usr/share/nwchem/libraries/"
    for ranks in (2, 4):
        yield Case(f"nwchem scf {ranks}", ranks, (f"{place.root}/usr/bin/nwchem.mpich", "water.nw"), inputs=(("water.nw", WATER),), limit=300,
                   compare="counts", count=r"^ *(Total SCF energy|O |H |Nuclear repulsion).*$|^ *\d+ [OH] .*$",
                   environment=(("LD_LIBRARY_PATH", place.library_path()), ("NWCHEM_BASIS_LIBRARY", library)))
    for name in ("hf_svp_hf", "hf_svp_dfhf", "hf_sto3g_fci_kh", "benzene_svp_mp2", "h2o_svp_cas", "hf_svp_dfhf_opt"):
        yield Case(f"bagel {name} 2", 2, ("BAGEL", f"/usr/share/doc/bagel/examples/{name}.json"), limit=300, compare="counts",
                   count=r"^ +\d+ +-\d+\.\d{6}|^.*(total|energy|Energy).*-\d+\.\d{6}", environment=(("OMP_NUM_THREADS", "1"), ("BAGEL_NUM_THREADS", "1")))


SUITES = (
    Suite("mpich", "MPICH 4.0.2's own test suite: C, C++, Fortran, errors, threads", mpich_build, mpich_cases),
    Suite("mpi4py", "mpi4py 4.1.2's own test suite", mpi4py_build, mpi4py_cases),
    Suite("mpi4py-demo", "programs of mpi4py's demo folder", mpi4py_build, mpi4py_demo_cases),
    Suite("mpi4py-fft", "mpi4py-fft 2.0.6: transforms and redistributions by subarray types", fft_build, fft_cases),
    Suite("scalapack", "ScaLAPACK 2.2.1, PBLAS and BLACS testers", scalapack_build, scalapack_cases),
    Suite("hdf5", "HDF5 1.10.8's parallel tests", hdf5_build, hdf5_cases),
    Suite("pnetcdf", "PnetCDF 1.12.3's tests", pnetcdf_build, pnetcdf_cases),
    Suite("fftw", "FFTW 3.3.10's MPI transforms", fftw_build, fftw_cases),
    Suite("hypre", "hypre 2.26.0: struct, sstruct and ij drivers", hypre_build, hypre_cases),
    Suite("p4est", "p4est 2.2's tests", p4est_build, p4est_cases),
    Suite("packaged", "MPICH's examples, NetPIPE, NWChem, BAGEL", packaged_build, packaged_cases),
)
