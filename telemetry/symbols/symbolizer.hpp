// SPDX-License-Identifier: Apache-2.0
#pragma once
// Function, file and line of an address in a program or library, from its symbols and its DWARF on disk.
//
// Records hold addresses relative to the module and the module's build id, so that they can be read after the process
// has ended; a file that was built again since would give wrong lines, so its build id must be the same. Uses libdw of
// elfutils; a build without it gives no names. Servers for debug information (debuginfod) are not asked. Alternative
// considered: to run addr2line, which takes seconds for a large program and checks nothing.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace bestride::inline telemetry {

struct SourceLocation {
  std::string function;  ///< demangled, without arguments; "" if not known
  std::string file;      ///< as the compiler wrote it; "" if not known
  int line = 0;          ///< 0 if not known
};

struct SymbolLookup {
  std::vector<SourceLocation> frames;  ///< innermost inlined function first; empty if nothing is known
  std::string problem;                 ///< why nothing is known, one line; "" otherwise
};

/// Keeps the files it has opened. Not thread-safe.
class Symbolizer {
 public:
  Symbolizer();
  ~Symbolizer();
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  /// `address`: as the linker numbered it, that is the address in memory minus the load address that the dynamic linker
  /// tells (dl_phdr_info::dlpi_addr). `build_id`: empty if the module has none; then any file is accepted.
  SymbolLookup find(const std::string& path, std::span<const std::uint8_t> build_id, std::uint64_t address);

  /// False in a build without libdw.
  static bool available() noexcept;

 private:
  struct Modules;
  std::unique_ptr<Modules> modules_;
};

/// "ns::Class::function" of a C++ name, "module::procedure" of gfortran's "__module_MOD_procedure", else the name
/// itself. Arguments are dropped.
std::string readable_function(const std::string& linkage_name);

/// True for a source file that is not the program's own: headers that are installed (of the C++ library, of packages),
/// Python's own library and its packages. The file as the compiler or the interpreter names it.
bool is_library_source(const std::string& file);

}  // namespace bestride::inline telemetry
