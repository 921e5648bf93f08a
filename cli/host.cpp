// SPDX-License-Identifier: Apache-2.0
#include "cli/host.hpp"

#include "base/variables.hpp"
#include "model/processor_sources.hpp"
#include "model/rails.hpp"

namespace bestride {
namespace {

std::string counted(int number, const std::string& what) { return std::to_string(number) + " " + what + (number == 1 ? "" : "s"); }

}  // namespace

std::string processors_text() {
  const auto [here, by_sys_alone, source] = find_processors();
  if (!here.threads) return "not known, " + source;
  const std::string threads = counted(*here.threads, "hardware thread");
  std::string text = here.cores ? counted(*here.cores, "core") + " (" + threads + ")" : threads;
  if (here.domains) text += " in " + counted(*here.domains, "NUMA domain");
  return text + ", " + source;
}

std::string nics_text() {
  std::string text;
  for (const Nic& nic : nics_here()) {
    if (!nic.hardware || !nic.up) continue;
    text += (text.empty() ? "" : ", ") + nic.name + (nic.speed_mbit > 0 ? " " + std::to_string(nic.speed_mbit) + " Mbit/s" : "");
  }
  return text.empty() ? "no NIC is up" : text;
}

Result<std::string> rails_text() {
  const std::string& wanted = Settings::get_without_saying().text("BESTRIDE_RAILS");
  if (wanted == "off" || wanted.empty()) return std::string("off");
  const Result<Rails> rails = wanted == "auto" ? equal_rails(nics_here()) : named_rails(wanted, nics_here());
  if (!rails) return Error{"BESTRIDE_RAILS=" + wanted + ": " + rails.error().text};
  std::string text;
  for (const std::string& rail : *rails) text += (text.empty() ? "" : " ") + rail;
  return text;
}

}  // namespace bestride
