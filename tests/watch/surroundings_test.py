#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`bestride run --watch` in poor surroundings: the job runs as without it, one line says what is missing, and what can be said is said.

A case needs root for its namespaces and mounts; without it, the case is skipped.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

COMMAND = os.environ["COMMAND_UNDER_TEST"]
LAB = os.environ["FAULT_LAB"]
MPIEXEC = os.environ["MPIEXEC"]
FORBID = os.environ["FORBID_CALL"]
NOT_DUMPABLE = os.environ["NOT_DUMPABLE"]
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
GOOD = r"\Aok checksum \w+ ranks 2 steps \d+\n\Z"
NO_RECORDS = "bestride: calls are not recorded: "


def can_unshare():
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "-p", "-f", "--mount-proc", "true"], capture_output=True, check=False).returncode == 0


CAN_UNSHARE = can_unshare()


def changed(*commands):
    """Runs what follows in a mount namespace, after the shell commands."""
    return ["unshare", "-m", "sh", "-c", "; ".join(["set -e", *commands, 'exec "$@"']), "sh"]


def own_shm(options="size=256m", device="/dev/shm"):
    return changed(f"mount -t tmpfs -o {options} tmpfs {device}")


def own_lines(text):
    """Those of bestride; the launcher and the MPI library may have written others."""
    return [line for line in text.splitlines() if line.startswith("bestride: ")]


class Surroundings(unittest.TestCase):
    # With this variable the MPI library needs no /dev/shm and does not look into the other ranks. Not TCP, over which it may hang in
    # MPI_Finalize (docs/troubleshooting.md).
    SYSTEM_V_MEMORY = {"UCX_TLS": "sysv,self"}
    transport = {}

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bestride-watch-")
        os.chmod(self.folder, 0o777)
        self.addCleanup(shutil.rmtree, self.folder)

    def watched(self, *fault, outside=(), launcher=(), rank=(), options=(), limit=0):
        """outside: in front of bestride; launcher: of mpiexec; rank: of each rank. The ranks run for at most `limit` seconds: 0: 20 with a
        fault, which ends a hang, and else 80."""
        if not CAN_UNSHARE:
            self.skipTest("needs root, for namespaces and mounts")
        lab = [LAB, "--work-us", "100", "--steps", "10", "--limit", str(limit or (20 if fault else 80)), *fault]
        return subprocess.run([*outside, COMMAND, "run", "--watch", "--verdict-folder", self.folder, *options, "--", *launcher, MPIEXEC, "-n", "2",
                               *rank, *lab], text=True, capture_output=True, timeout=120, check=False, cwd=self.folder,
                              env={**os.environ, **self.transport, "UCX_LOG_LEVEL": "fatal"})

    def clear(self):
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))

    @staticmethod
    def fault(kind):
        return ["--fault", kind, "--fault-rank", "1", "--fault-step", "3"]

    def findings(self, done):
        names = [name for name in os.listdir(self.folder) if name.endswith(".verdict.json")]
        self.assertEqual(len(names), 1, done.stderr)
        with open(os.path.join(self.folder, names[0]), encoding="utf-8") as file:
            return [(finding["class"], finding["culprits"]) for finding in json.load(file)["findings"]]

    def assert_clean(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, GOOD)
        self.assertEqual(own_lines(done.stderr), [])

    def assert_unrecorded(self, done, cause):
        """The job ends well, and nothing of it was seen."""
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, GOOD)
        lines = own_lines(done.stderr)
        self.assertEqual(len(lines), 2, done.stderr)
        self.assertRegex(lines[0], NO_RECORDS + cause)
        self.assertRegex(lines[1], r"\Abestride: no rank was watched: there is no record of ")

    def assert_crash(self, done):
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(self.findings(done), [("crash", [1])], done.stderr)

    def assert_mismatch(self, done):
        """A hang: with the stacks of both ranks."""
        self.assertEqual(self.findings(done)[0][0], "mismatch", done.stderr)
        self.assertIn("  stack: ranks 0,1  main", done.stderr)
        self.assertNotIn("no stacks", done.stderr)
        self.assertNotIn("incomplete", done.stderr)


