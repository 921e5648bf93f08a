// SPDX-License-Identifier: Apache-2.0
// Chooses the steps of a program.
#include "tests/fuzz/programs/spelling.hpp"
#include "tests/support/random.hpp"

namespace bestride::fuzz {
namespace {

using test::Random;

struct Weight {
  Kind kind;
  int weight;
  bool threaded;  ///< may be executed by one of two threads
};

constexpr Weight weights[] = {
    {Kind::comm_make, 12, true},
    {Kind::comm_use, 5, true},
    {Kind::comm_free, 4, false},
    {Kind::type_make, 9, true},
    {Kind::type_use, 8, true},
    {Kind::type_free, 3, true},
    {Kind::messages, 26, true},
    {Kind::exchange, 10, true},
    {Kind::collective, 34, true},
    {Kind::neighbor, 7, true},
    {Kind::persistent_make, 7, true},
    {Kind::persistent_start, 9, true},
    {Kind::persistent_free, 1, false},
    {Kind::partitioned, 2, true},
    {Kind::window, 4, false},
    {Kind::file, 2, false},
    {Kind::complete, 16, true},
    {Kind::cancel, 2, true},
    {Kind::errors, 5, false},
    {Kind::throwing, 1, false},
    {Kind::pack, 5, true},
    {Kind::recommit, 1, true},
};

Kind pick_kind(Random& random, bool threaded) {
  int all = 0;
  for (const Weight& w : weights) all += threaded && !w.threaded ? 0 : w.weight;
  std::int64_t at = random.between(0, all - 1);
  for (const Weight& w : weights) {
    at -= threaded && !w.threaded ? 0 : w.weight;
    if (at < 0) return w.kind;
  }
  return Kind::complete;
}

}  // namespace

Program generate(std::uint64_t seed, std::uint64_t index, int ranks, bool threads) {
  Random random(Random(seed * 0x9e3779b97f4a7c15 + index * 1000003 + static_cast<std::uint64_t>(ranks)).bits());
  Program program{ranks, threads, random.chance(40), {}};
  const int length = static_cast<int>(random.chance(20) ? random.between(20, 40) : random.between(5, 20));
  // A few programs concentrate on one topic: structs of several basic types, one communicator, and only a few kinds of
  // steps.
  const int largest = static_cast<int>(random.chance(15) ? 3 : random.chance(40) ? 2 : 1);
  const bool rare = random.chance(1) && ranks == 2;
  int region = 0;  // steps left of a region of two threads
  for (int i = 0; i < length; ++i) {
    Step step;
    if (threads && region == 0 && i + 4 < length && random.chance(15)) region = static_cast<int>(random.between(3, 6));
    if (region > 0) {
      --region;
      step.thread = static_cast<int>(random.between(1, 2));
    }
    step.kind = rare && i == length / 2 ? Kind::big_receive : pick_kind(random, step.thread != 0);
    step.seed = random.bits() >> 16;
    step.size = static_cast<int>(random.between(0, largest));
    step.types = static_cast<int>(random.chance(25) ? 0 : random.between(1, 3));
    step.spell = random.chance(20) ? 0 : all_ways;
    step.pmpi = random.chance(30);
    step.pend = random.chance(70);
    step.number = i;
    program.steps.push_back(step);
  }
  return program;
}

Program generate_mismatched(std::uint64_t seed, std::uint64_t index, int ranks) {
  Random random(Random(seed * 0x9e3779b97f4a7c15 + index * 1000003 + 17).bits());
  Step step;
  step.kind = Kind::mismatched;
  step.seed = random.bits() >> 16;
  step.size = static_cast<int>(random.between(0, 2));
  step.pmpi = 0;
  return Program{ranks, false, false, {step}};
}

}  // namespace bestride::fuzz
