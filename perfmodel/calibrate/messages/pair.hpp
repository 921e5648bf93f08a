// SPDX-License-Identifier: Apache-2.0
#pragma once
// Two ranks that time calls together: sending, answering, sampling. The clock is rank 0's. Both ranks call the same
// functions in the same order.
#include <mpi.h>

#include <functional>
#include <vector>

#include "model/distance.hpp"
#include "perfmodel/host/strategy.hpp"

namespace bestride::inline perfmodel {

/// Memory of one rank. Grows with the points and is never freed before destruction; every page has been touched.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  ~Arena();
  /// Memory of at least `bytes` bytes at a page boundary, every page touched. Invalidates the memory that it returned
  /// before.
  char* at_least(std::size_t bytes);

 private:
  char* memory_ = nullptr;
  std::size_t size_ = 0;
};

/// Memory areas used in turn, so that the measured data is not in the caches, as in an application: a halo is exchanged
/// after a sweep over the whole domain, which evicts the halo and the buffers that it is packed into. Faces of 1 KiB
/// blocks: packing is 1.6 times as fast as forwarding when measured with warm data or a warm buffer, but 0.8 times as
/// fast in a stencil code.
class Rotation {
 public:
  /// Makes areas of at least `bytes` bytes each. They span `span` bytes of `arena`; if `bytes` is larger, there is one
  /// area.
  Rotation(Arena& arena, std::size_t bytes);
  char* next() noexcept { return base_ + (turn_++ % places_) * step_; }

 private:
  static constexpr std::size_t span = std::size_t{32} << 20;  ///< larger than every second-level cache, and than most
                                                              ///< ranks' share of a third-level cache
  char* base_;
  std::size_t places_, step_, turn_ = 0;
};

/// One message between the two ranks, or from rank 0 to itself. The endpoint that the call kind names works on the data
/// to be measured; the data of the other endpoint is contiguous. After a message to the other rank, an empty answer is
/// returned, so that rank 0's clock includes the end of the message.
class OneWay {
 public:
  /// `other`: `bytes` bytes for the endpoint that is not measured.
  OneWay(MPI_Comm pair, CallKind kind, Distance distance, int bytes, char* other) noexcept;
  /// True if this rank is the measured endpoint. The other rank calls only idle().
  bool works() const noexcept { return works_; }
  bool answered() const noexcept { return is_message(kind_) && !self_; }
  CallKind kind() const noexcept { return kind_; }
  int rank() const noexcept { return rank_; }
  /// Sends or receives (data, count, type) on the measured endpoint.
  void transfer(void* data, int count, MPI_Datatype type) const;
  void answer() const;
  /// Everything that the rank that is not measured does for one message.
  void idle() const;

 private:
  MPI_Comm pair_;
  CallKind kind_;
  bool self_, works_;
  int rank_ = 0, bytes_;
  char* other_;
};

/// One message in each direction at the same time, between the two ranks or from rank 0 to itself.
class Exchange {
 public:
  Exchange(MPI_Comm pair, Distance distance) noexcept;
  /// True if this rank takes part.
  bool works() const noexcept { return works_; }
  /// Sends and receives `count` elements of `type`, at the addresses given.
  void transfer(const void* from, void* to, int count, MPI_Datatype type) const;

 private:
  MPI_Comm pair_;
  int peer_;
  bool works_;
};

/// Seconds of each action on rank 0, interleaved; 0 if every sample was disturbed. `answered`: the time of the answer
/// is subtracted. `limit`: maximum duration of a batch of samples of one action, in seconds.
std::vector<double> time_actions(MPI_Comm pair, std::vector<std::function<void()>> actions, bool answered,
                                 double limit);

}  // namespace bestride::inline perfmodel
