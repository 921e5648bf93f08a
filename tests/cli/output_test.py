#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the real bestride command, copied into a separate prefix, and compares its output.

The prefix is laid out like an installation: bin/bestride, lib/libbestride.so, and an empty file in place of the MPICH backend (the
command only checks that it exists). HOME and PATH point into the same folder, so that only the MPI library of this machine is found.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = {name: os.environ.get(name) for name in (
    "OWN_MPI", "STATIC_OWN_MPI", "STRIPPED", "LOADS_PLUGINS", "NEEDS_ABSENT", "WRITE_PROFILE", "FORBID_CALL", "SANITIZED", "SANITIZED_WITH_OPTIONS", "OTHER_MPI", "MPI_PROGRAM", "MPI_PROGRAM_WITH_TOOL", "FORTRAN_NAMES")}
VERSION = os.environ["BESTRIDE_TEST_VERSION"]
SOURCE = os.environ["BESTRIDE_TEST_SOURCE"]


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.prefix = os.path.realpath(tempfile.mkdtemp(prefix="bestride-cli-"))
        self.addCleanup(shutil.rmtree, self.prefix)
        for folder in ("bin", "lib", "home", "path"):
            os.mkdir(f"{self.prefix}/{folder}")
        self.front = f"{self.prefix}/lib/libbestride.so"
        shutil.copy(os.environ["COMMAND_UNDER_TEST"], f"{self.prefix}/bin/bestride")
        shutil.copy(os.environ["LIBRARY_UNDER_TEST"], self.front)
        self.write("lib/libbestride-mpich.so", "")
        self.write("lib/libsomething-else.so", "")
        self.environment = {name: os.environ[name] for name in os.environ if name.endswith("SAN_OPTIONS")}
        self.environment |= {"HOME": f"{self.prefix}/home", "PATH": f"{self.prefix}/path:/usr/bin:/bin"}

    def write(self, path, text, mode=0o644):
        path = f"{self.prefix}/{path}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def launcher(self, name, behind=None):
        """A program in PATH that prints its environment and arguments. `behind`: the name of the file if `name` is a link to it."""
        script = '#!/bin/sh\nfor a; do [ "$a" = --version ] && exit 0; done\nenv | grep -E "^(LD_PRELOAD|BESTRIDE_|SLURM_)" | sort\nprintf "%s\\n" "$*"\n'
        path = self.write(f"path/{behind or name}", script, 0o755)
        if behind and not os.path.lexists(f"{self.prefix}/path/{name}"):
            os.symlink(path, f"{self.prefix}/path/{name}")
        return path

    def run_command(self, *words, **environment):
        return subprocess.run([f"{self.prefix}/bin/bestride", *words], env={**self.environment, **environment}, text=True,
                              capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL)

    def good(self, *words, **environment):
        done = self.run_command(*words, **environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def refused(self, *words, code=2, **environment):
        """The single line on stderr of a command that must fail."""
        done = self.run_command(*words, **environment)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Abestride: [^\n]+\n\Z")
        return done.stderr[len("bestride: "):-1]


class Usage(CommandTest):
    def test_version(self):
        for words in (["--version"], ["-V"], ["version"]):
            self.assertEqual(self.good(*words), f"bestride {VERSION}\n")

    def test_help_names_every_command(self):
        text = self.good("--help")
        for command in ("run", "try", "explain", "info", "doctor", "report", "where"):
            self.assertRegex(text, rf"\n  {command} +\w")
        self.assertEqual(self.good("help"), text)
        self.assertEqual(self.good("help", "explain"), self.good("explain", "--help"))

    def test_bad_usage_is_one_line(self):
        self.assertEqual(self.refused("dance"), "there is no command 'dance'; 'bestride --help' lists them")
        self.assertEqual(self.refused("docter"), "there is no command 'docter'; did you mean 'doctor'?")
        self.assertEqual(self.refused("info", "x"), "'x' is not expected here; see 'bestride info --help'")
        self.assertIn("see 'bestride explain --help'", self.refused("explain", "int", "1", "--call", "shout"))
        self.refused()
        self.refused("info", "--nonsense")
        self.refused("explain")
        self.refused("explain", "int", "many")
        self.refused("explain", "int", "1", "--call", "shout")


def without_watcher(text):
    """Without the variables that are different for each process that watches a job."""
    return re.sub(r"(?m)^BESTRIDE_(WATCHER|WATCH|WATCH_KEY|COMMAND)=.*\n", "", text)


class Run(CommandTest):
    def test_options_of_a_watched_job(self):
        for option in (["--on-fault", "abort"], ["--verdict-folder", "/tmp"], ["--fan-out", "2"], ["--patience", "9"]):
            self.assertEqual(self.refused("run", *option, "--", "true"), f"{option[0]} needs --watch or --report")

    def test_a_misspelled_action(self):
        self.assertEqual(self.refused("run", "--watch", "--on-fault", "abrot", "--", "true"),
                         "can't run 'abrot' of --on-fault: there is no such program; is it in PATH?; write report, abort, or a shell command "
                         "that gets the verdict as JSON")

    def test_dry_run_prints_the_environment_and_the_command(self):
        self.launcher("mpiexec", "mpiexec.hydra")
        text = self.good("run", "--dry-run", "--report", "--all-ranks", "--strategy", "pack", "--log", "info", "--", "mpiexec", "-n", "4",
                         "./my program", "--report", "--", "it's")
        self.assertRegex(text, r"(?m)^BESTRIDE_WATCHER=\S+$")
        self.assertEqual(without_watcher(text), f"LD_PRELOAD={self.front}\nBESTRIDE_REPORT=1\nBESTRIDE_RECORD=keep\nBESTRIDE_ALL_RANKS=1\nBESTRIDE_STRATEGY=pack\n"
                         "BESTRIDE_LOG=info\nmpiexec -n 4 './my program' --report -- 'it'\\''s'\n")

    def test_the_command_begins_at_the_first_word_that_is_no_option(self):
        self.launcher("mpiexec", "mpiexec.hydra")
        with_dashes = without_watcher(self.good("run", "--dry-run", "--report", "--log", "info", "--", "mpiexec", "-n", "2", "x", "--report", "--", "y"))
        self.assertEqual(without_watcher(self.good("run", "--dry-run", "--report", "--log", "info", "mpiexec", "-n", "2", "x", "--report", "--", "y")), with_dashes)
        self.assertEqual(without_watcher(self.good("run", "--dry-run", "--report", "--log=info", "mpiexec", "-n", "2", "x", "--report", "--", "y")), with_dashes)

    def test_dry_run_reads_back_in_a_shell(self):
        self.launcher("mpiexec", "mpiexec.hydra")
        text = self.good("run", "--dry-run", "--", "mpiexec", "a b", "", "$HOME", "*", "x\ny")
        words = subprocess.run(["sh", "-c", 'eval "set -- ${1#*\n*\n}"; shift; printf "<%s>" "$@"', "sh", text], text=True, capture_output=True,
                               check=True).stdout
        self.assertEqual(words, "<a b><><$HOME><*><x\ny>")

    def test_runs_with_the_library_before_what_was_preloaded(self):
        self.launcher("mpiexec", "mpiexec.hydra")
        done = self.run_command("run", "--report", "--", "mpiexec", "-n", "2", "x")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"\Abestride: no rank was watched: .*\n\Z")
        self.assertEqual(without_watcher(done.stdout), f"BESTRIDE_ALL_RANKS=auto\nBESTRIDE_RECORD=keep\nBESTRIDE_REPORT=1\nLD_PRELOAD={self.front}\n-n 2 x\n")
        self.assertIn("BESTRIDE_ALL_RANKS=0\n", self.good("run", "--", "mpiexec", BESTRIDE_ALL_RANKS="0"))
        self.assertIn(f"LD_PRELOAD={self.front}:libm.so.6\n", self.good("run", "--", "mpiexec", LD_PRELOAD="libm.so.6"))
        self.assertIn(f"LD_PRELOAD=libm.so.6:{self.front}\n", self.good("run", "--", "mpiexec", LD_PRELOAD=f"libm.so.6:{self.front}"))

    def test_the_exit_code_is_the_jobs(self):
        self.assertEqual(self.run_command("run", "--", "sh", "-c", "exit 42").returncode, 42)

    def test_a_disabled_job_is_not_watched(self):
        self.assertIn("BESTRIDE_DISABLE=1\n", self.good("run", "--dry-run", "--disable", "--", "true"))
        why = "leaves every call to the MPI library, so nothing is watched and no report is written"
        self.launcher("mpiexec", "mpiexec.hydra")
        for option in ("--watch", "--report", "--metrics=/dev/null"):
            self.assertEqual(self.refused("run", option, "--disable", "--", "true"), f"--disable {why}; leave it out")
            done = self.run_command("run", option, "--", "mpiexec", "-n", "2", "x", BESTRIDE_DISABLE="Yes")
            self.assertEqual((done.returncode, done.stderr), (0, f"bestride: BESTRIDE_DISABLE=1 {why}; unset it\n"))
            self.assertEqual(done.stdout, f"BESTRIDE_ALL_RANKS=auto\nBESTRIDE_DISABLE=Yes\nLD_PRELOAD={self.front}\n-n 2 x\n")

    def test_files_that_cant_be_written_start_nothing(self):
        job = ["--", "touch", f"{self.prefix}/begun"]
        for option, cause in ((["--metrics", "/proc/none/m"], "'/proc/none/m': No such file or directory; name another file with --metrics"),
                              (["--metrics", f"{self.prefix}/home"], f"'{self.prefix}/home': Is a directory; name another file with --metrics"),
                              (["--report", "--verdict-folder", "/proc"], "into the folder '/proc': No such file or directory; name another one with --verdict-folder"),
                              (["--watch", "--verdict-folder", "/proc"], "into the folder '/proc': No such file or directory; name another one with --verdict-folder")):
            self.assertEqual(self.refused("run", *option, *job), "can't write " + cause)
        for file, cause in (("/proc/none", "No such file or directory"), (f"{self.prefix}/home", "Is a directory")):
            self.assertEqual(self.refused("run", "--report", *job, BESTRIDE_REPORT_FILE=file), f"can't write BESTRIDE_REPORT_FILE='{file}': {cause}; name another file")
        self.assertFalse(os.path.exists(f"{self.prefix}/begun"))
        # Whatever else is there.
        os.makedirs(f"{self.prefix}/reports/bestride")
        done = self.run_command("run", "--report", "--verdict-folder", f"{self.prefix}/reports", *job)
        self.assertEqual(done.returncode, 0, done.stderr)
        os.remove(f"{self.prefix}/begun")
        # It may be a folder of another host.
        done = self.run_command("run", "--report", *job, BESTRIDE_REPORT_FILE="/nowhere/on/this/host/r.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.exists(f"{self.prefix}/begun"))
        self.assertEqual(self.refused("run", "--report", "r.json", "mpiexec", code=127),
                         "can't run 'r.json': there is no such program; --report takes no value: BESTRIDE_REPORT_FILE names the file, --verdict-folder the folder")

    def test_what_cant_be_run(self):
        self.assertEqual(self.refused("run", "--", "no-such-launcher", code=127),
                         "can't run 'no-such-launcher': there is no such program; is it in PATH?")
        self.assertEqual(self.refused("run"), "no command to run; for example: bestride run mpiexec -n 4 ./program")
        self.assertEqual(self.refused("run", "--report", "--"), "no command to run; for example: bestride run mpiexec -n 4 ./program")
        self.assertEqual(self.refused("run", "--reprot", "true"), "'--reprot' is not expected here; see 'bestride run --help'")
        self.assertIn("{auto,forward,respell,pack,oneshot,staged,pipelined,copy-engine,device}", self.refused("run", "--strategy", "fast", "--", "true"))

    def test_a_bad_profile_starts_nothing(self):
        self.assertIn("No such file", self.refused("run", "--profile", "/nowhere", "--", "true"))
        bad = self.write("bad.json", '{"format": "bestride-profile"')
        self.assertIn("damaged or cut short", self.refused("run", "--profile", bad, "--", "true"))

    def test_a_profile_is_named_by_its_whole_path(self):
        subprocess.run([PROGRAM["WRITE_PROFILE"], f"{self.prefix}/profile.json", "here"], check=True)
        done = subprocess.run([f"{self.prefix}/bin/bestride", "run", "--dry-run", "--profile", "profile.json", "--", "true"], cwd=self.prefix,
                              env=self.environment, text=True, capture_output=True, check=True)
        self.assertIn(f"BESTRIDE_PROFILE={self.prefix}/profile.json\n", done.stdout)

    def test_without_the_library(self):
        os.remove(self.front)
        self.assertRegex(self.refused("run", "--", "true"), "^can't find libbestride.so .*; install the command and the library")

    def test_a_path_that_cant_be_preloaded(self):
        os.mkdir(f"{self.prefix}/a b")
        for folder in ("bin", "lib"):
            shutil.copytree(f"{self.prefix}/{folder}", f"{self.prefix}/a b/{folder}")
        self.prefix += "/a b"
        self.assertIn("which LD_PRELOAD can't name", self.refused("run", "--", "true"))

    def test_srun_that_keeps_the_environment_to_itself(self):
        self.launcher("srun")
        self.assertEqual(self.run_command("run", "--", "srun", "-n", "2", "x").stderr, "")
        self.assertEqual(self.run_command("run", "--", "srun", "--export=ALL,A=1", "x").stderr, "")
        done = self.run_command("run", "--", "srun", "--export=A,B", "x")
        self.assertIn("use --export=ALL,A,B or add LD_PRELOAD", done.stderr)
        for before in (["-n", "2"], ["-n2"], ["--ntasks", "2"], ["--ntasks=2"], ["-l"], ["-lN", "2"], ["--exclusive", "-p", "all"], ["--kill-on-bad-exit"]):
            for export in (["--export=NONE"], ["--export", "NONE"]):
                self.assertIn("use --export=ALL or add LD_PRELOAD", self.run_command("run", "--", "srun", *before, *export, "x").stderr)
        self.assertEqual(self.run_command("run", "--", "srun", "-n", "2", "x", "--export=NONE").stderr, "")  # the program's own option
        done = self.run_command("run", "--", "srun", "-n", "2", "x", SLURM_EXPORT_ENV="NONE")
        self.assertIn("it is set to ALL for this command", done.stderr)
        self.assertIn("SLURM_EXPORT_ENV=ALL\n", done.stdout)

    def test_open_mpi_needs_a_word_for_other_hosts(self):
        self.launcher("mpirun", "orterun")
        self.assertIn("for other hosts add -x LD_PRELOAD -x BESTRIDE_REPORT", self.run_command("run", "--report", "--", "mpirun", "x").stderr)


    def joined(self, *words, **environment):
        """The command after the variables, and what is said, with the library's path as LIB."""
        done = self.run_command("run", "--dry-run", "--", *words, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()[-1].replace(self.front, "LIB"), done.stderr.replace(self.front, "LIB")

    def test_the_command_s_own_preload_is_joined_with_the_library(self):
        self.launcher("mpiexec", "mpiexec.hydra")
        for before, after in (
                ("mpiexec -genv LD_PRELOAD x.so -n 2 p", "mpiexec -genv LD_PRELOAD LIB:x.so -n 2 p"),
                ("mpiexec --genv LD_PRELOAD=x.so -n 2 p", "mpiexec --genv LD_PRELOAD=LIB:x.so -n 2 p"),
                ("mpiexec -n 1 -env LD_PRELOAD x.so p : -n 1 -env LD_PRELOAD y.so q", "mpiexec -n 1 -env LD_PRELOAD LIB:x.so p : -n 1 -env LD_PRELOAD LIB:y.so q"),
                ("mpiexec -x LD_PRELOAD=x.so:y.so p", "mpiexec -x LD_PRELOAD=LIB:x.so:y.so p"),
                ("mpiexec -x LD_PRELOAD= p", "mpiexec -x LD_PRELOAD=LIB p"),
                ("mpiexec -n 2 env A=1 LD_PRELOAD=x.so true", "mpiexec -n 2 env A=1 LD_PRELOAD=LIB:x.so true"),
                ("apptainer exec --env A=1,LD_PRELOAD=x.so image p", "apptainer exec --env A=1,LD_PRELOAD=LIB:x.so image p"),
                ("jsrun -E LD_PRELOAD=x.so p", "jsrun -E LD_PRELOAD=LIB:x.so p"),
                # What is not about the environment, and a value that has the library already, stay.
                ("mpiexec -genv A LD_PRELOAD p", "mpiexec -genv A LD_PRELOAD p"),
                ("mpiexec -genv LD_PRELOAD /x/libbestride.so:x.so p", "mpiexec -genv LD_PRELOAD /x/libbestride.so:x.so p"),
                ("mpiexec ./p env", "mpiexec ./p env")):
            words = before.split()
            if not os.path.exists(f"{self.prefix}/path/{words[0]}"):
                self.launcher(words[0])
            self.assertEqual(self.joined(*words), (after, ""))

    def test_variables_pass_launchers_that_drop_them(self):
        self.launcher("mpiexec", "mpiexec.hydra")
        passed = "-genv LD_PRELOAD LIB -genv BESTRIDE_ALL_RANKS auto"
        for option in ("-genvnone", "-envnone", "-genvlist A", "--envlist A"):
            self.assertEqual(self.joined("mpiexec", *option.split(), "-n", "2", "p"), (f"mpiexec {passed} {option} -n 2 p", ""))
        command = "mpiexec -genvnone -genv LD_PRELOAD x.so p"
        self.assertEqual(self.joined(*command.split()), (f"mpiexec {passed} -genvnone -genv LD_PRELOAD LIB:x.so p", ""))
        self.assertEqual(self.joined("env", "-i", "PATH=/bin", "mpiexec", "p"),
                         ("env -i LD_PRELOAD=LIB BESTRIDE_ALL_RANKS=auto PATH=/bin mpiexec p", ""))
        self.assertEqual(self.joined("env", "-i", "mpiexec", "p"), ("env -i LD_PRELOAD=LIB BESTRIDE_ALL_RANKS=auto mpiexec p", ""))
        self.assertIn("'env -u LD_PRELOAD' removes the library; leave that out\n", self.joined("env", "-u", "LD_PRELOAD", "mpiexec", "p")[1])

    def test_a_preload_in_a_script_is_said(self):
        self.assertEqual(self.joined("sh", "-c", "LD_PRELOAD=x.so ./p")[1],
                         "bestride: 'LD_PRELOAD=x.so ./p' sets LD_PRELOAD, so the library may not be loaded; add LIB to its value\n")

    def test_srun_with_a_preload_of_its_own(self):
        self.launcher("srun")
        self.assertEqual(self.joined("srun", "--export=ALL,LD_PRELOAD=x.so", "p"), ("srun --export=ALL,LD_PRELOAD=LIB:x.so p", ""))
        text, said = self.joined("srun", "--export=LD_PRELOAD=x.so", "p")
        self.assertEqual(text, "srun --export=LD_PRELOAD=LIB:x.so p")
        self.assertIn("so the library's variables would not be set; use --export=ALL,LD_PRELOAD=LIB:x.so or add BESTRIDE_ALL_RANKS\n", said)
        self.assertEqual(self.joined("srun", "--export=LD_PRELOAD,BESTRIDE_ALL_RANKS", "p")[1], "")
        self.assertIn("use --export=ALL or add LD_PRELOAD", self.joined("env", "srun", "--export=NONE", "p")[1])

    def test_open_mpi_with_a_preload_of_its_own(self):
        self.launcher("mpirun", "orterun")
        text, said = self.joined("mpirun", "-x", "LD_PRELOAD=x.so", "p")
        self.assertEqual(text, "mpirun -x LD_PRELOAD=LIB:x.so p")
        self.assertIn("for other hosts add -x BESTRIDE_ALL_RANKS\n", said)

    def test_a_job_gets_both_libraries(self):
        self.assertIn(f"LD_PRELOAD={self.front}:libm.so.6\n", self.good("run", "--", "env", "LD_PRELOAD=libm.so.6", "env"))

    def test_bad_numbers(self):
        bad = ("0", "-1", "nan", "inf", "-inf", "1e308", "1e400", "", " ", "x", "5x", "0x10", "99999999999999999999")
        for command, option, whole, least, most in (
                (["calibrate"], "--budget", True, "1", "1000000"), (["calibrate"], "--ranks", True, "2", "1048576"),
                (["calibrate"], "--patience", False, "1", "1000000"), (["run", "--watch"], "--fan-out", True, "1", "65536"), (["run", "--watch"], "--patience", False, "1", "1000000"),
                (["run", "--metrics", "m"], "--metrics-period", False, "0.1", "1000000"),
                (["try"], "--rounds", True, "1", None), (["try"], "--seconds", False, "0.1", "1000000"),
                (["explain", "--collective", "gather"], "--nodes", True, "1", "16777216"),
                (["explain", "--collective", "gather"], "--ranks", True, "1", "16777216"),
                (["explain", "--collective", "gather"], "--mbit", False, "0.001", "1000000000"), (["where"], "--calls", True, "0", "1024")):
            for value in bad + (("0.5", "1.0", "1e3", "010") if whole else ()):
                if value == least:
                    continue
                job = ["--", "true"] if command[0] in ("run", "try") else []
                with self.subTest(command=command, option=option, value=value):
                    line = self.refused(*command, f"{option}={value}", *job)
                    if value:
                        self.assertEqual(line.split("; see")[0], f"{option}: '{value}' is not a{' whole' if whole else ''} number from {least} to "
                                         f"{most or line.split(' to ')[1].split(';')[0]}")
                    self.assertLess(len(line), 160)
        for words in (["int", "1e308"], ["int", "nan"], ["int", ""], ["--collective", "gather", "--bytes", "nan"], ["--collective", "gather", "--bytes", ""],
                      ["--collective", "gather", "--bytes", "1e308"], ["--collective", "gather", "--bytes", "inf"]):
            self.assertLess(len(self.refused("explain", *words)), 160)
        text = self.good("explain", "--collective", "gather", "--bytes", "8000000000G", "--nodes", "16777216", "--ranks", "16777216")
        self.assertLess(max(map(len, text.splitlines())), 160)


class Info(CommandTest):
    def test_installation(self):
        text = self.good("info")
        self.assertIn(f"bestride         {VERSION}\nlibrary          {self.front} ({VERSION})\nMPI ABIs         mpich\n", text)
        self.assertRegex(text, r"instruction set  (scalar|avx2|avx512), in use (scalar|avx2|avx512)\n")
        self.assertIn("profile          built-in ('bestride calibrate'", text)
        self.assertIn("in use scalar\n", self.good("info", BESTRIDE_FORCE="isa=scalar"))
        self.assertRegex(text, r"\ntopology         ((\d+ cores? \()?\d+ hardware threads?.*, from|not known, neither from) ")
        self.assertIn("\napproximate      nothing\n", text)
        self.assertRegex(self.good("info", BESTRIDE_QUANTIZE="int4"), r"\napproximate +large allgathers and sums .*: int4 codes \(BESTRIDE_QUANTIZE\)\n")
        self.assertIn("\nrails            off (up here: ", text)
        self.assertIn("\nrails            lo lo (up here: ", self.good("info", BESTRIDE_NICS="lo,lo"))
        self.assertIn("\nrails            BESTRIDE_NICS=lo,no: this host has no 'no'; what is up here: ", self.good("info", BESTRIDE_NICS="lo,no"))

    def test_rails_of_the_profile(self):
        path = f"{self.prefix}/rails.json"
        told = lambda **more: self.good("info", BESTRIDE_PROFILE=path, **more)
        subprocess.run([PROGRAM["WRITE_PROFILE"], path, "here", "rails", "lo,lo"], check=True)
        self.assertIn("\nrails            lo lo (of the profile) (up here: ", told())
        self.assertIn("\nrails            lo lo (of the profile) (up here: ", told(BESTRIDE_NICS="profile"))
        self.assertIn("\nrails            off (up here: ", told(BESTRIDE_NICS="off"))
        self.assertIn("\nrails            lo (up here: ", told(BESTRIDE_NICS="lo"))
        subprocess.run([PROGRAM["WRITE_PROFILE"], path, "here", "rails", "lo,no"], check=True)
        self.assertIn("\nrails            the profile's rails lo,no: this host has no 'no'; what is up here: ", told())
        subprocess.run([PROGRAM["WRITE_PROFILE"], path, "elsewhere", "rails", "lo,lo"], check=True)
        self.assertIn("\nrails            off (up here: ", told())

    def test_json(self):
        answer = json.loads(self.good("info", "--json"))
        self.assertEqual([answer[key] for key in ("format", "bestride", "mpi_abis", "approximate")], ["bestride-info", VERSION, "mpich", "nothing"])
        answer = json.loads(self.good("info", "--env", "--json", BESTRIDE_STRATEGY="pack"))
        values = {entry["name"]: entry for entry in answer["variables"]}
        self.assertEqual([values["BESTRIDE_STRATEGY"][key] for key in ("value", "source", "default")], ["pack", "environment", "auto"])

    def test_every_variable_says_where_it_is_from(self):
        config = self.write("config", "BESTRIDE_CACHE_BYTES = 1M\n")
        text = self.good("info", "--env", BESTRIDE_CONFIG=config, BESTRIDE_STRATEGY="pack")
        self.assertIn("BESTRIDE_STRATEGY=pack\n    from environment; default 'auto'; one of auto|", text)
        self.assertIn(f"BESTRIDE_CACHE_BYTES=1M\n    from {config}; default '1G'\n", text)
        self.assertIn("BESTRIDE_DISABLE=0\n    from default; default '0'\n    1: intercept nothing", text)

    def test_the_committed_page_is_the_table(self):
        with open(f"{SOURCE}/docs/variables.md", encoding="utf-8") as page:
            self.assertEqual(page.read(), self.good("info", "--env", "--markdown"),
                             "run: bestride info --env --markdown > docs/variables.md")


class Explain(CommandTest):
    def test_text(self):
        text = self.good("explain", "vector(2000, 1, 2, double)", "1")
        self.assertIn("type       vector(2000,1,2,double), count 1\nlayout     2000 x 16 | 8 B\n"
                      "size       16000 B (15.6 KiB) in 2000 blocks\nextent     31992 B from lower bound 0; all elements touch 31992 B", text)
        self.assertRegex(text, r"  forward  predicted \S+ us\n  respell  predicted [^\n]*\n  pack     not possible here\n")
        self.assertEqual(text.count("<- chosen: "), 1)

    def test_messages_with_gaps_are_the_engines(self):
        text = self.good("explain", "vector(1000,1,2,double)", "1")
        self.assertIn("\n  engine   <- chosen: MPICH over UCX asks Bestride to pack and unpack each fragment", text)
        self.assertRegex(text, r"  forward  predicted \S+ us  <- chosen there")
        self.assertNotIn("engine", self.good("explain", "vector(1000,1,2,double)", "1", "--distance", "self"))
        for other in ("forward", "respell", "pack"):
            self.assertNotIn("engine", self.good("explain", "vector(1000,1,2,double)", "1", BESTRIDE_STRATEGY=other))
        self.assertIn("  engine ", self.good("explain", "vector(1000,1,2,double)", "1", BESTRIDE_STRATEGY="staged"))

    def test_json_is_the_same(self):
        answer = json.loads(self.good("explain", "vector(1000,1,2,double)", "3", "--call", "receive", "--distance", "network", "--json"))
        self.assertEqual([answer[key] for key in ("call", "distance", "size", "blocks", "extent")], ["receive", "network", 24000, 3000, 15992])
        self.assertEqual(set(answer["seconds"]), {"forward", "respell", "pack"})
        self.assertEqual(answer["strategy"], "engine")
        answer = json.loads(self.good("explain", "vector(1000,1,2,double)", "3", "--call", "pack", "--json"))
        self.assertIn(answer["strategy"], answer["seconds"])

    def test_what_is_contiguous_is_left_alone(self):
        self.assertIn("<- chosen: the bytes are contiguous: there is nothing to pack\n", self.good("explain", "contiguous(100,double)", "5"))
        self.assertIn("<- chosen: there are no bytes to move\n", self.good("explain", "double", "0"))

    def test_a_forced_strategy_is_said(self):
        self.assertIn("pack     predicted", self.good("explain", "vector(9,1,2,int)", BESTRIDE_STRATEGY="pack"))
        self.assertIn("<- chosen: BESTRIDE_STRATEGY=forward forces it", self.good("explain", "vector(9,1,2,int)", BESTRIDE_STRATEGY="forward"))

    def test_help_shows_the_language(self):
        text = self.good("explain", "--help")
        for word in ("subarray([size,...]", "darray(", "resized(lower_bound,extent,T)", " double_int", " byte"):
            self.assertIn(word, text)

    def test_bad_types_say_the_column(self):
        SEE = "; 'bestride explain --help' shows the language"
        self.assertEqual(self.refused("explain", "vector(3,1,2,doubel)", "1"), f"type expression, column 14: expected a type, found 'doubel'{SEE}")
        self.assertEqual(self.refused("explain", "vector(3,1,2"), f"type expression, column 13: expected ',', found the end{SEE}")
        self.assertIn("type expression, ", self.refused("explain", "vector(-3,1,2,int)"))
        self.assertIn("type expression, ", self.refused("explain", "(" * 5000))

    def test_types_as_mpi_and_reports_write_them(self):
        text = self.good("explain", "vector(1000,1,2,double)", "1000000")
        self.assertEqual(self.good("explain", "MPI_Type_vector(1000, 1, 2, MPI_DOUBLE, &column)", "1e6"), text)
        self.assertIn("\nlayout     1000 x 16 | 8 B\n", self.good("explain", "1000 x 16 | 8 B"))

    def test_distances_between_blocks(self):
        for spelling in ("vector(1000,1,2,double)", "MPI_Type_vector(1000,1,2,MPI_DOUBLE)"):
            self.assertIn(", blocks 16 B apart\n", self.good("explain", spelling))
            self.assertIn(", blocks about 16 B apart\n", self.good("explain", spelling, "10"))

    def test_a_type_that_is_not_understood_is_refused(self):
        self.assertEqual(self.refused("explain", "MPI_Type_vector(1000, BLOCK, 2, MPI_DOUBLE)"),
                         "type expression, column 23: expected a number, found 'BLOCK'; 'bestride explain --help' shows the language")

    @unittest.skipUnless(PROGRAM["OTHER_MPI"], "no shared library is made here")
    def test_another_mpi_library_has_no_built_in_curves(self):
        other = {"LD_LIBRARY_PATH": os.path.dirname(PROGRAM["OTHER_MPI"])}
        text = self.good("explain", "vector(8192,1,2,double)", **other)
        self.assertIn("\nprofile    built-in, for any MPI library\n           its curves are of MPICH 4.0 over UCX, not of Another MPI 9.9, so only what is safe "
                      "with any library is done; 'bestride calibrate' of a Bestride that was built with this library measures it\n", text)
        self.assertRegex(text, r"\n  respell  not possible here\n  pack     predicted \S+ us  <- chosen")
        self.assertRegex(self.good("explain", "subarray([64,64,64],[62,62,1],[1,1,1],c,double)", "--call", "isend", **other), r"  forward  .*<- chosen: ")
        path = f"{self.prefix}/profile.json"
        for of, difference in (("elsewhere", "CPU"), ("another-library", "MPI library ('Another MPI 1.0', here 'Another MPI 9.9')")):
            subprocess.run([PROGRAM["WRITE_PROFILE"], path, of], check=True)
            self.assertIn("\nprofile    built-in, for any MPI library\n           " + path + ": the profile was measured with another " + difference,
                          self.good("explain", "vector(8192,1,2,double)", BESTRIDE_PROFILE=path, **other))

    def test_bad_counts(self):
        self.assertEqual(self.refused("explain", "int", "-1"), "count -1 is negative; give 0 or more")
        self.assertIn("62-bit range", self.refused("explain", "vector(2,1,2,int)", "4000000000000000000"))
        self.refused("explain", "int", "99999999999999999999")
        self.assertEqual(self.refused("explain", "int", "many"), "count 'many': column 1: expected a number, found 'many'")

    def test_a_bad_profile_is_said_and_the_built_in_used(self):
        text = self.good("explain", "int", "1", BESTRIDE_PROFILE="/nowhere")
        self.assertIn("profile    built-in\n           profile '/nowhere': No such file", text)


class ExplainCollective(CommandTest):
    def test_text(self):
        text = self.good("explain", "--collective", "reduce_scatter", "--bytes", "16M", "--nodes", "4", "--ranks", "8", "--nonblocking")
        self.assertRegex(text, r"\Acollective reduce_scatter, 16.0 MiB, nonblocking\nranks      8 on 4 nodes, consecutive on a node\n"
                         r"profile    built-in\nlink       1.11 GiB/s a node, 1.11 GiB/s with one rank sending, latency 30.0 us\n"
                         r"           assumed \(--mbit\); a job measures it in MPI_Init\n"
                         r"chunks     2.00 MiB of each rank's slice, 2 in flight\n"
                         r"  library      predicted \S+ ms, 24.0 MiB on a link, 2.00 of the lower bound\n"
                         r"  hierarchical predicted \S+ ms, 12.0 MiB on a link, 1.00 of the lower bound"
                         r"  <- chosen: predicted 1.\d\d times as fast as the library's own\n\Z")

    def test_json_is_the_same(self):
        answer = json.loads(self.good("explain", "--collective", "allgather", "--bytes", "4M", "--nodes", "4", "--ranks", "8", "--cyclic", "--json"))
        self.assertEqual([answer[key] for key in ("collective", "bytes", "nodes", "ranks", "ring_entries", "blocking", "choice")],
                         ["allgather", 4 << 20, 4, 8, 2, True, "hierarchical"])
        self.assertEqual(answer["wire_bytes"], {"library": 7340032, "hierarchical": 3145728, "lower_bound": 3145728})
        self.assertLess(answer["seconds"]["hierarchical"], answer["seconds"]["library"])

    def test_what_is_left_to_the_library(self):
        self.assertIn("<- chosen: there are no bytes to move\n", self.good("explain", "--collective", "allreduce", "--bytes", "0"))
        self.assertIn("<- chosen: the hierarchy is not predicted to be at least 5 % faster\n", self.good("explain", "--collective", "allreduce", "--bytes", "64"))
        self.assertIn("<- chosen: the hierarchy saves too few bytes and was not measured (calibrate)\n", self.good("explain", "--collective", "broadcast", "--bytes", "64"))

    def test_measured_limits_on_one_node(self):
        path = f"{self.prefix}/one_node.json"
        subprocess.run([PROGRAM["WRITE_PROFILE"], path, "here", "one-node"], check=True)
        ask = lambda size, *words: self.good("explain", "--collective", "broadcast", "--bytes", size, "--nodes", "1", "--ranks", "2", *words, BESTRIDE_PROFILE=path)
        for words in ((), ("--nonblocking",)):
            for size, where in (("63", "the MPI library"), ("64", "shared memory"), ("4096", "shared memory"), ("4097", "the MPI library")):
                self.assertIn(f"  {where}  <- chosen: as measured with 2 ranks\n", ask(size, *words))

    def test_on_one_node(self):
        ask = lambda *words, **environment: self.good("explain", "--collective", "allreduce", "--bytes", "64K", "--nodes", "1", *words, **environment)
        self.assertEqual(ask("--ranks", "2"), "collective allreduce, 64.0 KiB, blocking\nranks      2 on one node\nprofile    built-in\n"
                         "  the MPI library\n  shared memory  <- chosen: by the built-in bounds of such sizes\n")
        for words, environment, why in ((["--ranks", "129"], {}, "at most 128 ranks share memory"), (["--ranks", "1"], {}, "there is one rank"),
                                        ([], {"BESTRIDE_DISABLE": "1"}, "BESTRIDE_DISABLE=1 leaves every call to it"),
                                        ([], {"BESTRIDE_ALL_RANKS": "0"}, "BESTRIDE_ALL_RANKS=0 leaves every collective to it"),
                                        ([], {"BESTRIDE_COLLECTIVES": "library"}, "BESTRIDE_COLLECTIVES=library forces it")):
            self.assertIn(f"  the MPI library  <- chosen: {why}\n  shared memory\n", ask(*words, **environment))
            answer = json.loads(ask(*words, "--json", **environment))
            self.assertEqual([answer["choice"], answer["because"]], ["library", why])
        self.assertNotIn("with more ranks", ask(BESTRIDE_DISABLE="1"))
        ask = lambda *words, **environment: self.good("explain", "--collective", "alltoall", "--bytes", "1G", "--nodes", "1", *words, **environment)
        self.assertIn("  shared memory if a datatype has gaps, else the MPI library  <- chosen: ", ask())
        self.assertEqual(json.loads(ask("--json"))["choice"], "shared_memory_if_gaps")
        self.assertIn("  shared memory  <- chosen: BESTRIDE_COLLECTIVES=hierarchical forces it", ask(BESTRIDE_COLLECTIVES="hierarchical"))
        self.assertRegex(self.good("explain", "--collective", "allgather", "--bytes", "4M", "--nodes", "4", "--ranks", "8", BESTRIDE_ALL_RANKS="0"),
                         "  library  [^\n]*<- chosen: BESTRIDE_ALL_RANKS=0 leaves ")

    def test_a_forced_way_is_said(self):
        for mode in ("library", "hierarchical"):
            text = self.good("explain", "--collective", "broadcast", "--bytes", "64", BESTRIDE_COLLECTIVES=mode)
            self.assertRegex(text, f"  {mode} +predicted [^\n]*<- chosen: BESTRIDE_COLLECTIVES={mode} forces it\n")

    def test_measured_times_are_the_prediction(self):
        path = f"{self.prefix}/collectives.json"
        subprocess.run([PROGRAM["WRITE_PROFILE"], path, "here", "collectives"], check=True)
        ask = lambda *words: self.good("explain", "--collective", "broadcast", "--bytes", "1M", "--nodes", "2", *words, BESTRIDE_PROFILE=path)
        self.assertRegex(ask("--ranks", "4"), r"\n  library      predicted 3.00 ms, 1.00 MiB on a link, 1.00 of the lower bound"
                         r"  <- chosen: the hierarchy is not predicted to be at least 5 % faster\n  hierarchical predicted 9.00 ms, [^<]*\n\Z")
        answer = json.loads(ask("--ranks", "4", "--json"))
        self.assertEqual(answer["choice"], "library")
        self.assertEqual(set(answer["seconds"]), {"library", "hierarchical"})
        self.assertAlmostEqual(answer["seconds"]["library"], 3e-3, 5)

    def test_a_profile_without_collectives_is_said(self):
        subprocess.run([PROGRAM["WRITE_PROFILE"], f"{self.prefix}/profile.json", "here"], check=True)
        self.assertIn("it has no measured link\nlink ",
                      self.good("explain", "--collective", "broadcast", BESTRIDE_PROFILE=f"{self.prefix}/profile.json"))

    def test_a_given_link(self):
        ask = lambda *words: self.good("explain", "--collective", "allgather", "--bytes", "4M", "--nodes", "4", "--ranks", "8", *words)
        self.assertRegex(ask(), r"  library +predicted \S+ ms, 3.50 MiB on a link, 1.17 of the lower bound  <- chosen")
        text = ask("--mbit", "200")
        self.assertRegex(text, r"\nlink       23.8 MiB/s a node, 23.8 MiB/s with one rank sending, latency 30.0 us\n"
                         r"           as given; a job measures it in MPI_Init\n")
        self.assertRegex(text, r"  hierarchical predicted \S+ ms, 3.00 MiB on a link, 1.00 of the lower bound  <- chosen")
        # Faster than the assumed link.
        self.assertEqual(ask("--mbit", "100000"), ask())
        path = f"{self.prefix}/collectives.json"
        subprocess.run([PROGRAM["WRITE_PROFILE"], path, "here", "collectives"], check=True)
        self.assertEqual(self.refused("explain", "--collective", "allgather", "--mbit", "200", BESTRIDE_PROFILE=path),
                         f"--mbit: jobs use the link that was measured in {path}")
        self.refused("explain", "--collective", "allgather", "--mbit", "0")
        self.refused("explain", "int", "1", "--mbit", "200")

    def test_bad_questions_are_one_line(self):
        self.assertIn("nothing to explain; give a datatype", self.refused("explain"))
        self.assertIn("gater not in", self.refused("explain", "--collective", "gater"))
        self.assertEqual(self.refused("explain", "--collective", "gather", "--bytes", "-1"), "'-1' is no size; give bytes, with K, M or G for powers of 1024")
        self.assertIn("1 ranks can't be on 2 nodes", self.refused("explain", "--collective", "gather", "--ranks", "1"))
        self.assertIn("requires --collective", self.refused("explain", "int", "--nodes", "3"))
        self.refused("explain", "int", "--collective", "gather")
        self.refused("explain", "--collective", "gather", "--nodes", "0")


class Report(CommandTest):
    LINE = {"call": "MPI_Isend", "layout": "16 x 64 | 8 B", "strategy": "pack", "reason": "", "calls": 12, "bytes": 1536, "seconds": 0.5,
            "saved_seconds": None}

    def report(self, **changes):
        whole = {"format": "bestride-report", "version": 1, "bestride": VERSION, "mpi_library": "MPICH", "profile": "built-in", "ranks": 2,
                 "job_seconds": 1.5, "lines": [self.LINE]}
        return self.write("report.json", json.dumps({**whole, **changes}))

    def test_prints_the_table(self):
        text = self.good("report", self.report())
        self.assertIn("2 ranks, 1.50 s, MPICH\n", text)
        self.assertRegex(text, r"\nMPI_Isend +16 x 64 \| 8 B +12 1\.50 KiB  pack +500 ms +-\n")

    def test_what_the_cache_did(self):
        self.assertNotIn("cache", self.good("report", self.report()))
        cache = {"hits": 80, "hit_bytes": 6400000, "deltas": 4, "delta_saved_bytes": 300000, "misses": 3, "paused": 2}
        self.assertIn("\ncache: 80 hits saved 6.10 MiB on the wire, 4 deltas 293 KiB; 3 misses, 2 paused\n", self.good("report", self.report(cache=cache)))
        self.assertIn("is damaged", self.refused("report", self.report(cache={"hits": 80})))

    def test_every_reason_of_the_library_is_explained(self):
        reasons = set()
        for path in glob.glob(f"{SOURCE}/interpose/*/*.[ch]pp"):
            with open(path, encoding="utf-8") as file:
                for statement in re.findall(r"(?:forward_because\(|call_record\.reason = )([^;]*);", file.read()):
                    reasons.update(re.findall(r'"([^"]+)"', statement))
        with open(f"{SOURCE}/docs/report.md", encoding="utf-8") as page:
            documented = set(re.findall(r"^\| `([^`]+)` \|", page.read(), re.MULTILINE))
        for reason in reasons:
            self.assertIn(reason, documented)
            text = self.good("report", self.report(lines=[{**self.LINE, "strategy": "forward", "reason": reason}]))
            self.assertRegex(text, rf"\n  {reason}: \w")

    def test_parts_are_added_up_and_jobs_are_not(self):
        whole = self.report()
        with open(whole, encoding="utf-8") as file:
            text = file.read()
        parts = [self.write(f"{name}.json.{rank}", text) for name, rank in (("report", 1), ("of-pid-7", 12))]
        self.assertIn("\nMPI_Isend           16 x 64 | 8 B                         36 ", self.good("report", whole, *parts))
        self.assertIn("4 ranks", self.good("report", *parts))
        other = self.write("other.json", text)
        self.assertEqual(self.refused("report", whole, whole), f"'{whole}' is given twice; give the parts of one job's report, each once")
        for files in ((whole, other), (whole, parts[0], other)):
            self.assertEqual(self.refused("report", *files), f"'{files[0]}' and '{files[-1]}' are reports of two jobs, which can't be added up; to compare two jobs, "
                             "give the *.report.json files that 'bestride run --report' wrote of them")
        same_rank = self.write("other.json.1", text)
        self.assertIn(f"'{parts[0]}' and '{same_rank}' are reports of two jobs", self.refused("report", parts[0], same_rank))

    def test_bad_files(self):
        self.assertIn("No such file", self.refused("report", "/nowhere"))
        self.assertEqual(self.refused("report", self.prefix), f"'{self.prefix}' is a directory; give the report in it: the file that "
                         f"BESTRIDE_REPORT_FILE names, else {self.prefix}/bestride-<job>.json")
        self.assertIn("is not a bestride report", self.refused("report", self.write("x", "{")))
        self.assertIn("format 2, this command reads 1", self.refused("report", self.report(version=2)))
        self.assertIn("is damaged", self.refused("report", self.report(lines=[{}])))
        self.assertIn("is damaged", self.refused("report", self.report(ranks="many")))
        self.assertIn("is damaged", self.refused("report", self.report(lines={"a": 1})))


if __name__ == "__main__":
    unittest.main(verbosity=2)
