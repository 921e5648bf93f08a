// SPDX-License-Identifier: Apache-2.0
#include "listing.hpp"

#include "apps/common/text.hpp"
#include "plan.hpp"

namespace fault_lab {
namespace {

using apps::format;

std::string numbers(const std::vector<int>& list, const char* separator) {
  std::string text;
  for (const int number : list) text += (text.empty() ? "" : separator) + std::to_string(number);
  return text;
}

std::string culprits_as_text(const KindEntry& entry, const Plan& plan, int ranks) {
  if (ranks < entry.ranks) return format("needs %d ranks", entry.ranks);
  if (entry.culprits == Culprits::all) return "all";
  if (entry.culprits == Culprits::none) return "-";
  return numbers(culprits_of(plan, ranks), ",");
}

/// A fault that --fault-seconds ends leaves a correct run.
End end_of(const KindEntry& entry, const Options& options) {
  return entry.resumable && options.fault_seconds > 0 ? End::ok : entry.end;
}

std::string end_as_text(const KindEntry& entry, const Options& options) {
  const bool with_code = entry.end == End::signal || entry.end == End::exit;
  const char* const end = name_of(end_of(entry, options));
  return with_code ? format("%s %d", end, entry.code) : end;
}

}  // namespace

std::string list_as_text(const Options& options, int ranks) {
  std::string text = format("%-22s %-23s %-14s %-10s %s\n", "kind", "class", "culprits", "end", "description");
  Options of_kind = options;
  for (const KindEntry& entry : all_kinds()) {
    of_kind.kind = entry.kind;
    if (!options.phases_given) of_kind.phases = usual_phases_and(entry.kind);
    const Plan plan = make_plan(of_kind, ranks);
    text +=
        format("%-22s %-23s %-14s %-10s %s\n", entry.name, name_of(entry.verdict),
               culprits_as_text(entry, plan, ranks).c_str(), end_as_text(entry, options).c_str(), entry.description);
  }
  return text;
}

std::string list_as_json(const Options& options, int ranks) {
  std::string text = format("{\n  \"program\": \"fault_lab\", \"ranks\": %d, \"seed\": %d, \"steps\": %d,\n", ranks,
                            options.seed, options.steps);
  text += "  \"kinds\": [";
  Options of_kind = options;
  const char* separator = "\n";
  for (const KindEntry& entry : all_kinds()) {
    of_kind.kind = entry.kind;
    if (!options.phases_given) of_kind.phases = usual_phases_and(entry.kind);
    const bool possible = validate(of_kind, ranks).empty();
    const Plan plan = make_plan(of_kind, ranks);
    text +=
        format("%s    {\"kind\": \"%s\", \"class\": \"%s\", \"also\": [%s], \"possible\": %s, ", separator, entry.name,
               name_of(entry.verdict), entry.also == entry.verdict ? "" : format("\"%s\"", name_of(entry.also)).c_str(),
               possible ? "true" : "false");
    text += "\"culprits\": [" + (possible ? numbers(culprits_of(plan, ranks), ", ") : "") + "], ";
    text += format("\"rank\": %d, \"step\": %d, \"phase\": \"%s\", ", plan.rank, plan.step, name_of(plan.phase));
    if (options.second != Kind::none)
      text += format("\"second_rank\": %d, ", make_second_plan(of_kind, plan, ranks).rank);
    text += format("\"end\": \"%s\", \"code\": %d, \"ranks\": %d, \"threads\": %s, \"resumable\": %s, ",
                   name_of(end_of(entry, options)), entry.code, entry.ranks, entry.threads ? "true" : "false",
                   entry.resumable ? "true" : "false");
    if (entry.function) text += format("\"function\": \"%s\", ", entry.function);
    text += format("\"description\": \"%s\"}", entry.description);
    separator = ",\n";
  }
  return text + "\n  ]\n}\n";
}

}  // namespace fault_lab
