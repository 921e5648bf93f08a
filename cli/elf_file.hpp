// SPDX-License-Identifier: Apache-2.0
#pragma once
// ElfFile: what an executable says about how it would be loaded. Reads the file only; nothing of it is mapped for execution or
// run, and every offset in it is checked, so any file may be given.
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace bestride {

struct ElfFile {
  std::string interpreter;          ///< the dynamic linker; empty: the file is statically linked
  std::vector<std::string> needed;  ///< sonames, in the file's order
  /// Names beginning with MPI_ or PMPI_, and dlopen: those it takes from elsewhere and those it has itself.
  std::set<std::string> imports, defines;
  bool stripped = true;             ///< no symbol table: a static program's `defines` says nothing

  /// Errors are one line: unreadable, not an ELF file, of another machine.
  static Result<ElfFile> read(const std::string& path);
};

}  // namespace bestride
