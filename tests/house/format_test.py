#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""format_test.py CLANG_FORMAT ROOT [--fix]: fails if a C, C++ or CUDA source is not formatted according to .clang-format.

--fix formats the files instead.
"""
import os
import subprocess
import sys

import house_test

SOURCES = (".cpp", ".hpp", ".c", ".h", ".cu")


def main(clang_format, root, fix):
    files = [os.path.join(root, path) for path in house_test.files_of(root) if path.endswith(SOURCES)]
    mode = ["-i"] if fix else ["--dry-run", "-Werror"]
    halves = [files[::2], files[1::2]]
    running = [subprocess.Popen([clang_format, "--style=file", *mode, *half], stderr=subprocess.PIPE, text=True) for half in halves]
    reports = [process.communicate()[1] for process in running]
    wrong = sorted({line.split(":")[0] for report in reports for line in report.splitlines() if "error:" in line})
    for path in wrong:
        print(f"{os.path.relpath(path, root)}: not formatted; run: tests/house/format_test.py {clang_format} . --fix")
    return 1 if wrong or any(process.returncode for process in running) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], os.path.abspath(sys.argv[2]), "--fix" in sys.argv))
