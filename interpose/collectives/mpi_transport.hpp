// SPDX-License-Identifier: Apache-2.0
#pragma once
// MpiTransport: the transport of one communicator, over the job's private communicator and with two tags of its own.
#include <mpi.h>

#include <vector>

#include "collectives/core/transport.hpp"
#include "perfmodel/collective/costs.hpp"

namespace bestride::inline interpose {

class MpiTransport final : public Transport {
 public:
  static constexpr int no_messages_tag = 0;  ///< not a tag of any pair
  /// `world_ranks`: world ranks of the communicator's members.
  MpiTransport(MPI_Comm comm, std::vector<int> world_ranks)
      : comm_(comm), world_ranks_(std::move(world_ranks)), unacknowledged_(world_ranks_.size()) {}
  /// `pair` > 0: a number that no other communicator has. 2 * pair + 1 must be a valid tag.
  void set_tags(int pair) noexcept { tag_ = 2 * pair; }

  /// Some sends are synchronous (Unacknowledged), so that messages don't pile up at a late receiver.
  Transfer send(int rank, const void* data, std::int64_t bytes, VirtualChannel line) noexcept override;
  Transfer receive(int rank, void* data, std::int64_t bytes, VirtualChannel line) noexcept override;
  bool done(Transfer& transfer) noexcept override;
  /// Lets the MPI library make progress when no operation of ours calls it: a neighbor may wait for a message that the
  /// application sent before this call.
  void poll() noexcept;

 private:
  int tag(VirtualChannel line) const noexcept { return tag_ + static_cast<int>(line); }

  const MPI_Comm comm_;
  int tag_ = 0;  ///< of the first virtual channel
  const std::vector<int> world_ranks_;
  std::vector<Unacknowledged> unacknowledged_;  ///< by rank
};

}  // namespace bestride::inline interpose
