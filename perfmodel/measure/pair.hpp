// SPDX-License-Identifier: Apache-2.0
#pragma once
// Two ranks that time calls together: what is sent, how it is answered, how samples are taken. Rank 0 has the clock. Both ranks
// call the same functions in the same order.
#include <mpi.h>

#include <functional>
#include <vector>

#include "model/distance.hpp"
#include "perfmodel/strategy.hpp"

namespace bestride {

/// Memory of one rank, grown as points need it and never given back: what is measured is warm memory.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  ~Arena();
  /// At least `bytes` bytes at a page boundary, every page touched. Moves what it returned before.
  char* at_least(std::size_t bytes);

 private:
  char* memory_ = nullptr;
  std::size_t size_ = 0;
};

/// One kind of call between the two ranks. The side it names works on the data in question, the other's data is contiguous;
/// after a message to the other rank comes an empty answer, so that rank 0's clock sees the end of it.
class Exchange {
 public:
  /// `other`: `bytes` bytes for the side that does not work.
  Exchange(MPI_Comm pair, CallKind kind, Distance distance, int bytes, char* other) noexcept;
  /// Whether this rank is at the side in question. The rank that is not only calls idle().
  bool works() const noexcept { return works_; }
  bool answered() const noexcept { return is_message(kind_) && !self_; }
  CallKind kind() const noexcept { return kind_; }
  int rank() const noexcept { return rank_; }
  /// Sends or receives (data, count, type) on the side in question.
  void transfer(void* data, int count, MPI_Datatype type) const;
  void answer() const;
  /// All that the other rank does.
  void idle() const;

 private:
  MPI_Comm pair_;
  CallKind kind_;
  bool self_, works_;
  int rank_ = 0, bytes_;
  char* other_;
};

/// Seconds of each action on rank 0 (of `answered` ones without what the answer takes), interleaved; 0 where no sample was
/// undisturbed. `limit`: seconds a batch of samples of one action may take.
std::vector<double> time_actions(MPI_Comm pair, std::vector<std::function<void()>> actions, bool answered, double limit);

}  // namespace bestride