class Records(Surroundings):
    """The folder of the records."""

    transport = Surroundings.SYSTEM_V_MEMORY

    def unrecorded(self, outside, cause):
        self.assert_unrecorded(self.watched(outside=outside), cause)

    def test_no_space(self):
        self.unrecorded(own_shm("size=64k"), r"/dev/shm/\S+\.record: No space left on device; 316 KiB are needed in /dev/shm for each rank$")

    def test_read_only(self):
        self.unrecorded(own_shm("ro"), r"/dev/shm/\S+: Read-only file system; records need a /dev/shm to which this user can write$")

    def test_no_folder(self):
        # A /dev that has what the launcher and the MPI library need.
        self.unrecorded(changed("mkdir dev", "for d in null zero random urandom; do touch dev/$d; mount --bind /dev/$d dev/$d; done",
                                "mount --rbind dev /dev"), r"/dev/shm: No such file or directory; mount a tmpfs at /dev/shm$")

    def test_a_folder_of_another_user(self):
        self.unrecorded(own_shm("mode=0700,uid=12345") + NOBODY, r"/dev/shm: Permission denied; records need a /dev/shm to which this user can write$")

    def test_a_limit_of_file_sizes(self):
        self.unrecorded(["sh", "-c", 'ulimit -f 400; exec "$@"', "sh"], r"/dev/shm/\S+: File too large; 316 KiB are needed for each rank \(ulimit -f\)$")

    def test_without_execution_as_usual(self):
        self.assert_clean(self.watched(outside=own_shm("noexec,size=256m")))
        self.assert_crash(self.watched(*self.fault("sigkill"), outside=own_shm("noexec,size=256m")))

    def test_memory_that_becomes_full(self):
        """The records have their memory, so the ranks go on; the file of the crash does not fit."""
        # Before the end of MPI_Init, the MPI library would get a SIGBUS of its own.
        begun = f"{COMMAND} where --json | grep -o initialized | wc -l"
        fill = f"(until [ $({begun}) -eq 2 ]; do sleep 0.05; done; cat /dev/zero > /dev/shm/full || touch full) > /dev/null 2>&1 &"
        wait = ["sh", "-c", '"$@"; code=$?; until [ -e full ]; do sleep 0.1; done; exit $code', "sh"]
        arguments = ["--steps", "300", "--fault", "sigsegv", "--fault-rank", "1", "--fault-step", "250", "--work-us", "2000"]
        outside = changed("mount -t tmpfs -o size=4m tmpfs /dev/shm", fill + " :")
        done = self.watched(*arguments, outside=outside, launcher=wait, limit=100)
        self.assertRegex(done.stderr, "(?m)^fault: sigsegv rank 1")
        self.assertNotIn("signal 7", done.stderr)
        self.assert_crash(done)

    def test_small_limits(self):
        for limit in ("-n 32", "-v 400000"):
            with self.subTest(limit):
                outside = ["sh", "-c", f'ulimit {limit}; exec "$@"', "sh"]
                self.assert_clean(self.watched(outside=outside))

    def test_a_verdict_that_is_too_large_for_the_limit(self):
        """The record fits, the verdict does not: an error of bestride, not its end."""
        done = self.watched(*self.fault("sigkill"), outside=["sh", "-c", 'ulimit -f 640; exec "$@"', "sh"],
                            options=["--report"])
        self.assertRegex(done.stderr, r"(?m)^bestride: crash: rank 1 ")
        self.assertNotEqual(done.returncode, 128 + 25)


