// SPDX-License-Identifier: Apache-2.0
#pragma once
// The place in the program that made a call, as text.
#include <map>
#include <set>
#include <string>

#include "telemetry/record/snapshot.hpp"
#include "telemetry/symbols/symbolizer.hpp"

namespace bestride::inline cli {

class CallSites {
 public:
  /// The innermost frame outside the MPI library, inlined functions included, of the program's own source if one is
  /// known. Empty if the site is not recorded.
  struct Place {
    SourceLocation location;  ///< may be empty
    std::string module;       ///< file name, without folders
    std::uint64_t address = 0;
  };
  Place place(const RankSnapshot& rank, std::uint32_t site);
  /// True for a place in CPython, or in a function of mpi4py, which says less than the name of the MPI function.
  static bool is_of_interpreter(const Place& place);
  /// "solve (solver.f90:88)"; "solver+0x1a2b" if the source line is not known; "" if the site is not recorded, or
  /// is_of_interpreter().
  std::string text(const RankSnapshot& rank, std::uint32_t site);
  /// Why some places have no source line, one line each.
  const std::set<std::string>& problems() const noexcept { return problems_; }

 private:
  Place place(const RankSnapshot& rank, const FrameSnapshot& frame);

  Symbolizer symbolizer_;
  std::map<std::string, SourceLocation> known_;  ///< by path, build id and address
  std::set<std::string> problems_;
};

}  // namespace bestride::inline cli
