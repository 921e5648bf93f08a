// SPDX-License-Identifier: Apache-2.0
#include "model/processor_sources.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace bestride::inline model {
namespace {

auto facts(Binding& binding) { return std::array{&binding.core, &binding.domain}; }
auto facts(Processors& processors) { return std::array{&processors.threads, &processors.cores, &processors.domains}; }

/// Asks the sources in the order that applies, each for what is still unknown.
template <class Known, class BySys, class ByHwloc>
Sourced<Known> ask(const char* hwloc, BySys by_sys, ByHwloc by_hwloc) {
  Sourced<Known> found;
  const auto known = facts(found.known);
  const auto take = [&](Known said, const char* source) {
    bool news = false;
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (*known[i]) continue;
      *known[i] = *facts(said)[i];
      news |= known[i]->has_value();
    }
    if (news) found.source += (found.source.empty() ? "from " : " and ") + std::string(source);
  };
  const char* const description = hwloc_description();
  if (!description) {
    take(by_sys(), "/sys");
    if (std::all_of(known.begin(), known.end(), [](const auto* fact) { return fact->has_value(); })) return found;
  }
  found.by_sys_alone = false;
  const Result<HwlocMachine> machine = hwloc_machine(hwloc);
  if (machine) take(by_hwloc(*machine), "hwloc");
  if (description) take(by_sys(), "/sys");
  if (found.source.empty()) found.source = "neither from /sys nor from hwloc";
  if (description) found.source += " (" + std::string(description) + " is set)";
  if (!machine) found.source += "; " + machine.error().text;
  return found;
}

/// The smallest part that contains all of the processors; of several equal ones, the first. (A domain of another kind
/// of memory may span a whole package.)
const HwlocMachine::Part* part_with(std::span<const HwlocMachine::Part> parts, std::span<const int> processors) {
  const HwlocMachine::Part* found = nullptr;
  for (const HwlocMachine::Part& part : parts)
    if ((!found || part.processors.size() < found->processors.size()) &&
        std::includes(part.processors.begin(), part.processors.end(), processors.begin(), processors.end()))
      found = &part;
  return found;
}

/// As the members of Binding.
std::optional<int> bound_to(std::span<const HwlocMachine::Part> parts, std::span<const int> allowed) {
  if (allowed.empty() || !part_with(parts, allowed.first(1))) return std::nullopt;
  const HwlocMachine::Part* const part = part_with(parts, allowed);
  return part ? part->number : -1;
}

Processors counted(const HwlocMachine& machine) {
  Processors here;
  std::set<int> threads;
  for (const auto* parts : {&machine.cores, &machine.domains})
    for (const HwlocMachine::Part& part : *parts) threads.insert(part.processors.begin(), part.processors.end());
  if (!threads.empty()) here.threads = static_cast<int>(threads.size());
  if (!machine.cores.empty()) here.cores = static_cast<int>(machine.cores.size());
  if (!machine.domains.empty()) here.domains = static_cast<int>(machine.domains.size());
  return here;
}

}  // namespace

Sourced<Binding> find_binding(std::span<const int> allowed, const ProcessorSources& sources) {
  return ask<Binding>(
      sources.hwloc, [&] { return binding_of(allowed, sources.sys); },
      [&](const HwlocMachine& machine) {
        return Binding{bound_to(machine.domains, allowed), bound_to(machine.cores, allowed)};
      });
}

Sourced<Processors> find_processors(const ProcessorSources& sources) {
  return ask<Processors>(
      sources.hwloc, [&] { return processors_here(sources.sys); }, counted);
}

}  // namespace bestride::inline model
