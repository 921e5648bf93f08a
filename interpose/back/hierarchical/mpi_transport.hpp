// SPDX-License-Identifier: Apache-2.0
#pragma once
// MpiTransport: the wire of one communicator, over the job's own communicator and under two tags of its own.
#include <mpi.h>

#include <vector>

#include "collectives/transport.hpp"
#include "perfmodel/collective_costs.hpp"

namespace bestride {

class MpiTransport final : public Transport {
 public:
  /// `world_ranks`: of the communicator's ranks.
  MpiTransport(MPI_Comm wire, std::vector<int> world_ranks) : wire_(wire), world_ranks_(std::move(world_ranks)), unacknowledged_(world_ranks_.size()) {}
  /// `pair`: no other communicator's; 2 pair + 1 is a tag.
  void set_tags(int pair) noexcept { tag_ = 2 * pair; }

  /// Some are synchronous sends (Unacknowledged): a receiver that is late does not fill with messages.
  Transfer send(int rank, const void* data, std::int64_t bytes, Line line) noexcept override;
  Transfer receive(int rank, void* data, std::int64_t bytes, Line line) noexcept override;
  bool done(Transfer& transfer) noexcept override;
  /// Lets the MPI library make progress, where nothing of ours asks it to: a neighbour may be waiting for a message that the application
  /// sent before it came here.
  void poll() noexcept;

 private:
  int tag(Line line) const noexcept { return tag_ + static_cast<int>(line); }

  const MPI_Comm wire_;
  int tag_ = 0;  ///< of the first line
  const std::vector<int> world_ranks_;
  std::vector<Unacknowledged> unacknowledged_;  ///< by rank
};

}  // namespace bestride
