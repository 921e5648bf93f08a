#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `bestride calibrate` on this machine for a second or two at a time: written files, messages, invalid input, and resuming."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

COMMAND = os.environ["COMMAND_UNDER_TEST"]
MPIEXEC = os.environ["MPIEXEC"]
STAND_IN = os.environ.get("STAND_IN_DRIVER")


class CalibrateTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bestride-calibrate-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.profile = f"{self.folder}/new/profile.json"

    def calibrate(self, *words, **environment):
        for name, value in (("--mpiexec", MPIEXEC), ("--output", self.profile)):
            if name not in words:
                words += (name, value)
        # A GPU of this machine must not change what is measured.
        return subprocess.run([COMMAND, "calibrate", *words], env={**os.environ, "BESTRIDE_GPU": "off", **environment}, text=True,
                              capture_output=True, timeout=120, check=False, stdin=subprocess.DEVNULL)

    def read(self):
        with open(self.profile, encoding="utf-8") as file:
            return json.load(file)

    def explained(self, **environment):
        done = subprocess.run([COMMAND, "explain", "vector(9,1,2,int)", "--device"], env={**os.environ, "BESTRIDE_PROFILE": self.profile, **environment},
                              text=True, capture_output=True, timeout=60, check=True)
        return done.stdout

    def refused(self, *words, code=2, **environment):
        done = self.calibrate(*words, **environment)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertFalse(os.path.exists(self.profile))
        return done.stderr

    def test_writes_a_profile_and_goes_on_with_the_rest(self):
        first = self.calibrate("--budget", "1", "--only", "pack,unpack")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn("left out for time", first.stdout)
        self.assertIn(f"written to {self.profile}", first.stdout)
        with open(self.profile, encoding="utf-8") as file:
            profile = json.load(file)
        self.assertEqual(profile["format"], "bestride-profile")
        self.assertEqual({grid["call"] for grid in profile["grids"]} - {"pack", "unpack"}, set())
        self.assertIn("MPICH", profile["fingerprint"]["mpi_library"])
        second = self.calibrate("--budget", "1", "--only", "pack,unpack")
        self.assertIn("were known", second.stdout)
        with open(self.profile, encoding="utf-8") as file:
            more = json.load(file)
        count = lambda p: sum(ns is not None for grid in p["grids"] for row in grid["ns"] for ns in row)
        self.assertGreater(count(more), count(profile))

    def test_writes_where_the_library_reads(self):
        command = lambda *words, **more: subprocess.run(
            [COMMAND, *words], env={**os.environ, "BESTRIDE_GPU": "off", "HOME": self.folder, "XDG_CONFIG_HOME": "", **more}, text=True, capture_output=True,
            timeout=120, check=False, stdin=subprocess.DEVNULL)
        quick = ("calibrate", "--mpiexec", MPIEXEC, "--budget", "1", "--only", "pack")
        own, usual = f"{self.folder}/own/profile.json", f"{self.folder}/.config/bestride/profile.json"
        done = command(*quick, BESTRIDE_PROFILE=own)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.endswith(f"\nwritten to {own}, which BESTRIDE_PROFILE names\n"), done.stdout)
        self.assertTrue(os.path.exists(own) and not os.path.exists(usual))
        self.assertIn(f"profile    {own}\n", command("explain", "int", BESTRIDE_PROFILE=own).stdout)
        done = command(*quick)
        self.assertTrue(done.stdout.endswith(f"\nwritten to {usual}\n"), done.stdout)
        other = f"{self.folder}/other.json"
        done = command(*quick, "--output", other, BESTRIDE_PROFILE=own)
        self.assertTrue(done.stdout.endswith(f"\nwritten to {other}; jobs read it with BESTRIDE_PROFILE={other} (now {own})\n"), done.stdout)

    def test_says_beforehand_that_it_cant_write(self):
        for named, why in (("/proc/nothing/profile.json", "can't create the folder of BESTRIDE_PROFILE='/proc/nothing/profile.json': "),
                           ("/dev/null", "can't write BESTRIDE_PROFILE='/dev/null': it is no regular file; choose another file with --output"),
                           ("/proc/profile.json", "can't write BESTRIDE_PROFILE='/proc/profile.json': "),
                           (self.folder, "is a folder")):
            done = subprocess.run([COMMAND, "calibrate", "--mpiexec", MPIEXEC], env={**os.environ, "BESTRIDE_PROFILE": named}, text=True, capture_output=True,
                                  timeout=60, check=False, stdin=subprocess.DEVNULL)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertRegex(done.stderr, r"\Abestride: [^\n]+\n\Z")
            self.assertIn(why, done.stderr)

    def test_ranks_that_share_a_cache_are_measured_bound(self):
        done = self.calibrate("--quick", "--budget", "6", "--only", "isend")
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = {(curve["call"], curve["form"]) for curve in self.read()["contiguous"]}
        near = {("exchange/cache", form) for form in ("plain", "respelled")}
        folder = f"/sys/devices/system/cpu/cpu{min(os.sched_getaffinity(0))}/cache"
        lists = {}
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            if name.startswith("index"):
                with open(f"{folder}/{name}/level", encoding="ascii") as level, open(f"{folder}/{name}/shared_cpu_list", encoding="ascii") as shared:
                    lists[int(level.read())] = shared.read().strip()
        if lists and not lists[max(lists)].isdigit():
            self.assertLessEqual(near, calls)
            self.assertRegex(done.stdout, "\ncontiguous messages between ranks bound to one cache: (left to MPI|respelled from)")
        else:
            self.assertFalse(near & calls)

    def test_collectives_on_one_host_are_measured(self):
        line = "collectives between hosts are left out: all ranks were on one host; name several with --mpiexec 'mpiexec -hosts a,b'\n"
        measured = r"\ncollectives on this host, (\d+) ranks: measured (\d+) points in \d+ s"
        alone = ("--budget", "6", "--only", "collectives")
        done = self.calibrate(*alone)
        if len(os.sched_getaffinity(0)) < 2:
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("collectives on this host are left out: there are more ranks than processors that they may use\n", done.stdout)
            return
        for _ in range(5):  # while other tests keep the processors busy
            if done.returncode == 0:
                break
            self.assertIn("collectives on this host are left out: other programs keep the processors busy; try when it is idle\n", done.stdout)
            done = self.calibrate(*alone)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith(line), done.stdout)
        self.assertRegex(done.stdout, measured)
        self.assertRegex(done.stdout, r"\n[a-z_]+ +(all|none|up to [^\n]+|from [^\n]+|[^\n]+ to [^\n]+)  +[0-9.]+ to [0-9.]+\n")
        section = self.read()["one_node"]
        self.assertEqual(section["ranks"], min(16, len(os.sched_getaffinity(0))))
        kinds = ["broadcast", "allgather", "gather", "scatter", "alltoall", "allreduce", "reduce", "reduce_scatter"]
        known = {"barrier", "neighbor_alltoall", *kinds, *("nonblocking_" + kind for kind in kinds)}
        for curve in section["calls"]:
            self.assertIn(curve["call"], known)
            given = [ns is not None for ns in curve["shared_ns"]]
            self.assertTrue(any(given))
            self.assertEqual(given, [ns is not None for ns in curve["library_ns"]])
            if curve["call"] == "barrier":
                self.assertEqual(given, [True] + [False] * 7)
        self.assertNotIn("collectives", self.read())
        # Other measurements keep them, and they keep the others.
        done = self.calibrate("--budget", "1", "--only", "pack")
        self.assertNotIn("collectives", done.stdout)
        self.assertEqual(self.read()["one_node"], section)
        grids = self.read()["grids"]
        self.calibrate("--budget", "1", "--only", "collectives", "--ranks", "2")
        self.assertEqual(self.read()["grids"], grids)

    def test_a_launcher_that_refuses_so_many_ranks(self):
        launcher = f"{self.folder}/launcher"
        with open(launcher, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\ncase " $* " in *" one-node "*) echo "not enough slots" >&2; exit 1;; esac\nexec {MPIEXEC} "$@"\n')
        os.chmod(launcher, 0o755)
        done = self.calibrate("--budget", "1", "--only", "pack,collectives", "--mpiexec", launcher)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("collectives on this host are left out: not enough slots\n", done.stdout)
        self.assertNotIn("one_node", self.read())

    def test_collectives_of_a_crowded_host_are_left_out(self):
        ranks = str(len(os.sched_getaffinity(0)) + 1)
        done = self.calibrate("--only", "collectives", "--ranks", ranks)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("collectives on this host are left out: there are more ranks than processors that they may use\n", done.stdout)
        self.assertFalse(os.path.exists(self.profile))

    def test_collectives_between_hosts_are_measured_kept_and_gone_on_with(self):
        # MPICH sees two hosts, which are connected by this host's memory.
        hosts = {"MPIR_CVAR_NUM_CLIQUES": "2"}
        report = os.path.join(self.folder, "report.json")
        first = self.calibrate("--quick", "--budget", "2", "--only", "collectives", BESTRIDE_REPORT="1", BESTRIDE_REPORT_FILE=report, **hosts)
        self.assertEqual(first.returncode, 0, first.stderr)
        with open(report, encoding="utf-8") as file:
            self.assertIn('"hierarchical"', file.read(), "the report has no hierarchical calls")
        self.assertRegex(first.stdout, r"\nbetween hosts: latency [^\n]*\nlong messages between hosts are fastest in pieces of [^\n]*\ncollectives: measured \d+ points")
        collectives = self.read()["collectives"]
        self.assertEqual(set(collectives["link_ns"]), {"latency", "overhead", "wire_byte", "stream_byte", "copy_byte", "node_sync"})
        self.assertIn(collectives["piece"], [2 ** power for power in range(14, 23)])
        self.assertEqual([(s["nodes"], s["ranks"], s["ring_entries"]) for s in collectives["settings"]], [(2, 4, 2)])
        points = lambda: sum(ns is not None for s in self.read()["collectives"]["settings"] for c in s["curves"] for ns in c["library_ns"])
        before = points()
        self.assertGreater(before, 0)
        for setting in collectives["settings"]:
            for curve in setting["curves"]:
                measured = lambda row: [number is not None for number in row]
                self.assertEqual(set(curve), {"collective", "blocking", "hierarchical_ns", "library_ns", "noise"})
                for row in ("hierarchical_ns", "noise"):
                    self.assertEqual(measured(curve[row]), measured(curve["library_ns"]))
        if "left out for time" in first.stdout:
            second = self.calibrate("--quick", "--budget", "2", "--only", "collectives", **hosts)
            self.assertIn("were known", second.stdout)
            self.assertGreater(points(), before)
        # Other measurements keep them in the file.
        kept = self.read()["collectives"]
        self.calibrate("--budget", "1", "--only", "pack", **hosts)
        self.assertEqual(self.read()["collectives"], kept)

    def launcher(self, with_rails, without):
        """A launcher with simulated jobs, so that no timing matters. For an exchange it runs the given commands; for links it writes a state, with
        another link if rails are used."""
        path = f"{self.folder}/launcher"
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"""#!/bin/bash
echo "$*" >> {self.folder}/jobs
case "$*" in *\\ exchange\\ *--rails\\ off*) {without}; exit;; *\\ exchange\\ *) {with_rails}; exit;; esac
link=overhead
while [ $# -gt 0 ]; do case $1 in --state) state=$2;; --rails) rails=" | rails $2"; link=latency;; esac; shift; done
printf '%s\\n' "bestride-measure 2 collectives 2 4 2 2 2 a | b | c | d$rails" "link $link 5000" "done $link" > "$state"
printf '%s\\n' "config a | b | c | d$rails" "hosts different" "preload yes" "end 1 0 1"
""")
        os.chmod(path, 0o755)
        return path

    def collectives(self, *words, with_rails="exit 1", without="exit 1"):
        """The command's output, the profile and the jobs' command lines."""
        jobs = f"{self.folder}/jobs"
        if os.path.exists(jobs):
            os.remove(jobs)
        done = self.calibrate("--only", "collectives", "--mpiexec", self.launcher(with_rails, without), *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(jobs, encoding="utf-8") as file:
            return done.stdout, self.read(), file.read().splitlines()

    @staticmethod
    def job(*lines):
        return "printf '%s\\n' " + " ".join(f"'{line}'" for line in ("config a | b | c | d", "hosts different", *lines, "end 1 0 1"))

    def test_rails_that_are_faster_are_kept_and_measured_with(self):
        found = self.job("rails eth0,eth1", "bytes 4096", "exchange 0.3 0.4", "exchange 0.3 0.4")
        said, profile, jobs = self.collectives("--nics", "eth0,eth1", with_rails=self.job("exchange 0.2 0.2"), without=found)
        self.assertIn("\nrails eth0,eth1 are 1.50 times as fast as the MPI library's own choice: each local rank", said)
        self.assertEqual(profile["rails"], ["eth0", "eth1"])
        self.assertEqual([" exchange " in job for job in jobs], [True] * 4 + [False] * 2)
        self.assertEqual([" --rails eth0,eth1" in job for job in jobs], [False, True, True, False, True, True])
        self.assertEqual([" --bytes 4096" in job for job in jobs], [False, True, True, True, False, False])
        self.assertIn(" --candidates eth0,eth1 ", jobs[0])
        self.assertEqual([name for name, ns in profile["collectives"]["link_ns"].items() if ns], ["latency"])
        # They stay in the profile if rails are not tested: with --nics off, or without candidates.
        _, profile, jobs = self.collectives("--nics", "off")
        self.assertEqual((profile["rails"], [" exchange " in job for job in jobs]), (["eth0", "eth1"], [False, False]))
        said, profile, jobs = self.collectives(without=self.job("no-rails h0: one NIC"))
        self.assertIn("\nrails were not tried: h0: one NIC\n", said)
        self.assertEqual(profile["rails"], ["eth0", "eth1"])
        self.assertEqual([" --candidates auto " in job for job in jobs], [True, False, False])
        # If they are not faster on one of the nodes, they are removed together with the measurements made over them.
        said, profile, jobs = self.collectives(with_rails=self.job("exchange 0.2 0.36"), without=found)
        self.assertIn("\nrails eth0,eth1 are not used: 1.11 times as fast as the MPI library's own choice, not 1.15 times\n", said)
        self.assertNotIn("rails", profile)
        self.assertEqual([" --rails eth0,eth1" in job for job in jobs], [False, True, True, False, False, False])
        self.assertEqual([name for name, ns in profile["collectives"]["link_ns"].items() if ns], ["overhead"])

    def test_rails_whose_jobs_fail_are_not_kept(self):
        found = self.job("rails eth0,eth1", "bytes 4096", "exchange 0.3 0.4")
        for fails, why in (("echo no route >&2; exit 1", "a job with them failed: no route"),
                           (self.job("no-rails h1: a rank was given none"), "h1: a rank was given none"),
                           ("sleep 1000", r"a job with them did not come to its end within 1\d s; can every NIC reach every NIC of another host\?")):
            said, profile, jobs = self.collectives(with_rails=fails, without=found)
            self.assertRegex(said, f"\nrails eth0,eth1 are not used: {why}\n")
            self.assertNotIn("rails", profile)
            self.assertEqual(len(jobs), 4)

    def test_rails_of_this_host(self):
        # Real jobs find the rails, assign them and use them. Times are not checked.
        hosts = {"MPIR_CVAR_NUM_CLIQUES": "2"}
        done = self.calibrate("--quick", "--budget", "1", "--only", "collectives", "--nics", "lo,lo", **hosts)
        self.assertRegex(done.stdout, r"\nrails lo,lo are (not used: )?\d+\.\d\d times as fast as the MPI library's own choice", done.stderr)
        program = [MPIEXEC, "-n", "4", os.path.join(os.path.dirname(COMMAND), "bestride-measure-mpich"), "exchange"]
        for words, line, more in ((["--candidates", "lo,none0"], r"no-rails [^ ]+: this host has no 'none0'; what is up here: ", {}),
                                  (["--candidates", "lo,lo,lo"], r"no-rails with 2 ranks on a host some of lo,lo,lo would lie idle; start more with --ranks\n", {}),
                                  (["--rails", "lo,lo"], r"no-rails [^ ]+: a rank was given none\n", {}),
                                  (["--rails", "lo,lo"], r"no-rails [^ ]+: UCX_NET_DEVICES=all is set and stays\n", {"UCX_NET_DEVICES": "all"})):
            done = subprocess.run(program + words, env={**os.environ, **hosts, **more}, text=True, capture_output=True, timeout=60, check=True,
                                  stdin=subprocess.DEVNULL)
            self.assertRegex(done.stdout, f"\n{line}")
            self.assertNotIn("exchange ", done.stdout)

    def test_interrupted_it_keeps_what_it_has(self):
        words = [COMMAND, "calibrate", "--mpiexec", MPIEXEC, "--output", self.profile]
        with subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
            state = f"{self.profile}.state"
            deadline = time.time() + 60
            while time.time() < deadline and not (os.path.exists(state) and "done" in open(state, encoding="utf-8").read()):
                time.sleep(0.1)
            os.killpg(process.pid, signal.SIGINT)
            _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, said)
        self.assertIn("goes on from here", said)
        self.assertFalse(os.path.exists(self.profile))
        done = self.calibrate("--quick", "--budget", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("were known", done.stdout)

    def hanging_launcher(self):
        """Waits for a connection, as ssh does, in a session of its own. Returns the launcher and the file of the connection's pid."""
        path, pids = f"{self.folder}/hanging", f"{self.folder}/pid"
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nsetsid sh -c 'echo $$ > {pids}.new; mv {pids}.new {pids}; exec sleep 1000' &\nwait\n")
        os.chmod(path, 0o755)
        return path, pids

    def assert_ended(self, pids):
        with open(pids, encoding="utf-8") as file, self.assertRaises(ProcessLookupError):
            os.kill(int(file.read()), 0)

    def test_a_launcher_that_reaches_no_host(self):
        launcher, pids = self.hanging_launcher()
        for only in ("pack", "isend", "collectives"):
            said = self.refused("--only", only, "--mpiexec", f"{launcher} -hosts a,b", "--patience", "2", code=1)
            self.assertRegex(said, rf"\Abestride: [^\n]+ failed: '{launcher}' has not started the measuring program within 2 s; can it reach every host that it "
                             r"is to use, without a password \('ssh HOST true'\)\? --patience gives it more time\n\Z")
            self.assert_ended(pids)

    def test_a_signal_ends_what_was_started(self):
        launcher, pids = self.hanging_launcher()
        for number in (signal.SIGINT, signal.SIGTERM):
            words = [COMMAND, "calibrate", "--only", "pack", "--mpiexec", launcher, "--output", self.profile]
            with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, stdin=subprocess.DEVNULL) as process:
                try:
                    while not os.path.exists(pids):
                        time.sleep(0.01)
                    process.send_signal(number)  # to this process alone, unlike a terminal
                    _, said = process.communicate(timeout=30)
                finally:
                    process.kill()
            self.assertEqual(process.returncode, 128 + number, said)
            self.assertIn(b"goes on from here", said)
            self.assert_ended(pids)
            os.remove(pids)

    def test_nothing_is_lost_over_a_damaged_profile(self):
        os.makedirs(os.path.dirname(self.profile))
        damaged = '{"format": "bestride-profile", "version": 2, "collectives'
        for only in ("pack", "collectives", "gpu"):
            with open(self.profile, "w", encoding="utf-8") as file:
                file.write(damaged)
            done = self.calibrate("--only", only, "--budget", "1")
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertEqual(done.stderr, f"bestride: profile '{self.profile}': damaged or cut short (not JSON), so nothing but '{only}' would be left in it; "
                             "remove it or leave --only out to measure everything again, or choose another file with --output\n")
            with open(self.profile, encoding="utf-8") as file:
                self.assertEqual(file.read(), damaged)
        done = self.calibrate("--quick", "--budget", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"bestride: profile '{self.profile}': damaged or cut short (not JSON); it is replaced\n", done.stderr)
        self.assertEqual(self.read()["format"], "bestride-profile")

    @unittest.skipUnless(STAND_IN, "the stand-in driver is not run here")
    def test_a_gpu_is_measured_kept_and_marked(self):
        gpu = {"BESTRIDE_GPU": "auto", "BESTRIDE_CUDA_DRIVER": STAND_IN}
        first = self.calibrate("--quick", "--budget", "5", "--only", "gpu", **gpu)
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn("GPU: Stand-in, CUDA 13.0\nGPU: this is a stand-in driver: its curves are for tests and are not used\n", first.stdout)
        profile = self.read()
        self.assertEqual(profile["grids"], [])
        self.assertEqual(profile["fingerprint"]["gpu"], "Stand-in, CUDA 13.0")
        self.assertIs(profile["gpu"]["stand_in"], True)
        self.assertEqual({curve["direction"] for curve in profile["gpu"]["copies"]}, {"pack", "unpack"})
        points = lambda p: sum(ns is not None for grid in p["gpu"]["grids"] + p["gpu"]["copies"] for row in grid["ns"]
                               for ns in (row if isinstance(row, list) else [row]))
        for _ in range(8):  # on a busy machine few samples are undisturbed; each run resumes the previous one
            if points(profile) > 0:
                break
            self.calibrate("--quick", "--budget", "5", "--only", "gpu", **gpu)
            profile = self.read()
        self.assertGreater(points(profile), 0)
        # Refused except in tests.
        self.assertIn("its GPU curves are of a stand-in driver, so the built-in ones are used", self.explained())
        self.assertNotEqual(self.explained(), self.explained(BESTRIDE_FORCE="stand_in=1"))
        # Calibration resumes, and measurements without the GPU keep the GPU's in the file.
        second = self.calibrate("--quick", "--budget", "2", "--gpu", "--only", "pack", **gpu)
        self.assertIn("were known", second.stdout)
        self.assertGreaterEqual(points(self.read()), points(profile))
        for _ in range(8):
            self.calibrate("--quick", "--budget", "1", "--only", "pack", "--no-gpu", **gpu)
            if self.read()["grids"]:
                break
        self.assertGreaterEqual(points(self.read()), points(profile))
        self.assertEqual(self.read()["fingerprint"]["gpu"], "Stand-in, CUDA 13.0")
        self.assertEqual({grid["call"] for grid in self.read()["grids"]}, {"pack"})

    @unittest.skipUnless(STAND_IN, "the stand-in driver is not run here")
    def test_a_gpu_that_fails_is_said_and_the_rest_is_measured(self):
        done = self.calibrate("--budget", "1", "--only", "pack,gpu", BESTRIDE_GPU="auto", BESTRIDE_CUDA_DRIVER=STAND_IN, FAKE_CUDA_FAIL="cuMemAlloc_v2:3+:2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("GPU: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY", done.stdout)

    @unittest.skipUnless(STAND_IN, "the stand-in driver is not run here")
    def test_a_gpu_aware_mpi_is_measured_with_device_memory(self):
        distances = set()
        for _ in range(8):  # on a busy machine few samples are undisturbed; each run resumes the previous one
            done = self.calibrate("--quick", "--budget", "3", "--only", "gpu", "--mpiexec", f"{MPIEXEC} -genv LD_PRELOAD {os.environ['AWARE_MPI']}",
                                  BESTRIDE_GPU="auto", BESTRIDE_CUDA_DRIVER=STAND_IN)
            self.assertEqual(done.returncode, 0, done.stderr)
            distances = {curve["distance"] for curve in self.read()["gpu"]["contiguous"]}
            if "node" in distances:
                break
        self.assertIn("node", distances)

    def test_says_when_the_gpu_it_was_told_to_measure_is_not_there(self):
        self.assertIn("the GPU can't be measured: BESTRIDE_GPU=off", self.refused("--gpu", code=1))
        self.assertIn("--only gpu and --no-gpu contradict", self.refused("--only", "gpu", "--no-gpu"))
        self.refused("--gpu", "--no-gpu")

    def test_says_what_is_wrong(self):
        self.assertIn("unknown call kind 'sned'", self.refused("--only", "sned"))
        self.assertIn("--only ', ,' names nothing to measure", self.refused("--only", ", ,"))
        for option in ("--only", "--output", "--mpiexec", "--nics"):
            self.assertIn(f"{option}: the value is empty; give one", self.refused(option, ""))
        self.assertIn("--nics 'eth0,': a name is missing", self.refused("--nics", "eth0,"))
        self.assertIn("--nics is about collectives", self.refused("--nics", "eth0,eth1", "--only", "pack"))
        self.refused("--only", "collectives", "--ranks", "1")
        self.assertIn("can't find the launcher", self.refused("--mpiexec", "/nonexistent/mpiexec"))
        self.assertIn("is a folder", self.refused("--output", self.folder))
        self.assertIn("--output", self.refused("--output", "/proc/nothing/profile.json"))

    def test_a_launcher_that_fails_or_is_another_mpis(self):
        broken = f"{self.folder}/broken"
        with open(broken, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho 'no hosts for you' >&2\nexit 3\n")
        os.chmod(broken, 0o755)
        self.assertIn("no hosts for you", self.refused("--mpiexec", broken, code=1))
        # Each rank is a separate job, as with the launcher of another MPI library.
        single = f"{self.folder}/single"
        with open(single, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nshift 2\nexec "$@"\n')
        os.chmod(single, 0o755)
        self.assertIn("needs two ranks, but sees 1", self.refused("--mpiexec", single, code=1))


if __name__ == "__main__":
    unittest.main()
