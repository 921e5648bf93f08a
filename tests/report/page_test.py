#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page_test.py [FOLDER]: opens the page of a report in headless Chromium, at 1, 4 and 1024 ranks, and checks what it shows: also that its text
has enough contrast in light and dark, that it fits into narrow and wide windows, and that it requests nothing from the network.

With FOLDER it also leaves screenshots there, light and dark. Ends with 77 and a message if there is no Chromium.
"""
import json
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


# Puts the page into windows of several widths and looks at each text of it: contrast as WCAG 2.1 defines it.
LOOK = """<!DOCTYPE html><meta charset="utf-8"><body><script>
"use strict";
const found = { contrasts: {}, widths: {}, requests: [], texts: 0, dark: matchMedia("(prefers-color-scheme: dark)").matches };
function channels(color) { const c = color.match(/[\\d.]+/g).map(Number); return c.length < 4 ? [...c, 1] : c; }
function luminance(c) {
  const [r, g, b] = c.slice(0, 3).map((v) => v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function background(view, element) {
  for (; element; element = element.parentElement) {
    const c = channels(view.getComputedStyle(element).backgroundColor);
    if (c[3] > 0) return c;
  }
  return [255, 255, 255, 1];
}
function look(frame, width) {
  const view = frame.contentWindow, page = frame.contentDocument;
  found.widths[width] = page.documentElement.scrollWidth;
  for (const entry of view.performance.getEntriesByType("resource")) if (!entry.name.startsWith("data:")) found.requests.push(entry.name);
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const element = node.parentElement;
    if (!node.data.trim() || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(element.tagName)) continue;
    ++found.texts;
    const front = channels(view.getComputedStyle(element).color), a = luminance(front), b = luminance(background(view, element));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const name = element.tagName.toLowerCase() + (element.className ? "." + element.className : "");
    found.contrasts[name] = Math.min(ratio, found.contrasts[name] || 99);
  }
}
const page = @PAGE@, widths = [320, 700, 2400];
let left = widths.length;
for (const width of widths) {
  const frame = document.createElement("iframe");
  frame.style.width = width + "px"; frame.style.height = "800px"; frame.style.border = "0";
  frame.onload = () => setTimeout(() => {
    look(frame, width);
    if (--left === 0) { document.body.replaceChildren(); const text = document.createElement("pre"); text.id = "found";
      text.textContent = JSON.stringify(found); document.body.append(text); }
  }, 500);
  frame.srcdoc = page;
  document.body.append(frame);
}
</script>"""


def look_problems(program, folder, ranks):
    report = sample_report(ranks)
    report["executable"] = "/opt/" + "a_long_name_without_a_blank_" * 12
    report["sites"][0]["place"] = "solver::" + "assemble_" * 40 + "(" + "x" * 200 + ".f90:88)"
    report["communicators"][0]["name"] = "c" * 128
    report["ranks"][0]["host"] = "h" * 64
    report["findings"] = [{"kind": "crash", "text": "rank 0 was killed " + "/very/long/path" * 30, "advice": "look at its output", "since": 1.0, "found": 1.5,
                           "ended": 0.0, "culprits": [0], "evidence": ["signal 9" * 40]}]
    report["notes"] = ["n" * 300]
    path = os.path.join(folder, f"look{ranks}.html")
    with open(path, "w", encoding="utf-8") as file:
        file.write(LOOK.replace("@PAGE@", json.dumps(sample_page(report)).replace("<", "\\u003c")))
    problem = []
    for scheme, setting in (("dark", 0), ("light", 1)):
        dom, console = chromium(program, path, "--dump-dom", "--window-size=2600,900", f"--blink-settings=preferredColorScheme={setting}")
        answer = re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)
        if not answer:
            problem.append(f"{scheme}: no answer {console}")
            continue
        found = json.loads(answer.group(1).replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))
        if found["dark"] != (scheme == "dark") or found["texts"] < 50:
            problem.append(f"{scheme}: was not tested: {found}")
        problem += [f"{scheme}: contrast {ratio:.2f} of {name}" for name, ratio in found["contrasts"].items() if ratio < 4.5]
        problem += [f"{scheme}: {needed} pixels wide in a window of {width}" for width, needed in found["widths"].items() if needed > int(width)]
        problem += [f"{scheme}: requests {name}" for name in found["requests"]]
    return [f"{ranks} ranks: {text}" for text in problem]


def main():
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        print("page_test: skipped, there is no Chromium (Debian: chromium)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        found = [text for ranks in (1, 4, 1024) for text in problems(program, folder, ranks, sys.argv[1] if len(sys.argv) > 1 else "")]
        found += [text for ranks in (4, 1000) for text in look_problems(program, folder, ranks)]
    print("\n".join(found) or "page_test: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
