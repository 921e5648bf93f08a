// SPDX-License-Identifier: Apache-2.0
#pragma once
// ElfFile: the information in an executable about how it is loaded. Only reads the file; nothing is mapped for
// execution or run. Every offset is checked, so any file may be given.
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace bestride::inline cli {

struct ElfFile {
  std::string interpreter;          ///< the dynamic linker; empty: the file is statically linked
  std::vector<std::string> needed;  ///< sonames, in the order of the file
  /// Names that begin with MPI_ or PMPI_, dlopen and __asan_default_options: those that the file imports and those that
  /// it defines.
  std::set<std::string> imports, defines;
  /// MPI functions that the file imports by the names of Fortran bindings: "mpi_isend" for mpi_isend_,
  /// mpi_isend_f08ts_.
  std::set<std::string> fortran_imports;
  bool stripped = true;  ///< no symbol table; for a static program `defines` is then incomplete

  /// Errors are one line: unreadable, not an ELF file, or for another machine.
  static Result<ElfFile> read(const std::string& path);
};

}  // namespace bestride::inline cli
