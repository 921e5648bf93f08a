// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "telemetry/record/mapped_libraries.hpp"
#include "telemetry/stacks/frame_names.hpp"

namespace bestride::inline telemetry {
namespace {

bool is_bestride(const NamedFrame& frame) { return is_bestride_library(frame.module); }
bool is_mpi_frame(const NamedFrame& frame) { return is_mpi_library(frame.module); }
bool is_c_library(const NamedFrame& frame) {
  return frame.module.starts_with("libc.so") || frame.module.starts_with("libc-2") ||
         frame.module.starts_with("libpthread") || frame.module.starts_with("ld-linux");
}

/// Libraries of compilers and of interpreters.
bool is_language_library(const NamedFrame& frame) {
  for (const char* const name : {"libgomp.", "libomp.", "libiomp5.", "libstdc++.", "libc++.", "libc++abi.", "libgcc_s.",
                                 "libgfortran.", "libquadmath.", "libm.", "libm-2", "libpython", "_ctypes."})
    if (frame.module.starts_with(name)) return true;
  return frame.module.starts_with("python") && frame.module.find_first_not_of("0123456789.", 6) == std::string::npos;
}

/// The first frame that is the program's own: after _start, which has no name in a stripped program, and the functions
/// of the C library that call main or the function of a thread.
std::vector<NamedFrame>::const_iterator first_own_frame(const std::vector<NamedFrame>& frames) {
  auto at = frames.begin();
  if (!is_c_library(*at) && frames.size() > 1 && at[1].function.starts_with("__libc_start")) ++at;
  return std::find_if_not(at, frames.end(), is_c_library);
}

/// "__GI___libc_read" -> "read", "___pthread_mutex_lock" -> "pthread_mutex_lock": names that the C library has for
/// itself.
std::string public_name(const std::string& function) {
  std::string name = function;
  for (const std::string prefix : {"__GI_", "__libc_"})
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  const std::size_t first = name.find_first_not_of('_');
  return first == std::string::npos ? function : name.substr(first);
}

/// "Allreduce" of "MPI_Allreduce" in C or in Fortran, "" of other names.
std::string mpi_name(std::string name) {
  for (const char* const prefix : {"bestride_entry_", "bestride_profiling_entry_"})
    if (name.starts_with(prefix)) return name.substr(std::string(prefix).size());
  if (name.starts_with("PMPI_") || name.starts_with("pmpi_")) name.erase(0, 1);
  if (name.starts_with("MPI_")) return name.substr(4, name.size() - (name.ends_with("_c") ? 6 : 4));
  if (!name.starts_with("mpi_")) return "";
  name.erase(0, 4);
  while (name.ends_with('_')) name.pop_back();
  for (const char* const suffix : {"_f08ts", "_f08", "_fts", "_f"})
    if (name.ends_with(suffix)) {
      name.resize(name.size() - std::string(suffix).size());
      break;
    }
  if (!name.empty()) name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

/// "Allreduce" of an entry that records the call: "RecordingEntry<...>::call<...below_Allreduce, ...>".
std::string recorded_name(const std::string& function) {
  if (function.find("RecordingEntry<") == std::string::npos) return "";
  const std::string word = "below_";
  const std::size_t at = function.find("::" + word);
  if (at == std::string::npos) return "";
  std::size_t begin = at + 2 + word.size(), end = begin;
  while (end < function.size() && (std::isalnum(static_cast<unsigned char>(function[end])) || function[end] == '_'))
    ++end;
  // below_PAllreduce belongs to PMPI_Allreduce; no MPI function has two capitals at its beginning otherwise.
  if (end - begin > 1 && function[begin] == 'P' && std::isupper(static_cast<unsigned char>(function[begin + 1])))
    ++begin;
  return function.substr(begin, end - begin);
}

/// The MPI function that the frame is the outermost one of; "" if it is none.
std::string mpi_function(const NamedFrame& frame) {
  if (!is_mpi_frame(frame)) return "";
  std::string name = mpi_name(frame.function);
  if (name.empty() && is_bestride(frame)) name = recorded_name(frame.function);
  return name.empty() ? "" : "MPI_" + name;
}

}  // namespace

bool is_library_thread(const std::vector<NamedFrame>& frames) {
  return std::all_of(frames.begin(), frames.end(), [](const NamedFrame& frame) {
    const bool transport =
        frame.module.starts_with("libuc") || frame.module.starts_with("libfabric");  // UCX: ucs, uct, ucp
    return transport || is_c_library(frame) || is_mpi_frame(frame) || is_bestride(frame);
  });
}

bool is_program_source(const NamedFrame& frame) {
  return !is_library_source(frame.file) && !is_language_library(frame) && !is_c_library(frame) &&
         !is_mpi_frame(frame) && !is_bestride(frame);
}

const NamedFrame* program_line(const std::vector<NamedFrame>& frames) {
  const NamedFrame* innermost = nullptr;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (frame->line <= 0) continue;
    if (is_program_source(*frame)) return &*frame;
    if (!innermost) innermost = &*frame;
  }
  return innermost;
}

bool is_mpi_function(const std::string& function) { return function.starts_with("MPI_"); }

std::vector<NamedFrame> without_library_frames(const std::vector<NamedFrame>& frames, const std::string& executable) {
  if (frames.empty()) return {};
  const std::string program = executable.substr(executable.rfind('/') + 1);
  auto frame = first_own_frame(frames);
  if (frame == frames.end()) return frames;  // a thread of the C library itself
  std::vector<NamedFrame> result;
  std::set<std::string> callers{program};  // modules of the program, as far as this stack shows them
  bool in_mpi = false;
  for (const auto first = frame; frame != frames.end(); ++frame) {
    if (in_mpi) {
      // The MPI library calls other libraries, too, but calls modules that have called it only as callbacks.
      in_mpi = is_mpi_frame(*frame) || !callers.contains(frame->module);
      if (in_mpi) continue;
    }
    if (const std::string function = mpi_function(*frame); !function.empty()) {
      result.push_back({function, frame->module, "", 0});
      in_mpi = true;
    } else if (!is_bestride(*frame) && !(frame != first && is_c_library(*frame) && is_c_library(*std::prev(frame)))) {
      result.push_back(*frame);
      if (is_c_library(*frame)) result.back() = {public_name(frame->function), frame->module, "", 0};
      if (!is_mpi_frame(*frame) && !is_c_library(*frame)) callers.insert(frame->module);
    }
  }
  if (result.empty()) result.push_back({"in " + frames.back().module, frames.back().module, "", 0});
  return result;
}

}  // namespace bestride::inline telemetry
