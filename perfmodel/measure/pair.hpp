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

/// Memory of one rank, grown as points need it and never given back: every page was touched.
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

/// Places in memory that take turns, so that what a program last touched long ago is not in its caches here either: a halo is
/// exchanged after a sweep over the whole domain, and the buffers it is packed into were swept out as well. Faces of 1 KiB a block:
/// packing, measured warm or into a warm buffer, is 1.6 times as fast as forwarding; in a stencil code it was 0.8.
class Rotation {
 public:
  /// At least `bytes` bytes a place; the places span `span` bytes of `arena` or one place.
  Rotation(Arena& arena, std::size_t bytes);
  char* next() noexcept { return base_ + (turn_++ % places_) * step_; }

 private:
  static constexpr std::size_t span = std::size_t{32} << 20;  ///< beyond every second-level cache, and most shares of a third
  char* base_;
  std::size_t places_, step_, turn_ = 0;
};

/// One message between the two ranks, or of rank 0 to itself. The side its kind names works on the data in question, the other's
/// data is contiguous; after a message to the other rank comes an empty answer, so that rank 0's clock sees the end of it.
class OneWay {
 public:
  /// `other`: `bytes` bytes for the side that does not work.
  OneWay(MPI_Comm pair, CallKind kind, Distance distance, int bytes, char* other) noexcept;
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

/// One message each way at once, between the two ranks or of rank 0 to itself.
class Exchange {
 public:
  Exchange(MPI_Comm pair, Distance distance) noexcept;
  /// Whether this rank takes part.
  bool works() const noexcept { return works_; }
  /// Sends and receives `count` of `type`; the addresses are taken as they are at the call.
  void transfer(const void* from, void* to, int count, MPI_Datatype type) const;

 private:
  MPI_Comm pair_;
  int peer_;
  bool works_;
};

/// Seconds of each action on rank 0 (of `answered` ones without what the answer takes), interleaved; 0 where no sample was
/// undisturbed. `limit`: seconds a batch of samples of one action may take.
std::vector<double> time_actions(MPI_Comm pair, std::vector<std::function<void()>> actions, bool answered, double limit);

}  // namespace bestride