class Namespaces(Surroundings):
    """The ranks see other processes, files or users than bestride does."""

    def both(self, **where):
        self.assert_clean(self.watched(**where))
        self.assert_mismatch(self.watched(*self.fault("missing_collective"), options=["--on-fault", "abort"], **where))

    def test_ranks_of_another_user(self):
        self.both(launcher=NOBODY)

    def test_ranks_with_another_dev_shm(self):
        self.both(launcher=own_shm())

    def test_ranks_in_a_pid_namespace(self):
        self.both(launcher=["unshare", "-p", "-f", "--mount-proc"])

    def test_ranks_in_a_container(self):
        self.both(launcher=["unshare", "-u", "-p", "-f", "--mount-proc", *own_shm()])

    def test_bestride_and_ranks_in_a_container(self):
        self.both(outside=["unshare", "-u", "-p", "-f", "--mount-proc", *own_shm()])

    def test_a_crash_in_a_pid_namespace(self):
        """Its processes end with the launcher, the agent, too; the records remain."""
        done = self.watched(*self.fault("sigkill"), launcher=["unshare", "-p", "-f", "--mount-proc"])
        self.assert_crash(done)
        self.assertEqual(self.records(done), [])

    def test_each_rank_in_a_pid_namespace(self):
        """Each is process 1 there."""
        self.transport = self.SYSTEM_V_MEMORY
        where = {"rank": ["unshare", "-p", "-f", "--mount-proc"], "outside": own_shm()}
        self.assert_clean(self.watched(**where))
        done = self.watched(*self.fault("missing_collective"), options=["--on-fault", "abort"], **where)
        self.assertEqual(self.findings(done)[0][0], "mismatch", done.stderr)

    def test_ranks_that_do_not_know_the_start_of_the_system(self):
        hidden = changed("touch empty", "mount --bind empty /proc/sys/kernel/random/boot_id")
        self.assert_clean(self.watched(rank=hidden))
        self.assert_crash(self.watched(*self.fault("sigkill"), rank=hidden))

    def test_a_proc_that_hides_processes(self):
        hidden = ["unshare", "-m", "-p", "-f", "--mount-proc", "sh", "-c", 'mount -o remount,hidepid=2 /proc; exec "$@"', "sh", *NOBODY]
        self.assert_clean(self.watched(outside=hidden))
        self.assert_crash(self.watched(*self.fault("sigkill"), outside=hidden))

    @staticmethod
    def records(done):
        """Those of the watched job that are left. The file of an agent that was killed stays until a later job begins."""
        name = re.search(r"file: \S*/bestride-(\S+)\.verdict\.json", done.stderr).group(1)
        folder = f"/dev/shm/bestride-{os.geteuid()}/{name}"
        return [name for name in os.listdir(folder) if name != "agent"] if os.path.isdir(folder) else []


