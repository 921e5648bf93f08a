// SPDX-License-Identifier: Apache-2.0
#include "cli/common/gpu.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "cli/common/shell.hpp"
#include "perfmodel/profile/gpu_machine.hpp"

namespace bestride::inline cli {

GpuSummary ask_about_gpus() {
  constexpr int patience = 30;  // seconds: initializing a driver takes long on a node with many GPUs
  const auto answer = in_child(
      [](int fd) {
        const GpuSummary found = look_at_gpus();
        ::dprintf(fd, "version %d\nstand-in %d\nbroken %d\n", found.version, found.stand_in ? 1 : 0,
                  found.broken ? 1 : 0);
        if (!found.name.empty()) ::dprintf(fd, "name %s\n", found.name.c_str());
        for (const std::string& device : found.devices) ::dprintf(fd, "device %s\n", device.c_str());
        ::dprintf(fd, "problem %s\nend\n", found.problem.c_str());
      },
      patience);
  GpuSummary summary;
  std::istringstream lines(answer ? answer->text : "");
  bool whole = false;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t blank = line.find(' ');
    const std::string what = line.substr(0, blank), rest = blank == std::string::npos ? "" : line.substr(blank + 1);
    if (what == "version")
      summary.version = std::atoi(rest.c_str());
    else if (what == "stand-in")
      summary.stand_in = rest == "1";
    else if (what == "broken")
      summary.broken = rest == "1";
    else if (what == "name")
      summary.name = rest;
    else if (what == "device")
      summary.devices.push_back(rest);
    else if (what == "problem")
      summary.problem = rest;
    else
      whole |= what == "end";
  }
  if (!whole) {
    summary = {};
    summary.broken = true;
    summary.problem = "the CUDA driver crashed or did not answer when it was initialized";
  }
  return summary;
}

std::string gpu_text(const GpuSummary& summary) {
  std::string text = summary.version > 0 ? "CUDA " + cuda_version_text(summary.version) : "";
  if (summary.stand_in) text += " (stand-in driver: no GPU behind it)";
  if (!summary.problem.empty()) return text + (text.empty() ? "" : ": ") + summary.problem;
  text += ", " + std::to_string(summary.devices.size()) + (summary.devices.size() == 1 ? " device" : " devices");
  for (std::size_t i = 0; i < summary.devices.size(); ++i) text += (i == 0 ? ": " : "; ") + summary.devices[i];
  return text;
}

}  // namespace bestride::inline cli
