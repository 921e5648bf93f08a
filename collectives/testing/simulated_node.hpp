// SPDX-License-Identifier: Apache-2.0
#pragma once
// The ranks of one node in one thread, taking turns in random order. For tests.
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <vector>

#include "collectives/core/task.hpp"
#include "collectives/one_node/rounds.hpp"

namespace bestride::inline collectives {

/// A collective as a call of its own.
inline Task as_call(Rounds& rounds, Task collective) {
  rounds.open();
  co_await std::move(collective);
  rounds.close();
}

class SimulatedNode {
 public:
  SimulatedNode(int ranks, std::int64_t slot_bytes, std::uint64_t seed)
      : shape_{ranks, slot_bytes}, memory_(new (std::align_val_t(4096)) std::byte[shape_.bytes()]()), random_(seed) {
    for (int rank = 0; rank < ranks; ++rank) rounds_.push_back(std::make_unique<Rounds>(memory_.get(), shape_, rank));
  }

  Rounds& at(int rank) { return *rounds_[static_cast<std::size_t>(rank)]; }
  int ranks() const { return shape_.ranks; }
  /// That rank makes no more calls.
  void end(int rank) { rounds_[static_cast<std::size_t>(rank)].reset(); }

  /// Runs one task per rank to its end. False: deadlock, or a task failed.
  bool run(std::vector<Task> tasks) {
    std::vector<std::size_t> running(tasks.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) running[i] = i;
    for (long idle = 0; !running.empty(); ++idle) {
      if (idle > 200'000) return false;
      // A rank often gets many turns in a row, so that it is as far ahead of the others as it can be.
      const std::size_t pick = random_() % running.size();
      for (std::uint64_t turns = random_() % 8; turns > 0 && !tasks[running[pick]].step(); --turns) {
      }
      if (!tasks[running[pick]].step()) continue;
      running[pick] = running.back();
      running.pop_back();
      idle = 0;
    }
    for (Task& task : tasks)
      if (task.failed()) return false;
    return true;
  }

 private:
  struct Aligned {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t(4096)); }
  };
  RoundsShape shape_;
  std::unique_ptr<std::byte[], Aligned> memory_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Rounds>> rounds_;
};

}  // namespace bestride::inline collectives