class Calls(Surroundings):
    """System calls that are forbidden."""

    def stackless(self, cause, **where):
        done = self.watched(*self.fault("missing_collective"), options=["--on-fault", "abort"], **where)
        self.assertEqual(self.findings(done)[0][0], "mismatch", done.stderr)
        lines = [line for line in done.stderr.splitlines() if line.startswith("  stack: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertRegex(lines[0], r"^  stack: no stacks of ranks 0,1: process \d+ can't be traced: " + cause)

    def test_tracing(self):
        self.stackless(r"Operation not permitted; ", outside=[FORBID, "ptrace=1", "process_vm_readv=1"])

    def test_ranks_that_are_not_dumpable(self):
        self.transport = self.SYSTEM_V_MEMORY
        outside = [*own_shm(), *NOBODY]
        rank = ["sh", "-c", f'LD_PRELOAD="$LD_PRELOAD:"{shlex.quote(NOT_DUMPABLE)} exec "$@"', "sh"]
        self.stackless(r"Operation not permitted; .*not dumpable", outside=outside, rank=rank)
        self.clear()
        self.assert_crash(self.watched(*self.fault("sigkill"), outside=outside, rank=rank))

    def test_reading_of_memory_alone(self):
        done = self.watched(*self.fault("missing_collective"), options=["--on-fault", "abort"], outside=[FORBID, "process_vm_readv=1"])
        self.assert_mismatch(done)

    def test_a_filter_that_kills(self):
        """What the library itself calls in the ranks is not forbidden here; see `bestride doctor`."""
        outside = [FORBID, "ptrace=kill", "pidfd_open=kill", "perf_event_open=kill"]
        self.assert_clean(self.watched(outside=outside))
        self.stackless(r"a seccomp filter ends those that call ptrace$", outside=outside)

    def test_no_news_of_ends(self):
        for error in (1, 38):
            with self.subTest(error):
                done = self.watched(*self.fault("sigkill"), outside=[FORBID, *(f"{name}={error}" for name in (
                    "pidfd_open", "inotify_init1", "memfd_create", "perf_event_open"))])
                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(done.stderr, r"(?m)^bestride: crash: rank 1 ")
                self.clear()


class Intruder(Surroundings):
    """Another user of the host writes into /dev/shm."""

    AS_NOBODY = " ".join(NOBODY)

    def test_what_he_has_put_in_place_of_the_folder(self):
        folder = f"/dev/shm/bestride-{os.geteuid()}"
        bait = os.path.join(self.folder, "bait")
        for name, made in (("folder", f"mkdir -m 777 {folder}"), ("link", f"ln -s {bait} {folder}"), ("file", f"touch {folder}"),
                           ("fifo", f"mkfifo {folder}"), ("sparse", f"truncate -s 1T {folder}")):
            with self.subTest(name):
                os.makedirs(bait, exist_ok=True)
                outside = changed("mount -t tmpfs -o mode=1777,size=256m tmpfs /dev/shm", f"{self.AS_NOBODY} {made}")
                self.assert_unrecorded(self.watched(outside=outside), rf"{folder}: .*; remove what is in its place$")
                self.assertEqual(os.listdir(bait), [])

    def test_what_he_does_while_the_job_runs(self):
        """He reads and changes nothing of the records, and his own are not those of the job."""
        mine, his = f"/dev/shm/bestride-{os.geteuid()}", "/dev/shm/bestride-65534"
        script = f"""until ls {mine}/*/*.record; do sleep 0.05; done
record=$(ls {mine}/*/*.record | head -1); job=$(basename $(dirname $record)); pid=$(basename $record .record)
stat -c '%a %u' {mine} {mine}/$job $record > modes
cp $record copy; chmod 666 copy
{self.AS_NOBODY} sh -c "cat $record; ls {mine}; ls {mine}/$job; ln $record /dev/shm/link; mv {mine} {mine}.old; rm -rf {mine}; echo x > $record
mkfifo {mine}/$job/7.record; ln -s /etc/passwd {mine}/$job/8.record; truncate -s 1T {mine}/$job/9.record" > attempts 2> refusals
{self.AS_NOBODY} sh -c "mkdir -p {his}/$job; cp copy {his}/$job/$pid.record; truncate -s 1T {his}/$job/1.record; mkfifo {his}/$job/2.record"
touch done"""
        with open(os.path.join(self.folder, "intruder"), "w", encoding="utf-8") as file:
            file.write(script)
        outside = changed("mount -t tmpfs -o mode=1777,size=256m tmpfs /dev/shm", "sh ./intruder > /dev/null 2>&1 & :")
        done = self.watched("--steps", "300", "--fault", "sigkill", "--fault-rank", "1", "--fault-step", "250", outside=outside,
                            launcher=["sh", "-c", '"$@"; code=$?; until [ -e done ]; do sleep 0.1; done; exit $code', "sh"], limit=100)
        self.assert_crash(done)
        self.assertEqual(own_lines(done.stderr), [line for line in own_lines(done.stderr) if line.startswith("bestride: crash: rank 1 ")])
        with open(os.path.join(self.folder, "modes"), encoding="utf-8") as file:
            self.assertEqual(file.read().split(), ["700", "0", "700", "0", "600", "0"])
        self.assertEqual(os.path.getsize(os.path.join(self.folder, "attempts")), 0)
        with open(os.path.join(self.folder, "refusals"), encoding="utf-8") as file:
            self.assertGreaterEqual(file.read().count("Permission denied"), 8)


if __name__ == "__main__":
    unittest.main()
