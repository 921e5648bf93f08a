#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`bestride run --report` with real jobs: the text at the end and what is in the files."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

COMMAND = os.environ["COMMAND_UNDER_TEST"]
LAB = os.environ["FAULT_LAB"]
HALO = os.environ["HALO3D"]
MPIEXEC = os.environ["MPIEXEC"]


class JobTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bestride-report-")
        self.addCleanup(shutil.rmtree, self.folder)

    def run_job(self, *options, folder=None, ranks=2, steps=20, lab=(), before=()):
        """`before`: words before the launcher's."""
        return subprocess.run([COMMAND, "run", *options, "--verdict-folder", folder or self.folder, "--", *before, MPIEXEC, "-n", str(ranks), LAB, "--steps",
                               str(steps), "--work-us", "100", "--limit", "60", *lab], text=True, capture_output=True, timeout=120, check=False)

    def folder_that_the_job_removes(self):
        """Its path, and the words that remove it once the job has begun."""
        folder = os.path.join(self.folder, "removed")
        os.mkdir(folder)
        return folder, ["sh", "-c", f'rmdir {folder}; exec "$@"', "sh"]

    def content(self, ending):
        names = [name for name in os.listdir(self.folder) if name.endswith(ending)]
        self.assertEqual(len(names), 1, os.listdir(self.folder))
        with open(os.path.join(self.folder, names[0]), encoding="utf-8") as file:
            return file.read()

    def check_metrics(self, text):
        """Checks the OpenMetrics rules that collectors enforce."""
        lines = text.splitlines()
        self.assertTrue(text.endswith("# EOF\n"))
        self.assertEqual(len(set(lines)), len(lines))
        families = {}
        for line in lines[:-1]:
            if line.startswith("# "):
                word, name = line.split()[1:3]
                self.assertIn(word, ("TYPE", "UNIT", "HELP"))
                if word == "TYPE":  # node_exporter reads the older Prometheus format, and rejects files with other types
                    self.assertIn(line.split()[3], ("counter", "gauge", "histogram", "summary"))
                families.setdefault(name, {})[word] = line.split(" ", 3)[3]
                continue
            sample = re.fullmatch(r'(\w+)\{\w+="[^"\n]*"(,\w+="[^"\n]*")*\} [-+.e0-9]+', line)
            self.assertTrue(sample, line)
            family = re.sub("_total$", "", sample.group(1)) if sample.group(1) not in families else sample.group(1)
            self.assertIn(family, families)
            self.assertEqual(sample.group(1).endswith("_total"), families[family]["TYPE"] == "counter")
            self.assertTrue(family.endswith(families[family].get("UNIT", "")))
        self.assertLess(len(lines), 400)
        return families

    def test_a_job_in_which_nothing_went_wrong(self):
        done = self.run_job("--report")
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stderr[done.stderr.index("bestride: MPI time"):]
        self.assertLessEqual(len(text.splitlines()), 40)
        self.assertRegex(text, r"\A.*: 2 ranks on \S+, .*, fault_lab\n  in MPI: \d+ % of the time of a rank \(mean\); least .*\(rank \d, .*most ")
        report = json.loads(self.content(".report.json"))
        self.assertEqual((report["format"], report["version"], report["size"], report["launcher_exit_code"], report["findings"]),
                         ("bestride-mpi-report", 1, 2, 0, []))
        self.assertFalse(any(rank["incomplete"] for rank in report["ranks"]))
        for member in ("calls", "bytes", "timed"):
            for sums in ("ranks", "sites", "functions"):
                self.assertEqual(sum(row[member] for row in report[sums]), report["total"][member])
        for rank in report["ranks"]:
            self.assertLessEqual(0 < rank["mpi_seconds"] and rank["mpi_seconds"], 1.05 * rank["seconds"])
        self.assertTrue(any(pair[:2] == [0, 1] and pair[2] > 0 for pair in report["pairs"]))
        names = {row["function"] for row in report["functions"]}
        self.assertLessEqual({"MPI_Allreduce", "MPI_Finalize", "MPI_Isend"}, names)

        printed = subprocess.run([COMMAND, "report", *[os.path.join(self.folder, n) for n in os.listdir(self.folder) if n.endswith(".report.json")]],
                                 text=True, capture_output=True, check=True).stdout
        self.assertTrue(text.startswith(printed))

        page = self.content(".report.html")
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*)</script>', page).group(1))
        self.assertEqual(data["report"], report)
        self.assertEqual([row["rank"] for row in data["timeline"]["ranks"]], [0, 1])
        self.assertNotRegex(page, r"https?://")

        events = json.loads(self.content(".trace.json"))["traceEvents"]
        self.assertEqual({event["tid"] for event in events if event["ph"] == "X"}, {0, 32})
        self.assertTrue(all(event["ts"] >= 0 and event["dur"] >= 0 for event in events if event["ph"] == "X"))

        families = self.check_metrics(self.content(".prom"))
        self.assertEqual(families["bestride_mpi_time_seconds"]["UNIT"], "seconds")
        calls = dict(re.findall(r'bestride_mpi_calls_total\{job="[^"]*",function="(\w+)"\} (\d+)', self.content(".prom")))
        self.assertEqual({row["function"]: str(row["calls"]) for row in report["functions"]}, calls)
        self.assertIn('class="deadlock"} 0\n', self.content(".prom"))

    def served(self, **more):
        """How the faces of single doubles are served: strategies and seconds saved by function, as said by place; the sum that the ledger says."""
        with tempfile.TemporaryDirectory() as self.folder:
            words = [COMMAND, "run", "--report", "--verdict-folder", self.folder, "--", MPIEXEC, "-n", "2", HALO, "--nx", "64", "--ny", "64", "--nz", "64",
                     "--grid", "2,1,1", "--neighbours", "6", "--open", "--spelling", "vector", "--method", "sendrecv"]
            done = subprocess.run(words, text=True, capture_output=True, timeout=120, check=False, cwd=self.folder,
                                  env={**os.environ, "BESTRIDE_COLLECTIVES": "library", **more})
            self.assertEqual(done.returncode, 0, done.stderr)
            sites = json.loads(self.content(".report.json"))["sites"]
            [name] = [name for name in os.listdir(self.folder) if re.fullmatch(r"bestride-\d+\.json", name)]
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                ledger = json.load(file)["lines"]
        by_function = {}
        for site in sites:
            for served in site["served"]:
                by_function.setdefault(site["function"], set()).add(served.replace("MPI", "forward"))
        for line in ledger:
            self.assertIn(line["strategy"], by_function[line["call"]])
        self.assertNotIn("MPI_Barrier", by_function)
        for line in ledger:
            self.assertEqual(line.get("engine_seconds", 0) > 0, line["strategy"] == "engine", line)
        saved = sum(line["saved_seconds"] for line in ledger)
        self.assertAlmostEqual(sum(site["saved_seconds"] for site in sites), saved, delta=1e-5 * saved)
        return by_function, saved

    def test_how_calls_were_served_is_said_by_place(self):
        by_function, saved = self.served()
        self.assertIn("engine", by_function["MPI_Sendrecv"])
        self.assertGreater(saved, 0, "of single doubles, the library's engine is slower")
        later_ucx = os.path.join(os.path.dirname(os.path.dirname(COMMAND)), "lib", "libinterpose_later_ucx.so")
        by_function, saved = self.served(LD_PRELOAD=later_ucx)  # a version that the engine does not know
        self.assertIn("pack", by_function["MPI_Sendrecv"])
        self.assertGreater(saved, 0)

    def test_a_record_of_another_version_is_said(self):
        folder = f"/dev/shm/bestride-{os.getuid()}"
        words = [COMMAND, "run", "--report", "--verdict-folder", self.folder, "--", MPIEXEC, "-n", "2", LAB, "--steps", "400", "--work-us", "1000", "--limit", "60"]
        with subprocess.Popen(words, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            foreign = None
            while process.poll() is None and foreign is None:
                time.sleep(0.01)
                for record in glob.glob("*/*.record", root_dir=folder):
                    try:
                        with open(os.path.join(folder, record), "rb") as file:
                            content = bytearray(file.read())
                    except FileNotFoundError:  # of another job, which has ended
                        continue
                    if content[:8] == b"bstrrec\0" and f":{process.pid}:".encode() in content[:4096]:  # its watcher
                        content[8:12] = (99).to_bytes(4, "little")
                        foreign = os.path.join(folder, os.path.dirname(record), "1.record")
                        with open(foreign, "wb") as file:
                            file.write(content)
                        break
            text = process.communicate(timeout=60)[0]
        self.assertIsNotNone(foreign)
        shutil.rmtree(os.path.dirname(foreign), ignore_errors=True)
        self.assertEqual(process.returncode, 0, text)
        self.assertRegex(text, r"\nnote: '.*/1.record' is a record of version 99, this command reads \d+; use the bestride that wrote it\n")
        self.assertEqual(len(json.loads(self.content(".report.json"))["ranks"]), 2)

    def test_metrics_of_a_job_that_goes_on(self):
        path = os.path.join(self.folder, "now.prom")
        words = [COMMAND, "run", "--metrics", path, "--metrics-period", "0.2", MPIEXEC, "-n", "2", LAB, "--steps", "1000000", "--work-us", "100", "--limit", "60"]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=self.folder) as process:
            calls = []
            while process.poll() is None and len(calls) < 3:
                time.sleep(0.05)
                if not os.path.exists(path):
                    continue
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                self.check_metrics(text)
                made = sum(int(number) for number in re.findall(r"bestride_mpi_calls_total\{.*\} (\d+)", text))
                if not calls or made > calls[-1]:
                    calls.append(made)
            self.assertIsNone(process.poll(), "the job has ended")
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
        self.assertEqual(len(calls), 3)

    def arrows(self):
        """(rank and call that sent, rank and call that completed) of each message in the trace."""
        events = json.loads(self.content(".trace.json"))["traceEvents"]
        ends = {}
        for event in events:
            if event["ph"] in "sf":
                around = [call for call in events if call["ph"] == "X" and call["tid"] == event["tid"] and
                          call["ts"] - 0.01 <= event["ts"] <= call["ts"] + call["dur"] + 0.01]
                self.assertTrue(around, event)
                ends.setdefault(event["id"], {})[event["ph"]] = (event["tid"] // 32, {call["name"] for call in around})
        return [(*both["s"], *both["f"]) for both in ends.values()]

    def test_arrows_of_nonblocking_messages(self):
        done = self.run_job("--report", ranks=3, steps=5, lab=("--phases", "halo", "--bytes", "65536"))
        self.assertEqual(done.returncode, 0, done.stderr)
        arrows = self.arrows()
        # In one direction each rank has two neighbors; in the other it is its own neighbor.
        self.assertEqual(len(arrows), 3 * 2 * 5)
        for sender, sent, receiver, completed in arrows:
            self.assertTrue(sent & {"MPI_Isend", f"send to rank {receiver}"}, sent)
            self.assertIn("MPI_Waitall", completed)
            self.assertNotEqual(sender, receiver)

    def test_arrows_of_blocking_messages(self):
        for size in ("2048", "65536"):
            done = self.run_job("--report", steps=5, lab=("--phases", "ring", "--bytes", size))
            self.assertEqual(done.returncode, 0, done.stderr)
            arrows = self.arrows()
            # Around the ring in turns with MPI_Send and MPI_Recv, and with MPI_Sendrecv.
            self.assertEqual(len(arrows), 2 * 5)
            for sender, sent, receiver, completed in arrows:
                self.assertEqual(receiver, 1 - sender)
                self.assertTrue((sent & {"MPI_Send"} and completed & {"MPI_Recv"}) or (sent & {"MPI_Sendrecv"} and completed & {"MPI_Sendrecv"}))
            for name in os.listdir(self.folder):
                os.remove(os.path.join(self.folder, name))

    def test_names_of_the_job_are_no_tags_of_the_page(self):
        program = os.path.join(self.folder, "lab<!--<script>")
        shutil.copy(LAB, program)
        done = subprocess.run([COMMAND, "run", "--report", "--verdict-folder", self.folder, "--", MPIEXEC, "-n", "1", program, "--steps", "2"], text=True,
                              capture_output=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        page = self.content(".report.html")
        self.assertFalse("lab<" in page)
        self.assertEqual(page.count("<!--"), 1)
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*)</script>', page).group(1))
        self.assertEqual(data["report"]["executable"], program)
        self.assertEqual([c["name"] for c in data["report"]["communicators"]].count("MPI_COMM_SELF"), 1)

    def test_a_job_that_crashed(self):
        done = self.run_job("--report", lab=("--fault", "sigkill", "--fault-rank", "1", "--fault-step", "3"))
        self.assertNotEqual(done.returncode, 0)
        report = json.loads(self.content(".report.json"))
        self.assertEqual([finding["kind"] for finding in report["findings"]], ["crash"])
        self.assertIn("  verdict: crash: rank 1", done.stderr)
        self.assertIn('class="crash"} 1\n', self.content(".prom"))
        instants = [event for event in json.loads(self.content(".trace.json"))["traceEvents"] if event["ph"] == "i"]
        self.assertEqual([event["name"] for event in instants], ["crash"])

    def test_the_end_of_an_aborted_job_is_no_fault(self):
        self.run_job("--report", "--on-fault", "abort", steps=8, lab=("--fault", "cyclic_sends", "--fault-rank", "1", "--fault-step", "3"))
        self.assertEqual([finding["kind"] for finding in json.loads(self.content(".report.json"))["findings"]], ["deadlock"])

    def test_metrics_alone(self):
        path = os.path.join(self.folder, "job.prom")
        done = self.run_job("--metrics", path, steps=2)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(os.listdir(self.folder), ["job.prom"])
        self.check_metrics(self.content("job.prom"))

    def test_the_file_of_metrics_is_named(self):
        path = os.path.join(self.folder, "job.prom")
        self.assertRegex(self.run_job("--report", "--metrics", path, steps=2).stderr, rf"(?m)^files: .*\.trace\.json, {re.escape(path)}$")
        self.assertRegex(self.run_job("--report", steps=2).stderr, r"(?m)^files: .*\.trace\.json, \.prom$")

    def test_a_folder_that_cant_be_written(self):
        done = self.run_job("--report", folder="/proc", steps=2)
        self.assertEqual((done.returncode, done.stderr), (2, "bestride: can't write into the folder '/proc': No such file or directory; name another one with "
                                                          "--verdict-folder\n"))
        folder, before = self.folder_that_the_job_removes()
        done = self.run_job("--report", folder=folder, steps=2, before=before)
        self.assertEqual(done.returncode, 0)
        self.assertIn("bestride: MPI time", done.stderr)
        lines = re.findall(rf"(?m)^bestride: can't write '{folder}/bestride-[^']*\.(\w+\.\w+)': .*; name another folder with --verdict-folder$", done.stderr)
        self.assertEqual(lines, ["report.json", "report.html", "trace.json"])

    def test_files_that_cant_be_written(self):
        folder, before = self.folder_that_the_job_removes()
        done = self.run_job("--metrics", f"{folder}/job.prom", steps=2, before=before)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, rf"\Abestride: can't write '{folder}/job.prom': .*; name another file with --metrics\n\Z")


if __name__ == "__main__":
    unittest.main()
