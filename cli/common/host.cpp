// SPDX-License-Identifier: Apache-2.0
#include "cli/common/host.hpp"

#include "base/variables.hpp"
#include "model/processor_sources.hpp"
#include "perfmodel/profile/machine.hpp"
#include "perfmodel/profile/profile.hpp"

namespace bestride::inline cli {
namespace {

std::string counted(int number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

/// The rails that a process on this host would take from the profile; none if it would not use the profile.
Rails rails_of_profile() {
  const std::string path = find_profile_path();
  if (path.empty()) return {};
  const auto profile = MachineProfile::load(path);
  if (!profile || !why_stale(profile->fingerprint, fingerprint_here("")).empty()) return {};
  return profile->rails;
}

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
    text += (text.empty() ? "" : ", ") + nic.name +
            (nic.speed_mbit > 0 ? " " + std::to_string(nic.speed_mbit) + " Mbit/s" : "");
  }
  return text.empty() ? "no NIC is up" : text;
}

Result<RailsHere> rails_here() {
  const std::string& wanted = Settings::get_silently().text("BESTRIDE_NICS");
  if (wanted == "off") return RailsHere{};
  const bool by_profile = wanted.empty() || wanted == "profile";
  const Rails measured = by_profile ? rails_of_profile() : Rails{};
  if (by_profile && measured.empty()) return RailsHere{};
  const Result<Rails> rails =
      wanted == "auto" ? equal_rails(nics_here()) : named_rails(by_profile ? list_of(measured) : wanted, nics_here());
  if (!rails)
    return Error{(by_profile ? "the profile's rails " + list_of(measured) : "BESTRIDE_NICS=" + wanted) + ": " +
                 rails.error().text};
  return RailsHere{*rails, by_profile};
}

std::string rails_text(const RailsHere& here) {
  std::string text;
  for (const std::string& rail : here.rails) text += (text.empty() ? "" : " ") + rail;
  return text.empty() ? "off" : here.by_profile ? text + " (of the profile)" : text;
}

}  // namespace bestride::inline cli
