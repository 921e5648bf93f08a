#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `bestride doctor` finds: programs, launchers, profiles, policies of the kernel. The prefix is that of output_test.py."""
import json
import os
import re
import shutil
import subprocess
import unittest

from output_test import PROGRAM, VERSION, CommandTest


class Doctor(CommandTest):
    def findings(self, *words, code, **environment):
        self.launcher("mpiexec", "mpiexec.hydra")
        # The GPU of this machine is ignored (see gpu_output_test.py).
        done = self.run_command("doctor", *words, **{"BESTRIDE_GPU": "off", **environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")  # a problem is reported once, as a finding
        *findings, verdict = done.stdout.splitlines()
        for line in findings:
            self.assertRegex(line, r"^(ok|note|problem) +[a-z]+ +\S")
        problems = sum(line.startswith("problem ") for line in findings)
        self.assertEqual(verdict, "no problem found" if not problems else
                         f"{problems} problem{'s' if problems > 1 else ''} found; each has its remedy in its line")
        return done.stdout

    def test_no_mpi_program(self):
        text = self.findings("/bin/true", code=0)
        self.assertIn(f"ok       library   {self.front}, version {VERSION}\nok       abi       mpich: {self.prefix}/lib/libbestride-mpich.so\n"
                      f"ok       launcher  {self.prefix}/path/mpiexec: Hydra, the mpiexec of MPICH and Intel MPI\n", text)
        self.assertRegex(text, r"note     program   \S+true is not an MPI program; the library has nothing to do there\n")

    def test_launchers_of_python_packages(self):
        """They install Hydra as mpiexec, without a link; Intel's mpirun is a script; Open MPI's mpiexec starts prterun."""
        for content, name in (("\\0ELF hydra_pmi_proxy", "Hydra, the mpiexec of MPICH and Intel MPI"), ("#!/bin/sh\nmpiexec.hydra $@", "Hydra, the mpiexec of MPICH and Intel MPI"),
                              ("ELF ompirun_H", "Open MPI's mpirun"), ("#!/bin/sh\nexit 0", None)):
            for stale in ("mpiexec", "mpiexec.hydra"):
                if os.path.lexists(f"{self.prefix}/path/{stale}"):
                    os.unlink(f"{self.prefix}/path/{stale}")
            with open(f"{self.prefix}/path/mpiexec", "w", encoding="utf-8") as file:
                file.write(content)
            os.chmod(f"{self.prefix}/path/mpiexec", 0o755)
            text = self.run_command("doctor", **{"BESTRIDE_GPU": "off"}).stdout
            self.assertIn(f"launcher  {self.prefix}/path/mpiexec" + (f": {name}" if name else "\n"), text)

    @unittest.skipUnless(PROGRAM["MPI_PROGRAM"], "no MPICH here")
    def test_dynamically_linked_mpi(self):
        text = self.findings(PROGRAM["MPI_PROGRAM"], code=0)
        self.assertIn("dynamically linked, calls 5 MPI functions, of which 1 can be accelerated and 3 more are intercepted\n", text)
        self.assertRegex(text, r"ok       mpi       libmpi\w*\.so\.12 => /\S+: MPICH \S+.*, ABI mpich\n")

    @unittest.skipUnless(PROGRAM["MPI_PROGRAM"], "no MPICH here")
    def test_no_back_for_the_programs_mpi(self):
        os.rename(f"{self.prefix}/lib/libbestride-mpich.so", f"{self.prefix}/lib/libbestride-openmpi.so")
        self.assertIn("libbestride-mpich.so is not beside the library, so every call goes directly to MPI; install the library again\n",
                      self.findings(PROGRAM["MPI_PROGRAM"], code=1))

    @unittest.skipUnless(PROGRAM["FORTRAN_NAMES"], "no MPICH here")
    def test_fortran_bindings(self):
        text = self.findings(PROGRAM["FORTRAN_NAMES"], code=0)
        self.assertIn("calls 4 MPI functions (3 by Fortran bindings), of which 2 can be accelerated and 2 more are intercepted\n", text)

    def test_a_32_bit_program(self):
        with open("/bin/true", "rb") as file:
            image = bytearray(file.read())
        image[4] = 1
        path = f"{self.prefix}/program32"
        with open(path, "wb") as file:
            file.write(image)
        os.chmod(path, 0o755)
        self.assertIn(f"problem  program   '{path}' is a 32-bit program, into which no 64-bit library can be preloaded; build it for 64 bits\n",
                      self.findings(path, code=1))

    def test_a_path_that_cant_be_preloaded(self):
        os.mkdir(f"{self.prefix}/a b")
        for folder in ("bin", "lib", "home", "path"):
            shutil.copytree(f"{self.prefix}/{folder}", f"{self.prefix}/a b/{folder}")
        self.prefix += "/a b"
        self.assertIn("which LD_PRELOAD can't name; install it under another path\n", self.findings("/bin/true", code=1))

    def test_json(self):
        done = self.run_command("doctor", "nowhere", "--json", BESTRIDE_GPU="off")
        answer = json.loads(done.stdout)
        self.assertEqual((done.returncode, answer["problems"]), (1, 1))
        self.assertIn({"severity": "problem", "check": "program",
                       "text": "there is no program 'nowhere' that can be run; give its path, or a name in PATH"}, answer["findings"])

    def test_colors_on_a_terminal_only(self):
        main, terminal = os.openpty()
        self.addCleanup(os.close, main)
        for no_color, colored in (("", True), ("1", False)):
            subprocess.run([f"{self.prefix}/bin/bestride", "doctor", "/bin/true"], env={**self.environment, "NO_COLOR": no_color, "BESTRIDE_GPU": "off"},
                           stdout=terminal, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=60, check=False)
            self.assertEqual(b"\033[32mok" in os.read(main, 1 << 16), colored)
        os.close(terminal)

    @unittest.skipUnless(PROGRAM["MPI_PROGRAM"], "no MPICH here")
    def test_another_mpis_launcher(self):
        self.launcher("orterun")
        os.symlink("orterun", f"{self.prefix}/path/mpiexec.new")
        self.launcher("mpiexec", "mpiexec.hydra")
        os.rename(f"{self.prefix}/path/mpiexec.new", f"{self.prefix}/path/mpiexec")
        done = self.run_command("doctor", PROGRAM["MPI_PROGRAM"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("problem  launcher  Open MPI's mpirun is first in PATH, but the program's MPI is another", done.stdout)

    @unittest.skipUnless(PROGRAM["MPI_PROGRAM"], "no MPICH here")
    def test_a_tool_linked_into_the_program(self):
        self.assertIn("defines 1 MPI functions itself, such as MPI_Barrier", self.findings(PROGRAM["MPI_PROGRAM_WITH_TOOL"], code=0))

    @unittest.skipUnless(PROGRAM["MPI_PROGRAM"], "no MPICH here")
    def test_a_set_user_id_program(self):
        copy = f"{self.prefix}/program"
        shutil.copy(PROGRAM["MPI_PROGRAM"], copy)
        os.chmod(copy, 0o4755)
        self.assertIn("is set-user-id, so the dynamic linker ignores LD_PRELOAD", self.findings(copy, code=1))

    def test_static_mpi(self):
        for name in ("OWN_MPI", "STATIC_OWN_MPI"):
            self.assertIn("has a static MPI in it, which no preloaded library can reach; link it with the shared MPI library\n",
                          self.findings(PROGRAM[name], code=1))
        self.assertIn("is statically linked, so nothing can be preloaded into it; link it dynamically\n", self.findings(PROGRAM["STRIPPED"], code=1))

    def test_programs_that_load_mpi_later(self):
        self.assertIn("RTLD_DEEPBIND", self.findings(PROGRAM["LOADS_PLUGINS"], code=0))
        self.assertIn("is a script for /bin/sh", self.findings("mpiexec", code=0))

    def test_what_is_no_program(self):
        self.assertIn("problem  program   there is no program 'nowhere' that can be run", self.findings("nowhere", code=1))
        name = f"here-{os.getpid()}.py"
        with open(name, "w", encoding="utf-8"):
            self.addCleanup(os.unlink, name)
        self.assertIn(f"'{name}' is in this folder, not in PATH; give ./{name}, or the interpreter that runs it", self.findings(name, code=1))
        self.assertIn("problem  program   '/tmp' can't be run: it is a folder; name the program in it\n", self.findings("/tmp", code=1))
        data = self.write("data", "")
        self.assertIn(f"problem  program   '{data}' can't be run: you have no permission to execute it; 'chmod +x' gives it\n", self.findings(data, code=1))
        broken = self.write("broken", "\x7fELF but not really", 0o755)
        self.assertIn("is not an ELF program", self.findings(broken, code=1))

    def python(self, bare, preloaded):
        """A program in PATH that is called python3; the arguments are its shell commands without and with the library."""
        return self.write("path/python3", f'#!/bin/sh\ncase "$LD_PRELOAD" in *libbestride.so*) {preloaded};; *) {bare};; esac\n', 0o755)

    def test_python_with_mpi4py(self):
        found = r"printf 'MPICH Version:\t4.0.2\nMPICH Device:\tch4:ucx\n'"
        failed = "echo 'RuntimeError: cannot load MPI library'; exit 4"
        self.python(found, found)
        script = self.write("script.py", "#!/usr/bin/env python3\n", 0o755)
        for job in (["python3"], ["python3", "script.py"], [script]):
            self.assertIn("ok       python    mpi4py can be imported with the library: MPICH 4.0.2 ch4:ucx\n", self.findings(*job, code=0))
        self.python(found, failed)
        self.assertIn("problem  python    mpi4py (MPICH 4.0.2 ch4:ucx) can be imported, but not with the library preloaded: RuntimeError: cannot load MPI "
                      "library; run the program without 'bestride run'\n", self.findings("python3", "script.py", code=1))
        self.python(failed, failed)
        self.assertIn("problem  python    mpi4py can't be imported, also without the library: RuntimeError: cannot load MPI library; ",
                      self.findings("python3", code=1))
        self.python(found, "echo 'Another MPI 9.9'")
        self.assertIn("loads another MPI library: Another MPI 9.9, not MPICH 4.0.2 ch4:ucx; ", self.findings("python3", code=1))
        self.python(found, "kill -SEGV $$")
        self.assertIn("not with the library preloaded: it crashes, or takes longer than 30 s; ", self.findings("python3", code=1))
        self.python("exit 3", "exit 3")
        self.assertIn("has no mpi4py", self.findings("python3", code=0))

    def test_python_that_cant_be_started_or_is_broken(self):
        self.python("exit 1", "exit 1")
        self.assertRegex(self.findings("python3", code=1), r"problem  python    (\S+/path/python3) fails when it imports mpi4py, also without the library: exit code 1; "
                         r"to see why: \1 -c 'from mpi4py import MPI'\n")
        self.python("echo 'ImportError: libmpi.so.12: cannot open'; exit 4", "exit 4")
        text = self.findings("python3", code=1)
        self.assertIn("problem  python    mpi4py can't be imported, also without the library: ImportError: libmpi.so.12: cannot open; mend that first, ", text)
        self.assertNotIn(" program ", text)
        for first_line, missing, more in (("#!/nowhere/bin/python3", "/nowhere/bin/python3", ""), ("#!/usr/bin/env python3.99", "python3.99", ""),
                                          ("#!/usr/bin/env python3 -u", "python3 -u", " (env takes the rest of the line for one name; 'env -S' splits it)"),
                                          ("#!/usr/bin/env -S python3.99 -u", "python3.99", ""), ("#!/bin/sh\r", "/bin/sh\\r", " (the line ends with a carriage return)"),
                                          ("#! /nowhere/sh -e", "/nowhere/sh", "")):
            script = self.write("script", f"{first_line}\n", 0o755)
            text = self.findings(script, code=1)
            self.assertIn(f"problem  program   {script} can't be started: its first line names the interpreter '{missing}', which is not there{more}; correct that line, "
                          "or load the module or environment of the interpreter\n", text)
            self.assertEqual(len(re.findall("(?m)^.{8} (program|python) ", text)), 1, text)

    def preloads(self, value, code):
        """The findings; the dynamic linker says on stderr, too, what it can't preload into the command."""
        self.launcher("mpiexec", "mpiexec.hydra")
        done = self.run_command("doctor", "/bin/true", BESTRIDE_GPU="off", LD_PRELOAD=value)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return re.findall(r"(?m)^(\w+) +preload +(.*)$", done.stdout)

    def test_preloaded_libraries(self):
        self.assertEqual(self.preloads("", code=0), [])
        self.assertEqual(self.preloads("libm.so.6", code=0), [("ok", "LD_PRELOAD=libm.so.6 can be preloaded")])
        self.assertEqual(self.preloads(f"{self.front}:libm.so.6", code=0), [("ok", f"LD_PRELOAD={self.front}:libm.so.6 can be preloaded")])
        not_there = ("problem", "LD_PRELOAD names /nowhere/libbestride.so, which is not there, so programs start without it; correct LD_PRELOAD or unset it")
        self.assertEqual(self.preloads("/nowhere/libbestride.so", code=1), [not_there])
        self.assertEqual(self.preloads("/nowhere/libbestride.so libm.so.6", code=1), [not_there])
        text = self.write("libtext.so", "no library")
        self.assertEqual(self.preloads(text, code=1), [("problem", f"LD_PRELOAD names {text}, which the dynamic linker can't load, so programs start without it; "
                                                        "correct LD_PRELOAD or unset it")])
        self.assertEqual(self.preloads("libabsent.so", code=1)[0][0], "problem")
        other = f"{self.prefix}/other"
        os.mkdir(other)
        shutil.copy(self.front, other)
        self.assertEqual(self.preloads(f"{other}/libbestride.so", code=1),
                         [("problem", f"LD_PRELOAD names {other}/libbestride.so, of another installation than this command, whose library is {self.front}; unset "
                           "LD_PRELOAD, or use the command of that installation")])

    @unittest.skipUnless(PROGRAM["SANITIZED"], "no AddressSanitizer here")
    def test_address_sanitizer(self):
        bare = {name: value for name, value in self.environment.items() if name != "ASAN_OPTIONS"}
        self.environment = bare
        off = "is built with AddressSanitizer, whose check of the link order is off\n"
        self.assertIn(off, self.findings(PROGRAM["SANITIZED"], code=0))
        self.assertIn("and defines __asan_default_options, so that it ends at start if a library is preloaded; set ASAN_OPTIONS=verify_asan_link_order=0",
                      self.findings(PROGRAM["SANITIZED_WITH_OPTIONS"], code=1))
        self.assertIn(off, self.findings(PROGRAM["SANITIZED_WITH_OPTIONS"], code=0, ASAN_OPTIONS="detect_leaks=0:verify_asan_link_order=0"))

    def under_filter(self, rule):
        done = subprocess.run([PROGRAM["FORBID_CALL"], rule, f"{self.prefix}/bin/bestride", "doctor", "/bin/true"],
                              env={**self.environment, "BESTRIDE_GPU": "off"}, text=True, capture_output=True, timeout=60, check=False)
        if done.returncode == 77:
            self.skipTest("no seccomp filters here")
        return done.stdout

    def test_calls_that_a_policy_forbids(self):
        self.assertIn("note     kernel    memfd_create fails (Operation not permitted): ranks share memory through files in /dev/shm instead; ",
                      self.under_filter("memfd_create=1"))
        self.assertIn("memfd_create fails (Function not implemented): ", self.under_filter("memfd_create=38"))
        self.assertRegex(self.under_filter("process_vm_readv=1"), r"note     kernel    process_vm_readv fails \(Operation not permitted\): neighbor "
                         r"collectives of long messages copy twice; .*SYS_PTRACE")
        for name in ("memfd_create", "process_vm_readv"):
            self.assertIn(f"problem  kernel    {name} ends the process: a seccomp filter kills those that call it; allow it there, or set ",
                          self.under_filter(f"{name}=kill"))

    def test_libraries_that_are_not_found(self):
        self.assertIn("problem  libraries libcli_absent.so is not found by the dynamic linker", self.findings(PROGRAM["NEEDS_ABSENT"], code=1))

    def test_profiles(self):
        self.assertIn("note     profile   none, so the built-in one is used", self.findings("/bin/true", code=0))
        self.assertIn("problem  profile   profile '/nowhere': No such file", self.findings("/bin/true", code=1, BESTRIDE_PROFILE="/nowhere"))
        path = f"{self.prefix}/home/.config/bestride/profile.json"
        subprocess.run([PROGRAM["WRITE_PROFILE"], path, "here"], check=True)
        self.assertIn(f"ok       profile   {path}, measured on a machine like this", self.findings("/bin/true", code=0))
        with open(path, "r+b") as file:
            file.seek(200)
            file.write(b"#")
        self.assertIn("problem  profile   profile", self.findings("/bin/true", code=1))
        subprocess.run([PROGRAM["WRITE_PROFILE"], path, "elsewhere"], check=True)
        self.assertIn("measured with another CPU ('Abacus 3000', here '", self.findings("/bin/true", code=1))
        self.assertRegex(self.good("info"), rf"(?m)^profile +built-in: {path}: .*measured with another CPU")

    def test_hwloc(self):
        stand_in = {"HWLOC_SYNTHETIC": "the stand-in's", "LD_LIBRARY_PATH": os.path.dirname(os.environ["STAND_IN_HWLOC"])}
        self.assertIn("\ntopology         2 cores (4 hardware threads) in 3 NUMA domains, from hwloc (HWLOC_SYNTHETIC is set)\n",
                      self.good("info", **stand_in))
        self.assertIn("\nok       topology  2 cores (4 hardware threads) in 3 NUMA domains, from hwloc (HWLOC_SYNTHETIC is set)\n",
                      self.findings("/bin/true", code=0, **stand_in))
        self.assertRegex(self.good("info", FAKE_HWLOC="version", **stand_in), r"\ntopology         .* \(HWLOC_SYNTHETIC is set\); libhwloc.so.15 is not hwloc 2\n")

    def test_topology(self):
        self.assertRegex(self.findings("/bin/true", code=0), r"\nok       topology  \d+ (cores?|hardware threads?)|not known")
        good = self.write("good", "node 0-3\ngroup cn*\n")
        self.assertIn(f"ok       topology  topology file '{good}' can be read\n",
                      self.findings("/bin/true", code=0, BESTRIDE_TOPOLOGY=good, BESTRIDE_ALL_RANKS="1"))
        self.assertIn("problem  topology  BESTRIDE_TOPOLOGY is not used: it takes a job in which every rank has the preload; set BESTRIDE_ALL_RANKS=1 or auto",
                      self.findings("/bin/true", code=1, BESTRIDE_TOPOLOGY=good, BESTRIDE_ALL_RANKS="0"))
        bad = self.write("bad", "node 0-3\nnodes 4\n")
        self.assertIn(f"problem  topology  topology file '{bad}', line 2: 'nodes' is not known;",
                      self.findings("/bin/true", code=1, BESTRIDE_TOPOLOGY=bad, BESTRIDE_ALL_RANKS="1"))
        self.assertIn("problem  topology  topology file '/nowhere' can't be read: No such file or directory;",
                      self.findings("/bin/true", code=1, BESTRIDE_TOPOLOGY="/nowhere"))

    def test_rails(self):
        self.assertRegex(self.findings("/bin/true", code=0), r"\n(ok|note) +rails     off[;,] ")
        self.assertIn("ok       rails     local ranks use in turn lo\n", self.findings("/bin/true", code=0, BESTRIDE_NICS="lo"))
        self.assertIn("note     rails     UCX_NET_DEVICES=lo is set and stays, so BESTRIDE_NICS has no effect on it; unset one of them\n",
                      self.findings("/bin/true", code=0, BESTRIDE_NICS="lo", UCX_NET_DEVICES="lo"))
        path = f"{self.prefix}/rails.json"
        subprocess.run([PROGRAM["WRITE_PROFILE"], path, "here", "rails", "lo,lo"], check=True)
        self.assertIn("ok       rails     local ranks use in turn lo lo (of the profile)\n", self.findings("/bin/true", code=0, BESTRIDE_PROFILE=path))
        self.assertIn("ok       rails     off; ", self.findings("/bin/true", code=0, BESTRIDE_PROFILE=path, BESTRIDE_NICS="off"))
        self.assertIn("note     rails     UCX_NET_DEVICES=lo is set and stays, so the profile has no effect on it; unset it\n",
                      self.findings("/bin/true", code=0, BESTRIDE_PROFILE=path, UCX_NET_DEVICES="lo"))
        subprocess.run([PROGRAM["WRITE_PROFILE"], path, "here", "rails", "lo,no"], check=True)
        self.assertIn("note     rails     the profile's rails lo,no: this host has no 'no'; what is up here: ",
                      self.findings("/bin/true", code=0, BESTRIDE_PROFILE=path))
        self.assertIn("problem  rails     BESTRIDE_NICS=lo,: a name is missing; write NICs with commas between them",
                      self.findings("/bin/true", code=1, BESTRIDE_NICS="lo,"))

    def test_variables(self):
        self.assertIn("ok       variable  no unknown or bad", self.findings("/bin/true", code=0))
        text = self.findings("/bin/true", code=1, BESTRIDE_REPROT="1", BESTRIDE_XYZZY_PLUGH="1", BESTRIDE_CACHE_BYTES="plenty")
        self.assertIn("problem  variable  BESTRIDE_REPROT is not known; did you mean BESTRIDE_REPORT?\n", text)
        self.assertIn("problem  variable  BESTRIDE_XYZZY_PLUGH is not known; 'bestride info --env' lists what is\n", text)
        self.assertIn("problem  variable  BESTRIDE_CACHE_BYTES='plenty' is not a size such as 64K; '1G' is used\n", text)
        config = self.write("disabling", "BESTRIDE_DISABLE = 1\n")
        self.assertIn(f"problem  variable  BESTRIDE_DISABLE in {config} has no effect; set it in the environment\n",
                      self.findings("/bin/true", code=1, BESTRIDE_CONFIG=config))
        self.assertIn("note     variable  BESTRIDE_DISABLE=1", self.findings("/bin/true", code=0, BESTRIDE_DISABLE="1"))

    def test_broken_installations(self):
        os.remove(f"{self.prefix}/lib/libbestride-mpich.so")
        self.assertIn("problem  abi       no libbestride-<abi>.so beside it", self.findings("/bin/true", code=1))
        self.write("lib/libbestride.so", "not an object")
        self.assertIn("can't be loaded or is another program's", self.findings("/bin/true", code=1))
        os.remove(self.front)
        self.assertIn("problem  library   can't find libbestride.so", self.findings("/bin/true", code=1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
