// SPDX-License-Identifier: Apache-2.0
#include "cli/job/call_site.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "telemetry/record/mapped_libraries.hpp"

namespace bestride::inline cli {
namespace {

std::string file_name(const std::string& path) { return std::string(file_name_of(path)); }

/// A path that can be opened; the record keeps only the end of a long one.
std::string whole_path(const RankSnapshot& rank, const ModuleSnapshot& module) {
  std::string path = module.path;
  if (!path.starts_with("/") && rank.executable.ends_with(path)) path = rank.executable;
  if (access(path.c_str(), R_OK) == 0 || !rank.visible) return path;
  const std::string inside = "/proc/" + std::to_string(rank.pid) + "/root" + path;  // of a container
  return access(inside.c_str(), R_OK) == 0 ? inside : path;
}

std::string hexadecimal(std::uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
  return text;
}

}  // namespace

bool CallSites::is_of_interpreter(const Place& place) {
  const std::string& function = place.location.function;
  return function.starts_with("__pyx_") || function.starts_with("PyMPI_") || place.module.starts_with("python3") ||
         place.module.starts_with("libpython3");
}

CallSites::Place CallSites::place(const RankSnapshot& rank, std::uint32_t index) {
  if (index >= rank.sites.size()) return {};
  const SiteSnapshot& site = rank.sites[index];
  const FrameSnapshot own{site.address, site.module};
  Place first;  // outside the MPI library
  const auto add = [&](const FrameSnapshot& frame) {
    if (frame.module == no_index || is_mpi_library(rank.modules[frame.module].path)) return false;
    Place found = place(rank, frame);
    const bool is_library = is_library_source(found.location.file);
    if (first.module.empty() || !is_library) first = std::move(found);
    return !is_library;
  };
  if (!add(own)) static_cast<void>(std::find_if(site.stack.begin(), site.stack.end(), add));
  return !first.module.empty() || own.module == no_index ? first : place(rank, own);
}

CallSites::Place CallSites::place(const RankSnapshot& rank, const FrameSnapshot& frame) {
  const ModuleSnapshot& module = rank.modules[frame.module];
  Place result{{}, file_name(module.path), frame.address};
  const std::string path = whole_path(rank, module);
  const std::string key =
      path + '\0' + std::string(module.build_id.begin(), module.build_id.end()) + '\0' + hexadecimal(frame.address);
  const auto [known, is_new] = known_.try_emplace(key);
  if (is_new) {
    const SymbolLookup lookup = symbolizer_.find(path, module.build_id, frame.address);
    const auto own = std::find_if_not(lookup.frames.begin(), lookup.frames.end(),
                                      [](const SourceLocation& each) { return is_library_source(each.file); });
    if (!lookup.frames.empty()) known->second = own != lookup.frames.end() ? *own : lookup.frames[0];
    if (!lookup.problem.empty()) problems_.insert(lookup.problem);
  }
  result.location = known->second;
  return result;
}

std::string CallSites::text(const RankSnapshot& rank, std::uint32_t site) {
  const Place found = place(rank, site);
  const SourceLocation& location = found.location;
  if (found.module.empty() || is_of_interpreter(found)) return "";
  const std::string line = location.file.empty()
                               ? ""
                               : file_name(location.file) + (location.line ? ":" + std::to_string(location.line) : "");
  if (location.function.empty()) return line.empty() ? found.module + "+" + hexadecimal(found.address) : line;
  return location.function + " (" + (line.empty() ? found.module : line) + ")";
}

}  // namespace bestride::inline cli
