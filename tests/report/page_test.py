#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page_test.py [FOLDER]: opens the page of a report in headless Chromium, at 1, 4 and 1024 ranks, and checks what it shows.

With FOLDER it also leaves screenshots there, light and dark. Ends with 0 and a message if there is no Chromium.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sample_report import HOSTILE, sample_page, sample_report  # noqa: E402  pylint: disable=wrong-import-position


def chromium(program, path, *options):
    done = subprocess.run([program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--v=0",
                           "--virtual-time-budget=3000", *options, f"file://{path}"], text=True, capture_output=True, timeout=120, check=False)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def problems(program, folder, ranks, screenshots):
    hostile = ranks == 4
    report = sample_report(ranks)
    if hostile:
        report["executable"] = "/opt/" + HOSTILE.replace("/", "|")
        report["communicators"][0]["name"] = HOSTILE
        report["ranks"][2]["incomplete"] = True
        report["findings"] = [{"kind": "crash", "text": f"rank 2 was killed {HOSTILE}", "advice": "look at its output", "since": 1.0, "found": 1.5,
                               "ended": 0.0, "culprits": [2], "evidence": ["signal 9"]}]
        report["notes"] = ["1 of 4 ranks did not return from MPI_Finalize"]
    path = os.path.join(folder, f"page{ranks}.html")
    with open(path, "w", encoding="utf-8") as file:
        file.write(sample_page(report))
    dom, console = chromium(program, path, "--dump-dom")
    found = [f"console: {line}" for line in console]
    shown = re.sub(r'<script type="application/json".*?</script>', "", dom, flags=re.DOTALL)

    def rows(section):
        part = re.search(rf'<section id="{section}">.*?</section>', shown, re.DOTALL)
        return len(re.findall("<tr>", part.group(0).split("<tbody>", 1)[1])) if part else 0
    for section, wanted in (("sites", 3), ("ranks", ranks), ("communicators", 1)):
        if rows(section) != wanted:
            found.append(f"section {section} has {rows(section)} rows, not {wanted}")
    cells = re.search(r'data-cells="(\d+)"', shown)
    if (int(cells.group(1)) if cells else 0) != (0 if ranks == 1 else 8 if ranks == 4 else 3 * 256):
        found.append(f"the matrix has {cells and cells.group(1)} cells")
    if f'data-rows="{ranks}"' not in shown:
        found.append("the timeline has not a row for each rank")
    if "<img" in shown:
        found.append("a name of the job became an element")
    if hostile and shown.count("&lt;img src=x") < 3:
        found.append("a name of the job is not shown")
    if screenshots:
        for name, options in (("light", []), ("dark", ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"])):
            chromium(program, path, "--window-size=1120,2600", f"--screenshot={screenshots}/page{ranks}-{name}.png", *options)
    return [f"{ranks} ranks: {text}" for text in found]


def main():
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        print("page_test: skipped, there is no Chromium (Debian: chromium)")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        found = [text for ranks in (1, 4, 1024) for text in problems(program, folder, ranks, sys.argv[1] if len(sys.argv) > 1 else "")]
    print("\n".join(found) or "page_test: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
