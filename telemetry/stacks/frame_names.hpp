// SPDX-License-Identifier: Apache-2.0
#pragma once
// The frames of a stack with their functions and source lines, and which of them a reader wants to see.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "telemetry/stacks/process_stacks.hpp"
#include "telemetry/symbols/symbolizer.hpp"

namespace bestride::inline telemetry {

struct NamedFrame {
  std::string function;  ///< demangled, without arguments; "solver+0x1a2b" (module and offset) if it is not known
  std::string module;    ///< file name without folders; "" if it is not known
  std::string file;      ///< source file as the compiler wrote it; "" if it is not known
  int line = 0;          ///< 0 if it is not known
};

/// Names the frames of many processes; keeps the files that it has opened. Not thread-safe.
class FrameNames {
 public:
  /// Outermost first; a function that was inlined has a frame of its own. The process may have ended.
  std::vector<NamedFrame> name(const ProcessStacks& process, const ThreadStack& stack);
  /// Why some frames have no names, one line each.
  const std::set<std::string>& problems() const noexcept { return problems_; }

 private:
  const std::vector<SourceLocation>& lookup(const ProcessStacks& process, const ModuleSnapshot& module,
                                            std::uint64_t address);

  Symbolizer symbolizer_;
  std::map<std::string, std::vector<SourceLocation>> known_;  ///< by path, build id and address
  std::set<std::string> problems_;
};

/// Leaves out what is not the program's. Outermost first:
/// - _start and outer frames of the C library, which call main or the function of a thread;
/// - frames in libbestride, except the one of an MPI function that it carries out, which is named as that;
/// - frames that the C library's own functions call: abort, not what it consists of;
/// - frames below an MPI function, up to a function that the MPI library calls back, as one of MPI_Op_create.
/// PMPI_ and Fortran names of MPI functions become those of C with MPI_ ("mpi_allreduce_" -> "MPI_Allreduce"),
/// internal names of the C library its public ones, without lines. A stack that is in libbestride only becomes one
/// frame, "in libbestride-mpich.so". `executable`: ProcessStacks::executable.
std::vector<NamedFrame> without_library_frames(const std::vector<NamedFrame>& frames, const std::string& executable);

/// True for a thread of which all frames are in the MPI library, the libraries that it uses, Bestride and the C
/// library: one that these have started for themselves.
bool is_library_thread(const std::vector<NamedFrame>& frames);

/// True for a frame of the program's own source: not in the C, C++, Fortran, OpenMP, Python or MPI library, nor in
/// installed headers and packages.
bool is_program_source(const NamedFrame& frame);
/// The innermost frame with a line in the program's own source; if there is none, the innermost one with a line; else
/// null.
const NamedFrame* program_line(const std::vector<NamedFrame>& frames);

/// True for names that without_library_frames() gives to MPI functions.
bool is_mpi_function(const std::string& function);

}  // namespace bestride::inline telemetry
