#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`bestride run --watch` of Python programs: exceptions, crashes, and the place of a hang."""
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "python_program.py")


def line_of(text):
    with open(PROGRAM, encoding="utf-8") as file:
        return 1 + file.read().split("\n").index(text)


class Python(unittest.TestCase):
    def run_program(self, what, ranks):
        with tempfile.TemporaryDirectory(prefix="bestride-python-") as folder:
            words = [os.environ["COMMAND_UNDER_TEST"], "run", "--watch", "--on-fault=abort", "--verdict-folder", folder,
                     os.environ["MPIEXEC"], "-n", str(ranks), sys.executable, PROGRAM, what]
            result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=120, check=False)
            names = [name for name in os.listdir(folder) if name.endswith(".verdict.json")]
            findings = []
            for name in names:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    findings += json.load(file)["findings"]
            return findings, result

    def test_an_exception_of_one_rank(self):
        line = line_of('        raise MeshError("cell 17\\nhas a negative volume")')
        findings, result = self.run_program("raise", 3)
        self.assertEqual(len(findings), 1, result.stdout)
        finding = findings[0]
        self.assertEqual((finding["class"], finding["cause"], finding["culprits"], finding["confidence"]), ("crash", "exception", [2], 1), result.stdout)
        place = f"load (python_program.py:{line})"
        self.assertIn(f"exception of Python in {place}: MeshError: cell 17 has a negative volume", finding["text"])
        self.assertTrue(re.search(rf"called by main \(\S*{re.escape(os.path.basename(PROGRAM))}:\d+\)", str(finding["evidence"])), finding["evidence"])
        self.assertIn("python -m mpi4py", finding["advice"])
        self.assertIn("MeshError", result.stdout.split("bestride:")[0], "Python's own traceback")

    def test_an_exception_of_all_ranks(self):
        findings, result = self.run_program("all", 2)
        self.assertLessEqual(len(findings), 1, result.stdout)  # they may have ended before the next look
        for finding in findings:
            self.assertEqual((finding["cause"], finding["culprits"]), ("exception", [0, 1]), result.stdout)

    @unittest.skipUnless(hasattr(ctypes.pythonapi, "_Py_DumpTraceback"), "this Python does not export the function that writes its frames")
    def test_the_place_of_a_crash(self):
        for what, place in (("fault", f"load (python_program.py:{line_of('        ctypes.string_at(4)')})"), ("abort", r"run \(threading.py:\d+\)"),
                            ("exit", f"load (python_program.py:{line_of('        ctypes.CDLL(None).exit(3)')})"),
                            ("exit at once", f"load (python_program.py:{line_of('        os._exit(4)')})")):
            findings, result = self.run_program(what, 2)
            self.assertEqual([(finding["class"], finding["culprits"]) for finding in findings], [("crash", [1])], result.stdout)
            self.assertRegex(result.stdout, place if what == "abort" else re.escape(place))
            self.assertNotIn("PyEval", result.stdout.split("bestride:", 1)[1])

    def test_the_place_of_sys_exit(self):
        for what, text in (("sys.exit", '        sys.exit("no input")'), ("SystemExit", "        raise SystemExit(5)")):
            if what == "SystemExit" and sys.version_info < (3, 10):
                continue
            findings, result = self.run_program(what, 3)
            self.assertEqual([(finding["class"], finding["culprits"]) for finding in findings], [("mismatch", [2])], result.stdout)
            place = f"load (python_program.py:{line_of(text)})"
            self.assertRegex(findings[0]["summary"], "Rank 2 (waits|was) in MPI_Finalize on MPI_COMM_WORLD at " + re.escape(place))
            self.assertIn(f"rank 2 has raised SystemExit in {place}", findings[0]["evidence"])

    def test_an_interpreter_with_damaged_data(self):
        """Its function faults while it writes the frames: the process ends by the first signal, not by this one."""
        with tempfile.TemporaryDirectory(prefix="bestride-python-") as folder:
            words = [os.environ["COMMAND_UNDER_TEST"], "run", "--watch", "--verdict-folder", folder, os.environ["MPIEXEC"], "-n", "2",
                     os.environ["DAMAGED_INTERPRETER"]]
            result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=120, check=False)
        self.assertRegex(result.stdout, r"bestride: crash: rank 1 \(.*\) was ended by signal 6 \(Aborted\)")
        self.assertRegex(result.stdout, r"EXIT CODE: (6|134)\n")

    def test_python_frames_of_a_hang(self):
        frames = [{"name": name, "filename": PROGRAM, "line": line} for name, line in (("load", 25), ("main", 40), ("<module>", 45))]
        with tempfile.TemporaryDirectory(prefix="bestride-py-spy-") as folder:
            path = os.path.join(folder, "py-spy")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\necho '[{{\"os_thread_id\": '$3', \"frames\": {json.dumps(frames)}}}]'\n")
            os.chmod(path, 0o755)
            # The program does not end by itself; bestride run ends it when it is told to.
            command = ["timeout", "--signal=TERM", "25", os.environ["COMMAND_UNDER_TEST"], "run", "--watch", "--patience", "1", "--on-fault",
                       f"cat > {folder}/verdict; kill -TERM $PPID", "--verdict-folder", folder,
                       os.environ["MPIEXEC"], "-n", "2", sys.executable, PROGRAM, "spin"]
            subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=60, check=False,
                           env=os.environ | {"PATH": folder + ":" + os.environ["PATH"]})
            with open(os.path.join(folder, "verdict"), encoding="utf-8") as file:
                finding = json.load(file)["findings"][0]
        self.assertEqual((finding["class"], finding["culprits"]), ("non-communication hang", [1]))
        self.assertRegex(finding["summary"], r"Rank 1 is in load \(python_program.py:\d+\): look there\.$")

    def test_no_exception_or_one_that_is_caught(self):
        for what in ("none", "caught", "printed", "exit that is caught", "sys.exit at the end"):
            findings, result = self.run_program(what, 2)
            self.assertEqual((findings, result.returncode), ([], 0), result.stdout)


if __name__ == "__main__":
    unittest.main()
