// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include "apps/common/command_line.hpp"
#include "apps/common/text.hpp"

namespace fault_lab {
namespace {

using namespace command_line;

constexpr Named<Phase> phases[] = {
    {Phase::halo, "halo"},     {Phase::ring, "ring"},       {Phase::collectives, "collectives"},
    {Phase::farm, "farm"},     {Phase::windows, "windows"}, {Phase::groups, "groups"},
    {Phase::blocks, "blocks"}, {Phase::files, "files"}};
constexpr int most = 1 << 30;

Setter kind(Kind& target) {
  return [&target](const std::string& text) {
    const KindEntry* const entry = find_kind(text);
    if (entry) target = entry->kind;
    return std::string(entry ? "" : "a kind that --list prints");
  };
}

Setter phase(std::optional<Phase>& target) {
  return [&target](const std::string& text) {
    Phase value{};
    const std::string wanted = one_of(value, phases)(text);
    if (wanted.empty()) target = value;
    return wanted;
  };
}

bool contains(const std::vector<Phase>& listed, Phase phase) {
  for (const Phase one : listed)
    if (one == phase) return true;
  return false;
}

}  // namespace

std::vector<Phase> usual_phases_and(Kind kind) {
  std::vector<Phase> phases;
  for (int phase = 0; phase < phase_count; ++phase)
    if (phase < usual_phases || (kind != Kind::none && entry_of(kind).phases >> phase & 1))
      phases.push_back(Phase(phase));
  return phases;
}

Parsed parse(const std::vector<std::string>& arguments) {
  Options options;
  const Valued valued = {
      {"--fault", kind(options.kind)},
      {"--second-fault", kind(options.second)},
      {"--fault-rank", whole(options.fault_rank, 0, most)},
      {"--fault-step", whole(options.fault_step, 0, most)},
      {"--fault-phase", phase(options.fault_phase)},
      {"--fault-seconds", number(options.fault_seconds, 0, 1e6)},
      {"--seed", whole(options.seed, 0, most)},
      {"--steps", whole(options.steps, 1, most)},
      {"--work-us", whole(options.work_us, 0, 100'000'000)},
      {"--phases", several_of(options.phases, phases)},
      {"--bytes", whole(options.bytes, 16, 1 << 26)},
      {"--tasks", whole(options.tasks, 1, 1024)},
      {"--imbalance", number(options.imbalance, 0, 90)},
      {"--checkpoint-every", whole(options.checkpoint_every, 1, most)},
      {"--checkpoint-seconds", number(options.checkpoint_seconds, 0.01, 1e6)},
      {"--pause-seconds", number(options.pause_seconds, 0.01, 1e6)},
      {"--quota", whole(options.quota, 1, 99)},
      {"--limit", number(options.limit, 0.1, 1e6)},
      {"--log", file_name(options.log)},
      {"--ranks", whole(options.ranks, 1, most)},
  };
  const Flags flags = {
      {"--yield", [&] { options.yield = true; }}, {"--quota-timer", [&] { options.quota_timer = true; }},
      {"--list", [&] { options.list = true; }},   {"--json", [&] { options.json = true; }},
      {"--help", [&] { options.help = true; }},   {"-h", [&] { options.help = true; }},
  };
  if (std::string problem = command_line::parse(arguments, valued, flags); !problem.empty()) return {{}, problem};
  options.bytes = options.bytes / 16 * 16;
  options.phases_given = !options.phases.empty();
  if (!options.phases_given) options.phases = usual_phases_and(options.kind);
  if (options.imbalance < 0) options.imbalance = options.kind == Kind::imbalance ? 30 : 0;
  if (options.json && !options.list) return {{}, "--json needs --list"};
  if (options.ranks && !options.list) return {{}, "--ranks needs --list"};
  if (options.fault_step >= options.steps)
    return {{}, "--fault-step has to be less than --steps, " + std::to_string(options.steps)};
  return {options, ""};
}

std::string validate(const Options& options, int ranks) {
  const KindEntry& entry = entry_of(options.kind);
  const std::string fault = std::string("--fault ") + entry.name;
  if (ranks < entry.ranks) return fault + " needs " + std::to_string(entry.ranks) + " ranks";
  if (options.fault_rank >= ranks) return "--fault-rank has to be less than the number of ranks";
  if (options.fault_rank > 0 && entry.place == Place::master) return fault + " happens on rank 0";
  if (options.fault_rank == 0 && entry.place == Place::worker) return fault + " happens on ranks from 1";
  if (options.second != Kind::none) {
    const KindEntry& second = entry_of(options.second);
    const std::string both = std::string("--second-fault ") + second.name;
    if (!stalls(second) || stalls_all(second)) return both + " is no hang of one rank outside of MPI";
    if (entry.culprits != Culprits::fault_rank || entry.end == End::signal || entry.end == End::exit ||
        entry.end == End::ok)
      return both + " needs a --fault of one rank that hangs, not " + entry.name;
    if (ranks < 2) return both + " needs 2 ranks";
  }
  bool possible = false;
  for (const Phase phase : options.phases) possible |= entry.phases >> int(phase) & 1;
  if (!possible) return fault + " can't happen in these --phases";
  if (options.fault_phase && !(entry.phases >> int(*options.fault_phase) & 1))
    return fault + " can't happen in the phase " + name_of(*options.fault_phase);
  if (options.fault_phase && !contains(options.phases, *options.fault_phase))
    return std::string("--phases is without ") + name_of(*options.fault_phase);
  return "";
}

std::string usage() {
  return "fault_lab: halo exchange, ring, collectives and a task farm, with one fault\n"
         "  --list [--json] [--ranks N]   all kinds and what a detector should find, resolved for the other options\n"
         "  --fault KIND                  a kind that --list prints (none)\n"
         "  --second-fault KIND           a hang outside of MPI, of another rank in the same step and phase (none)\n"
         "  --fault-rank N --fault-step N --fault-phase P\n"
         "                                where it happens (--seed decides)\n"
         "  --fault-seconds S             duration of sigstop, spin and sleep; 0: forever (0)\n"
         "  --seed N                      data, imbalance and the place of the fault (1)\n"
         "  --steps N --work-us N         steps, computation per step and phase (100, 1000)\n"
         "  --phases P,P                  some of halo, ring, collectives, farm (these four), windows, groups, blocks, "
         "files\n"
         "  --bytes N --tasks N           size of a message, tasks per worker and step (4096, 2)\n"
         "  --imbalance PERCENT           largest random difference of the computation (0; 30 for --fault imbalance)\n"
         "  --checkpoint-every N --checkpoint-seconds S\n"
         "                                for --fault checkpoint and checkpoint_one (20, 10)\n"
         "  --pause-seconds S             length of the interruptions that are no faults (5)\n"
         "  --quota PERCENT               for --fault cpu_quota (50)\n"
         "  --quota-timer                 the quota is kept by a timer, also if a control group could be made\n"
         "  --yield                       wait with MPI_Testall and sched_yield() where calls are nonblocking\n"
         "  --limit S                     the program ends itself after S seconds (60)\n"
         "  --log FILE                    append the line of the fault to FILE instead of standard error\n";
}

}  // namespace fault_lab
