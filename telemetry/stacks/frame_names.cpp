// SPDX-License-Identifier: Apache-2.0
#include "telemetry/stacks/frame_names.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace bestride::inline telemetry {
namespace {

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string hexadecimal(std::uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
  return text;
}

}  // namespace

const std::vector<SourceLocation>& FrameNames::lookup(const ProcessStacks& process, const ModuleSnapshot& module,
                                                      std::uint64_t address) {
  const std::string key =
      module.path + '\0' + std::string(module.build_id.begin(), module.build_id.end()) + '\0' + hexadecimal(address);
  const auto [known, is_new] = known_.try_emplace(key);
  if (is_new && module.path.starts_with('/')) {
    std::string path = module.path;
    if (access(path.c_str(), R_OK) != 0) {
      const std::string inside = "/proc/" + std::to_string(process.pid) + "/root" + path;  // of a container
      if (access(inside.c_str(), R_OK) == 0) path = inside;
    }
    SymbolLookup found = symbolizer_.find(path, module.build_id, address);
    known->second = std::move(found.frames);
    if (!found.problem.empty()) problems_.insert(found.problem);
  }
  return known->second;
}

std::vector<NamedFrame> FrameNames::name(const ProcessStacks& process, const ThreadStack& stack) {
  std::vector<NamedFrame> result;
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) {
    if (frame->module >= process.modules.size()) {
      result.push_back({hexadecimal(frame->address), "", "", 0});
      continue;
    }
    const ModuleSnapshot& module = process.modules[frame->module];
    const std::string name = file_name(module.path);
    const std::string offset = name + "+" + hexadecimal(frame->address);
    const std::vector<SourceLocation>& locations = lookup(process, module, frame->address);
    if (locations.empty()) result.push_back({offset, name, "", 0});
    for (auto at = locations.rbegin(); at != locations.rend(); ++at)
      result.push_back({at->function.empty() ? offset : at->function, name, at->file, at->line});
  }
  return result;
}

}  // namespace bestride::inline telemetry
