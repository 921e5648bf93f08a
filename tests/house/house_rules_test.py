#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each house rule finds its violation in a small source tree, and finds nothing in a tree without violations."""
import os
import tempfile
import unittest

import declarations_test
import documents_test
import house_test

PAGE = """# Architecture
| room | what it is for | may include | central type |
|---|---|---|---|
| `interpose/` | entry points | all below | `Runtime` |
| `cli/` | the command | all but interpose | |
| `kernels/` | move bytes | datatype, base | `Packer` |
| `datatype/` | layouts | base | `Layout` |
| `base/` | results | – | `Settings` |
"""
SUB_PAGE = PAGE + """
| sub-room | what it is for | may include |
|---|---|---|
| `interpose/calls/` | entries | all below |
| `interpose/device/` | device memory | objects |
| `interpose/mpi/` | functions | - |
| `interpose/objects/` | tables | mpi |
"""
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


class Rules(unittest.TestCase):
    def setUp(self):
        self.house = tempfile.TemporaryDirectory()
        self.addCleanup(self.house.cleanup)
        self.write("docs/architecture.md", PAGE)
        for room in ("interpose", "cli", "kernels", "datatype", "base"):
            self.write(f"{room}/README.md", "a room\n")

    def write(self, path, text):
        path = os.path.join(self.house.name, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def expect(self, *violations):
        found = house_test.check(self.house.name)
        self.assertEqual(len(found), len(violations), found)
        for line, part in zip(found, violations):
            self.assertIn(part, line)

    def test_a_house_in_order(self):
        self.write("kernels/a.cpp", SPDX + '#include "kernels/a.hpp"\n#include "datatype/b.hpp"\n#include "other.hpp"\n#include <vector>\n')
        self.write("cli/a.cpp", SPDX + '#include "kernels/a.hpp"\n')
        self.write("interpose/a.cpp", SPDX + '#include "base/a.hpp"\n')
        self.write("build/a.cpp", "made by the build\n")
        self.expect()

    def test_quirks(self):
        self.write("interpose/mpi/quirks.hpp", SPDX + "#pragma once\ninline constexpr bool used = true;\ninline constexpr bool unused = true;  // MPICH 4.0.2\n")
        self.write("interpose/a.cpp", SPDX + "// MPICH 4.0.2 does it otherwise.\nif (quirks::used) f();\nif (quirks::unknown) g();  // MPICH does\n")
        self.write("kernels/a.cpp", SPDX + "// measured with MPICH 4.0.2\n")
        self.expect("interpose/a.cpp:2: a version of MPICH", "quirks.hpp:4: nothing works around unused", "quirks.hpp:1: there is no unknown")

    def test_includes(self):
        self.write("base/a.cpp", SPDX + '#include "datatype/b.hpp"\n')
        self.write("cli/a.cpp", SPDX + '#include "interpose/a.hpp"\n')
        self.write("interpose/a.cpp", SPDX + '#include "cli/a.hpp"\n')
        self.write("kernels/a.cpp", SPDX + '  #  include "../cli/a.hpp"\n')
        found = sorted(house_test.check(self.house.name))
        self.assertEqual([line.split(": ")[0] for line in found], ["base/a.cpp:2", "cli/a.cpp:2", "interpose/a.cpp:2", "kernels/a.cpp:2"])

    def test_includes_of_sub_rooms(self):
        self.write("docs/architecture.md", SUB_PAGE)
        for name in ("calls", "device", "mpi", "objects"):
            self.write(f"interpose/{name}/a.hpp", SPDX + "#pragma once\n")
        self.write("interpose/calls/a.cpp", SPDX + '#include "interpose/device/a.hpp"\n#include "interpose/calls/a.hpp"\n#include "base/a.hpp"\n')
        self.write("interpose/main.cpp", SPDX + '#include "interpose/calls/a.hpp"\n')
        self.expect()
        self.write("interpose/device/a.cpp", SPDX + '#include "interpose/mpi/a.hpp"\n')
        self.write("interpose/mpi/a.cpp", SPDX + '#include "interpose/objects/a.hpp"\n')
        self.write("interpose/objects/a.cpp", SPDX + '#include "interpose/top.hpp"\n')
        found = sorted(house_test.check(self.house.name))
        self.assertEqual([line.split(": ")[0] for line in found],
                         ["interpose/device/a.cpp:2", "interpose/mpi/a.cpp:2", "interpose/objects/a.cpp:2"])

    def test_sub_rooms_are_those_of_the_page(self):
        self.write("docs/architecture.md", SUB_PAGE)
        for name in ("calls", "device", "mpi", "other"):
            self.write(f"interpose/{name}/a.cpp", SPDX)
        self.expect("there is no interpose/objects/", "interpose/other/:1")

    def test_namespaces(self):
        self.write("base/a.cpp", SPDX + "namespace bestride {\n")
        self.write("kernels/a.cpp", SPDX + "namespace bestride::inline kernels {\nnamespace bestride::avx2 {\n")
        self.write("kernels/b.cpp", SPDX + "namespace bestride {\n")
        self.write("cli/a.cpp", SPDX + "namespace bestride::inline kernels {\n")
        self.expect("kernels/b.cpp:2: the namespace of kernels/ is bestride::inline kernels",
                    "cli/a.cpp:2: the namespace of cli/ is bestride::inline cli")

    def test_length(self):
        self.write("base/a.cpp", SPDX + "\n" * 599)
        self.expect()
        self.write("base/a.cpp", SPDX + "\n" * 600)
        self.expect("more than 600 lines")

    def test_budgets(self):
        limits = house_test.MOST_SOURCE_LINES, house_test.MOST_VARIABLES
        self.addCleanup(lambda: (setattr(house_test, "MOST_SOURCE_LINES", limits[0]), setattr(house_test, "MOST_VARIABLES", limits[1])))
        house_test.MOST_SOURCE_LINES, house_test.MOST_VARIABLES = 3, 1
        self.write("base/a.cpp", SPDX + "\n\n")
        self.write("base/a_test.cpp", SPDX + "\n" * 9)
        self.write("tests/b.cpp", SPDX + "\n" * 9)
        self.write("docs/variables.md", "| `BESTRIDE_A` |\n")
        self.expect()
        self.write("base/b.cpp", SPDX)
        self.write("docs/variables.md", "| `BESTRIDE_A` |\n| `BESTRIDE_B` |\n")
        self.expect("4 lines of source, more than 3", "2 variables, more than 1")

    def test_markers(self):
        self.write("docs/a.md", "a line\nTO" + "DO: more\n")
        self.expect("docs/a.md:2: a marker")

    def test_spelling(self):
        self.write("docs/a.md", 'a neighbor, "neighbours", `--neighbours`\n')
        self.expect()
        self.write("base/a.cpp", SPDX + "// quantised\nint NeighbourCount;\n")
        self.expect("base/a.cpp:2: 'quantise'", "base/a.cpp:3: 'Neighbour'")

    def test_license_line(self):
        self.write("base/a.cpp", "\n\n\n" + SPDX)
        self.expect("base/a.cpp:1: no 'SPDX")

    def test_header_guard(self):
        self.write("base/a.hpp", SPDX)
        self.expect("#pragma once")

    def test_readme(self):
        os.remove(os.path.join(self.house.name, "kernels/README.md"))
        self.expect("kernels/:1: a room without a README.md")

    def test_own_folder(self):
        self.write("docs/a.md", f"see {os.path.abspath(self.house.name)}/x\n")
        self.expect("names the folder")

    def test_an_unreadable_table(self):
        self.write("docs/architecture.md", "no table\n")
        self.expect("can't be read")


class Declarations(unittest.TestCase):
    def setUp(self):
        self.house = tempfile.TemporaryDirectory()
        self.addCleanup(self.house.cleanup)
        self.write("docs/architecture.md", SUB_PAGE)

    write = Rules.write

    def expect(self, *violations):
        found, checked = declarations_test.violations(self.house.name)
        self.assertEqual(len(found), len(violations), found)
        for line, part in zip(found, violations):
            self.assertIn(part, line)
        return checked

    def test_declared_and_defined_in_the_room_or_below(self):
        self.write("interpose/objects/a.hpp", """namespace bestride::inline interpose {
class Below;
class Own;
struct Pointers { void (*call)(int) = nullptr; std::size_t (*get)(void*); };
extern int counter, *other;
template <class T> int twice(T value, std::pair<int, int> both = {1, 2});
[[nodiscard]] constexpr const char* name_of(Own& own) noexcept;
class Own {
 public:
  explicit Own(int first) noexcept;
  bool operator==(const Own& other) const noexcept;
  ~Own();
  static int made;
 private:
  int value_ = std::min<int>(1, 2);
};
extern "C" int of_another_library(int);
}
namespace CLI { class App; }
""")
        self.write("interpose/objects/a.cpp", """namespace bestride::inline interpose {
int counter = 0;
int Own::made{0};
Own::Own(int first) noexcept : value_{first} { if (first) ++made; }
bool Own::operator==(const Own& other) const noexcept { return value_ == other.value_; }
Own::~Own() = default;
template <class T>
int twice(T value, std::pair<int, int>) { return '{' + value; }
constexpr const char* name_of(Own&) noexcept { return "{;"; }
}
""")
        self.write("interpose/mpi/b.hpp", "namespace bestride::inline interpose {\nclass Below final : public Base<int> {};\n}\n")
        self.assertGreater(self.expect(), 5)

    def test_defined_above(self):
        self.write("base/a.hpp", "namespace bestride {\nclass Layout;\nint size_of(const Layout& layout);\n}\n")
        self.write("datatype/a.cpp", "namespace bestride::inline datatype {\nclass Layout {};\nint size_of(const Layout&) { return 0; }\n}\n")
        self.write("interpose/mpi/a.hpp", "namespace bestride::inline interpose {\nextern constinit const int* table;\n"
                                          "struct Lock {\n  void take(int how, bool wait);\n};\n}\n")
        self.write("interpose/open.cpp", "namespace bestride::inline interpose {\nconstinit const int* table = nullptr;\n}\n")
        self.write("interpose/objects/a.cpp", "namespace bestride::inline interpose {\nvoid Lock::take(int, bool) {}\n}\n")
        self.expect("a.hpp:2: declares table, which is defined above it, in interpose/open.cpp",
                    "a.hpp:4: declares Lock::take, which is defined above it, in interpose/objects/a.cpp",
                    "a.hpp:2: declares Layout, which is defined above it, in datatype/a.cpp",
                    "a.hpp:3: declares size_of, which is defined above it, in datatype/a.cpp")

    def test_defined_nowhere(self):
        self.write("base/a.hpp", "namespace bestride {\nint hidden(int);\nint other(int, int);\nint tested();\nclass Opaque;\n}\n")
        self.write("base/a.cpp", "namespace bestride {\nnamespace {\nint hidden(int) { return 0; }\n}\nint other(int) { return 0; }\n}\n")
        self.write("base/a_test.cpp", "namespace bestride {\nint tested() { return 0; }\n}\n")
        self.expect("declares hidden, which no file", "declares other, which no file", "declares tested, which no file")


class Documents(unittest.TestCase):
    def setUp(self):
        self.house = tempfile.TemporaryDirectory()
        self.addCleanup(self.house.cleanup)
        self.write("base/variables_table.cpp", '{"BESTRIDE_LOG", choice, "warn", "quiet|warn|info", "what is printed"},\n')
        self.write("base/result.hpp", "class Result { bool is_error(); };\n")
        self.write("cli/run/run.cpp", 'app.add_subcommand("run", "starts a job")->add_flag("--watch");\n')

    def write(self, path, text):
        path = os.path.join(self.house.name, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def missing(self, text):
        self.write("docs/page.md", text)
        return documents_test.check(self.house.name)

    def test_what_exists(self):
        self.assertEqual([], self.missing("""`base/result.hpp`, `base/result`, `result.*`, `base/{result,variables_table}.*`, `base/<name>.hpp`,
`Result::is_error()`, `BESTRIDE_LOG=info`, `--watch`, `run --watch`, `/dev/shm/x`, [base](../base/result.hpp#a)

    bestride run --watch srun --other
"""))

    def test_what_does_not_exist(self):
        for text in ("`base/results.hpp`", "`results.hpp`", "`base/{result,other}.hpp`", "`Result::value()`", "`BESTRIDE_LOG=loud`",
                     "`BESTRIDE_LOGS`", "`--watching`", "`bestride stop`", "`bestride run --other`", "[base](base/result.hpp)",
                     "    bestride run --other"):
            self.assertTrue(self.missing(text + "\n"), text)


if __name__ == "__main__":
    unittest.main()
