#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""node_exporter and Prometheus' own checker read the metrics of a job.

Skipped where prometheus-node-exporter or promtool (Debian: package prometheus) is not in PATH.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

COMMAND = os.environ["COMMAND_UNDER_TEST"]
LAB = os.environ["FAULT_LAB"]
MPIEXEC = os.environ["MPIEXEC"]


def write_metrics(folder, name, *fault):
    command = [COMMAND, "run", "--watch", "--metrics", os.path.join(folder, name + ".prom"), "--verdict-folder", folder, "--", MPIEXEC, "-n", "2", LAB,
               "--steps", "10", "--work-us", "100", "--limit", "8", *fault]
    subprocess.run(command, capture_output=True, timeout=120, check=False)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def exported(folder):
    """What node_exporter serves, with these files as its textfile folder."""
    address = f"127.0.0.1:{free_port()}"
    command = ["prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={folder}",
               f"--web.listen-address={address}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as exporter:
        try:
            for _ in range(300):
                try:
                    with urllib.request.urlopen(f"http://{address}/metrics") as answer:
                        return answer.read().decode()
                except OSError:
                    time.sleep(0.1)
            raise SystemExit("node_exporter does not answer")
        finally:
            exporter.terminate()


def main():
    missing = [name for name in ("prometheus-node-exporter", "promtool") if not shutil.which(name)]
    if missing:
        print("skipped: not in PATH: " + ", ".join(missing))
        return 77
    with tempfile.TemporaryDirectory(prefix="bestride-collectors-") as folder:
        write_metrics(folder, "clean")
        write_metrics(folder, "crash", "--fault", "sigsegv", "--fault-rank", "1", "--fault-step", "5")
        files = [os.path.join(folder, name) for name in ("clean.prom", "crash.prom")]
        for path in files:
            with open(path, encoding="utf-8") as file:
                done = subprocess.run(["promtool", "check", "metrics"], stdin=file, capture_output=True, text=True, check=False)
            # Remarks on names have exit code 3; a file that can't be read has 1.
            assert done.returncode in (0, 3), done.stderr
            os.chmod(path, 0o644)
        text = exported(folder)
        assert re.search(r"(?m)^node_textfile_scrape_error 0$", text), text
        names = set()
        for path in files:
            with open(path, encoding="utf-8") as file:
                names |= set(re.findall(r"(?m)^(bestride_\w+)\{", file.read()))
        assert names and names <= set(re.findall(r"(?m)^(bestride_\w+)\{", text)), names
    return 0


if __name__ == "__main__":
    sys.exit(main())
