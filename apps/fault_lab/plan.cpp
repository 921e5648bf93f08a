// SPDX-License-Identifier: Apache-2.0
#include "plan.hpp"

#include <algorithm>
#include <numeric>

namespace fault_lab {
namespace {

std::uint64_t finalize(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

int choose_rank(const Options& options, const KindEntry& entry, int ranks, std::uint64_t random) {
  if (options.fault_rank >= 0) return options.fault_rank;
  if (entry.place == Place::master) return 0;
  if (entry.place == Place::worker) return 1 + int(random % std::uint64_t(std::max(1, ranks - 1)));
  return int(random % std::uint64_t(ranks));
}

std::vector<int> pair(int a, int b) { return a < b ? std::vector<int>{a, b} : std::vector<int>{b, a}; }

}  // namespace

std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  return finalize(a ^ finalize(b ^ finalize(c ^ finalize(d))));
}

Plan make_plan(const Options& options, int ranks) {
  const KindEntry& entry = entry_of(options.kind);
  const std::uint64_t seed = std::uint64_t(options.seed);
  Plan plan;
  plan.kind = options.kind;
  plan.variant = mix(seed, 1);
  plan.rank = choose_rank(options, entry, ranks, mix(seed, 2));
  plan.step = options.fault_step >= 0
                  ? options.fault_step
                  : options.steps / 4 + int(mix(seed, 3) % std::uint64_t(std::max(1, options.steps / 2)));
  std::vector<Phase> possible;
  for (const Phase phase : options.phases)
    if (entry.phases >> int(phase) & 1) possible.push_back(phase);
  if (options.fault_phase)
    plan.phase = *options.fault_phase;
  else if (!possible.empty())
    plan.phase = possible[mix(seed, 4) % possible.size()];
  return plan;
}

Plan make_second_plan(const Options& options, const Plan& first, int ranks) {
  Plan plan = first;
  plan.kind = options.second;
  if (ranks > 1)
    plan.rank = (first.rank + 1 + int(mix(std::uint64_t(options.seed), 6) % std::uint64_t(ranks - 1))) % ranks;
  return plan;
}

std::vector<int> culprits_of(const Plan& plan, int ranks) {
  switch (entry_of(plan.kind).culprits) {
    case Culprits::none: return {};
    case Culprits::fault_rank: return {plan.rank};
    case Culprits::with_next: return pair(plan.rank, (plan.rank + 1) % ranks);
    case Culprits::with_first: return pair(plan.rank, 0);
    case Culprits::with_last: return pair(plan.rank, ranks - 1);
    case Culprits::all: break;
  }
  std::vector<int> all(std::size_t(ranks), 0);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

double deviation(const Options& options, int rank, int step, Phase phase) {
  const std::uint64_t random =
      mix(std::uint64_t(options.seed), 5, std::uint64_t(rank), std::uint64_t(step) << 8 | unsigned(phase));
  return double(random >> 11) * 0x1p-52 - 1;
}

}  // namespace fault_lab
